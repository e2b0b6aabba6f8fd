//! The calls of the standard workloads, precomputed for tests and benchmarks, which import the crate's names differently.

use super::{ColumnPos, RegionId, Regionizer, RegionizerConfig};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// A number from 0 to `n` - 1.
    pub fn below(&mut self, n: u32) -> i64 {
        (((self.bits() >> 32) * u64::from(n)) >> 32) as i64
    }
}

/// One call of the regionizer.
#[derive(Clone, Copy)]
pub enum Change {
    /// `add_column`
    Add(ColumnPos),
    /// `remove_column`
    Remove(ColumnPos),
}

/// The columns of 512 x 512, row by row.
pub fn square() -> Vec<ColumnPos> {
    (0..512).flat_map(|z| (0..512).map(move |x| ColumnPos::new(x, z))).collect()
}

/// 1,000 walking players, each of whom holds a disc of columns.
pub struct Walk {
    /// The changes that load the world.
    pub load: Vec<Change>,
    /// The changes of each of 200 steps.
    pub steps: Vec<Vec<Change>>,
}

impl Walk {
    /// Players start on a square of this side length: 20,000 columns for world S (scattered), 2,000 for world D (dense).
    pub fn on_square_of(side: u32) -> Self {
        let mut random = Random(42);
        let mut coordinate = || random.below(side) - i64::from(side / 2);
        let mut players: Vec<_> = (0..1000).map(|_| ColumnPos::new(coordinate(), coordinate())).collect();
        let disc: Vec<_> = (-10i64..=10)
            .flat_map(|z| (-10i64..=10).map(move |x| (x, z)))
            .filter(|(x, z)| x * x + z * z <= 100)
            .collect();
        assert_eq!(disc.len(), 317);
        // The part of a disc outside of the disc at this offset.
        let beyond = |(dx, dz): (i64, i64)| -> Vec<_> {
            disc.iter().copied().filter(|(x, z)| (x - dx).pow(2) + (z - dz).pow(2) > 100).collect()
        };
        let directions = [(1, 0), (-1, 0), (0, 1), (0, -1)].map(|(x, z)| (x, z, beyond((-x, -z)), beyond((x, z))));

        let mut holders = Holders::default();
        let mut load = Vec::new();
        for player in &players {
            load.extend(disc.iter().filter_map(|&(x, z)| holders.acquire(player.offset(x, z))));
        }
        let mut steps = Vec::new();
        for _ in 0..200 {
            let mut changes = Vec::new();
            for player in &mut players {
                let (x, z, enter, leave) = &directions[(random.bits() >> 62) as usize];
                let (old, new) = (*player, player.offset(*x, *z));
                *player = new;
                changes.extend(enter.iter().filter_map(|&(x, z)| holders.acquire(new.offset(x, z))));
                changes.extend(leave.iter().filter_map(|&(x, z)| holders.release(old.offset(x, z))));
            }
            steps.push(changes);
        }
        Self { load, steps }
    }

    /// The points of R5: each near a column that the load adds.
    pub fn lookups(&self) -> Vec<ColumnPos> {
        let mut random = Random(7);
        let mut point = || {
            let (Change::Add(near) | Change::Remove(near)) = self.load[random.below(self.load.len() as u32) as usize];
            let x = random.below(41) - 20;
            let z = random.below(41) - 20;
            near.offset(x, z)
        };
        (0..1 << 20).map(|_| point()).collect()
    }
}

/// The number of players that hold each column.
#[derive(Default)]
struct Holders(HashMap<ColumnPos, u32>);

impl Holders {
    fn acquire(&mut self, column: ColumnPos) -> Option<Change> {
        let count = self.0.entry(column).or_default();
        *count += 1;
        (*count == 1).then_some(Change::Add(column))
    }

    fn release(&mut self, column: ColumnPos) -> Option<Change> {
        let Entry::Occupied(mut count) = self.0.entry(column) else { return None };
        *count.get_mut() -= 1;
        (*count.get() == 0).then(|| Change::Remove(count.remove_entry().0))
    }
}

/// An empty regionizer with parameter set A.
pub fn regionizer() -> Regionizer<()> {
    Regionizer::new(RegionizerConfig::default()).expect("the default is valid")
}

/// Applies the changes.
pub fn apply(regionizer: &mut Regionizer<()>, changes: &[Change]) {
    for &change in changes {
        match change {
            Change::Add(column) => regionizer.add_column(column),
            Change::Remove(column) => regionizer.remove_column(column),
        }
        .expect("the workload adds what is absent and removes what is present");
    }
}

/// Begins a tick of every region and returns all of them, ascending.
pub fn begin_all(regionizer: &mut Regionizer<()>) -> Vec<RegionId> {
    let ids = regionizer.regions();
    for &id in &ids {
        regionizer.try_begin_tick(id).expect("nothing waits while nothing ticks");
    }
    ids
}

/// Ends the ticks of these regions.
pub fn end_all(regionizer: &mut Regionizer<()>, ticking: &[RegionId]) {
    for &id in ticking {
        regionizer.end_tick(id, ()).expect("it is ticking");
    }
}

/// Ticks each existing region, one after the other, and returns their number.
pub fn tick_all(regionizer: &mut Regionizer<()>) -> usize {
    let ids = regionizer.regions();
    for &id in &ids {
        regionizer.try_begin_tick(id).expect("nothing waits while nothing ticks");
        regionizer.end_tick(id, ()).expect("it is ticking");
    }
    ids.len()
}
