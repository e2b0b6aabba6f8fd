//! What is known of the nearest work around a viewer, so that it is not searched for again when nothing has changed.
//!
//! Marks and claims only take work away: what is nearest can then only be farther. So a distance that was right once is
//! one that nothing is nearer than, until a column is missing again. A viewer that moves comes so much nearer to
//! everything as it moved, and no more. The exact answer is needed only of the viewer for whom something may be nearest.

use crate::generation::DistanceGraph;
use crate::space::{BatchPos, ColumnPos};

/// The nearest work for a viewer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    pub batch: BatchPos,
    /// In columns; work ahead of a viewer that moves is nearer than it is.
    pub distance: f64,
    /// The place that it is near to.
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

/// What is known of a viewer's work of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Outlook {
    here: Sight,
    /// What was seen last from where it was heading, since it moved last.
    ahead: Option<Sight>,
}

impl Outlook {
    /// Nothing is known.
    pub fn new(center: ColumnPos, radius: u32) -> Self {
        Self { here: Sight { center, radius, at_least: 0.0, found: None }, ahead: None }
    }

    /// What is still known in another place, or with another radius.
    pub fn moved(&self, center: ColumnPos, radius: u32) -> Self {
        Self { here: self.here.moved(center, radius), ahead: None }
    }

    /// The column is missing again, and nobody has claimed it.
    pub fn reopened(&mut self, column: ColumnPos) {
        self.here.reopened(column);
        self.ahead.iter_mut().for_each(|ahead| ahead.reopened(column));
    }

    /// Nothing is nearer than this; `None` if there is nothing in range.
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

    /// What is known of the place ahead; `None` if that was another one the last time.
    fn ahead_sight(&self, lead: &Lead, way: f64) -> Option<Sight> {
        let radius = self.radius_ahead(way);
        self.ahead.filter(|ahead| (ahead.center, ahead.radius) == (lead.center, radius))
    }

    /// So that what is found there lies in the viewer's range too.
    fn radius_ahead(&self, way: f64) -> u32 {
        self.here.radius.saturating_sub(way.ceil() as u32)
    }

    /// The work that is nearest to where the viewer is, or to where it is heading.
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

/// What is known of the work around one place. Of what lies beyond the radius it says nothing.
#[derive(Clone, Copy, Debug)]
struct Sight {
    center: ColumnPos,
    radius: u32,
    /// Nothing is nearer than this; infinite if there is nothing.
    at_least: f64,
    /// What was nearest when it was searched for, and the square of its distance.
    found: Option<(BatchPos, u128)>,
}

/// More than the error of a root and a difference.
const SLACK: f64 = 1e-6;

impl Sight {
    fn moved(&self, center: ColumnPos, radius: u32) -> Self {
        if (center, radius) == (self.center, self.radius) {
            return *self;
        }
        // What was out of range may be there, and comes nearer too.
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

    /// The nearest work, searched for if it may be another one than the last time.
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

/// The square of the distance of the nearest column of the batch that is missing and unclaimed.
fn nearest_in(graph: &DistanceGraph, batch: BatchPos, center: ColumnPos) -> Option<u128> {
    let taken = graph.completed_in_batch(batch) | graph.claimed_in_batch(batch);
    let free = (0..16).filter(|bit| taken >> bit & 1 == 0);
    free.map(|bit| batch.column(bit).distance_squared(center)).min()
}

fn distance(squared: u128) -> f64 {
    (squared as f64).sqrt()
}
