//! [`Liquids`]: the rules of all liquids, by block id.

use crate::block::{BlockId, BlockRegistry, tags};
use crate::liquid::{FALLING, LEVEL, LiquidRules};
use crate::space::FaceSet;
use thiserror::Error;

/// The error for rules that do not fit the registered blocks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LiquidError {
    /// No block has the name.
    #[error("the liquid {liquid:?}: there is no block {name:?}{}", nearest.as_ref().map(|near| format!("; is {near:?} meant?")).unwrap_or_default())]
    UnknownBlock {
        /// The liquid.
        liquid: String,
        /// The unknown name.
        name: String,
        /// The most similar name of a block.
        nearest: Option<String>,
    },
    /// The block does not have the states of a liquid.
    #[error("the liquid {liquid:?} has no state with the level {level}: register it with `liquid_states`")]
    NoState {
        /// The liquid.
        liquid: String,
        /// The missing level.
        level: String,
    },
    /// There are rules for a liquid twice.
    #[error("the liquid {0:?} has rules twice")]
    Twice(String),
    /// A meeting names a liquid that has no rules.
    #[error("the liquid {liquid:?} meets {other:?}, which has no rules")]
    UnknownLiquid {
        /// The liquid with the meeting.
        liquid: String,
        /// The other liquid.
        other: String,
    },
}

/// The rules of all liquids of a world.
///
/// ```
/// use terrane_world::block::{BlockId, BlockRegistry, BlockType};
/// use terrane_world::liquid::{LiquidRules, Liquids, liquid_states};
/// use terrane_world::space::BlockPos;
///
/// let mut blocks = BlockRegistry::new();
/// let stone = blocks.register(BlockType::new("game:stone"))?;
/// let water = blocks.register_states(liquid_states(BlockType::new("game:water")))?[0];
/// let liquids = Liquids::new(&blocks, &[LiquidRules::new("game:water")])?;
///
/// // A source in the air above stone falls.
/// let source = BlockPos::new(0, 5, 0);
/// let flow = liquids.flow(source, |at| match at.y {
///     ..0 => Some(liquids.cell([stone])),
///     _ if at == source => Some(liquids.cell([water])),
///     _ => Some(liquids.cell([BlockId::AIR])),
/// });
/// let falling = blocks.state("game:water", &[("level", "falling")]).unwrap();
/// assert_eq!(flow.changes, [(source.offset(0, -1, 0), 0, falling)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Liquids {
    pub(super) liquids: Vec<Liquid>,
    /// By block id. The ids above are solid cubes.
    parts: Vec<Part>,
}

/// A liquid with the ids of its states.
#[derive(Clone, Debug)]
pub(super) struct Liquid {
    source: BlockId,
    /// By the number of steps from the source. A cell that falls has 0.
    flowing: Vec<BlockId>,
    delay: u64,
    pub renews: bool,
    /// The other liquid, and the block that a cell becomes that touches it.
    pub meetings: Vec<(u8, BlockId)>,
}

/// A block as liquids see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Air, or a block that is washed away.
    Open,
    /// The liquid with this number.
    Liquid(u8, Kind),
    /// Another block. No liquid passes through these faces of its place.
    Block { closed: FaceSet, is_porous: bool },
}

/// The blocks of a cell as liquids see them, made by [`Liquids::cell`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiquidCell {
    pub(super) liquid: Option<Wet>,
    /// Liquids flow into the cell, as far as the faces and the liquid in it let them.
    pub(super) is_open: bool,
    /// There are other blocks in the cell, or other layers.
    pub(super) is_shared: bool,
    /// The faces through which no liquid passes.
    pub(super) closed: FaceSet,
    /// The layer of the liquid, or the one in which liquid would be.
    pub(super) layer: u8,
}

/// The liquid in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wet {
    pub number: u8,
    pub kind: Kind,
    pub block: BlockId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Source,
    /// The number of steps from the source; 0 if the cell falls.
    Flowing(u8),
}

impl Kind {
    pub fn step(self) -> u8 {
        match self {
            Self::Source => 0,
            Self::Flowing(step) => step,
        }
    }
}

impl LiquidCell {
    /// Returns `true` if the liquid passes through such a cell. This does not depend on where the liquid flows at the moment.
    pub(super) fn is_passed_by(&self, number: u8) -> bool {
        self.is_open && self.liquid.is_none_or(|wet| wet.number == number && wet.kind != Kind::Source)
    }
}

impl Liquid {
    pub fn block(&self, kind: Kind) -> BlockId {
        match kind {
            Kind::Source => self.source,
            Kind::Flowing(step) => self.flowing[usize::from(step)],
        }
    }

    pub fn steps(&self) -> u8 {
        (self.flowing.len() - 1) as u8
    }
}

impl Liquids {
    /// The table for these rules.
    ///
    /// # Errors
    /// Fails if a name is unknown, if a liquid was not registered with [`liquid_states`](super::liquid_states), or if
    /// a liquid has rules twice. At most 255 liquids are possible.
    pub fn new(blocks: &BlockRegistry, rules: &[LiquidRules]) -> Result<Self, LiquidError> {
        let ids = (0..blocks.len() as u32).map(BlockId::new);
        let mut table = Self { parts: ids.map(|id| part(blocks, id)).collect(), ..Self::default() };
        for (number, of) in (0..=u8::MAX).zip(rules) {
            if rules[..usize::from(number)].iter().any(|other| other.block == of.block) {
                return Err(LiquidError::Twice(of.block.clone()));
            }
            let liquid = table.liquid(number, of, rules, blocks)?;
            table.liquids.push(liquid);
        }
        Ok(table)
    }

