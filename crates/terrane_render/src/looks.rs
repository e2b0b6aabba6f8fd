//! [`BlockLooks`]: the textures of blocks.

mod forms;
mod keys;
mod loader;
mod systems;
mod table;
mod textures;

pub(super) use forms::{Form, FormQuad, liquid_height};
pub use loader::{BlockLooksError, BlockLooksLoader};
pub(super) use systems::{LooksInUse, collect_looks, update_looks};
pub(super) use table::{CLEAR, CUBE, Drawn, HIDES, LookTable, OTHER, PART, SHAPED};

use bevy::asset::embedded_asset;
use bevy::prelude::*;
use bevy_terrane::space::Face;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;

/// The looks of blocks, by name: `game:stone`, or `game:lamp[lit=true]` for some of its states. It is read from files with the
/// extension `.looks.ron`, or made by the game.
///
/// ```ron
/// // assets/my.looks.ron: a texture's path is relative to this file.
/// {
///     "game:ore": (all: "ore.png"),
///     "game:grass": (top: (texture: "grass.png", random_turn: true), bottom: "dirt.png",
///                    sides: (texture: "dirt.png", overlay: (texture: "fringe.png", tint: (120, 180, 90)))),
///     "game:lamp": (all: "lamp_off.png"),
///     "game:lamp[lit=true]": (all: "lamp_on.png", emission: 15),
///     "game:water": (all: (texture: "water.png", frames: 8, seconds_per_frame: 0.15), mode: Blended),
/// }
/// ```
///
/// A key without properties is the look of all states of a block, and describes the default state: states that are turned have
/// their faces turned. A key with properties is the look of the states that have them; the key with the most matching properties
/// wins, and of equal ones that of the later file. A key that fits no block is logged as a warning. A block without a look is drawn in
/// the color of its type.
#[derive(Asset, Clone, Debug, Default, PartialEq, Deserialize, Reflect)]
#[type_path = "terrane_render"]
#[reflect(Clone, Default)]
#[serde(transparent)]
pub struct BlockLooks {
    /// The looks. Paths of textures are asset paths.
    pub blocks: BTreeMap<String, BlockLook>,
}

/// The looks of all blocks, later ones over earlier ones. The first are those of the
/// [basic blocks](bevy_terrane::block::BlockRegistry::register_basic_blocks), then those of
/// [`ChunkRenderPlugin::looks`](super::ChunkRenderPlugin::looks). A game that adds looks of its own pushes their handle.
#[derive(Resource, Clone, Debug, Default, Deref, DerefMut, Reflect)]
#[type_path = "terrane_render"]
#[reflect(Resource, Clone, Default)]
pub struct ChunkLooks(pub Vec<Handle<BlockLooks>>);

/// The look of a block. A face has the first of these that is set: its own, `sides` if it is one of the four, `all`, and the color
/// of the block's type.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Reflect)]
#[type_path = "terrane_render"]
#[serde(default, deny_unknown_fields)]
pub struct BlockLook {
    /// All faces.
    pub all: Option<FaceLook>,
    /// The four vertical faces.
    pub sides: Option<FaceLook>,
    /// The upper face.
    pub top: Option<FaceLook>,
    /// The lower face.
    pub bottom: Option<FaceLook>,
    /// The face to the north, -z.
    pub north: Option<FaceLook>,
    /// The face to the east, +x.
    pub east: Option<FaceLook>,
    /// The face to the south, +z.
    pub south: Option<FaceLook>,
    /// The face to the west, -x.
    pub west: Option<FaceLook>,
    /// How the faces are drawn.
    pub mode: RenderMode,
    /// How much the faces shine by themselves, 0 to 15.
    pub emission: u8,
    /// The fog that a camera sees inside of the block, such as under water: the sRGB color and the distance, in blocks, at which
    /// nothing else is visible.
    pub fog: Option<([u8; 3], f32)>,
    /// Drawn instead of the quads of the block's shape; at most 256.
    pub quads: Option<Vec<LookQuad>>,
}

impl BlockLook {
    /// A look with this texture on all faces, by its asset path.
    pub fn all(texture: impl Into<String>) -> Self {
        Self { all: Some(FaceLook::new(texture)), ..Self::default() }
    }

    /// The look of a face.
    pub fn face(&self, face: Face) -> Option<&FaceLook> {
        let (own, is_side) = match face {
            Face::West => (&self.west, true),
            Face::East => (&self.east, true),
            Face::North => (&self.north, true),
            Face::South => (&self.south, true),
            Face::Bottom => (&self.bottom, false),
            Face::Top => (&self.top, false),
        };
        own.as_ref().or(self.sides.as_ref().filter(|_| is_side)).or(self.all.as_ref())
    }

    /// All textures of the look.
    fn textures_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let faces = [
            &mut self.all,
            &mut self.sides,
            &mut self.top,
            &mut self.bottom,
            &mut self.north,
            &mut self.east,
            &mut self.south,
            &mut self.west,
        ];
        let quads = self.quads.iter_mut().flatten().filter_map(|quad| quad.look.as_mut());
        faces.into_iter().flatten().chain(quads).flat_map(|face| {
            [Some(&mut face.texture), face.overlay.as_mut().map(|overlay| &mut overlay.texture)].into_iter().flatten()
        })
    }
}

