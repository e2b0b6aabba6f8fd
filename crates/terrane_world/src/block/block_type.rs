//! [`BlockType`]: the properties that all blocks of a type share.

use super::block_name;
use std::borrow::Cow;

/// The properties that all blocks of a type share. By default a type is opaque, solid and grey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockType {
    pub(super) name: Cow<'static, str>,
    pub(super) former_names: Vec<Cow<'static, str>>,
    pub(super) tags: Vec<Cow<'static, str>>,
    pub(super) components: Vec<Cow<'static, str>>,
    pub(super) color: [u8; 3],
    pub(super) opaque: bool,
    pub(super) solid: bool,
}

impl BlockType {
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
            opaque: true,
            solid: true,
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

    /// Returns `true` if the type hides the blocks behind it.
    #[inline]
    pub fn is_opaque(&self) -> bool {
        self.opaque
    }

    /// Returns `true` if things collide with the type.
    #[inline]
    pub fn is_solid(&self) -> bool {
        self.solid
    }
}
