//! Collects the looks of all blocks, and loads their textures.

use super::keys::KnownStates;
use super::table::{TextureLayers, TextureUse};
use super::textures::{TextureArray, WrongTexture};
use super::{BASIC_LOOKS, BlockLooks, ChunkLooks, LookTable};
use crate::block_mesher::Meshing;
use bevy::asset::LoadState;
use bevy::ecs::system::SystemParam;
use bevy::platform::collections::{HashMap, HashSet};
use bevy::prelude::*;
use bevy::render::render_resource::{Buffer, BufferInitDescriptor, BufferUsages};
use bevy::render::renderer::RenderDevice;
use bevy::tasks::futures::check_ready;
use bevy::tasks::{AsyncComputeTaskPool, Task, TaskPool};
use bevy_terrane::simulation::BlockTypes;
use std::mem;
use std::sync::Arc;

/// The looks by which blocks are drawn.
#[derive(Resource, Default)]
pub(crate) struct LooksInUse {
    /// `None` until the textures of the first looks are loaded, or cannot be.
    table: Option<Arc<LookTable>>,
    /// Changes with the quads or the colors of blocks.
    version: u64,
    /// The shader's buffer of faces and its textures, if there is a graphics card.
    gpu: Option<(Buffer, Handle<Image>)>,
    next: Next,
    images: HashMap<String, Handle<Image>>,
    /// Textures that were already warned of, with their frames.
    warned: HashSet<(String, u16)>,
}

/// The looks that will be used next.
#[derive(Default)]
enum Next {
    /// None.
    #[default]
    Nothing,
    /// Their textures are being loaded.
    Loading(Box<LookTable>),
    /// Their textures are being put into an array, on another thread.
    Stacking(Task<Stacked>),
}

/// A table with its textures.
struct Stacked {
    table: LookTable,
    /// The words of the shader's faces.
    faces: Vec<u32>,
    textures: Image,
    /// Textures that show as a checkerboard, with the reason.
    wrong: Vec<(TextureUse, WrongTexture)>,
}

impl LooksInUse {
    /// How blocks are drawn, and a number that changes when their meshes must be made anew; `None` while the first looks are
    /// being loaded.
    pub fn table(&self) -> Option<(&Arc<LookTable>, u64)> {
        self.table.as_ref().map(|table| (table, self.version))
    }

    /// The looks of faces and the textures for the shader.
    pub fn gpu(&self) -> Option<&(Buffer, Handle<Image>)> {
        self.gpu.as_ref()
    }

    fn take_over(&mut self, table: LookTable) {
        if self.table.as_ref().is_none_or(|old| !old.draws_like(&table)) {
            self.version += 1;
        }
        self.table = Some(Arc::new(table));
    }

    /// Warns once of each texture that shows as a checkerboard.
    fn warn(&mut self, wrong: Vec<(TextureUse, WrongTexture)>) {
        let now: HashSet<_> = wrong.iter().map(|(texture, _)| (texture.path.clone(), texture.frames)).collect();
        for (TextureUse { path, frames, block, .. }, WrongTexture(what)) in wrong {
            if !self.warned.contains(&(path.clone(), frames)) {
                warn!("{path} of {block:?} shows as a checkerboard: {what}");
            }
        }
        self.warned = now;
    }
}

/// The changes of looks and textures, in an app that loads assets.
#[derive(SystemParam)]
pub(crate) struct LookAssets<'w, 's> {
    server: Option<Res<'w, AssetServer>>,
    /// Missing in an app without a renderer, which needs no textures.
    images: Option<Res<'w, Assets<Image>>>,
    looks: Option<Res<'w, Assets<BlockLooks>>>,
    changed_looks: MessageReader<'w, 's, AssetEvent<BlockLooks>>,
    changed_images: MessageReader<'w, 's, AssetEvent<Image>>,
}

/// Returns `true` while the asset is being loaded.
fn is_loading<A: Asset>(server: Option<&AssetServer>, handle: &Handle<A>) -> bool {
    matches!(server.and_then(|server| server.get_load_state(handle)), Some(LoadState::Loading))
}