/// How the faces of a block are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Reflect)]
#[type_path = "terrane_render"]
pub enum RenderMode {
    /// Without regard to the texture's alpha.
    #[default]
    Opaque,
    /// With holes where the texture's alpha is less than a half. Both sides of a face are drawn.
    CutOut,
    /// Transparent by the texture's alpha. Both sides of a face are drawn, and none between two blocks of the same name.
    Blended,
}

impl RenderMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Opaque, Self::CutOut, Self::Blended];
}

/// The texture of a face. In files, a path alone is a texture without further settings.
#[derive(Clone, Debug, PartialEq, Reflect)]
#[type_path = "terrane_render"]
pub struct FaceLook {
    /// The path of a PNG, which is square, or as high as all its frames. The widths of all textures in use divide the width of the
    /// widest one, which is at most 1,024 pixels; smaller ones have larger pixels.
    pub texture: String,
    /// The sRGB color that the texture is multiplied with; white by default.
    pub tint: [u8; 3],
    /// A texture that is drawn over the first one, where it is not transparent.
    pub overlay: Option<FaceOverlay>,
    /// The number of frames, 1 to 256, one below the other in the texture.
    pub frames: u16,
    /// The time that a frame is visible.
    pub seconds_per_frame: f32,
    /// `true` if each block turns the texture by a number of quarters of its own, so that an area shows no pattern.
    pub random_turn: bool,
}

impl FaceLook {
    /// This texture, by its asset path.
    pub fn new(texture: impl Into<String>) -> Self {
        let texture = texture.into();
        Self { texture, tint: [255; 3], overlay: None, frames: 1, seconds_per_frame: 0.1, random_turn: false }
    }
}

/// A texture over another one.
#[derive(Clone, Debug, PartialEq, Deserialize, Reflect)]
#[type_path = "terrane_render"]
#[serde(deny_unknown_fields)]
pub struct FaceOverlay {
    /// The path of a PNG.
    pub texture: String,
    /// The sRGB color that the texture is multiplied with; white by default.
    #[serde(default = "white")]
    pub tint: [u8; 3],
}

/// A rectangle of a block that is drawn instead of its shape.
#[derive(Clone, Debug, PartialEq, Deserialize, Reflect)]
#[type_path = "terrane_render"]
#[serde(deny_unknown_fields)]
pub struct LookQuad {
    /// The face of a block that the rectangle is parallel to.
    pub side: QuadSide,
    /// The lowest corner, 0 to 16 sixteenths of a block along x, y and z.
    pub from: [u8; 3],
    /// The highest corner. Along the side's normal it is as high as the lowest one.
    pub to: [u8; 3],
    /// Its look; by default that of the face that it is parallel to.
    #[serde(default)]
    pub look: Option<FaceLook>,
}

/// The direction of a [`LookQuad`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Reflect)]
#[type_path = "terrane_render"]
pub enum QuadSide {
    /// To -x.
    West,
    /// To -y.
    Bottom,
    /// To -z.
    North,
    /// To +x.
    East,
    /// To +y.
    Top,
    /// To +z.
    South,
    /// Upright, from the north-western to the south-eastern corner of its area.
    Diagonal,
    /// Upright, from the south-western to the north-eastern corner of its area.
    OtherDiagonal,
}

fn white() -> [u8; 3] {
    [255; 3]
}

impl<'de> Deserialize<'de> for FaceLook {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The fields of a face look in a file.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Fields {
            texture: String,
            #[serde(default = "white")]
            tint: [u8; 3],
            #[serde(default)]
            overlay: Option<FaceOverlay>,
            #[serde(default = "one")]
            frames: u16,
            #[serde(default = "tenth")]
            seconds_per_frame: f32,
            #[serde(default)]
            random_turn: bool,
        }
        fn one() -> u16 {
            1
        }
        fn tenth() -> f32 {
            0.1
        }
        struct PathOrFields;
        impl<'de> Visitor<'de> for PathOrFields {
            type Value = FaceLook;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the path of a texture, or `(texture: \"..\", ..)`")
            }

            fn visit_str<E>(self, texture: &str) -> Result<FaceLook, E> {
                Ok(FaceLook::new(texture))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FaceLook, A::Error> {
                let Fields { texture, tint, overlay, frames, seconds_per_frame, random_turn } =
                    Fields::deserialize(MapAccessDeserializer::new(map))?;
                Ok(FaceLook { texture, tint, overlay, frames, seconds_per_frame, random_turn })
            }
        }
        deserializer.deserialize_any(PathOrFields)
    }
}

/// The file of [`add_basic_looks`].
const BASIC_LOOKS: &str = "embedded://terrane_render/basic.looks.ron";

/// The looks of the [basic blocks](bevy_terrane::block::BlockRegistry::register_basic_blocks), which are part of the crate.
pub(super) fn add_basic_looks(app: &mut App) {
    embedded_asset!(app, "basic.looks.ron");
    macro_rules! textures {
        ($($name:literal),*) => { $(embedded_asset!(app, concat!("textures/", $name, ".png"));)* };
    }
    textures!(
        "stone",
        "dirt",
        "grass_top",
        "grass_side_overlay",
        "sand",
        "gravel",
        "water",
        "snow",
        "wood_side",
        "wood_top",
        "leaves"
    );
    let basic = app.world().resource::<AssetServer>().load(BASIC_LOOKS);
    app.world_mut().resource_mut::<ChunkLooks>().insert(0, basic);
}
