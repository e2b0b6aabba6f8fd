//! The flow of a liquid at one cell.

use super::table::{Cell, Kind, Liquid, Liquids};
use crate::block::BlockId;
use crate::space::{BlockPos, Face, FaceSet};

/// The farthest drop, in steps to the side, towards which a liquid flows.
pub const SEARCH: u8 = 4;

/// The outcome of a look at a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The cells that change, and their new blocks. A cell that changes itself does not spread yet.
    pub changes: Vec<(BlockPos, BlockId)>,
    /// `true` if the outcome is not certain, because a block is not loaded: look again later.
    pub is_waiting: bool,
}

/// A block that had to be known is not loaded.
struct Missing;

impl Liquids {
    /// The flow at a cell: a liquid changes itself, or spreads. `block` reads a block, or returns `None` if it is not loaded. Without
    /// a liquid, no block changes.
    pub fn flow(&self, at: BlockPos, block: impl Fn(BlockPos) -> Option<BlockId>) -> Flow {
        let mut flow = Flow::default();
        flow.is_waiting = Look { liquids: self, block }.flow(at, &mut flow.changes).is_err();
        flow
    }

    /// The cells from which liquid may flow elsewhere because this cell became a source or solid: all that look at it when they
    /// search for a drop, except its neighbors.
    pub fn farther_lookers(at: BlockPos) -> impl Iterator<Item = BlockPos> {
        let reach = i64::from(SEARCH);
        let across = (-reach..=reach).flat_map(move |x| (-reach..=reach).map(move |z| (x, z)));
        let across = across.filter(move |(x, z)| x.abs() + z.abs() <= reach);
        across.flat_map(move |(x, z)| [0, 1].map(|y| at.offset(x, y, z))).filter(move |found| *found != at)
    }

    /// Returns `true` if the block stops all liquids, or is a source.
    pub fn is_obstacle(&self, block: BlockId) -> bool {
        matches!(self.cell(block), Cell::Solid | Cell::Liquid(_, Kind::Source))
    }
}

struct Look<'a, B> {
    liquids: &'a Liquids,
    block: B,
}

