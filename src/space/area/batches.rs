//! The batches of an area from its centre outwards, page by page, with a cursor that can be kept.
//!
//! The order is by the distance of a batch's nearest column, then by z, then by x. A page is a ring of equal area: its
//! squared distances lie between two multiples of the same number. So each page has about as many batches as the next,
//! and no more than one page is in memory, however large the area is.

use super::ColumnArea;
use crate::space::{BatchPos, ColumnPos};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// The difference of squared distances that a page spans: some 3,200 batches in a ring that is whole.
const PAGE_SPAN: u128 = 1 << 14;

/// How far a walk over an area's batches has come: what lies before it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AreaCursor {
    distance_squared: u128,
    z: i64,
    x: i64,
}

impl AreaCursor {
    /// The cursor at which this batch of the area comes next.
    pub fn at(area: &ColumnArea, batch: BatchPos) -> Self {
        let gap = |center: i64, batch: i64| u128::from(gap_to_batch(center, batch)).pow(2);
        let ColumnPos { x, z } = area.center();
        Self::of(gap(x, batch.x) + gap(z, batch.z), batch)
    }

    fn of(distance_squared: u128, batch: BatchPos) -> Self {
        Self { distance_squared, z: batch.z, x: batch.x }
    }
}

/// Before everything.
impl Default for AreaCursor {
    fn default() -> Self {
        Self { distance_squared: 0, z: i64::MIN, x: i64::MIN }
    }
}

/// The [batches](ColumnArea::batches) of an area, nearest first: each with the mask of its columns that belong to the
/// area, bit x + 4 * z. Needs the same little memory for any area.
#[derive(Clone, Debug)]
pub struct AreaBatches {
    area: ColumnArea,
    /// `None` if the area is empty.
    walk: Option<Walk>,
    /// The next batches, the nearest last.
    page: Vec<AreaCursor>,
    /// The squared distance at which the next page begins; `None` if there is none.
    next_page: Option<u128>,
    cursor: AreaCursor,
}

impl AreaBatches {
    /// The batches that come at the cursor of an earlier walk over the same area and behind it.
    pub fn from_cursor(area: ColumnArea, cursor: AreaCursor) -> Self {
        let next_page = Some(page_start(cursor.distance_squared));
        Self { area, walk: Walk::new(&area), page: Vec::new(), next_page, cursor }
    }

    /// Where it goes on: it was given all that lies before, and nothing that lies behind.
    pub fn cursor(&self) -> AreaCursor {
        self.cursor
    }

    fn turn_page(&mut self) -> Option<()> {
        let walk = self.walk.as_ref()?;
        while self.page.is_empty() {
            let nearest_behind = walk.ring(self.next_page?, &mut self.page);
            self.next_page = nearest_behind.map(page_start);
            self.page.retain(|candidate| *candidate >= self.cursor);
        }
        self.page.sort_unstable_by(|a, b| b.cmp(a));
        Some(())
    }
}

/// Where the page begins that holds this squared distance.
fn page_start(distance_squared: u128) -> u128 {
    distance_squared / PAGE_SPAN * PAGE_SPAN
}

impl Iterator for AreaBatches {
    type Item = (BatchPos, u16);

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.is_empty() {
            self.turn_page()?;
        }
        let next = self.page.pop()?;
        // A batch's coordinates are far from the edges of an i64.
        self.cursor = AreaCursor { x: next.x + 1, ..next };
        let batch = BatchPos::new(next.x, next.z);
        Some((batch, self.area.mask(batch)))
    }
}

/// The area as a rectangle of batches around a centre, with a farthest distance if it is a disc.
#[derive(Clone, Copy, Debug)]
struct Walk {
    /// The shorter axis: a ring is looked through row by row along it.
    rows: Axis,
    along: Axis,
    rows_are_z: bool,
    farthest_squared: u128,
}

