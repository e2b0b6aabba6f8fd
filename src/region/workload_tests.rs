//! The standard workloads of a regionizer, with the results that are known for them.

use super::*;
use crate::space::ColumnPos;
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, n: u64) -> i64 {
        (((self.next() >> 32) * n) >> 32) as i64
    }
}

/// FNV-1a, 64 bits.
struct Checksum(u64);

impl Checksum {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn number(&mut self, number: i64) {
        self.bytes(&(number as i32).to_le_bytes());
    }
}

#[derive(Clone, Copy)]
enum Change {
    Add(ColumnPos),
    Remove(ColumnPos),
}

/// World S: scattered players.
static SCATTERED: LazyLock<Walk> = LazyLock::new(|| Walk::on_square_of(20_000));
/// World D: crowded players.
static DENSE: LazyLock<Walk> = LazyLock::new(|| Walk::on_square_of(2_000));

/// 1,000 players who walk about: the changes that load the world, then those of each of 200 steps.
struct Walk {
    load: Vec<Change>,
    steps: Vec<Vec<Change>>,
}

impl Walk {
    fn on_square_of(side: u64) -> Self {
        let mut random = Random(42);
        let half = side as i64 / 2;
        let mut players: Vec<_> =
            (0..1000).map(|_| ColumnPos::new(random.below(side) - half, random.below(side) - half)).collect();
        let disc: Vec<_> = (-10i64..=10)
            .flat_map(|z| (-10i64..=10).map(move |x| (x, z)))
            .filter(|(x, z)| x * x + z * z <= 100)
            .collect();
        assert_eq!(disc.len(), 317);
        // What of a disc is not in the one this far away.
        let beyond = |(dx, dz): (i64, i64)| -> Vec<_> {
            disc.iter().copied().filter(|(x, z)| (x - dx).pow(2) + (z - dz).pow(2) > 100).collect()
        };
        let directions = [(1, 0), (-1, 0), (0, 1), (0, -1)].map(|(x, z)| (x, z, beyond((-x, -z)), beyond((x, z))));
        let mut holders: FxHashMap<ColumnPos, u32> = FxHashMap::default();
        let mut acquire = |changes: &mut Vec<Change>, column| {
            let count = holders.entry(column).or_default();
            *count += 1;
            if *count == 1 {
                changes.push(Change::Add(column));
            }
        };
        let mut load = Vec::new();
        for player in &players {
            disc.iter().for_each(|&(x, z)| acquire(&mut load, player.offset(x, z)));
        }
        let mut steps = Vec::new();
        for _ in 0..200 {
            let mut changes = Vec::new();
            for player in &mut players {
                let (x, z, enter, leave) = &directions[(random.next() >> 62) as usize];
                let (old, new) = (*player, player.offset(*x, *z));
                *player = new;
                for column in enter.iter().map(|&(x, z)| new.offset(x, z)) {
                    let count = holders.entry(column).or_default();
                    *count += 1;
                    if *count == 1 {
                        changes.push(Change::Add(column));
                    }
                }
                for column in leave.iter().map(|&(x, z)| old.offset(x, z)) {
                    if let Some(count) = holders.get_mut(&column) {
                        *count -= 1;
                        if *count == 0 {
                            changes.push(Change::Remove(column));
                        }
                    }
                }
            }
            steps.push(changes);
        }
        Self { load, steps }
    }

    fn checksum<'a>(changes: impl IntoIterator<Item = &'a Change>) -> u64 {
        let mut sum = Checksum::new();
        for change in changes {
            let (kind, column) = match change {
                Change::Add(column) => (0, column),
                Change::Remove(column) => (1, column),
            };
            sum.bytes(&[kind]);
            sum.number(column.x);
            sum.number(column.z);
        }
        sum.0
    }
}

fn apply(regionizer: &mut Regionizer<()>, changes: &[Change]) {
    for &change in changes {
        match change {
            Change::Add(column) => regionizer.add_column(column),
            Change::Remove(column) => regionizer.remove_column(column),
        }
        .expect("the workload adds what is absent and removes what is present");
    }
}

fn partition_checksum(regionizer: &Regionizer<()>) -> u64 {
    let mut regions: Vec<Vec<SectionPos>> =
        regionizer.regions().into_iter().map(|id| regionizer.sections(id).collect()).collect();
    regions.iter_mut().for_each(|sections| sections.sort_unstable());
    regions.sort_unstable();
    let mut sum = Checksum::new();
    for sections in regions {
        sum.number(sections.len() as i64);
        for section in sections {
            sum.number(section.x);
            sum.number(section.z);
        }
    }
    sum.0
}

fn sections(regionizer: &Regionizer<()>) -> usize {
    regionizer.regions().into_iter().map(|id| regionizer.section_count(id)).sum()
}

fn dead_sections(regionizer: &Regionizer<()>) -> usize {
    regionizer.regions().into_iter().map(|id| regionizer.dead_section_count(id)).sum()
}

fn tick_all(regionizer: &mut Regionizer<()>) {
    for id in regionizer.regions() {
        if regionizer.try_begin_tick(id).is_some() {
            regionizer.end_tick(id, ()).expect("it is ticking");
        }
    }
}