    fn liquid(
        &mut self,
        number: u8,
        of: &LiquidRules,
        all: &[LiquidRules],
        blocks: &BlockRegistry,
    ) -> Result<Liquid, LiquidError> {
        let name = || of.block.clone();
        let id = |name: &str| {
            blocks.id(name).ok_or_else(|| LiquidError::UnknownBlock {
                liquid: of.block.clone(),
                name: name.to_owned(),
                nearest: blocks.nearest_name(name).map(str::to_owned),
            })
        };
        id(&of.block)?;
        let state = |level: &str| {
            let state = blocks.state(&of.block, &[(LEVEL, level)]);
            state.ok_or_else(|| LiquidError::NoState { liquid: name(), level: level.to_owned() })
        };
        let source = state("8")?;
        self.set(source, Part::Liquid(number, Kind::Source));
        let mut flowing = vec![state(FALLING)?];
        for step in 1..=of.steps {
            flowing.push(state(&of.level(step).to_string())?);
        }
        // A level that no step has, because a game or another liquid set it, counts as the next lower step.
        for level in 1..=7 {
            let step = (1..of.steps).find(|step| of.level(*step) <= level).unwrap_or(of.steps);
            self.set(state(&level.to_string())?, Part::Liquid(number, Kind::Flowing(step)));
        }
        self.set(flowing[0], Part::Liquid(number, Kind::Flowing(0)));
        let mut meetings = Vec::with_capacity(of.meetings.len());
        for (other, becomes) in &of.meetings {
            let found = (0..=u8::MAX).zip(all).find(|(_, rules)| rules.block == *other);
            let unknown = || LiquidError::UnknownLiquid { liquid: name(), other: other.clone() };
            meetings.push((found.ok_or_else(unknown)?.0, id(becomes)?));
        }
        Ok(Liquid { source, flowing, delay: of.delay, renews: of.renews, meetings })
    }

    fn set(&mut self, block: BlockId, part: Part) {
        if let Some(known) = self.parts.get_mut(block.index() as usize) {
            *known = part;
        }
    }

    #[inline]
    fn part(&self, block: BlockId) -> Part {
        let unknown = Part::Block { closed: FaceSet::ALL, is_porous: false };
        self.parts.get(block.index() as usize).copied().unwrap_or(unknown)
    }

    /// A cell with these blocks, from layer 0 up. Of several liquids in a cell, only the lowest flows.
    pub fn cell(&self, blocks: impl IntoIterator<Item = BlockId>) -> LiquidCell {
        let (mut liquid, mut is_open, mut is_shared, mut closed) = (None, true, false, FaceSet::NONE);
        let (mut free, mut wet_layer, mut count) = (None, None, 0);
        for (layer, block) in (0..=u8::MAX).zip(blocks) {
            count = layer.saturating_add(1);
            is_shared |= layer > 0;
            match self.part(block) {
                Part::Open => free = free.or(Some(layer)),
                Part::Liquid(number, kind) if liquid.is_none() => {
                    (liquid, wet_layer) = (Some(Wet { number, kind, block }), Some(layer));
                }
                Part::Liquid(..) => {}
                Part::Block { closed: more, is_porous } => {
                    is_open &= is_porous;
                    is_shared = true;
                    closed = closed.union(more);
                }
            }
        }
        LiquidCell { liquid, is_open, is_shared, closed, layer: wet_layer.or(free).unwrap_or(count) }
    }

    /// The ticks that one step of the liquid in a cell takes; `None` if there is no liquid.
    pub fn delay(&self, cell: &LiquidCell) -> Option<u64> {
        cell.liquid.map(|wet| self.liquids[usize::from(wet.number)].delay)
    }

    /// Returns `true` if the block stops all liquids, or is a source.
    pub fn is_obstacle(&self, block: BlockId) -> bool {
        matches!(self.part(block), Part::Block { .. } | Part::Liquid(_, Kind::Source))
    }

    /// Returns `true` if the block is a flowing or falling liquid, and no source.
    pub fn is_flowing(&self, block: BlockId) -> bool {
        matches!(self.part(block), Part::Liquid(_, Kind::Flowing(_)))
    }

    /// Returns `true` if liquids and falling blocks take the place of the block: air, and what is washed away.
    pub fn is_open(&self, block: BlockId) -> bool {
        self.part(block) == Part::Open
    }
}

/// A block that is no liquid.
fn part(blocks: &BlockRegistry, id: BlockId) -> Part {
    if id == BlockId::AIR || blocks.has_tag(id, tags::WASHED_AWAY) {
        return Part::Open;
    }
    let block = blocks.block(id);
    let closed = if block.is_solid() { block.shape().closed_faces() } else { FaceSet::NONE };
    Part::Block { closed, is_porous: blocks.has_tag(id, tags::POROUS) }
}
