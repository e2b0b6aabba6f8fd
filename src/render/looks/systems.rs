//! Collects the looks of all blocks, and loads their textures.

use super::table::TextureUse;
use super::textures::{TextureArray, WrongTexture};
use super::{BlockLooks, ChunkLooks, LookTable};
use crate::render::block_mesher::BlockMeshers;
use crate::simulation::BlockTypes;
use bevy::asset::LoadState;
use bevy::ecs::system::SystemParam;
use bevy::platform::collections::{HashMap, HashSet};
use bevy::prelude::*;
use bevy::render::render_resource::{Buffer, BufferInitDescriptor, BufferUsages};
use bevy::render::renderer::RenderDevice;
use std::sync::Arc;

/// The looks by which blocks are drawn.
#[derive(Resource, Default)]
pub(in crate::render) struct LooksInUse {
    /// `None` until the textures of the first looks are loaded, or cannot be.
    table: Option<Arc<LookTable>>,
    /// Changes with the quads or the colors of blocks.
    version: u64,
    /// What the shader reads, if there is a graphics card.
    gpu: Option<(Buffer, Handle<Image>)>,
    /// A table whose textures are being loaded.
    loading: Option<LookTable>,
    images: HashMap<String, Handle<Image>>,
    /// Textures that were already warned of, with their frames.
    warned: HashSet<(String, u16)>,
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
}

/// The changes of looks and textures, in an app that loads assets.
#[derive(SystemParam)]
pub(in crate::render) struct LookAssets<'w, 's> {
    server: Option<Res<'w, AssetServer>>,
    /// Missing in an app without a renderer, which needs no textures.
    images: Option<Res<'w, Assets<Image>>>,
    looks: Option<Res<'w, Assets<BlockLooks>>>,
    changed_looks: MessageReader<'w, 's, AssetEvent<BlockLooks>>,
    changed_images: MessageReader<'w, 's, AssetEvent<Image>>,
}

/// Returns `true` if the asset is loaded or cannot be.
fn is_settled<A: Asset>(server: Option<&AssetServer>, handle: &Handle<A>) -> bool {
    !matches!(server.and_then(|server| server.get_load_state(handle)), Some(LoadState::Loading | LoadState::NotLoaded))
}

/// Reads the looks again when they have changed, and asks for their textures.
pub(in crate::render) fn collect_looks(
    mut looks: ResMut<LooksInUse>,
    wanted: Res<ChunkLooks>,
    (blocks, meshers): (Option<Res<BlockTypes>>, Option<Res<BlockMeshers>>),
    mut assets: LookAssets,
    mut is_outdated: Local<bool>,
    mut textures_changed: Local<bool>,
) {
    let is_wanted = |event: &AssetEvent<BlockLooks>| {
        wanted.iter().any(|handle| event.is_added(handle) || event.is_modified(handle) || event.is_removed(handle))
    };
    let changes = assets.changed_looks.read().filter(|event| is_wanted(event)).count();
    *is_outdated |= changes > 0 || wanted.is_changed() || blocks.as_ref().is_some_and(|blocks| blocks.is_added());
    let is_used = |event: &AssetEvent<Image>| {
        matches!(event, AssetEvent::Modified { .. } | AssetEvent::Added { .. })
            && looks.images.values().any(|handle| event.is_modified(handle) || event.is_added(handle))
    };
    *textures_changed |= assets.changed_images.read().filter(|event| is_used(event)).count() > 0;
    let Some(blocks) = blocks else { return };

    if *is_outdated && wanted.iter().all(|handle| is_settled(assets.server.as_deref(), handle)) {
        *is_outdated = false;
        let known = assets.looks.as_ref();
        let mut table = LookTable::new(&blocks, wanted.iter().filter_map(|handle| known?.get(handle)));
        table.leave(|block| meshers.as_ref().is_some_and(|meshers| meshers.draw(block)));
        table.errors.iter().for_each(|error| error!("{error}"));
        if let Some(server) = assets.server.as_ref().filter(|_| assets.images.is_some()) {
            let load = |texture: &TextureUse| {
                let handle = looks.images.get(&texture.path).cloned().unwrap_or_else(|| server.load(&texture.path));
                (texture.path.clone(), handle)
            };
            looks.images = table.textures.iter().map(load).collect();
        }
        looks.loading = Some(table);
    } else if *textures_changed && looks.loading.is_none() {
        looks.loading = looks.table.as_deref().cloned();
    }
    if looks.loading.is_some() {
        *textures_changed = false;
    }
}

/// Uses looks whose textures are loaded.
pub(in crate::render) fn update_looks(
    mut looks: ResMut<LooksInUse>,
    server: Option<Res<AssetServer>>,
    images: Option<ResMut<Assets<Image>>>,
    device: Option<Res<RenderDevice>>,
) {
    let looks = &mut *looks;
    if !looks.images.values().all(|handle| is_settled(server.as_deref(), handle)) {
        return;
    }
    let Some(mut table) = looks.loading.take() else { return };
    if let Some(mut images) = images {
        let most = device.as_ref().map_or(u32::MAX, |device| device.limits().max_texture_array_layers);
        let array = load_textures(&mut table, &looks.images, &images, &mut looks.warned, most);
        if let Some(device) = device {
            let words: Vec<u32> = table.faces.iter().flat_map(|face| face.words()).collect();
            let faces = device.create_buffer_with_data(&BufferInitDescriptor {
                label: Some("looks of block faces"),
                contents: bytemuck::cast_slice(&words),
                usage: BufferUsages::STORAGE,
            });
            looks.gpu = Some((faces, images.add(array.into_image())));
        }
    }
    if looks.table.as_ref().is_none_or(|old| !old.draws_like(&table)) {
        looks.version += 1;
    }
    looks.table = Some(Arc::new(table));
}

/// Puts all textures into an array, and their colors into the table. A texture that is missing becomes a checkerboard.
fn load_textures(
    table: &mut LookTable,
    handles: &HashMap<String, Handle<Image>>,
    images: &Assets<Image>,
    warned: &mut HashSet<(String, u16)>,
    most_layers: u32,
) -> TextureArray {
    let image = |texture: &TextureUse| images.get(handles.get(&texture.path)?);
    let mut array = TextureArray::new(table.textures.iter().filter_map(image));
    let mut colors = HashMap::new();
    for texture in &table.textures {
        let too_many = || WrongTexture(format!("the graphics card has {most_layers} textures at most"));
        let made = match image(texture) {
            _ if array.layers() + u32::from(texture.frames) > most_layers => Err(too_many()),
            Some(image) => array.push(image, texture.frames, texture.has_holes),
            None => Err(WrongTexture("it cannot be loaded".to_owned())),
        };
        match made {
            Ok(color) => {
                colors.insert(texture.first_layer, color);
                warned.remove(&(texture.path.clone(), texture.frames));
            }
            Err(WrongTexture(what)) => {
                if array.layers() + u32::from(texture.frames) <= most_layers {
                    array.push_missing(texture.frames);
                }
                if warned.insert((texture.path.clone(), texture.frames)) {
                    warn!("{} of {:?} shows as a checkerboard: {what}", texture.path, texture.block);
                }
            }
        }
    }
    table.set_colors(|layer| colors.get(&layer).copied());
    array
}
