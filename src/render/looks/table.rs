//! [`LookTable`]: how each block of a world is drawn.

use super::loader::check;
use super::{BlockLook, BlockLooks, FaceLook, Form, RenderMode};
use crate::block::{BlockId, BlockName, BlockRegistry, BlockShape, BlockType};
use crate::render::quads::Side;
use crate::snapshot::{Turn, turned_state};
use crate::space::Face;
use bevy::prelude::*;
use rustc_hash::FxHashMap;

/// How a block is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::render) struct Drawn {
    pub form: Form,
    pub shape: BlockShape,
    pub mode: RenderMode,
    /// The numbers of the looks of its six faces.
    pub faces: [u16; 6],
    /// The faces that hide all behind them.
    pub hides: u8,
    /// Blocks of one name have one number. Their touching faces are hidden if they are not opaque.
    pub name: u32,
    /// The color from afar, in linear light.
    pub color: Vec3,
}

/// The look of a face as the shader `chunk.wgsl` reads it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GpuFace {
    tint: [f32; 3],
    layer: u32,
    overlay_tint: [f32; 3],
    overlay: u32,
    frames: u32,
    seconds_per_frame: f32,
    flags: u32,
    emission: f32,
}

const NO_OVERLAY: u32 = u32::MAX;
const RANDOM_TURN: u32 = 1;
/// The bits of a block that hides all behind it.
pub(in crate::render) const HIDES_ALL: u8 = 0b11_1111;

/// Bits of the class of a block: it hides all behind it..
pub(in crate::render) const HIDES: u8 = 1;
/// ..it hides what is behind some of its faces..
pub(in crate::render) const PART: u8 = 2;
/// ..it is a drawn cube..
pub(in crate::render) const CUBE: u8 = 4;
/// ..it is a drawn cube that is not opaque..
pub(in crate::render) const CLEAR: u8 = 8;
/// ..it is drawn, and is no cube.
pub(in crate::render) const SHAPED: u8 = 16;

/// Bit of the class of a block that one of the game's meshers draws.
pub(in crate::render) const OTHER: u8 = 32;

/// A texture in use.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TextureUse {
    pub path: String,
    pub frames: u16,
    /// One of the blocks that use it, for messages.
    pub block: String,
    pub has_holes: bool,
    pub first_layer: u32,
}

/// How all blocks of a world are drawn, readable from any thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::render) struct LookTable {
    drawn: Vec<Drawn>,
    classes: Vec<u8>,
    unknown: Option<Drawn>,
    pub(super) faces: Vec<GpuFace>,
    pub(super) textures: Vec<TextureUse>,
    fogs: FxHashMap<BlockId, ([u8; 3], f32)>,
    /// Mistakes in looks that the game made in code.
    pub(super) errors: Vec<String>,
}

impl LookTable {
    pub fn new<'a>(blocks: &BlockRegistry, looks: impl IntoIterator<Item = &'a BlockLooks>) -> Self {
        let mut table = Self::default();
        let mut builder = Builder {
            table: &mut table,
            keys: FxHashMap::default(),
            names: FxHashMap::default(),
            faces: FxHashMap::default(),
        };
        builder.read(looks);
        let mut states = FxHashMap::default();
        let drawn: Vec<Drawn> = (0..blocks.len())
            .map(|index| builder.drawn(blocks, BlockId::new(u32::try_from(index).unwrap_or(u32::MAX)), &mut states))
            .collect();
        let unknown = builder.drawn(blocks, BlockId::new(u32::MAX), &mut states);
        table.classes = drawn.iter().map(Drawn::class).collect();
        table.drawn = drawn;
        table.unknown = Some(unknown);
        table.place_layers();
        table
    }

    /// Leaves these blocks to the game's meshers.
    pub fn leave(&mut self, is_left: impl Fn(BlockId) -> bool) {
        for (index, (drawn, class)) in (0..).zip(self.drawn.iter_mut().zip(&mut self.classes)) {
            if is_left(BlockId::new(index)) {
                (drawn.form, drawn.hides, *class) = (Form::Nothing, 0, OTHER);
            }
        }
    }

    /// How a block is drawn. A block that is not registered is a cube in a conspicuous color.
    pub fn of(&self, block: BlockId) -> &Drawn {
        let unknown = || self.unknown.as_ref().unwrap_or(&NOTHING);
        self.drawn.get(block.index() as usize).unwrap_or_else(unknown)
    }

    /// What the mesher must know of every block.
    pub fn class(&self, block: BlockId) -> u8 {
        self.classes.get(block.index() as usize).copied().unwrap_or(HIDES | CUBE)
    }

    /// Returns `true` if the block hides all behind it.
    pub fn is_opaque(&self, block: BlockId) -> bool {
        self.of(block).hides == HIDES_ALL
    }

    /// Returns `true` if nothing of the block is drawn.
    pub fn is_invisible(&self, block: BlockId) -> bool {
        self.class(block) & (CUBE | SHAPED | OTHER) == 0
    }

    /// The fog inside of a block.
    pub fn fog(&self, block: BlockId) -> Option<([u8; 3], f32)> {
        self.fogs.get(&block).copied()
    }

    /// Returns `true` if no block has other quads or another color.
    pub(super) fn draws_like(&self, other: &Self) -> bool {
        self.drawn == other.drawn && self.unknown == other.unknown
    }

    /// The colors from afar, for blocks with a texture on top.
    pub(super) fn set_colors(&mut self, color: impl Fn(u32) -> Option<Vec3>) {
        for drawn in &mut self.drawn {
            let face = self.faces[usize::from(drawn.faces[usize::from(crate::render::quads::UP)])];
            if let Some(texture) = color(face.layer) {
                drawn.color = texture * Vec3::from(face.tint);
            }
        }
    }

    /// Gives every texture its layers.
    fn place_layers(&mut self) {
        let mut next = super::textures::OWN_LAYERS;
        for texture in &mut self.textures {
            texture.first_layer = next;
            next += u32::from(texture.frames);
        }
        let layer = |number: u32| match number.checked_sub(1) {
            None => super::textures::WHITE,
            Some(texture) => self.textures[texture as usize].first_layer,
        };
        for face in &mut self.faces {
            face.layer = layer(face.layer);
            if face.overlay != NO_OVERLAY {
                face.overlay = layer(face.overlay);
            }
        }
    }
}

