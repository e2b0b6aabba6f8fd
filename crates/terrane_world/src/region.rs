//! Decides which columns tick together: the state machine of sections and regions.
//!
//! A [`Regionizer`] tracks which columns exist. It divides the plane into *sections* of 2^n x 2^n columns, keeps a rim
//! of empty sections around sections with columns, and groups sections into *regions*: nearby sections share a region,
//! distant ones do not. Regions tick independently of each other, so columns may be added and removed while any region
//! ticks. All distances are Chebyshev distances in sections.
//!
//! # Invariants
//!
//! 1. Every existing column lies in a section, and every section has exactly one live owner.
//! 2. Every section within the creation radius of a non-empty one exists and has an owner. Any two existing sections
//!    within the merge radius of each other have the same owner, or a merge of their owners is pending.
//! 3. A ticking region never gains sections: sections that appear beside it belong to a transient region, which merges
//!    when the tick ends.
//! 4. A region is transient, ready, ticking or dead, and only a ready region may begin to tick.
//!
//! Tests check all four from scratch, including after every step of random histories.
//!
//! # States
//!
//! Each row is an operation on a region in one state. All other operations change nothing and return `None` or an
//! error: beginning a tick of a region that is not ready, ending a tick of a region that is not ticking (which drops
//! the data passed in), adding an existing column, removing a missing one. "Merged" stands for one
//! [`RegionEvent::Merged`] each.
//!
//! | state | operation | becomes | events | data |
//! |---|---|---|---|---|
//! | | `add_column` makes sections with no region in reach | ready | Created, Ready | `new`, `grow` |
//! | | `add_column` makes sections and every region in reach is ticking | transient: waits for all of them | Created, Transient | `new`, `grow` |
//! | | `end_tick` of the region that it was part of, if it is not the largest part | ready | Created, Split, Ready | from `split` |
//! | any | `add_column` in one of its sections that makes no section | unchanged | | untouched |
//! | ready | `add_column` makes sections in reach: it is the largest idle region there | ready | Merged: others into it | `grow`, `merge` each |
//! | ready | the same, with a ticking region in reach, or having absorbed a transient one | transient: waits for the ticking regions | Merged: others into it, Transient | `grow`, `merge` each |
//! | transient | the same | transient: waits for those as well | Merged: others into it | `grow`, `merge` each |
//! | ready, transient | `add_column` makes sections in reach: another idle region there is larger | dead | Merged: it into the other | to the other's `merge` |
//! | ticking | `add_column` makes sections in reach | ticking: a transient region waits for it | | out |
//! | any | `remove_column` | unchanged | | untouched |
//! | ready | `try_begin_tick` | ticking | | handed out |
//! | transient | `end_tick` of the first region that it waits for | dead | Merged: it into that one | to that one's `merge` |
//! | ticking | `end_tick`, having absorbed a region that waits for another one | transient: waits for that one | Merged: all waiting regions into it, Transient | taken back, `merge` each |
//! | ticking | `end_tick`, all its sections are dead | dead | Merged: all waiting regions into it, Destroyed | taken back, `merge` each, `shrink`, dropped |
//! | ticking | `end_tick`, otherwise | ready | Merged: all waiting regions into it; for parts that split off Created each, Split, Ready each | taken back, `merge` each, `shrink`, `split` |
//!
//! A waiting region never becomes ready again: another region absorbs it. Regions only wait for ticking regions. If a waiting
//! region bridges n ticking regions, the last of them to end its tick absorbs all others. A ticking region may own the column
//! that causes a merge without taking part in it: the region's sections do not change. Among idle regions of equal size the
//! oldest absorbs the others, and among parts of equal size the one with the lowest section keeps the id.
//!
//! A region is "in reach" of a section if it owns a section within creation radius + merge radius. Adding a column
//! that makes no new section changes no region's state, whichever region owns the section.
//!
//! # Dead sections
//!
//! A section is dead if it holds no column and no non-empty section lies within the creation radius. It keeps its
//! owner, and becomes alive again when a column appears nearby. Dead sections are only removed when a tick ends: if
//! the region merged with another one, if all its sections are dead, or if both thresholds of the configuration are
//! met. Only such a removal is followed by a search for parts to split off. Parts are more than the creation radius
//! apart.
//!
//! # Cost
//!
//! Sections are stored as bits of *tiles*, squares of 8 x 8 sections. Adding or removing a column visits the tiles
//! around it, however large the region is. A merge relabels the tiles of the smaller region, even if the larger one is
//! absorbed. Removing dead sections or splitting walks the tiles of one region. The waiting region owns its pending
//! merges. When one waiting region absorbs another, the longer list is kept, so n pending merges cost O(n log^2 n) in
//! all. Nothing depends on the order of a hash map: the same calls give the same ids, events and iteration orders.

