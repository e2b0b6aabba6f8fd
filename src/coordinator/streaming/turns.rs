//! Who is served next: the nearest work over all viewers, and now and then whoever has waited longest.
//!
//! The nearest work alone would let a crowd that keeps moving starve a lone viewer whose ground is further away. So every
//! [`ROUND`]th order goes to the viewer that has waited longest. An order serves every viewer in whose range it lies, so a
//! crowd in one place takes one turn together. With n viewers that want something, each is served at least once in
//! n times [`ROUND`] orders, however near the work of the others is; viewers who share their range count as one in that.

/// One of so many orders goes to whoever has waited longest.
const ROUND: u64 = 4;

/// The turns of one dimension. A plain data structure.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    turn: u64,
}

impl Turns {
    /// Whether the next turn is that of whoever has waited longest.
    pub fn is_round(&self) -> bool {
        (self.turn + 1).is_multiple_of(ROUND)
    }

    /// Of those who want something, whoever has the least of this is served next; of equal ones, whoever is nearest.
    /// `served` is the turn in which one was served last.
    pub fn rank(&self, served: u64) -> u64 {
        if self.is_round() { served } else { 0 }
    }

    /// Something was ordered. Gives the number of this turn: whoever it serves notes it.
    pub fn end_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves so many turns; `wants` says how far the work of each is, `serves` whom an order for one serves.
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
    fn the_nearest_is_first_and_nobody_starves() {
        let count = serve(400, &[1.0, 50.0, 90.0, 2.0], |a, b| a == b);
        assert_eq!(count.iter().sum::<u64>(), 400);
        assert!(count[0] >= 300, "{count:?}");
        assert!(count[1..].iter().all(|count| *count >= 400 / 16 - 1), "{count:?}");
    }

    #[test]
    fn a_crowd_in_one_place_takes_one_turn_together() {
        // A hundred with work at their feet, and one whose work is far.
        let mut wants = vec![1.0; 100];
        wants.push(70.0);
        let count = serve(800, &wants, |chosen, other| (chosen < 100) == (other < 100));
        assert!(count[100] >= 800 / 8 - 1, "{}", count[100]);
    }
}