impl<B: Fn(BlockPos) -> Option<BlockId>> Look<'_, B> {
    fn cell(&self, at: BlockPos) -> Result<Cell, Missing> {
        (self.block)(at).map(|block| self.liquids.cell(block)).ok_or(Missing)
    }

    /// The neighbor at a face. Beyond the edges of `i64` all is solid.
    fn neighbor(&self, at: BlockPos, face: Face) -> Result<Cell, Missing> {
        at.checked_offset(face.normal()).map_or(Ok(Cell::Solid), |at| self.cell(at))
    }

    fn flow(&self, at: BlockPos, changes: &mut Vec<(BlockPos, BlockId)>) -> Result<(), Missing> {
        let block = (self.block)(at).ok_or(Missing)?;
        let Cell::Liquid(number, kind) = self.liquids.cell(block) else { return Ok(()) };
        let new = self.next(at, number, kind == Kind::Source)?.unwrap_or(BlockId::AIR);
        if new != block {
            changes.push((at, new));
            return Ok(());
        }
        let liquid = self.liquid(number);
        let mut faces = FaceSet::NONE;
        if kind == Kind::Source && liquid.renews {
            for side in Face::SIDES {
                if let Some(to) = at.checked_offset(side.normal())
                    && self.is_renewed(to, number)?
                {
                    faces.insert(side);
                }
            }
        }
        if self.passes(self.neighbor(at, Face::Bottom)?, number) {
            faces.insert(Face::Bottom);
        } else if kind.step() < liquid.steps() {
            self.directions(at, number)?.iter().for_each(|side| faces.insert(side));
        }
        for to in faces.iter().filter_map(|face| at.checked_offset(face.normal())) {
            // Neighbors that are wet already look for themselves.
            if self.cell(to)? == Cell::Open
                && let Some(new) = self.next(to, number, false)?
            {
                changes.push((to, new));
            }
        }
        Ok(())
    }

    fn liquid(&self, number: u8) -> &Liquid {
        &self.liquids.liquids[usize::from(number)]
    }

    /// The block that an open cell or a cell of the liquid becomes; `None` if the liquid does not reach it.
    fn next(&self, at: BlockPos, number: u8, is_source: bool) -> Result<Option<BlockId>, Missing> {
        let kind = if is_source { Some(Kind::Source) } else { self.supplied(at, number)? };
        let Some(kind) = kind else { return Ok(None) };
        let liquid = self.liquid(number);
        for (other, becomes) in &liquid.meetings {
            for face in Face::ALL {
                if matches!(self.neighbor(at, face)?, Cell::Liquid(found, _) if found == *other) {
                    return Ok(Some(*becomes));
                }
            }
        }
        Ok(Some(liquid.block(kind)))
    }

    fn supplied(&self, at: BlockPos, number: u8) -> Result<Option<Kind>, Missing> {
        let liquid = self.liquid(number);
        if liquid.renews && self.is_renewed(at, number)? {
            return Ok(Some(Kind::Source));
        }
        if matches!(self.neighbor(at, Face::Top)?, Cell::Liquid(found, _) if found == number) {
            return Ok(Some(Kind::Flowing(0)));
        }
        let mut suppliers = [(u8::MAX, Face::North); 4];
        for (supplier, side) in suppliers.iter_mut().zip(Face::SIDES) {
            if let Cell::Liquid(found, kind) = self.neighbor(at, side)?
                && found == number
                && kind.step() < liquid.steps()
            {
                *supplier = (kind.step(), side);
            }
        }
        suppliers.sort_by_key(|(step, _)| *step);
        for (step, side) in suppliers.into_iter().filter(|(step, _)| *step != u8::MAX) {
            if let Some(from) = at.checked_offset(side.normal())
                && !self.passes(self.neighbor(from, Face::Bottom)?, number)
                && self.directions(from, number)?.contains(side.opposite())
            {
                return Ok(Some(Kind::Flowing(step + 1)));
            }
        }
        Ok(None)
    }

    /// Returns `true` if the cell has sources at two or more sides and does not fall.
    fn is_renewed(&self, at: BlockPos, number: u8) -> Result<bool, Missing> {
        let mut sources = 0;
        for side in Face::SIDES {
            sources += usize::from(self.neighbor(at, side)? == Cell::Liquid(number, Kind::Source));
        }
        Ok(sources >= 2 && !self.passes(self.neighbor(at, Face::Bottom)?, number))
    }

    /// Returns `true` if the liquid passes through such a cell. This does not depend on where the liquid flows at the moment.
    fn passes(&self, cell: Cell, number: u8) -> bool {
        match cell {
            Cell::Open => true,
            Cell::Liquid(found, Kind::Flowing(_)) => found == number,
            Cell::Solid | Cell::Liquid(_, Kind::Source) => false,
        }
    }

    /// The sides to which a cell flows: those of the shortest ways to a drop, or all sides through which it passes.
    fn directions(&self, from: BlockPos, number: u8) -> Result<FaceSet, Missing> {
        const WIDTH: usize = 2 * SEARCH as usize + 1;
        // For each cell, the steps to it, and the sides with which the shortest ways to it begin.
        let mut reached = [[(u8::MAX, 0_u8); WIDTH]; WIDTH];
        let start = [SEARCH as usize; 2];
        reached[start[0]][start[1]] = (0, 0);
        let mut frontier = vec![(from, start)];
        let mut first = 0;
        for step in 1..=SEARCH {
            let mut next = Vec::with_capacity(4 * usize::from(step));
            for (at, [x, z]) in frontier {
                for (bit, side) in Face::SIDES.into_iter().enumerate() {
                    let ways = if step == 1 { 1 << bit } else { reached[x][z].1 };
                    let [along, _, across] = side.normal();
                    let to = [x.wrapping_add_signed(along as isize), z.wrapping_add_signed(across as isize)];
                    let known = &mut reached[to[0]][to[1]];
                    if known.0 < step {
                        continue;
                    }
                    if known.0 == step {
                        known.1 |= ways;
                        continue;
                    }
                    if let Some(at) = at.checked_offset(side.normal())
                        && self.passes(self.cell(at)?, number)
                    {
                        *known = (step, ways);
                        next.push((at, to));
                    } else {
                        // The liquid does not pass here.
                        *known = (0, 0);
                    }
                }
            }
            let mut drops = 0;
            for (at, [x, z]) in &next {
                if self.passes(self.neighbor(*at, Face::Bottom)?, number) {
                    drops |= reached[*x][*z].1;
                }
            }
            if step == 1 {
                first = next.iter().fold(0, |ways, (_, [x, z])| ways | reached[*x][*z].1);
            }
            if drops != 0 {
                return Ok(sides(drops));
            }
            frontier = next;
        }
        Ok(sides(first))
    }
}

/// The sides with these bits, in the order of [`Face::SIDES`].
fn sides(bits: u8) -> FaceSet {
    (0..).zip(Face::SIDES).filter(|(bit, _)| bits >> bit & 1 != 0).map(|(_, side)| side).collect()
}