impl Drawn {
    fn class(&self) -> u8 {
        let of_form = match self.form {
            Form::Nothing => 0,
            Form::Cube if self.mode == RenderMode::Opaque => CUBE,
            Form::Cube => CUBE | CLEAR,
            _ => SHAPED,
        };
        let of_faces = match self.hides {
            0 => 0,
            HIDES_ALL => HIDES,
            _ => PART,
        };
        of_form | of_faces
    }
}

/// A block that is not drawn.
static NOTHING: Drawn = Drawn {
    form: Form::Nothing,
    shape: BlockShape::Empty,
    mode: RenderMode::Opaque,
    faces: [0; 6],
    hides: 0,
    name: 0,
    color: Vec3::ZERO,
};

/// The properties in a key of a look, with the look. Later ones come later.
type Keyed<'a> = Vec<(Vec<(&'a str, &'a str)>, &'a BlockLook)>;

struct Builder<'a, 't> {
    table: &'t mut LookTable,
    /// By the name without properties.
    keys: FxHashMap<&'a str, Keyed<'a>>,
    names: FxHashMap<String, u32>,
    faces: FxHashMap<FaceKey, u16>,
}

/// What two equal looks of faces have in common: texture, tint, overlay with tint, frames, time, random turn, emission.
type FaceKey = (u32, [u8; 3], u32, [u8; 3], u16, u32, bool, u8);

