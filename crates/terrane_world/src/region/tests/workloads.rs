//! The standard workloads of a regionizer, with their known results.

mod workload;

use crate::region::*;
use crate::space::ColumnPos;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use workload::{Change, Random, Walk, apply, begin_all, end_all, regionizer, square, tick_all};

static SCATTERED: LazyLock<Walk> = LazyLock::new(|| Walk::on_square_of(20_000));
static DENSE: LazyLock<Walk> = LazyLock::new(|| Walk::on_square_of(2_000));

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

fn stream_checksum<'a>(changes: impl IntoIterator<Item = &'a Change>) -> u64 {
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

fn partition_checksum(regionizer: &Regionizer<()>) -> u64 {
    let mut regions: Vec<Vec<SectionPos>> =
        regionizer.regions().into_iter().map(|id| regionizer.sections(id).collect()).collect();
    // Ascending by x, then z, like positions.
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

/// The number of merges and splits since the last call.
fn merges_and_splits(regionizer: &mut Regionizer<()>) -> (usize, usize) {
    let events = regionizer.drain_events();
    let count = |is: fn(&RegionEvent) -> bool| events.iter().filter(|event| is(event)).count();
    (
        count(|event| matches!(event, RegionEvent::Merged { .. })),
        count(|event| matches!(event, RegionEvent::Split { .. })),
    )
}

#[test]
fn the_streams_are_the_standard_ones() {
    let (scattered, dense) = (&*SCATTERED, &*DENSE);
    let mut random = Random(42);
    assert_eq!(
        [random.bits(), random.bits(), random.bits()],
        [0xbdd7_3226_2feb_6e95, 0x28ef_e333_b266_f103, 0x4752_6757_130f_9f52]
    );
    assert_eq!(scattered.load.len(), 316_764);
    assert_eq!(stream_checksum(&scattered.load), 0x9358_48f0_5f14_2fe6);
    let all = scattered.load.iter().chain(scattered.steps.iter().flatten());
    assert_eq!(stream_checksum(all), 0x1403_9d5d_95cb_907c);
    assert_eq!(stream_checksum(dense.load.iter().chain(dense.steps.iter().flatten())), 0x1f25_908b_d63f_ef94);
}

/// Workload R1.
#[test]
fn a_dense_square_is_one_region_and_leaves_nothing() {
    let mut regionizer = regionizer();
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

/// Workloads R2 and R5.
#[test]
fn scattered_columns_make_the_known_regions_and_are_found() {
    let walk = &*SCATTERED;
    let mut regionizer = regionizer();
    apply(&mut regionizer, &walk.load);
    regionizer.check_invariants().unwrap();
    assert_eq!((regionizer.region_count(), sections(&regionizer)), (992, 92_109));
    assert_eq!(partition_checksum(&regionizer), 0x4aad_1d05_84cc_a891);
    assert_eq!(merges_and_splits(&mut regionizer), (2, 0));
    let points = walk.lookups();
    assert_eq!(points.len(), 1 << 20);
    assert_eq!(points.into_iter().filter(|&point| regionizer.region_at(point).is_some()).count(), 778_307);
}

/// Workload R3.
#[test]
fn moving_crowds_merge_and_split_as_known() {
    let walk = &*SCATTERED;
    let mut regionizer = regionizer();
    apply(&mut regionizer, &walk.load);
    // The expected numbers include the merges of the load.
    let (mut merges, mut splits) = (0, 0);
    for step in &walk.steps {
        apply(&mut regionizer, step);
        tick_all(&mut regionizer);
        let (merged, split) = merges_and_splits(&mut regionizer);
        merges += merged;
        splits += split;
    }
    regionizer.check_invariants().unwrap();
    assert_eq!((regionizer.region_count(), sections(&regionizer), dead_sections(&regionizer)), (987, 113_091, 21_065));
    assert_eq!((merges, splits), (17, 10));
}

/// Makes every region tick during each step. `order` sets the order in which the ticks end.
fn overlapped(walk: &Walk, steps: usize, order: impl Fn(usize, &mut Vec<RegionId>)) -> u64 {
    let mut regionizer = regionizer();
    apply(&mut regionizer, &walk.load);
    for (number, step) in walk.steps[..steps].iter().enumerate() {
        let mut ticking = begin_all(&mut regionizer);
        apply(&mut regionizer, step);
        order(number, &mut ticking);
        end_all(&mut regionizer, &ticking);
        regionizer.drain_events();
    }
    regionizer.check_invariants().unwrap();
    partition_checksum(&regionizer)
}

/// Workload R3x.
#[test]
fn ticks_that_overlap_give_one_result_in_any_order() {
    let scattered = overlapped(&SCATTERED, 50, |_, _| {});
    assert_eq!(scattered, overlapped(&SCATTERED, 50, |_, ids| ids.reverse()));
    // Many merges and few regions, so the order matters most.
    let dense = overlapped(&DENSE, 40, |_, _| {});
    assert_eq!(dense, overlapped(&DENSE, 40, |_, ids| ids.reverse()));
    let shuffled = overlapped(&DENSE, 40, |seed, ids| {
        let mut random = Random(seed as u64);
        (1..ids.len()).rev().for_each(|i| ids.swap(i, random.below(i as u32 + 1) as usize));
    });
    assert_eq!(dense, shuffled);
}

/// A column in this section of the standard configuration.
fn column_in(x: usize, z: i64) -> ColumnPos {
    ColumnPos::new(4 * x as i64, 4 * z)
}

/// One transient region along this many ticking ones, which then end their ticks one after the other.
fn one_waits_for_many(count: usize) {
    let mut regionizer = regionizer();
    for n in 0..count {
        regionizer.add_column(column_in(8 * n, 0)).expect("it is absent");
    }
    let ticking = begin_all(&mut regionizer);
    assert_eq!(ticking.len(), count);
    for n in 0..2 * count - 1 {
        regionizer.add_column(column_in(4 * n, 5)).expect("it is absent");
    }
    let waiting = regionizer.region_at(column_in(0, 5)).expect("it was added");
    assert_eq!((regionizer.region_count(), regionizer.waits_for(waiting).count()), (count + 1, count));
    end_all(&mut regionizer, &ticking);
    assert_eq!(regionizer.regions(), ticking[count - 1..]);
    assert_eq!(regionizer.column_count(ticking[count - 1]), 3 * count - 1);
}

/// This many transient regions between two long ticking ones.
fn many_wait_for_two(count: usize) {
    let mut regionizer = regionizer();
    for x in 0..4 * count {
        for z in [0, 10] {
            regionizer.add_column(column_in(4 * x, z)).expect("it is absent");
        }
    }
    let ticking = begin_all(&mut regionizer);
    assert_eq!(ticking.len(), 2);
    for n in 0..count {
        regionizer.add_column(column_in(16 * n, 5)).expect("it is absent");
    }
    assert_eq!((regionizer.region_count(), regionizer.awaited_by(ticking[0]).len()), (count + 2, count));
    end_all(&mut regionizer, &ticking);
    assert_eq!(regionizer.regions(), ticking[1..]);
    assert_eq!(regionizer.column_count(ticking[1]), 9 * count);
}

/// The processor time that this work takes; where it is unknown, all of its time. Other tests run at the same time.
fn processor_time(work: impl FnOnce()) -> Duration {
    let so_far = || {
        let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        statistics.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    };
    let (before, start) = (so_far(), Instant::now());
    work();
    so_far().zip(before).map_or(start.elapsed(), |(after, before)| after - before)
}

#[test]
fn pending_merges_cost_about_as_much_each_however_many_there_are() {
    for work in [one_waits_for_many, many_wait_for_two] {
        // Both take tens of milliseconds, so the clock's steps of a few do not matter.
        let rounds = || (processor_time(|| (0..16).for_each(|_| work(1_000))), processor_time(|| work(16_000)));
        let (few, many): (Vec<_>, Vec<_>) = (0..3).map(|_| rounds()).unzip();
        let (few, many) = (few.into_iter().min().unwrap_or_default(), many.into_iter().min().unwrap_or_default());
        // With a cost proportional to their number, this would be 16 times as long.
        assert!(many < 6 * few, "16 times 1,000: {few:?}, 16,000: {many:?}");
    }
}
