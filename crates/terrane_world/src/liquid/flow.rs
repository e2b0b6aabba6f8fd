//! The flow of a liquid at one cell.

use super::table::{Kind, Liquid, LiquidCell, Liquids};
use crate::block::BlockId;
use crate::space::{BlockPos, Face, FaceSet};

/// The farthest drop, in steps to the side, towards which a liquid flows.
pub const SEARCH: u8 = 4;

/// The outcome of a look at a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The cells that change, each with the layer of the liquid and its new block. [`BlockId::AIR`] removes that layer. A cell that
    /// changes itself does not spread yet.
    pub changes: Vec<(BlockPos, u8, BlockId)>,
    /// `true` if the outcome is not certain, because a block is not loaded: look again later.
    pub is_waiting: bool,
}

/// A block that had to be known is not loaded.
struct Missing;

impl Liquids {
    /// The flow at a cell: a liquid changes itself, or spreads. `cell` reads a [cell](Liquids::cell), or returns `None` if it is not
    /// loaded. Without a liquid, no block changes.
    pub fn flow(&self, at: BlockPos, cell: impl Fn(BlockPos) -> Option<LiquidCell>) -> Flow {
        let mut flow = Flow::default();
        flow.is_waiting = Look { liquids: self, cell }.flow(at, &mut flow.changes).is_err();
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
}

struct Look<'a, C> {
    liquids: &'a Liquids,
    cell: C,
}

/// A cell and its place.
#[derive(Clone, Copy)]
struct Spot {
    at: BlockPos,
    cell: LiquidCell,
}

impl Spot {
    fn is_source_of(&self, number: u8) -> bool {
        self.cell.liquid.is_some_and(|wet| wet.number == number && wet.kind == Kind::Source)
    }
}

