//! [`WalkTable`]: what blocks mean to a [`Walker`], which moves along a path.

use super::{LAYERS, PATH_REACH, SWIMS_FROM};
use crate::block::tags::CLIMBABLE;
use crate::block::{BlockId, BlockRegistry, BlockSet, BlockShape, BlockType, ShapeBox};
use crate::space::{Face, FaceSet};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The meaning of a registry's block types to a walker: a dense table by block id, made once the registry is complete.
///
/// Ids that the registry has not issued are closed to walkers.
#[derive(Clone, Debug)]
pub struct WalkTable {
    pub(super) size: WalkerSize,
    blocks: Box<[Cell]>,
    /// There are blocks that reach into the cell above them.
    pub(super) has_tall: bool,
    /// There are ladders that close a side of their cell.
    pub(super) has_closed: bool,
}

/// The numbers of a walker: in sixteenths, but for its width and margin.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkerSize {
    /// In cells.
    pub width: i32,
    /// The space that it leaves free on each side of its cells, in blocks.
    pub margin: f32,
    pub height: i32,
    pub step: i32,
    pub jump: i32,
    pub fall: i32,
    /// The least depth of a liquid in which the walker swims and no longer wades.
    pub afloat: i32,
    pub swims: bool,
}

/// The part of its cells that a walker takes when it is in their middle, in sixteenths.
#[derive(Clone, Copy, Debug)]
struct Footprint {
    width: f32,
    /// The space that it leaves free on each side.
    margin: f32,
}

/// The meaning of one cell to a walker. Layers are bits, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// The layers in which there is no room for the walker.
    pub body: u16,
    /// The layers on which a walker in the middle can stand.
    pub support: u16,
    /// The layers of the cell above that a taller block takes, and those of them on which the walker can stand.
    pub over: [u16; 2],
    /// The height of the half that a walker enters first on its way to each of [`Face::SIDES`], or [`NO_STEP`].
    pub near: [u8; 4],
    /// The factor of the cost, in sixteenths.
    pub cost: u16,
    /// The height of the liquid; 0 if there is none.
    pub liquid: u8,
    pub has_ladder: bool,
    /// The sides that a ladder closes, as bits by their place in [`Face::SIDES`].
    pub closed: u8,
}

/// The height of a half that is no step on the way up.
const NO_STEP: u8 = 2 * LAYERS as u8;

impl Cell {
    const FREE: Self =
        Self { body: 0, support: 0, over: [0; 2], near: [0; 4], cost: 16, liquid: 0, has_ladder: false, closed: 0 };
    /// Nothing enters and nothing stands on it.
    pub const CLOSED: Self = Self { body: u16::MAX, ..Self::FREE };

    /// Both in one cell, or in two cells at the same height.
    pub fn with(self, other: Self) -> Self {
        Self {
            body: self.body | other.body,
            support: self.support | other.support,
            over: [0, 1].map(|kind| self.over[kind] | other.over[kind]),
            near: std::array::from_fn(|side| self.near[side].max(other.near[side])),
            cost: self.cost.max(other.cost),
            liquid: self.liquid.max(other.liquid),
            has_ladder: self.has_ladder || other.has_ladder,
            closed: self.closed | other.closed,
        }
    }

    /// The cell above another one, with what reaches into it from there.
    #[inline]
    pub fn above(self, below: Self) -> Self {
        let [over, floor] = below.over;
        if over == 0 || self.body == u16::MAX {
            return self;
        }
        // To all sides, it is a step onto the whole height.
        let top = if floor == 0 { NO_STEP } else { over.ilog2() as u8 + 1 };
        let (body, support) = (self.body | over, self.support | floor);
        Self { body, support, near: self.near.map(|near| near.max(top)), ..self }
    }