/// Reads the looks again when they have changed, and asks for their textures.
pub(crate) fn collect_looks(
    mut looks: ResMut<LooksInUse>,
    wanted: Res<ChunkLooks>,
    (blocks, meshing): (Option<Res<BlockTypes>>, Option<Res<Meshing>>),
    mut assets: LookAssets,
    (mut is_outdated, mut textures_changed): (Local<bool>, Local<bool>),
    mut told: Local<HashSet<String>>,
) {
    let is_wanted = |event: &AssetEvent<BlockLooks>| {
        wanted.iter().any(|handle| event.is_added(handle) || event.is_modified(handle) || event.is_removed(handle))
    };
    let changes = assets.changed_looks.read().filter(|event| is_wanted(event)).count();
    *is_outdated |= changes > 0 || wanted.is_changed() || blocks.as_ref().is_some_and(|blocks| blocks.is_added());
    let is_used = |event: &AssetEvent<Image>| {
        looks.images.values().any(|handle| event.is_modified(handle) || event.is_added(handle))
    };
    *textures_changed |= assets.changed_images.read().filter(|event| is_used(event)).count() > 0;
    let Some(blocks) = blocks else { return };

    if *is_outdated && !wanted.iter().any(|handle| is_loading(assets.server.as_deref(), handle)) {
        *is_outdated = false;
        let known = assets.looks.as_ref();
        let mut table = LookTable::new(&blocks, wanted.iter().filter_map(|handle| known?.get(handle)));
        let meshers = meshing.iter().flat_map(|meshing| meshing.meshers.iter());
        meshers.for_each(|mesher| table.share(&blocks, |block| mesher.draws(block), |block| mesher.reads(block)));
        table.errors.iter().for_each(|error| error!("{error}"));
        warn_of_misfits(&blocks, wanted.iter().filter_map(|handle| Some((handle, known?.get(handle)?))), &mut told);
        if let Some(server) = assets.server.as_ref().filter(|_| assets.images.is_some()) {
            let load = |texture: &TextureUse| {
                let handle = looks.images.get(&texture.path).cloned().unwrap_or_else(|| server.load(&texture.path));
                (texture.path.clone(), handle)
            };
            looks.images = table.textures.iter().map(load).collect();
        }
        looks.next = Next::Loading(Box::new(table));
        *textures_changed = false;
    } else if *textures_changed && let (Next::Nothing, Some(table)) = (&looks.next, &looks.table) {
        looks.next = Next::Loading(Box::new(LookTable::clone(table)));
        *textures_changed = false;
    }
}

/// Warns once of looks whose keys fit no block. A game without the basic blocks needs no looks of them.
fn warn_of_misfits<'a>(
    blocks: &BlockTypes,
    looks: impl Iterator<Item = (&'a Handle<BlockLooks>, &'a BlockLooks)>,
    told: &mut HashSet<String>,
) {
    let states = KnownStates::new(blocks);
    let mut now = HashSet::default();
    for (handle, looks) in looks {
        let file = handle.path().map_or_else(|| "looks that the game made".to_owned(), ToString::to_string);
        let misfits = states.misfits(looks).filter(|_| file != BASIC_LOOKS);
        let Some(text) = misfits.map(|misfits| format!("{file}: some looks fit no block: {misfits}")) else { continue };
        if !told.contains(&text) {
            warn!("{text}");
        }
        now.insert(text);
    }
    *told = now;
}

/// Uses looks whose textures are loaded.
pub(crate) fn update_looks(
    mut looks: ResMut<LooksInUse>,
    server: Option<Res<AssetServer>>,
    images: Option<ResMut<Assets<Image>>>,
    device: Option<Res<RenderDevice>>,
) {
    let looks = &mut *looks;
    looks.next = match mem::take(&mut looks.next) {
        Next::Loading(table) if !looks.images.values().any(|handle| is_loading(server.as_deref(), handle)) => {
            let Some(images) = images else {
                looks.take_over(*table);
                return;
            };
            let image = |texture: &TextureUse| images.get(looks.images.get(&texture.path)?).cloned();
            let found: Vec<_> = table.textures.iter().map(image).collect();
            let most = device.as_ref().map_or(u32::MAX, |device| device.limits().max_texture_array_layers);
            let pool = AsyncComputeTaskPool::get_or_init(TaskPool::default);
            Next::Stacking(pool.spawn(async move { stack(*table, &found, most) }))
        }
        Next::Stacking(mut task) => match check_ready(&mut task) {
            None => Next::Stacking(task),
            Some(Stacked { table, faces, textures, wrong }) => {
                looks.warn(wrong);
                if let (Some(device), Some(mut images)) = (device, images) {
                    let faces = device.create_buffer_with_data(&BufferInitDescriptor {
                        label: Some("looks of block faces"),
                        contents: bytemuck::cast_slice(&faces),
                        usage: BufferUsages::STORAGE,
                    });
                    looks.gpu = Some((faces, images.add(textures)));
                }
                looks.take_over(table);
                Next::Nothing
            }
        },
        waiting => waiting,
    };
}

/// Puts all textures into an array, and their colors into the table. A texture that is missing is the checkerboard.
fn stack(mut table: LookTable, images: &[Option<Image>], most_layers: u32) -> Stacked {
    let mut array = TextureArray::new(images.iter().flatten());
    let (mut layers, mut colors, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for (texture, image) in table.textures.iter().zip(images) {
        let first = array.layers();
        let made = match image {
            None => Err(WrongTexture("it cannot be loaded".to_owned())),
            Some(_) if first + u32::from(texture.frames) > most_layers => {
                Err(WrongTexture(format!("the graphics card has room for {most_layers} textures")))
            }
            Some(image) => array.push(image, texture.frames, texture.has_holes),
        };
        layers.push(match made {
            Ok(_) => TextureLayers { first, frames: texture.frames.into() },
            Err(_) => TextureLayers::MISSING,
        });
        colors.push(made.as_ref().ok().copied());
        if let Err(error) = made {
            wrong.push((texture.clone(), error));
        }
    }
    table.set_colors(&colors);
    let faces = table.faces.iter().flat_map(|face| face.words(&layers)).collect();
    Stacked { table, faces, textures: array.into_image(), wrong }
}
