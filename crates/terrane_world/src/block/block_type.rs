//! [`BlockType`]: the properties that all blocks of a type share.

use super::{BlockShape, block_name};
use crate::space::FaceSet;
use std::borrow::Cow;

/// The properties that all blocks of a type share. By default a type is an opaque, solid, grey cube.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockType {
    pub(super) name: Cow<'static, str>,
    pub(super) former_names: Vec<Cow<'static, str>>,
    pub(super) tags: Vec<Cow<'static, str>>,
    pub(super) components: Vec<Cow<'static, str>>,
    pub(super) color: [u8; 3],
    pub(super) shape: BlockShape,
    pub(super) opaque: bool,
    pub(super) solid: bool,
    pub(super) light: u8,
    /// `None` for the default of the shape.
    pub(super) attenuation: Option<u8>,
    pub(super) collision_height: u8,
    pub(super) current: u8,
}

impl BlockType {
    /// The highest level of light, and the highest attenuation.
    pub const MAX_LIGHT: u8 = 15;
    /// The largest collision height: two blocks.
    pub const MAX_COLLISION_HEIGHT: u8 = 32;
    /// The current of a type, unless it is given another: one and a half blocks per second.
    pub const DEFAULT_CURRENT: u8 = 24;

    /// A type with this name, `namespace:path` or `namespace:path[property=value,..]`. The registry checks the name
    /// and sorts the properties.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self { color: [128; 3], ..Self::placeholder(name.into()) }
    }

    /// The same type with this sRGB color.
    pub fn with_color(mut self, color: [u8; 3]) -> Self {
        self.color = color;
        self
    }

    /// The same type with this shape. Only a [cube](BlockShape::Cube) can be [opaque](Self::is_opaque), and a shape that
    /// is empty, crossed or liquid is not [solid](Self::is_solid).
    pub fn with_shape(mut self, shape: BlockShape) -> Self {
        self.shape = shape;
        self
    }

    /// The same type, but not hiding the blocks behind it.
    pub fn transparent(mut self) -> Self {
        self.opaque = false;
        self
    }

    /// The same type, but without collisions.
    pub fn non_solid(mut self) -> Self {
        self.solid = false;
        self
    }

    /// The same type, shining with this level of light, 0 to 15: 14 for a torch. The registry refuses higher levels.
    pub fn with_light(mut self, level: u8) -> Self {
        self.light = level;
        self
    }

    /// The same type, taking this much from the level of light that enters it, 0 to 15. Each step takes at least 1, except
    /// from full sky light that goes down through blocks that take 0. With 15, no light enters. The registry refuses higher
    /// values.
    ///
    /// By default an [opaque](Self::is_opaque) type takes 15, and any other type 0. Light never passes through
    /// [closed faces](Self::closed_faces), whatever the attenuation.
    pub fn with_attenuation(mut self, attenuation: u8) -> Self {
        self.attenuation = Some(attenuation);
        self
    }

    /// The same type, but bodies and walkers collide with its boxes as if each reached up to this height, in sixteenths of a block from
    /// the bottom of the block: 24 for a fence that they do not jump over. Boxes that reach higher stay as they are, and so do
    /// pictures, rays and light. The registry refuses more than [`MAX_COLLISION_HEIGHT`](Self::MAX_COLLISION_HEIGHT).
    pub fn with_collision_height(mut self, sixteenths: u8) -> Self {
        self.collision_height = sixteenths;
        self
    }

    /// The same type, carrying bodies along at this speed where it is a liquid that flows, in sixteenths of a block per second. Still liquid
    /// carries nothing along.
    pub fn with_current(mut self, sixteenths: u8) -> Self {
        self.current = sixteenths;
        self
    }

    /// The same type as a member of the tag with this name, `namespace:path`.
    pub fn with_tag(mut self, tag: impl Into<Cow<'static, str>>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// The same type with this component on each of its blocks. Register the component first.
    pub fn with_component(mut self, component: impl Into<Cow<'static, str>>) -> Self {
        self.components.push(component.into());
        self
    }

    /// The same type with a former name: blocks that older worlds store under it are of this type.
    pub fn formerly(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.former_names.push(name.into());
        self
    }

    /// The placeholder for a type that the game has not registered (yet), in a conspicuous color.
    pub(super) const fn placeholder(name: Cow<'static, str>) -> Self {
        Self {
            name,
            former_names: Vec::new(),
            tags: Vec::new(),
            components: Vec::new(),
            color: [255, 0, 255],
            shape: BlockShape::Cube,
            opaque: true,
            solid: true,
            light: 0,
            attenuation: None,
            collision_height: 0,
            current: Self::DEFAULT_CURRENT,
        }
    }

    /// The name with its properties.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The properties as pairs of name and value, sorted by name once the type is registered.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &str)> {
        block_name::properties(&self.name)
    }

    /// The value of one property; `None` if the type does not have it.
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties().find(|(property, _)| *property == name).map(|(_, value)| value)
    }

    /// The names of the type's tags.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.tags.iter().map(Cow::as_ref)
    }

    /// The color, in sRGB.
    pub fn color(&self) -> [u8; 3] {
        self.color
    }

    /// The shape.
    #[inline]
    pub fn shape(&self) -> &BlockShape {
        &self.shape
    }

    /// The faces that hide the neighbor behind them and stop light: those that the shape
    /// [closes](BlockShape::closed_faces), or none if the type is [transparent](Self::transparent).
    pub fn closed_faces(&self) -> FaceSet {
        if self.opaque { self.shape.closed_faces() } else { FaceSet::NONE }
    }

    /// The level of light that the type shines with, 0 to 15.
    #[inline]
    pub fn light(&self) -> u8 {
        self.light
    }

    /// The light that the type takes from what enters it, 0 to 15. See [`with_attenuation`](Self::with_attenuation).
    #[inline]
    pub fn attenuation(&self) -> u8 {
        let default = if self.is_opaque() { Self::MAX_LIGHT } else { 0 };
        self.attenuation.unwrap_or(default)
    }

    /// The height in sixteenths up to which bodies and walkers collide with the type's boxes, where these end below it. See
    /// [`with_collision_height`](Self::with_collision_height).
    #[inline]
    pub fn collision_height(&self) -> u8 {
        self.collision_height
    }

    /// The speed at which the type carries bodies along where it is a liquid that flows, in sixteenths of a block per second.
    #[inline]
    pub fn current(&self) -> u8 {
        self.current
    }

    /// Returns `true` if the type hides the blocks behind it: it is a cube, and not [transparent](Self::transparent).
    #[inline]
    pub fn is_opaque(&self) -> bool {
        self.opaque && self.shape.is_cube()
    }

    /// Returns `true` if things collide with the [boxes](BlockShape::boxes) of the type's shape, up to its
    /// [collision height](Self::collision_height).
    #[inline]
    pub fn is_solid(&self) -> bool {
        self.solid && !matches!(self.shape, BlockShape::Empty | BlockShape::Cross | BlockShape::Liquid { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise, blocks: Only a cube is opaque, and plants and liquids are not solid, in whatever order a type is described.
    #[test]
    fn the_shape_decides_whether_a_type_can_be_opaque_and_solid() {
        let of = |shape: BlockShape| BlockType::new("game:block").with_shape(shape);
        let told = |block: BlockType| (block.is_opaque(), block.is_solid());
        assert_eq!(told(BlockType::new("game:block")), (true, true));
        for shape in
            [BlockShape::slab(), BlockShape::stairs(), BlockShape::torch(), BlockShape::pane(), BlockShape::fence()]
        {
            assert_eq!(told(of(shape.clone())), (false, true));
            assert_eq!(told(of(shape).non_solid()), (false, false));
        }
        for shape in [BlockShape::Empty, BlockShape::Cross, BlockShape::liquid(8).unwrap()] {
            assert_eq!(told(of(shape)), (false, false));
        }
        assert_eq!(told(of(BlockShape::slab()).with_shape(BlockShape::Cube)), (true, true));
        assert_eq!(told(BlockType::new("game:glass").transparent().with_shape(BlockShape::Cube)), (false, true));
    }

    #[test]
    fn attenuation_follows_from_opacity_until_it_is_given() {
        let glass = BlockType::new("game:glass").transparent();
        assert_eq!((BlockType::new("game:stone").attenuation(), glass.attenuation()), (15, 0));
        assert_eq!(BlockType::new("game:slab").with_shape(BlockShape::slab()).attenuation(), 0);
        assert_eq!(glass.with_attenuation(3).attenuation(), 3);
        assert_eq!(BlockType::new("game:lamp").with_light(14).light(), 14);
    }

    #[test]
    fn a_transparent_type_hides_nothing_behind_the_faces_that_it_covers() {
        let slab = BlockType::new("game:slab").with_shape(BlockShape::slab());
        assert_eq!(slab.closed_faces(), BlockShape::slab().closed_faces());
        assert_eq!(slab.transparent().closed_faces(), FaceSet::NONE);
        assert_eq!(BlockType::new("game:stone").closed_faces(), FaceSet::ALL);
    }
}