    fn of(block: &BlockType, factor: f32, walker: &Walker) -> Self {
        let level = if let BlockShape::Liquid { level } = block.shape() { *level } else { 0 };
        let factor = factor * if level > 0 { walker.swim.unwrap_or(f32::INFINITY) } else { 1.0 };
        if factor == f32::INFINITY {
            return Self::CLOSED;
        }
        let cell = Self { cost: (factor * 16.0).round().max(16.0) as u16, liquid: 2 * level, ..Self::FREE };
        let is_ladder = walker.climb && block.tags().any(|tag| tag == CLIMBABLE);
        if !block.is_solid() {
            return Self { has_ladder: is_ladder, ..cell };
        }
        let footprint = Footprint::of(walker);
        // Arms are counted to all sides: which ones there are makes no difference to a cell as a whole.
        let parts: Vec<_> = raised(block, FaceSet::ALL).collect();
        if is_ladder && parts.iter().all(|part| footprint.is_beside(part)) {
            let closed = parts.iter().fold(0, |closed, part| closed | footprint.closed_sides(part));
            return Self { has_ladder: true, closed, ..cell };
        }
        let layers = |part: &ShapeBox| !0_u64 << part.min[1] & !(!0 << part.max[1]);
        let body = parts.iter().fold(0, |body, part| body | layers(part));
        // It is not known which arms there are to stand on.
        let sure: Vec<_> = raised(block, FaceSet::NONE).collect();
        let floors = sure.iter().filter(|part| footprint.is_under(part) && footprint.spans_gaps(&sure));
        let support = floors.fold(0, |support, part| support | layers(part));
        let over = [body, support].map(|layers| (layers >> LAYERS) as u16);
        let near = Face::SIDES.map(|side| first_half(&parts, side));
        Self { body: body as u16, support: support as u16, over, near, ..cell }
    }
}

/// The boxes of a block as walkers collide with them.
fn raised(block: &BlockType, joins: FaceSet) -> impl Iterator<Item = ShapeBox> {
    block.shape().boxes(joins).map(|part| part.raised(block.collision_height()))
}

/// The height of the half of a block that is entered first on the way to a side; [`NO_STEP`] if it does not span the block.
fn first_half(parts: &[ShapeBox], to: Face) -> u8 {
    let (axis, across) = (to.axis(), 2 - to.axis());
    let is_first = |part: &&ShapeBox| if to.is_positive() { part.min[axis] < 8 } else { part.max[axis] > 8 };
    let Some(highest) = parts.iter().filter(is_first).map(|part| part.max[1]).max() else { return 0 };
    let is_whole = |part: &ShapeBox| {
        let (from, to) = if to.is_positive() { (0, 8) } else { (8, 16) };
        part.max[1] == highest
            && part.min[axis] <= from
            && part.max[axis] >= to
            && (part.min[across], part.max[across]) == (0, 16)
    };
    if parts.iter().any(is_whole) { highest } else { NO_STEP }
}

impl Footprint {
    fn of(walker: &Walker) -> Self {
        // NaN becomes 0.
        let width = walker.width.clamp(0.0, 16.0).max(0.0);
        Self { width: 16.0 * width, margin: 8.0 * (cells(width) as f32 - width) }
    }

    /// Returns `true` if a walker in the middle of the cell does not touch the box, and is in no other cell.
    fn is_beside(&self, part: &ShapeBox) -> bool {
        self.width <= 16.0 && part.max[1] <= 16 && !(self.overlaps(part, 0) && self.overlaps(part, 2))
    }

    fn overlaps(&self, part: &ShapeBox, axis: usize) -> bool {
        f32::from(part.max[axis]) > self.margin && f32::from(part.min[axis]) < 16.0 - self.margin
    }

    /// The sides to which a box that is beside the walker bars its way.
    fn closed_sides(&self, part: &ShapeBox) -> u8 {
        let bars = |side: &Face| {
            let axis = side.axis();
            let is_there = match side.is_positive() {
                true => f32::from(part.min[axis]) >= 16.0 - self.margin,
                false => f32::from(part.max[axis]) <= self.margin,
            };
            is_there && self.overlaps(part, 2 - axis)
        };
        (0..).zip(&Face::SIDES).filter(|(_, side)| bars(side)).fold(0, |closed, (number, _)| closed | 1 << number)
    }

    /// Returns `true` if the box carries a walker that is about in the middle.
    fn is_under(&self, part: &ShapeBox) -> bool {
        let inner = (self.margin + 3.0).min(7.0);
        [0, 2].into_iter().all(|axis| f32::from(part.max[axis]) > inner && f32::from(part.min[axis]) < 16.0 - inner)
    }