impl Walk {
    fn new(area: &ColumnArea) -> Option<Self> {
        let (min, max) = area.bounds()?;
        let center = area.center();
        let axis = |center, min: i64, max: i64| Axis { center, min: min >> 2, max: max >> 2 };
        let (x, z) = (axis(center.x, min.x, max.x), axis(center.z, min.z, max.z));
        let rows_are_z = z.max.abs_diff(z.min) <= x.max.abs_diff(x.min);
        let (rows, along) = if rows_are_z { (z, x) } else { (x, z) };
        let farthest_squared = match area {
            ColumnArea::Disc { radius, .. } => u128::from(*radius).pow(2),
            ColumnArea::Square { .. } | ColumnArea::Box { .. } => u128::MAX,
        };
        Some(Self { rows, along, rows_are_z, farthest_squared })
    }

    /// Appends the batches of the page that begins at this squared distance. Gives the squared distance of the nearest
    /// batch behind it, if there is one.
    fn ring(&self, start: u128, page: &mut Vec<AreaCursor>) -> Option<u128> {
        let last = start.saturating_add(PAGE_SPAN - 1).min(self.farthest_squared);
        if start > last {
            return None;
        }
        let rows = self.rows.within(last.isqrt());
        let (before, behind) = self.rows.beyond(&rows);
        // A row's nearest batch is straight beside the centre's.
        let mut next = [before, behind].into_iter().flatten().map(|row| self.rows.gap_squared(row)).min();
        for row in rows {
            let across = self.rows.gap_squared(row);
            let outer = self.along.within((last - across).isqrt());
            let inner = start.checked_sub(across + 1).map(|nearer| self.along.within(nearer.isqrt()));
            let (before, behind) = self.along.beyond(&outer);
            let further = [before, behind].into_iter().flatten().map(|place| across + self.along.gap_squared(place));
            next = next.into_iter().chain(further).min();
            // Of a row that lies beyond the inner circle, all is in the ring.
            let inner = inner.unwrap_or(outer.end() + 1..=*outer.end());
            let places = (*outer.start()..=*inner.start() - 1).chain(*inner.end() + 1..=*outer.end());
            page.extend(places.map(|place| self.candidate(row, across, place)));
        }
        next.filter(|next| *next <= self.farthest_squared)
    }

    fn candidate(&self, row: i64, across: u128, place: i64) -> AreaCursor {
        let batch = if self.rows_are_z { BatchPos::new(place, row) } else { BatchPos::new(row, place) };
        AreaCursor::of(across + self.along.gap_squared(place), batch)
    }
}

/// The batches of an area along one axis. The centre, in columns, lies among them.
#[derive(Clone, Copy, Debug)]
struct Axis {
    center: i64,
    min: i64,
    max: i64,
}

impl Axis {
    fn gap_squared(&self, batch: i64) -> u128 {
        u128::from(gap_to_batch(self.center, batch)).pow(2)
    }

    /// The batches no farther away than this: always that of the centre at least.
    fn within(&self, reach: u128) -> RangeInclusive<i64> {
        let reach = u64::try_from(reach).unwrap_or(u64::MAX);
        let first = self.center.saturating_sub_unsigned(reach) >> 2;
        let last = self.center.saturating_add_unsigned(reach) >> 2;
        first.max(self.min)..=last.min(self.max)
    }

    /// The batches right before and right behind these.
    fn beyond(&self, range: &RangeInclusive<i64>) -> (Option<i64>, Option<i64>) {
        let (start, end) = (*range.start(), *range.end());
        ((start > self.min).then(|| start - 1), (end < self.max).then(|| end + 1))
    }
}

/// How far the nearest column of a batch is from a column, along one axis.
fn gap_to_batch(center: i64, batch: i64) -> u64 {
    gap(center, batch << 2, batch << 2 | 3)
}

/// How far `center` is from the nearest of `min..=max`.
#[inline]
pub(crate) fn gap(center: i64, min: i64, max: i64) -> u64 {
    if center < min {
        center.abs_diff(min)
    } else if center > max {
        center.abs_diff(max)
    } else {
        0
    }
}
