//! The turns of viewers: the nearest work over all viewers comes first, and now and then the viewer that has waited longest.
//!
//! With the nearest work alone, a crowd that keeps moving would starve a lone viewer whose ground is farther away. So every
//! [`ROUND`]th order goes to the viewer that has waited longest. An order serves every viewer that has it in range, so a crowd
//! in one place takes one turn together. Of n viewers with work, each is served at least once in n times [`ROUND`] orders,
//! however near the work of the others is; viewers that share their range count as one.

/// One out of this many orders goes to the viewer that has waited longest.
const ROUND: u64 = 4;

/// The turns of one dimension. A plain data structure.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    turn: u64,
}

impl Turns {
    /// Returns `true` if the next turn goes to the viewer that has waited longest.
    pub fn is_round(&self) -> bool {
        (self.turn + 1).is_multiple_of(ROUND)
    }

    /// The rank of a viewer with work: the lowest is served next, and the nearest of equal ones. `served` is the turn in
    /// which it was last served.
    pub fn rank(&self, served: u64) -> u64 {
        if self.is_round() { served } else { 0 }
    }

    /// Ends a turn with an order. Returns the turn's number, which the served viewers note.
    pub fn end_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs this number of turns; `wants` has the distance of each viewer's work, and `serves` returns the viewers that an order serves.
    fn serve(turns: u64, wants: &[f64], serves: impl Fn(usize, usize) -> bool) -> Vec<u64> {
        let mut order = Turns::default();
        let mut served = vec![0; wants.len()];
        let mut count = vec![0; wants.len()];
        for _ in 0..turns {
            let before = |a: &usize, b: &usize| {
                let rank = |of: &usize| order.rank(served[*of]);
                rank(a).cmp(&rank(b)).then(wants[*a].total_cmp(&wants[*b]))
            };
            let chosen = (0..wants.len()).min_by(before).unwrap();
            count[chosen] += 1;
            let turn = order.end_turn();
            (0..served.len()).filter(|other| serves(chosen, *other)).for_each(|other| served[other] = turn);
        }
        count
    }

    /// Promise, worlds: Columns are generated nearest first over all viewers and dimensions, and no viewer starves.
    #[test]
    fn the_nearest_viewer_is_first_and_none_starves() {
        let count = serve(400, &[1.0, 50.0, 90.0, 2.0], |a, b| a == b);
        assert_eq!(count.iter().sum::<u64>(), 400);
        assert!(count[0] >= 300, "{count:?}");
        assert!(count[1..].iter().all(|count| *count >= 400 / 16 - 1), "{count:?}");
    }

    #[test]
    fn a_crowd_in_one_place_takes_one_turn_together() {
        // A hundred viewers with work at their feet, and one with work far away.
        let mut wants = vec![1.0; 100];
        wants.push(70.0);
        let count = serve(800, &wants, |chosen, other| (chosen < 100) == (other < 100));
        assert!(count[100] >= 800 / 8 - 1, "{}", count[100]);
    }
}