impl<'a> Builder<'a, '_> {
    fn read(&mut self, looks: impl IntoIterator<Item = &'a BlockLooks>) {
        for (key, look) in looks.into_iter().flat_map(|looks| &looks.blocks) {
            let (base, properties) = key.split_once('[').unwrap_or((key, ""));
            let properties =
                properties.trim_end_matches(']').split(',').filter_map(|property| property.split_once('='));
            match check(look) {
                Ok(()) => self.keys.entry(base).or_default().push((properties.collect(), look)),
                Err(what) => self.table.errors.push(format!("the look of {key:?}: {what}")),
            }
        }
    }

    /// The look with the most properties of those that the block has, and the number of them.
    fn find(&self, block: &BlockType) -> Option<(&'a BlockLook, usize)> {
        let base = block.name().split('[').next().unwrap_or_default();
        let keyed = self.keys.get(base)?.iter();
        let fits = |(properties, _): &&(Vec<(&str, &str)>, &BlockLook)| {
            properties.iter().all(|(name, value)| block.property(name) == Some(value))
        };
        keyed
            .filter(fits)
            .max_by_key(|(properties, _)| properties.len())
            .map(|(properties, look)| (*look, properties.len()))
    }

    fn drawn(&mut self, blocks: &BlockRegistry, id: BlockId, states: &mut FxHashMap<String, Turn>) -> Drawn {
        let block = blocks.block(id);
        let found = self.find(block);
        let look = found.map(|(look, _)| look);
        // A look of all states describes the default state.
        let turn = match found {
            Some((_, 0)) => turn_of(blocks, id, states),
            _ => Turn::NONE,
        };
        let emission = look.map_or(0, |look| look.emission);
        let faces = [0, 1, 2, 3, 4, 5].map(|side| {
            let face = look.and_then(|look| look.face(Face::ALL[turned_back(side, turn)]));
            self.face(face, block, emission, look.is_some_and(|look| look.mode == RenderMode::CutOut))
        });
        let mode = look.map_or(RenderMode::Opaque, |look| look.mode);
        let of_shape = Form::of_shape(block.shape(), |side| faces[usize::from(side)]);
        let form = match look.and_then(|look| look.quads.as_deref()) {
            Some(quads) => Form::of_quads(quads, |quad, side| match &quad.look {
                Some(own) => self.face(Some(own), block, emission, mode == RenderMode::CutOut),
                None => faces[usize::from(side)],
            }),
            // Without a look nothing is known of its transparency.
            None if of_shape == Form::Cube && !block.is_opaque() && look.is_none() => Form::Nothing,
            None => of_shape,
        };
        let hides = match (mode, &form) {
            (_, Form::Nothing) | (RenderMode::CutOut | RenderMode::Blended, _) => 0,
            (RenderMode::Opaque, _) => {
                // A look that is not transparent knows better than the type.
                let closed = if look.is_some() { block.shape().closed_faces() } else { block.closed_faces() };
                closed.iter().fold(0, |bits, face| bits | 1 << face as u8)
            }
        };
        if let Some(fog) = look.and_then(|look| look.fog) {
            self.table.fogs.insert(id, fog);
        }
        let next = self.names.len() as u32 + 1;
        let base = block.name().split('[').next().unwrap_or_default();
        let name = *self.names.entry(base.to_owned()).or_insert(next);
        let (shape, color) = (block.shape().clone(), Vec3::from(linear(block.color())));
        Drawn { form, shape, mode, faces, hides, name, color }
    }

    /// The number of the look of a face.
    fn face(&mut self, face: Option<&FaceLook>, block: &BlockType, emission: u8, has_holes: bool) -> u16 {
        let mut texture = |path: &str, frames: u16| {
            let textures = &mut self.table.textures;
            let number = textures.iter().position(|texture| texture.path == path && texture.frames == frames);
            let number = number.unwrap_or_else(|| {
                let (path, block) = (path.to_owned(), block.name().to_owned());
                textures.push(TextureUse { path, frames, block, has_holes, first_layer: 0 });
                textures.len() - 1
            });
            number as u32 + 1
        };
        // Numbers of textures, plus one, stand for their layers until all are known.
        let key: FaceKey = match face {
            None => (0, block.color(), NO_OVERLAY, [255; 3], 1, 0, false, emission),
            Some(FaceLook { texture: path, tint, overlay, frames, seconds_per_frame, random_turn }) => {
                let first = texture(path, *frames);
                let over = overlay.as_ref().map_or(NO_OVERLAY, |overlay| texture(&overlay.texture, 1));
                let over_tint = overlay.as_ref().map_or([255; 3], |overlay| overlay.tint);
                (first, *tint, over, over_tint, *frames, seconds_per_frame.to_bits(), *random_turn, emission)
            }
        };
        let table = &mut *self.table;
        *self.faces.entry(key).or_insert_with(|| {
            let Ok(number) = u16::try_from(table.faces.len()) else {
                table.errors.push(format!("{:?}: there are more than 65,536 looks of faces", block.name()));
                return 0;
            };
            let (layer, tint, overlay, overlay_tint, frames, seconds, random_turn, emission) = key;
            table.faces.push(GpuFace {
                tint: linear(tint),
                layer,
                overlay_tint: linear(overlay_tint),
                overlay,
                frames: u32::from(frames),
                seconds_per_frame: f32::from_bits(seconds).max(1e-3),
                flags: u32::from(random_turn) * RANDOM_TURN,
                emission: f32::from(emission) / 15.0,
            });
            number
        })
    }
}

impl GpuFace {
    /// The bytes, as the shader reads them.
    pub fn words(&self) -> [u32; 12] {
        let [red, green, blue] = self.tint.map(f32::to_bits);
        let [over_red, over_green, over_blue] = self.overlay_tint.map(f32::to_bits);
        let seconds = self.seconds_per_frame.to_bits();
        let light = self.emission.to_bits();
        [
            red,
            green,
            blue,
            self.layer,
            over_red,
            over_green,
            over_blue,
            self.overlay,
            self.frames,
            seconds,
            self.flags,
            light,
        ]
    }
}

fn linear([red, green, blue]: [u8; 3]) -> [f32; 3] {
    let color = Color::srgb_u8(red, green, blue).to_linear();
    [color.red, color.green, color.blue]
}

/// The turn that takes the default state of a block to this state; none if no turn does.
fn turn_of(blocks: &BlockRegistry, id: BlockId, turns: &mut FxHashMap<String, Turn>) -> Turn {
    let name = blocks.block(id).name();
    let Some((base, _)) = name.split_once('[') else { return Turn::NONE };
    if let Some(turn) = turns.get(name) {
        return *turn;
    }
    let default = blocks.id(base).map(|default| blocks.block(default).name().to_owned());
    if let Some(default) = default.and_then(|default| BlockName::parse(default).ok()) {
        // Turns without a flip come last, since the first of several turns to one state counts.
        for turn in Turn::all().collect::<Vec<_>>().into_iter().rev() {
            turns.insert(turned_state(&default, turn).as_str().to_owned(), turn);
        }
    }
    turns.get(name).copied().unwrap_or_default()
}

/// The face of the default state that a turn takes to this face.
fn turned_back(side: Side, turn: Turn) -> usize {
    Face::ALL.iter().position(|face| face.turned(turn) == Face::ALL[usize::from(side)]).unwrap_or(usize::from(side))
}