    /// Returns `true` if the walker does not fall into a gap between the boxes and a side of the cell.
    fn spans_gaps(&self, parts: &[ShapeBox]) -> bool {
        let widest = |axis: usize| {
            let from = parts.iter().map(|part| part.min[axis]).min().unwrap_or(16);
            let to = parts.iter().map(|part| part.max[axis]).max().unwrap_or(0);
            from.max(16 - to)
        };
        let widest = widest(0).max(widest(2));
        widest == 0 || f32::from(widest) < self.width - 0.5
    }
}

/// The number of cells that a walker takes along x and z.
fn cells(width: f32) -> i32 {
    width.clamp(1.0, 16.0).max(1.0).ceil() as i32
}

impl WalkTable {
    /// The table of these block types for a walker.
    pub fn new(blocks: &BlockRegistry, walker: &Walker) -> Self {
        let layers = |blocks: f32| (blocks.clamp(0.0, PATH_REACH as f32) * LAYERS as f32 + 0.001) as i32;
        let size = WalkerSize {
            width: cells(walker.width),
            margin: Footprint::of(walker).margin / LAYERS as f32,
            height: (walker.height.clamp(0.0, PATH_REACH as f32) * LAYERS as f32 - 0.001).ceil().max(1.0) as i32,
            afloat: (walker.height.clamp(0.0, PATH_REACH as f32) * SWIMS_FROM * LAYERS as f32) as i32 + 1,
            step: layers(walker.step),
            jump: layers(walker.jump),
            fall: layers(walker.fall),
            swims: walker.swim.is_some_and(|factor| factor < f32::INFINITY),
        };
        let costs: Vec<_> =
            walker.costs.iter().map(|(name, factor)| (blocks.tag(name), blocks.id(name), *factor)).collect();
        let cell = |id: BlockId| {
            let is_meant = |tag: Option<&BlockSet>, named: Option<BlockId>| {
                tag.is_some_and(|tag| tag.contains(id)) || named == Some(id)
            };
            let factors = costs.iter().filter(|(tag, named, _)| is_meant(*tag, *named)).map(|(.., factor)| *factor);
            Cell::of(blocks.block(id), factors.fold(1.0, f32::max), walker)
        };
        let blocks: Box<[Cell]> = (0..blocks.len() as u32).map(|id| cell(BlockId::new(id))).collect();
        let has_tall = blocks.iter().any(|cell| cell.over[0] != 0);
        Self { size, has_tall, has_closed: blocks.iter().any(|cell| cell.closed != 0), blocks }
    }

    #[inline]
    pub(super) fn cell(&self, block: BlockId) -> Cell {
        self.blocks.get(block.index() as usize).copied().unwrap_or(Cell::CLOSED)
    }
}

/// The size and the abilities of a walker. Lengths are in blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Walker {
    /// The width along x and z, up to 16. A walker takes as many cells as its width needs, and at least one.
    pub width: f32,
    /// The height, up to 64.
    pub height: f32,
    /// The highest step that costs nothing extra.
    pub step: f32,
    /// The highest jump. It needs room above its top, and the walker comes down from there.
    pub jump: f32,
    /// The deepest fall onto ground. A walker that swims falls into liquids from any height.
    pub fall: f32,
    /// The factor of the cost of moving in liquids. Without one, the walker keeps out of them.
    pub swim: Option<f32>,
    /// Whether the walker climbs blocks with the tag [`CLIMBABLE`](crate::block::tags::CLIMBABLE).
    pub climb: bool,
    /// Factors of the cost of blocks, by tag or by the name of the type. They are at least 1. An infinite factor closes a block, so
    /// that the walker neither touches it nor stands on it. The highest factor of a block counts.
    pub costs: Vec<(Cow<'static, str>, f32)>,
}

impl Default for Walker {
    /// As big as a person: 0.6 wide and 1.8 high.
    fn default() -> Self {
        Self {
            width: 0.6,
            height: 1.8,
            step: 0.6,
            jump: 1.0,
            fall: 3.0,
            swim: Some(2.0),
            climb: true,
            costs: Vec::new(),
        }
    }
}

impl Walker {
    /// The same walker with this width and height.
    pub const fn with_size(mut self, width: f32, height: f32) -> Self {
        (self.width, self.height) = (width, height);
        self
    }

    /// The same walker with a factor of the cost of blocks, by tag or by the name of the type.
    pub fn with_cost(mut self, blocks: impl Into<Cow<'static, str>>, factor: f32) -> Self {
        self.costs.push((blocks.into(), factor));
        self
    }
}
