//! Remembers the nearest work around a viewer, so that it is searched for again only after a change.
//!
//! Marks and claims only remove work, so the nearest work can only get farther. A distance that was once right stays a lower
//! bound until a column is missing again. A viewer that moves comes nearer to everything by at most the length of its move.
//! The exact answer is needed only for the viewer that may have the nearest work of all.

use crate::generation::DistanceGraph;
use crate::space::{BatchPos, ColumnPos};

/// The nearest work for a viewer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    pub batch: BatchPos,
    /// The distance in columns; work ahead of a moving viewer counts as nearer.
    pub distance: f64,
    /// The place that the distance is measured from.
    pub center: ColumnPos,
}

/// Where a viewer is heading.
#[derive(Clone, Copy, Debug)]
pub struct Lead {
    pub center: ColumnPos,
    /// The part of the way there that does not count, 0 to 1.
    pub weight: f64,
}

impl Lead {
    fn way(&self, from: ColumnPos) -> f64 {
        distance(self.center.distance_squared(from))
    }
}

/// The known bounds of a viewer's work of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Outlook {
    here: Sight,
    /// The last sight from the place ahead, since the viewer's last move.
    ahead: Option<Sight>,
}

impl Outlook {
    /// An outlook without any knowledge.
    pub fn new(center: ColumnPos, radius: u32) -> Self {
        Self { here: Sight { center, radius, at_least: 0.0, found: None }, ahead: None }
    }

    /// The knowledge that remains valid at another place or with another radius.
    pub fn moved(&self, center: ColumnPos, radius: u32) -> Self {
        Self { here: self.here.moved(center, radius), ahead: None }
    }

    /// Notes that the column is missing again and unclaimed.
    pub fn reopened(&mut self, column: ColumnPos) {
        self.here.reopened(column);
        self.ahead.iter_mut().for_each(|ahead| ahead.reopened(column));
    }

    /// The lower bound of the distance; `None` if there is nothing in range.
    pub fn at_least(&self, lead: Option<&Lead>) -> Option<f64> {
        let here = self.here.at_least()?;
        Some(lead.map_or(here, |lead| here.min(self.ahead_at_least(lead))))
    }

    fn ahead_at_least(&self, lead: &Lead) -> f64 {
        let way = lead.way(self.here.center);
        let seen = self.ahead_sight(lead, way);
        let from_there = seen.map_or((self.here.at_least - way).max(0.0), |ahead| ahead.at_least);
        from_there + way * (1.0 - lead.weight)
    }

    /// The sight from the place ahead; `None` if that was another place the last time.
    fn ahead_sight(&self, lead: &Lead, way: f64) -> Option<Sight> {
        let radius = self.radius_ahead(way);
        self.ahead.filter(|ahead| (ahead.center, ahead.radius) == (lead.center, radius))
    }

    /// The radius ahead, reduced so that work found there is in the viewer's range too.
    fn radius_ahead(&self, way: f64) -> u32 {
        self.here.radius.saturating_sub(way.ceil() as u32)
    }

    /// The nearest work to the viewer's place, or to the place ahead.
    pub fn nearest(&mut self, graph: &mut DistanceGraph, lead: Option<&Lead>) -> Option<Near> {
        let here = self.here.look(graph)?;
        let Some(lead) = lead.filter(|lead| self.ahead_at_least(lead) < here.distance) else { return Some(here) };
        let way = lead.way(self.here.center);
        let (center, radius) = (lead.center, self.radius_ahead(way));
        let unknown = Sight { center, radius, at_least: 0.0, found: None };
        let ahead = self.ahead.insert(self.ahead_sight(lead, way).unwrap_or(unknown));
        let Some(near) = ahead.look(graph) else { return Some(here) };
        let distance = near.distance + way * (1.0 - lead.weight);
        Some(if distance < here.distance { Near { distance, ..near } } else { here })
    }
}

/// The known bounds of the work around one place, within the radius.
#[derive(Clone, Copy, Debug)]
struct Sight {
    center: ColumnPos,
    radius: u32,
    /// A lower bound of the distance; infinite if there is no work.
    at_least: f64,
    /// The nearest batch of the last search, and the square of its distance.
    found: Option<(BatchPos, u128)>,
}

/// More than the error of a root and a difference.
const SLACK: f64 = 1e-6;

impl Sight {
    fn moved(&self, center: ColumnPos, radius: u32) -> Self {
        if (center, radius) == (self.center, self.radius) {
            return *self;
        }
        // Work that was out of range may be there, and comes nearer too.
        let known = self.at_least.min(self.radius.into());
        let at_least = (known - distance(center.distance_squared(self.center)) - SLACK).max(0.0);
        Self { center, radius, at_least, found: None }
    }

    fn reopened(&mut self, column: ColumnPos) {
        let squared = column.distance_squared(self.center);
        if squared <= u128::from(self.radius).pow(2) {
            self.at_least = self.at_least.min(distance(squared));
        }
    }

    fn at_least(&self) -> Option<f64> {
        (self.at_least <= self.radius.into()).then_some(self.at_least)
    }

    /// The nearest work, searched for again if it may have changed.
    fn look(&mut self, graph: &mut DistanceGraph) -> Option<Near> {
        let is_current = |(batch, squared): &(BatchPos, u128)| {
            distance(*squared) <= self.at_least && nearest_in(graph, *batch, self.center) == Some(*squared)
        };
        if self.at_least == f64::INFINITY {
            return None;
        }
        if !self.found.as_ref().is_some_and(is_current) {
            self.found = graph.nearest_missing(self.center, self.radius);
        }
        self.at_least = self.found.map_or(f64::INFINITY, |(_, squared)| distance(squared));
        let (batch, _) = self.found?;
        Some(Near { batch, distance: self.at_least, center: self.center })
    }
}

/// The squared distance of the nearest column of the batch that is missing and unclaimed.
fn nearest_in(graph: &DistanceGraph, batch: BatchPos, center: ColumnPos) -> Option<u128> {
    let taken = graph.completed_in_batch(batch) | graph.claimed_in_batch(batch);
    let free = (0..16).filter(|bit| taken >> bit & 1 == 0);
    free.map(|bit| batch.column(bit).distance_squared(center)).min()
}

fn distance(squared: u128) -> f64 {
    (squared as f64).sqrt()
}
