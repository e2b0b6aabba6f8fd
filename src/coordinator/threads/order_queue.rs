//! Orders that no thread has begun. A thread takes the nearest order at the last moment, and orders that are far by then can
//! be taken back.

use crate::coordinator::threads::columns::ColumnOrder;
use crate::space::DimensionId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The urgency of an order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Urgency {
    /// The distance from the nearest viewer, in columns.
    pub distance: f64,
    /// The distance when it was ordered; `None` if it may not be taken back.
    pub ordered_at: Option<f64>,
}

impl Urgency {
    /// The urgency of an order that is awaited wherever viewers are.
    pub const AT_ONCE: Self = Self { distance: 0.0, ordered_at: None };
    /// The urgency of an order that is not awaited.
    pub const WHEN_IDLE: Self = Self { distance: f64::INFINITY, ordered_at: None };

    /// The urgency of an order at this distance from a viewer.
    pub fn at(distance: f64) -> Self {
        Self { distance, ordered_at: Some(distance) }
    }
}

/// How many columns farther from the viewers an order may be than at first before it is taken back.
const SLACK: f64 = 4.0;

#[derive(Clone, Default)]
pub struct OrderQueue(Arc<Mutex<Vec<ColumnOrder>>>);

impl OrderQueue {
    fn orders(&self) -> MutexGuard<'_, Vec<ColumnOrder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, order: ColumnOrder) {
        self.orders().push(order);
    }

    /// The nearest order; the oldest of equally near ones.
    pub fn pop(&self) -> Option<ColumnOrder> {
        let mut orders = self.orders();
        let nearer = |(_, a): &(usize, &ColumnOrder), (_, b): &(usize, &ColumnOrder)| {
            a.urgency.distance.total_cmp(&b.urgency.distance).then(a.claim.cmp(&b.claim))
        };
        let (place, _) = orders.iter().enumerate().min_by(nearer)?;
        Some(orders.swap_remove(place))
    }

    /// Updates the distances after viewers of a dimension moved; `distance` returns the new distance of an order. Returns
    /// the orders that were nearer when they were made, oldest first, and drops them.
    pub fn revise(&self, dimension: DimensionId, distance: impl Fn(&ColumnOrder) -> f64) -> Vec<ColumnOrder> {
        let mut orders = self.orders();
        let is_too_far = |order: &mut ColumnOrder| {
            let Some(ordered_at) = order.urgency.ordered_at.filter(|_| order.dimension() == dimension) else {
                return false;
            };
            order.urgency.distance = distance(order);
            order.urgency.distance > ordered_at + SLACK
        };
        let mut far: Vec<_> = orders.extract_if(.., |order| is_too_far(order)).collect();
        far.sort_unstable_by_key(|order| order.claim);
        far
    }

    /// Drops all orders.
    pub fn clear(&self) {
        self.orders().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::threads::columns::Source;
    use crate::generation::Void;
    use crate::simulation::ColumnSource;
    use crate::space::{BatchPos, ColumnPos};
    use std::sync::Weak;

    fn order(claim: u64, dimension: u64, urgency: Urgency) -> ColumnOrder {
        let ground = ColumnSource::new(DimensionId(dimension), 0..16, Arc::new(Void), Arc::default(), Weak::new());
        let ground = Arc::new(ground);
        let (batch, columns) = (BatchPos::new(0, 0), vec![ColumnPos::new(claim as i64, 0)]);
        ColumnOrder { claim, ground, batch, columns, source: Source::Store, generates: false, urgency }
    }

    fn claims(orders: impl IntoIterator<Item = ColumnOrder>) -> Vec<u64> {
        orders.into_iter().map(|order| order.claim).collect()
    }

    #[test]
    fn the_nearest_at_that_moment_is_taken() {
        let queue = OrderQueue::default();
        for (claim, distance) in [(1, 5.0), (2, 3.0), (3, 9.0), (4, 3.0)] {
            queue.push(order(claim, 0, Urgency::at(distance)));
        }
        queue.push(order(5, 0, Urgency::WHEN_IDLE));
        queue.push(order(6, 0, Urgency::AT_ONCE));
        assert_eq!(claims(std::iter::from_fn(|| queue.pop())), [6, 2, 4, 1, 3, 5]);
    }

    #[test]
    fn only_orders_that_became_far_are_cancelled() {
        let queue = OrderQueue::default();
        for (claim, distance) in [(3, 6.0), (1, 1.0), (2, 20.0)] {
            queue.push(order(claim, 0, Urgency::at(distance)));
        }
        queue.push(order(4, 0, Urgency::AT_ONCE));
        queue.push(order(5, 1, Urgency::at(1.0)));
        // The viewer is 20 columns farther along x.
        let distance = |order: &ColumnOrder| (order.columns[0].x - 20).abs() as f64;
        assert_eq!(claims(queue.revise(DimensionId(0), distance)), [1, 3]);
        assert_eq!(claims(std::iter::from_fn(|| queue.pop())), [4, 5, 2]);
    }
}
