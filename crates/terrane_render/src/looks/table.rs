//! [`LookTable`]: how each block of a world is drawn.

use super::loader::check;
use super::{BlockLook, BlockLooks, FaceLook, Form, RenderMode};
use crate::quads::{Side, UP};
use bevy::prelude::*;
use bevy_terrane::block::{BlockId, BlockName, BlockRegistry, BlockShape, BlockType, turned_state};
use bevy_terrane::space::{Face, Turn};
use rustc_hash::FxHashMap;

/// How a block is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Drawn {
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

/// The look of a face: equal ones are one. Textures are places in [`LookTable::textures`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FaceRow {
    /// `None` for a face in one color, the tint.
    texture: Option<u32>,
    tint: [u8; 3],
    overlay: Option<(u32, [u8; 3])>,
    seconds_per_frame: u32,
    random_turn: bool,
    emission: u8,
}

/// The layers of a texture in the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextureLayers {
    pub first: u32,
    pub frames: u32,
}

impl TextureLayers {
    /// The layer that is white.
    const WHITE: Self = Self { first: 0, frames: 1 };
    /// The checkerboard.
    pub const MISSING: Self = Self { first: 1, frames: 1 };
}

/// The bits of a block that hides all behind it.
pub(crate) const HIDES_ALL: u8 = 0b11_1111;

// Bits of the class of a block, one byte in which the mesher finds everything that it needs to sort blocks.
/// The block hides everything behind it.
pub(crate) const HIDES: u8 = 1;
/// Some of its faces hide the block behind them.
pub(crate) const PART: u8 = 2;
/// It is drawn as a whole cube.
pub(crate) const CUBE: u8 = 4;
/// It is drawn as a whole cube that is not opaque.
pub(crate) const CLEAR: u8 = 8;
/// It is drawn with quads of its own.
pub(crate) const SHAPED: u8 = 16;
/// One of the game's meshers reads it.
pub(crate) const OTHER: u8 = 32;

/// A texture in use.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TextureUse {
    pub path: String,
    pub frames: u16,
    /// One of the blocks that use it, for messages.
    pub block: String,
    pub has_holes: bool,
}

/// How all blocks of a world are drawn, readable from any thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LookTable {
    drawn: Vec<Drawn>,
    classes: Vec<u8>,
    unknown: Option<Drawn>,
    pub(super) faces: Vec<FaceRow>,
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
            textures: FxHashMap::default(),
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
        table
    }

    /// Leaves the blocks to a mesher of the game that it draws, and marks those that it reads.
    pub fn share(
        &mut self,
        blocks: &BlockRegistry,
        draws: impl Fn(&BlockType) -> bool,
        reads: impl Fn(&BlockType) -> bool,
    ) {
        for (index, (drawn, class)) in (0..).zip(self.drawn.iter_mut().zip(&mut self.classes)) {
            let block = blocks.block(BlockId::new(index));
            if draws(block) {
                (drawn.form, drawn.hides, *class) = (Form::Nothing, 0, OTHER);
            } else if reads(block) {
                *class |= OTHER;
            }
        }
    }

    /// How a block is drawn. A block that is not registered is a cube in a conspicuous color.
    pub fn of(&self, block: BlockId) -> &Drawn {
        let unknown = || self.unknown.as_ref().unwrap_or(&NOTHING);
        self.drawn.get(block.index() as usize).unwrap_or_else(unknown)
    }

    /// The bits of the class of a block.
    pub fn class(&self, block: BlockId) -> u8 {
        self.classes.get(block.index() as usize).copied().unwrap_or(HIDES | CUBE)
    }

    /// Returns `true` if the block hides all behind it.
    pub fn is_opaque(&self, block: BlockId) -> bool {
        self.of(block).hides == HIDES_ALL
    }

    /// Returns `true` if no mesher makes anything of the block.
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

    /// Sets the colors from afar of blocks with a texture on top, by the mean colors of all textures.
    pub(super) fn set_colors(&mut self, colors: &[Option<Vec3>]) {
        for drawn in &mut self.drawn {
            let face = self.faces[usize::from(drawn.faces[usize::from(UP)])];
            if let Some(color) = face.texture.and_then(|texture| colors[texture as usize]) {
                drawn.color = color * Vec3::from(linear(face.tint));
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
    faces: FxHashMap<FaceRow, u16>,
    /// By path and frames.
    textures: FxHashMap<(String, u16), u32>,
}

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
        let mode = look.map_or(RenderMode::Opaque, |look| look.mode);
        let has_holes = mode == RenderMode::CutOut;
        let faces = [0, 1, 2, 3, 4, 5].map(|side| {
            let face = look.and_then(|look| look.face(Face::ALL[turned_back(side, turn)]));
            self.face(face, block, emission, has_holes)
        });
        let of_shape = Form::of_shape(block.shape(), |side| faces[usize::from(side)]);
        let form = match look.and_then(|look| look.quads.as_deref()) {
            Some(quads) => Form::of_quads(quads, |quad, side| match &quad.look {
                Some(own) => self.face(Some(own), block, emission, has_holes),
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
        let row = match face {
            None => FaceRow {
                texture: None,
                tint: block.color(),
                overlay: None,
                seconds_per_frame: 1_f32.to_bits(),
                random_turn: false,
                emission,
            },
            Some(FaceLook { texture, tint, overlay, frames, seconds_per_frame, random_turn }) => FaceRow {
                texture: Some(self.texture(texture, *frames, block, has_holes)),
                tint: *tint,
                overlay: overlay.as_ref().map(|over| (self.texture(&over.texture, 1, block, has_holes), over.tint)),
                seconds_per_frame: seconds_per_frame.to_bits(),
                random_turn: *random_turn,
                emission,
            },
        };
        let table = &mut *self.table;
        *self.faces.entry(row).or_insert_with(|| {
            let Ok(number) = u16::try_from(table.faces.len()) else {
                table.errors.push(format!("{:?}: there are more than 65,536 looks of faces", block.name()));
                return 0;
            };
            table.faces.push(row);
            number
        })
    }

    /// The place of a texture.
    fn texture(&mut self, path: &str, frames: u16, block: &BlockType, has_holes: bool) -> u32 {
        let textures = &mut self.table.textures;
        let number = *self.textures.entry((path.to_owned(), frames)).or_insert_with(|| {
            textures.push(TextureUse {
                path: path.to_owned(),
                frames,
                block: block.name().to_owned(),
                has_holes: false,
            });
            textures.len() as u32 - 1
        });
        textures[number as usize].has_holes |= has_holes;
        number
    }
}

impl FaceRow {
    /// A `FaceLook` of the shader `chunk.wgsl`.
    pub fn words(&self, layers: &[TextureLayers]) -> [u32; 12] {
        const NO_OVERLAY: u32 = u32::MAX;
        let texture = self.texture.map_or(TextureLayers::WHITE, |texture| layers[texture as usize]);
        let (overlay, overlay_tint) =
            self.overlay.map_or((NO_OVERLAY, [255; 3]), |(texture, tint)| (layers[texture as usize].first, tint));
        let [red, green, blue] = linear(self.tint).map(f32::to_bits);
        let [over_red, over_green, over_blue] = linear(overlay_tint).map(f32::to_bits);
        let emission = (f32::from(self.emission) / 15.0).to_bits();
        let tints = [red, green, blue, texture.first, over_red, over_green, over_blue, overlay];
        let rest = [texture.frames, self.seconds_per_frame, self.random_turn.into(), emission];
        std::array::from_fn(|word| tints.get(word).copied().unwrap_or_else(|| rest[word - tints.len()]))
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

#[cfg(test)]
mod tests;