fn new() -> Regionizer<()> {
    Regionizer::new(RegionizerConfig::default()).expect("the default is valid")
}

#[test]
fn the_streams_are_the_standard_ones() {
    let (scattered, dense) = (&*SCATTERED, &*DENSE);
    assert_eq!(scattered.load.len(), 316_764);
    assert_eq!(Walk::checksum(&scattered.load), 0x9358_48f0_5f14_2fe6);
    let all = scattered.load.iter().chain(scattered.steps.iter().flatten());
    assert_eq!(Walk::checksum(all), 0x1403_9d5d_95cb_907c);
    assert_eq!(Walk::checksum(dense.load.iter().chain(dense.steps.iter().flatten())), 0x1f25_908b_d63f_ef94);
}

#[test]
fn r1_dense() {
    let mut regionizer = new();
    let square = || (0..512).flat_map(|z| (0..512).map(move |x| ColumnPos::new(x, z)));
    for column in square() {
        regionizer.add_column(column).expect("it is absent");
    }
    assert_eq!((regionizer.region_count(), sections(&regionizer)), (1, 17_424));
    assert_eq!(partition_checksum(&regionizer), 0xad39_abc6_8894_4e99);
    for column in square() {
        regionizer.remove_column(column).expect("it is present");
    }
    assert_eq!((sections(&regionizer), dead_sections(&regionizer)), (17_424, 17_424));
    tick_all(&mut regionizer);
    assert_eq!((regionizer.region_count(), sections(&regionizer)), (0, 0));
    regionizer.check_invariants().unwrap();
}

#[test]
fn r2_scattered_and_r5_lookups() {
    let walk = &*SCATTERED;
    let mut regionizer = new();
    apply(&mut regionizer, &walk.load);
    regionizer.check_invariants().unwrap();
    assert_eq!((regionizer.region_count(), sections(&regionizer)), (992, 92_109));
    assert_eq!(partition_checksum(&regionizer), 0x4aad_1d05_84cc_a891);
    let merges = regionizer.drain_events().into_iter().filter(|event| matches!(event, RegionEvent::Merged { .. }));
    assert_eq!(merges.count(), 2);

    let mut random = Random(7);
    let mut hits = 0;
    for _ in 0..1 << 20 {
        let Change::Add(near) = walk.load[random.below(walk.load.len() as u64) as usize] else { unreachable!() };
        let x = random.below(41) - 20;
        let z = random.below(41) - 20;
        hits += usize::from(regionizer.region_at(near.offset(x, z)).is_some());
    }
    assert_eq!(hits, 778_307);
}

#[test]
fn r3_moving() {
    let walk = &*SCATTERED;
    let mut regionizer = new();
    apply(&mut regionizer, &walk.load);
    // The figures count the load's merges too.
    let (mut merges, mut splits) = (0, 0);
    for step in &walk.steps {
        apply(&mut regionizer, step);
        tick_all(&mut regionizer);
        for event in regionizer.drain_events() {
            merges += usize::from(matches!(event, RegionEvent::Merged { .. }));
            splits += usize::from(matches!(event, RegionEvent::Split { .. }));
        }
    }
    regionizer.check_invariants().unwrap();
    assert_eq!((regionizer.region_count(), sections(&regionizer), dead_sections(&regionizer)), (987, 113_091, 21_065));
    assert_eq!((merges, splits), (17, 10));
}

/// Every region ticks while the step happens; `order` says in which order the ticks end.
fn overlapped(walk: &Walk, steps: usize, order: impl Fn(usize, &mut Vec<RegionId>)) -> u64 {
    let mut regionizer = new();
    apply(&mut regionizer, &walk.load);
    for (number, step) in walk.steps[..steps].iter().enumerate() {
        let mut ticking = regionizer.regions();
        ticking.retain(|&id| regionizer.try_begin_tick(id).is_some());
        assert_eq!(ticking.len(), regionizer.region_count(), "nothing waits once all ticks have ended");
        apply(&mut regionizer, step);
        order(number, &mut ticking);
        for id in ticking {
            regionizer.end_tick(id, ()).expect("it is ticking");
        }
        regionizer.drain_events();
    }
    regionizer.check_invariants().unwrap();
    partition_checksum(&regionizer)
}

#[test]
fn r3x_overlapped_gives_one_result_in_any_order() {
    let scattered = overlapped(&SCATTERED, 50, |_, _| {});
    assert_eq!(scattered, overlapped(&SCATTERED, 50, |_, ids| ids.reverse()));
    // Many merges and few regions: here the order matters most.
    let dense = overlapped(&DENSE, 40, |_, _| {});
    assert_eq!(dense, overlapped(&DENSE, 40, |_, ids| ids.reverse()));
    let shuffled = overlapped(&DENSE, 40, |seed, ids| {
        let mut random = Random(seed as u64);
        (1..ids.len()).rev().for_each(|i| ids.swap(i, random.below(i as u64 + 1) as usize));
    });
    assert_eq!(dense, shuffled);
}
