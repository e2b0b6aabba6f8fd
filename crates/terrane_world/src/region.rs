//! Decides which columns tick together: the state machine of sections and regions, and its configuration.
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

mod regionizer;
mod section_tile;
#[cfg(test)]
mod tests;

pub use regionizer::{Regionizer, RegionizerError};

use crate::space::{BlockPos, ColumnPos, SectionPos};
use std::fmt;
use thiserror::Error;

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

/// When sections appear, merge and are removed.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionizerConfig {
    /// The width of a section is 2^`section_shift` columns. At most [`Self::MAX_SECTION_SHIFT`].
    pub section_shift: u32,
    /// Sections within this distance of a non-empty one exist too. At most [`Self::MAX_CREATION_RADIUS`].
    pub empty_section_creation_radius: u32,
    /// Sections within this distance of each other share a region. From 1 to the creation radius.
    pub section_merge_radius: u32,
    /// Only regions with at least this many sections are checked against `max_dead_section_percent`.
    pub recalculation_section_count: usize,
    /// The *fraction* (0 to 1) of dead sections from which on a tick's end removes them.
    pub max_dead_section_percent: f64,
}

impl RegionizerConfig {
    /// The largest allowed `section_shift`: sections of 64 x 64 columns.
    pub const MAX_SECTION_SHIFT: u32 = 6;
    /// The largest allowed `empty_section_creation_radius`.
    pub const MAX_CREATION_RADIUS: u32 = 8;

    /// Columns that are farther apart than this are never in one region, unless others lie between them.
    pub fn reach(&self) -> u64 {
        let sections = 2 * u64::from(self.empty_section_creation_radius) + 1;
        sections << self.section_shift.min(Self::MAX_SECTION_SHIFT)
    }

    /// Checks that a regionizer can work with these values.
    pub fn validate(&self) -> Result<(), RegionizerConfigError> {
        let check = |setting, found: u32, least: u32, most: u32| {
            let refused =
                || RegionizerConfigError { setting, found: found.into(), least: least.into(), most: most.into() };
            (least..=most).contains(&found).then_some(()).ok_or_else(refused)
        };
        check("section_shift", self.section_shift, 0, Self::MAX_SECTION_SHIFT)?;
        let creation = self.empty_section_creation_radius;
        check("empty_section_creation_radius", creation, 1, Self::MAX_CREATION_RADIUS)?;
        // The merge radius is at most the creation radius.
        check("section_merge_radius", self.section_merge_radius, 1, creation)?;
        let (setting, found) = ("max_dead_section_percent", self.max_dead_section_percent);
        let refused = RegionizerConfigError { setting, found, least: 0.0, most: 1.0 };
        if (0.0..=1.0).contains(&found) { Ok(()) } else { Err(refused) }
    }
}

impl Default for RegionizerConfig {
    fn default() -> Self {
        Self {
            section_shift: 2,
            empty_section_creation_radius: 2,
            section_merge_radius: 1,
            recalculation_section_count: 128,
            max_dead_section_percent: 1.0 / 6.0,
        }
    }
}

/// The error for a value of a [`RegionizerConfig`] that is out of range.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{setting} is {found}, it must be {least} to {most}")]
pub struct RegionizerConfigError {
    /// The field's name.
    pub setting: &'static str,
    /// Its value.
    pub found: f64,
    /// The lowest allowed value.
    pub least: f64,
    /// The highest allowed value.
    pub most: f64,
}

#[cfg(test)]
mod config_tests {
    use super::*;

    #[test]
    fn only_workable_values_are_valid() {
        let good = RegionizerConfig::default();
        assert_eq!(good.validate(), Ok(()));
        assert_eq!(good.reach(), 20);
        let refused = |config: RegionizerConfig| config.validate().unwrap_err().to_string();
        let shift = RegionizerConfig { section_shift: 7, ..good.clone() };
        assert_eq!(refused(shift), "section_shift is 7, it must be 0 to 6");
        for radius in [0, 9, u32::MAX] {
            let config = RegionizerConfig { empty_section_creation_radius: radius, ..good.clone() };
            assert_eq!(refused(config), format!("empty_section_creation_radius is {radius}, it must be 1 to 8"));
        }
        for merge in [0, 3, u32::MAX] {
            let config = RegionizerConfig { section_merge_radius: merge, ..good.clone() };
            assert_eq!(refused(config), format!("section_merge_radius is {merge}, it must be 1 to 2"));
        }
        for fraction in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            let config = RegionizerConfig { max_dead_section_percent: fraction, ..good.clone() };
            assert_eq!(refused(config), format!("max_dead_section_percent is {fraction}, it must be 0 to 1"));
        }
    }
}
