use std::borrow::Cow;

/// What all blocks of one type have in common. Opaque, solid and grey unless told otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockType {
    name: Cow<'static, str>,
    color: [u8; 3],
    opaque: bool,
    solid: bool,
}

impl BlockType {
    /// A type with this name, `namespace:path`. The registry checks it.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), color: [128; 3], opaque: true, solid: true }
    }

    /// The same type with this sRGB color.
    pub fn with_color(mut self, color: [u8; 3]) -> Self {
        self.color = color;
        self
    }

    /// The same type, not hiding what lies behind it.
    pub fn transparent(mut self) -> Self {
        self.opaque = false;
        self
    }

    /// The same type, letting things pass through.
    pub fn non_solid(mut self) -> Self {
        self.solid = false;
        self
    }

    /// Stands in for a type that the game has not registered (yet), in a color that nobody overlooks.
    pub(super) const fn placeholder(name: Cow<'static, str>) -> Self {
        Self { name, color: [255, 0, 255], opaque: true, solid: true }
    }

    /// The name, `namespace:path`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The color, in sRGB.
    pub fn color(&self) -> [u8; 3] {
        self.color
    }

    /// Whether it hides what lies behind it.
    pub fn is_opaque(&self) -> bool {
        self.opaque
    }

    /// Whether things collide with it.
    pub fn is_solid(&self) -> bool {
        self.solid
    }
}
