//! Which columns tick together: the state machine of sections and regions.
//!
//! A [`Regionizer`] is told which columns exist. It cuts the plane into *sections* of 2^n x 2^n columns, keeps a rim of
//! empty sections around those that hold columns, and groups sections into *regions*: what is near shares a region,
//! what is far apart does not. Regions tick independently of each other, so the columns that exist may change while
//! any of them ticks. All distances are Chebyshev, in sections.
//!
//! # Invariants
//!
//! 1. Every column that exists lies in a section, and every section has exactly one live owner.
//! 2. Every section within the creation radius of a non-empty one exists and has its owner; and every two existing
//!    sections within the merge radius of each other have one owner, or a merge of their owners is pending.
//! 3. A ticking region never gains sections: what appears beside it becomes a transient region that merges when the
//!    tick ends.
//! 4. A region is transient, ready, ticking or dead, and only a ready one may begin to tick.
//!
//! Tests check all four from scratch, after every step of random histories too.
//!
//! # States
//!
//! Every operation on a region in every state. What is not listed changes nothing and is answered by `None` or by an
//! error: begin a tick unless ready, end one unless ticking (the data that was passed in is dropped), add a column that
//! exists, remove one that does not. "Merged" stands for one [`RegionEvent::Merged`] each.
//!
//! | state | operation | becomes | events | data |
//! |---|---|---|---|---|
//! | | `add_column` makes sections with no region in reach | ready | Created, Ready | `new`, `grow` |
//! | | `add_column` makes sections and every region in reach is ticking | transient: waits for all of those | Created, Transient | `new`, `grow` |
//! | | `end_tick` of a region of which it is a part, not the largest | ready | Created, Split, Ready | from `split` |
//! | any | `add_column` in one of its sections that makes no section | as it was | | untouched |
//! | ready | `add_column` makes sections in reach: it is the largest idle region there | ready | Merged: others into it | `grow`, `merge` each |
//! | ready | the same, with a ticking region in reach, or having absorbed a transient one | transient: waits for those that tick | Merged: others into it, Transient | `grow`, `merge` each |
//! | transient | the same | transient: waits for those as well | Merged: others into it | `grow`, `merge` each |
//! | ready, transient | `add_column` makes sections in reach: another idle region there is larger | dead | Merged: it into the other | to the other's `merge` |
//! | ticking | `add_column` makes sections in reach | ticking: a transient region waits for it | | out |
//! | any | `remove_column` | as it was | | untouched |
//! | ready | `try_begin_tick` | ticking | | handed out |
//! | transient | `end_tick` of the first of the regions that it waits for | dead | Merged: it into that one | to that one's `merge` |
//! | ticking | `end_tick`, having absorbed a region that waits for yet another one | transient: waits for that one | Merged: all that waited into it, Transient | taken back, `merge` each |
//! | ticking | `end_tick`, nothing of it alive | dead | Merged: all that waited into it, Destroyed | taken back, `merge` each, `shrink`, dropped |
//! | ticking | `end_tick`, otherwise | ready | Merged: all that waited into it; for parts that split off Created each, Split, Ready each | taken back, `merge` each, `shrink`, `split` |
//!
//! A waiting region never becomes ready again: it ends by being absorbed. Only ticking regions are waited for.
//! Of n ticking regions that were bridged meanwhile, the last one to end its tick has everything.
//! A ticking region need not take part in a merge to own the column that caused it: it owns what it owned.
//! Of idle regions of the same size the oldest absorbs the others, of parts of the same size the one with the lowest
//! section keeps the id.
//!
//! "In reach" of a section is what lies within creation radius + merge radius. Adding a column that makes no new
//! section changes no region's state, whoever owns the section.
//!
//! # Dead sections
//!
//! A section is dead if it holds no column and no non-empty section lies within the creation radius. It stays owned,
//! and comes back to life when a column appears nearby. Dead sections are removed only when a tick ends: if it merged
//! something, or nothing of the region is alive, or both thresholds of the configuration are met. Only such a
//! removal is followed by a search for parts that may split off; parts are what is more than the creation radius
//! apart.
//!
//! # Cost
//!
//! Sections are stored as bits of *tiles*, squares of 8 x 8 sections. Adding or removing a column looks at the tiles
//! around it, however large the region is. A merge relabels the tiles of the smaller side, whichever of the two goes
//! on; a removal of dead sections or a split walks the tiles of one region. Pending merges belong to the waiting region,
//! whichever that is: the longer of two lists is kept, so n of them cost O(n log^2 n) until the last one is done. Nothing
//! depends on the order of a hash map: the same calls give the same ids, events and iteration orders.