mod config;
mod regionizer;
mod section_tile;
#[cfg(test)]
mod tests;

pub use config::{RegionizerConfig, RegionizerConfigError};
pub use regionizer::{Regionizer, RegionizerError};

use crate::space::{BlockPos, ColumnPos, SectionPos};
use std::fmt;

/// The id of a region within its regionizer. Ids are assigned in sequence and never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect), type_path = "bevy_terrane")]
pub struct RegionId(u64);

impl RegionId {
    /// The id with this index.
    pub const fn new(index: u64) -> Self {
        Self(index)
    }

    /// The number of ids that the regionizer assigned before this one.
    pub const fn index(self) -> u64 {
        self.0
    }
}

impl fmt::Display for RegionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "region {}", self.0)
    }
}

/// The state of a region. The [module](self) has the table of all transitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect), type_path = "bevy_terrane")]
pub enum RegionState {
    /// Waits for ticking regions. The first of them to end its tick absorbs it.
    Transient,
    /// May begin to tick.
    Ready,
    /// Ticking: its data is handed out, and it gains no sections.
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

/// The data of a region besides its sections.
///
/// Data can track its region's sections: add the sections passed to [`grow`](Self::grow), remove those passed to
/// [`shrink`](Self::shrink), and hand sections over in [`merge`](Self::merge) and [`split`](Self::split). The result
/// stays correct during a tick, because a ticking region neither gains nor loses sections.
pub trait RegionData: Sized {
    /// Creates the data of a region that a column has just created.
    fn new(region: RegionId) -> Self;

    /// Adds the data of `from`, which has been merged into this region.
    fn merge(&mut self, from: RegionId, data: Self);

    /// Removes and returns the data of `parts`, one value for each in their order. The largest part is not among them:
    /// it keeps the region's id and `self`.
    ///
    /// If there are too few values, [`RegionData::new`] makes the missing ones and [`RegionData::grow`] gets their
    /// sections. Surplus values are merged back into `self`.
    fn split(&mut self, parts: &[RegionPart]) -> Vec<Self>;

    /// Called with sections that were created for the region, right after [`RegionData::new`] or later. One column may
    /// cause several calls.
    fn grow(&mut self, sections: &[SectionPos]) {
        let _ = sections;
    }

    /// Called with dead sections of the region that were removed at the end of its tick, before it splits. One tick
    /// may cause several calls. A region that ends with its last section gets a call for that one too.
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

/// Boxed data is moved into and out of the regionizer at the cost of a pointer.
impl<D: RegionData> RegionData for Box<D> {
    fn new(region: RegionId) -> Self {
        Self::new(D::new(region))
    }

    fn merge(&mut self, from: RegionId, data: Self) {
        D::merge(self, from, *data);
    }

    fn split(&mut self, parts: &[RegionPart]) -> Vec<Self> {
        D::split(self, parts).into_iter().map(Self::new).collect()
    }

    fn grow(&mut self, sections: &[SectionPos]) {
        D::grow(self, sections);
    }

    fn shrink(&mut self, sections: &[SectionPos]) {
        D::shrink(self, sections);
    }
}

/// A part that splits off a region and becomes a region of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionPart {
    /// The new region.
    pub id: RegionId,
    /// Its sections, ascending.
    pub sections: Vec<SectionPos>,
    /// The width of a section in columns, as a power of two.
    pub section_shift: u32,
}

impl RegionPart {
    /// Returns `true` if the column lies in one of the part's sections.
    pub fn contains(&self, column: ColumnPos) -> bool {
        self.sections.binary_search(&column.section(self.section_shift)).is_ok()
    }

    /// Returns `true` if the block lies in one of the part's sections.
    pub fn contains_block(&self, block: BlockPos) -> bool {
        self.contains(block.column())
    }
}

/// A change of regions.
///
/// A region starts with one `Created` and ends with one `Merged { from, .. }` or `Destroyed`. Beginning a tick, and
/// becoming ready again at its end, are not events, because the caller does both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionEvent {
    /// A region appeared; its `Ready` or `Transient` follows.
    Created(RegionId),
    /// `from` is dead. `into` has its sections and data.
    Merged {
        /// The region that ended.
        from: RegionId,
        /// The region that continues.
        into: RegionId,
    },
    /// Parts of `from` became regions of their own. `from` keeps the largest part and is ready.
    Split {
        /// The region that continues.
        from: RegionId,
        /// The new regions, created just before.
        into: Vec<RegionId>,
    },
    /// The region ended with its last section.
    Destroyed(RegionId),
    /// A new region can tick.
    Ready(RegionId),
    /// A region must not tick, because it waits for ticking regions.
    Transient(RegionId),
}