impl<C: Fn(BlockPos) -> Option<LiquidCell>> Look<'_, C> {
    fn spot(&self, at: BlockPos) -> Result<Spot, Missing> {
        (self.cell)(at).map(|cell| Spot { at, cell }).ok_or(Missing)
    }

    /// The cell beyond a face; `None` if a block on either side closes the face. Beyond the edges of `i64` all is solid.
    #[inline]
    fn beyond(&self, spot: Spot, face: Face) -> Result<Option<Spot>, Missing> {
        if spot.cell.closed.contains(face) {
            return Ok(None);
        }
        let Some(at) = spot.at.checked_offset(face.normal()) else { return Ok(None) };
        let beyond = self.spot(at)?;
        Ok((!beyond.cell.closed.contains(face.opposite())).then_some(beyond))
    }

    /// Returns `true` if the liquid passes through a face, and through the cell beyond it.
    fn passes(&self, spot: Spot, face: Face, number: u8) -> Result<bool, Missing> {
        Ok(self.beyond(spot, face)?.is_some_and(|beyond| beyond.cell.is_passed_by(number)))
    }

    fn flow(&self, at: BlockPos, changes: &mut Vec<(BlockPos, u8, BlockId)>) -> Result<(), Missing> {
        let spot = self.spot(at)?;
        let Some(wet) = spot.cell.liquid else { return Ok(()) };
        let new = self.next(spot, wet.number)?.unwrap_or(BlockId::AIR);
        if new != wet.block {
            changes.push((at, spot.cell.layer, new));
            return Ok(());
        }
        let liquid = self.liquid(wet.number);
        let mut faces = FaceSet::NONE;
        if wet.kind == Kind::Source && liquid.renews {
            for side in Face::SIDES {
                if let Some(to) = self.beyond(spot, side)?
                    && self.is_renewed(to, wet.number)?
                {
                    faces.insert(side);
                }
            }
        }
        if self.passes(spot, Face::Bottom, wet.number)? {
            faces.insert(Face::Bottom);
        } else if wet.kind.step() < liquid.steps() {
            faces = faces.union(self.directions(spot, wet.number)?);
        }
        for face in faces.iter() {
            // Neighbors that are wet already look for themselves.
            if let Some(to) = self.beyond(spot, face)?
                && to.cell.liquid.is_none()
                && let Some(new) = self.next(to, wet.number)?
            {
                changes.push((to.at, to.cell.layer, new));
            }
        }
        Ok(())
    }

    fn liquid(&self, number: u8) -> &Liquid {
        &self.liquids.liquids[usize::from(number)]
    }

    /// The block that the liquid in a cell, or in one without liquid, becomes; `None` if the liquid does not reach it.
    fn next(&self, spot: Spot, number: u8) -> Result<Option<BlockId>, Missing> {
        let own = spot.cell.liquid.map(|wet| wet.kind);
        let kind = if own == Some(Kind::Source) { own } else { self.supplied(spot, number, own)? };
        let Some(kind) = kind else { return Ok(None) };
        let liquid = self.liquid(number);
        // A block of a meeting needs the cell for itself.
        let meetings = liquid.meetings.iter().filter(|_| !spot.cell.is_shared);
        for (other, becomes) in meetings {
            for face in Face::ALL {
                let beyond = self.beyond(spot, face)?;
                if beyond.and_then(|beyond| beyond.cell.liquid).is_some_and(|wet| wet.number == *other) {
                    return Ok(Some(*becomes));
                }
            }
        }
        Ok(Some(liquid.block(kind)))
    }

    fn supplied(&self, spot: Spot, number: u8, own: Option<Kind>) -> Result<Option<Kind>, Missing> {
        if !spot.cell.is_open {
            return Ok(None);
        }
        let liquid = self.liquid(number);
        if liquid.renews && self.is_renewed(spot, number)? {
            return Ok(Some(Kind::Source));
        }
        let above = self.beyond(spot, Face::Top)?.and_then(|above| above.cell.liquid);
        if above.is_some_and(|wet| wet.number == number) {
            return Ok(Some(Kind::Flowing(0)));
        }
        let mut suppliers = [None; 4];
        for (supplier, side) in suppliers.iter_mut().zip(Face::SIDES) {
            let from = self.beyond(spot, side)?;
            let wet = from.and_then(|from| from.cell.liquid).filter(|wet| wet.number == number);
            let kind = wet.map(|wet| wet.kind).filter(|kind| kind.step() < liquid.steps());
            *supplier = kind.zip(from).map(|(kind, from)| (kind, from, side));
        }
        suppliers.sort_by_key(|supplier| supplier.map(|(kind, ..)| kind.step()));
        for (kind, from, side) in suppliers.into_iter().flatten() {
            match self.flows_to(from, side.opposite(), number) {
                Ok(false) => {}
                Ok(true) => return Ok(Some(Kind::Flowing(kind.step() + 1))),
                // The cell did not come from one that is as far from the source as itself. If it had to wait for the ground around that
                // one, each of two cells would keep the other wet.
                Err(Missing) if kind != Kind::Source && own.is_some_and(|own| own.step() <= kind.step()) => {}
                Err(Missing) => return Err(Missing),
            }
        }
        Ok(None)
    }

    /// Returns `true` if a cell flows to this side.
    fn flows_to(&self, from: Spot, side: Face, number: u8) -> Result<bool, Missing> {
        Ok(!self.passes(from, Face::Bottom, number)? && self.directions(from, number)?.contains(side))
    }

    /// Returns `true` if liquid flows into the cell, it has sources at two or more sides, and it does not fall.
    fn is_renewed(&self, spot: Spot, number: u8) -> Result<bool, Missing> {
        if !spot.cell.is_open {
            return Ok(false);
        }
        let mut sources = 0;
        for side in Face::SIDES {
            sources += usize::from(self.beyond(spot, side)?.is_some_and(|beside| beside.is_source_of(number)));
        }
        Ok(sources >= 2 && !self.passes(spot, Face::Bottom, number)?)
    }

    /// The sides to which a cell flows: those of the shortest ways to a drop, or all sides through which it passes.
    fn directions(&self, from: Spot, number: u8) -> Result<FaceSet, Missing> {
        const WIDTH: usize = 2 * SEARCH as usize + 1;
        // For each cell, the steps to it, and the sides with which the shortest ways to it begin.
        let mut reached = [[(u8::MAX, 0_u8); WIDTH]; WIDTH];
        let start = [SEARCH as usize; 2];
        reached[start[0]][start[1]] = (0, 0);
        let mut frontier = vec![(from, start)];
        let mut first = 0;
        for step in 1..=SEARCH {
            let mut next = Vec::with_capacity(4 * usize::from(step));
            for (spot, [x, z]) in frontier {
                for (bit, side) in Face::SIDES.into_iter().enumerate() {
                    let ways = if step == 1 { 1 << bit } else { reached[x][z].1 };
                    let [along, _, across] = side.normal();
                    let to = [x.wrapping_add_signed(along as isize), z.wrapping_add_signed(across as isize)];
                    let known = &mut reached[to[0]][to[1]];
                    if known.0 < step {
                        continue;
                    }
                    // Another side of the cell may be open.
                    let Some(beside) = self.beyond(spot, side)? else { continue };
                    if !beside.cell.is_passed_by(number) {
                        *known = (0, 0);
                    } else if known.0 == step {
                        known.1 |= ways;
                    } else {
                        *known = (step, ways);
                        next.push((beside, to));
                    }
                }
            }
            let mut drops = 0;
            for (spot, [x, z]) in &next {
                if self.passes(*spot, Face::Bottom, number)? {
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