mod config;
mod regionizer;
mod section_tile;
#[cfg(test)]
mod tests;

pub use config::{RegionizerConfig, RegionizerConfigError};
pub use regionizer::{Regionizer, RegionizerError};

use crate::space::{BlockPos, ColumnPos, SectionPos};
use std::fmt;

/// The name of a region within its regionizer. Ids are given out in sequence and never re-used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(u64);

impl RegionId {
    /// The id with this index.
    pub const fn new(index: u64) -> Self {
        Self(index)
    }

    /// How many ids the regionizer gave out before this one.
    pub const fn index(self) -> u64 {
        self.0
    }
}

impl fmt::Display for RegionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "region {}", self.0)
    }
}

/// What a region may do. The [module](self) has the table of all transitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegionState {
    /// Waits for ticking regions: the first of them to end its tick absorbs it.
    Transient,
    /// May begin to tick.
    Ready,
    /// Ticks; its data is out and it gains no sections.
    Ticking,
    /// Merged into another region, or destroyed with its last section.
    Dead,
}

impl fmt::Display for RegionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transient => "transient",
            Self::Ready => "ready",
            Self::Ticking => "ticking",
            Self::Dead => "dead",
        })
    }
}

/// What a region carries besides its sections.
///
/// Data that adds the sections which [`grow`](Self::grow) names, takes out those which [`shrink`](Self::shrink) names,
/// and hands over its own with [`merge`](Self::merge) and [`split`](Self::split), always has the region's sections,
/// while it is out for a tick too: a ticking region neither gains nor loses any.
pub trait RegionData: Sized {
    /// The data of a region that was just created by a column.
    fn new(region: RegionId) -> Self;

    /// Takes in the data of `from`, which has been merged into this region.
    fn merge(&mut self, from: RegionId, data: Self);

    /// Gives up what belongs to `parts`, one value for each in their order. The largest part is not among them: it
    /// keeps the region's id and `self`.
    ///
    /// If there are too few values, [`RegionData::new`] makes the missing ones and [`RegionData::grow`] names their
    /// sections; what is too many is merged back into `self`.
    fn split(&mut self, parts: &[RegionPart]) -> Vec<Self>;

    /// These sections have been made for the region, right after [`RegionData::new`] or later. One column may bring
    /// several calls.
    fn grow(&mut self, sections: &[SectionPos]) {
        let _ = sections;
    }

    /// These sections of the region were dead and have been removed at the end of its tick, before it splits. One tick
    /// may bring several calls; a region that ends with its last section is told of that one too.
    fn shrink(&mut self, sections: &[SectionPos]) {
        let _ = sections;
    }
}

impl RegionData for () {
    fn new(_: RegionId) -> Self {}

    fn merge(&mut self, _: RegionId, (): Self) {}

    fn split(&mut self, parts: &[RegionPart]) -> Vec<Self> {
        vec![(); parts.len()]
    }
}

/// A part of a region that splits off and becomes a region of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionPart {
    /// The new region.
    pub id: RegionId,
    /// Its sections, ascending.
    pub sections: Vec<SectionPos>,
    /// Columns to a section, as a power of two.
    pub section_shift: u32,
}

impl RegionPart {
    /// Whether the column lies in one of its sections.
    pub fn contains(&self, column: ColumnPos) -> bool {
        self.sections.binary_search(&column.section(self.section_shift)).is_ok()
    }

    /// Whether the block lies in one of its sections.
    pub fn contains_block(&self, block: BlockPos) -> bool {
        self.contains(block.column())
    }
}

/// Something that happened to regions, for the layer above.
///
/// A region begins with one `Created` and ends with one `Merged { from, .. }` or `Destroyed`. That a region begins to
/// tick, or is ready again when its tick ends, is the caller's own doing and no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionEvent {
    /// A region appeared; its `Ready` or `Transient` follows.
    Created(RegionId),
    /// `from` is dead, its sections and data are those of `into`.
    Merged {
        /// The region that ended.
        from: RegionId,
        /// The region that goes on.
        into: RegionId,
    },
    /// Parts of `from` became regions of their own. `from` keeps the largest part and is ready.
    Split {
        /// The region that goes on.
        from: RegionId,
        /// The new regions, created just before.
        into: Vec<RegionId>,
    },
    /// The region ended with its last section.
    Destroyed(RegionId),
    /// A new region may tick.
    Ready(RegionId),
    /// A region must not tick: it waits for ticking regions.
    Transient(RegionId),
}
