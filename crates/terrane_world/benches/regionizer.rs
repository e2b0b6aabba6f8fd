//! The workloads R1, R2, R3, R3x and R5 of a regionizer, with parameter set A; growth beside regions of several sizes;
//! and the memory of a section.
//!
//! After Criterion's own report comes one table: the median of all measured runs and its goal.

#[path = "../../../benches/shared/counting.rs"]
mod counting;
#[path = "../../../benches/shared/measure.rs"]
mod measure;
#[path = "../src/region/tests/workloads/workload.rs"]
mod workload;

use counting::held_by;
use criterion::Criterion;
use measure::timed;
use std::time::Duration;
use terrane_world::region::{RegionId, Regionizer, RegionizerConfig};
use terrane_world::space::ColumnPos;
use workload::{Walk, apply, begin_all, end_all, regionizer, square, tick_all};

/// One part of a workload that is timed by itself.
struct Timed {
    group: &'static str,
    part: &'static str,
    /// Nanoseconds an operation.
    goal: Option<f64>,
    /// Nanoseconds an operation.
    median: Option<f64>,
}

impl Timed {
    fn new(group: &'static str, part: &'static str, goal: impl Into<Option<f64>>) -> Self {
        Self { group, part, goal: goal.into(), median: None }
    }

    /// Measures runs of this number of operations; `run` returns how long its timed part took.
    fn measure(&mut self, criterion: &mut Criterion, operations: usize, run: impl FnMut() -> Duration) {
        self.median = measure::median(&measure::runs(criterion, self.group, self.part, operations, run));
    }
}

/// R1: a square appears, and disappears in the same order; then one tick removes all.
fn dense(criterion: &mut Criterion) -> [Timed; 2] {
    let columns = square();
    let add = |regionizer: &mut Regionizer<()>| {
        for &column in &columns {
            regionizer.add_column(column).expect("it is absent");
        }
    };
    let mut adds = Timed::new("R1", "add", 9.0);
    adds.measure(criterion, columns.len(), || {
        let mut regionizer = regionizer();
        timed(|| add(&mut regionizer)).0
    });
    let mut removes = Timed::new("R1", "remove", 6.0);
    removes.measure(criterion, columns.len(), || {
        let mut regionizer = regionizer();
        add(&mut regionizer);
        let (time, ()) = timed(|| {
            for &column in &columns {
                regionizer.remove_column(column).expect("it is present");
            }
        });
        tick_all(&mut regionizer);
        assert_eq!(regionizer.region_count(), 0);
        time
    });
    [adds, removes]
}

/// R2: scattered players appear.
fn scattered(criterion: &mut Criterion, walk: &Walk) -> Timed {
    let mut timing = Timed::new("R2", "add", 14.0);
    timing.measure(criterion, walk.load.len(), || {
        let mut regionizer = regionizer();
        timed(|| apply(&mut regionizer, &walk.load)).0
    });
    timing
}

/// R3: they move, and every region ticks after each step.
fn moving(criterion: &mut Criterion, walk: &Walk) -> Timed {
    let mut timing = Timed::new("R3", "all, per change", 37.0);
    timing.measure(criterion, walk.steps.iter().map(Vec::len).sum(), || {
        let mut regionizer = loaded(walk);
        let (time, ()) = timed(|| {
            for step in &walk.steps {
                apply(&mut regionizer, step);
                tick_all(&mut regionizer);
                regionizer.drain_events();
            }
        });
        time
    });
    timing
}

/// R3x: they move while every region ticks.
fn overlapped(criterion: &mut Criterion, walk: &Walk) -> [Timed; 2] {
    let run = |regionizer: &mut Regionizer<()>| {
        let (mut changing, mut ticks) = (Duration::ZERO, 0);
        let (all, ()) = timed(|| {
            for step in &walk.steps {
                let ticking = begin_all(regionizer);
                ticks += ticking.len();
                changing += timed(|| apply(regionizer, step)).0;
                end_all(regionizer, &ticking);
                regionizer.drain_events();
            }
        });
        (all, all - changing, ticks)
    };
    let mut changes = Timed::new("R3x", "all, per change", 60.0);
    changes.measure(criterion, walk.steps.iter().map(Vec::len).sum(), || run(&mut loaded(walk)).0);
    let (_, _, count) = run(&mut loaded(walk));
    let mut ticks = Timed::new("R3x", "tick part, per tick", 1000.0);
    ticks.measure(criterion, count, || run(&mut loaded(walk)).1);
    [changes, ticks]
}

/// R5: finds the owners of these columns.
fn lookups(criterion: &mut Criterion, walk: &Walk) -> Timed {
    let (points, regionizer) = (walk.lookups(), loaded(walk));
    let mut timing = Timed::new("R5", "region_at", 8.0);
    timing.measure(criterion, points.len(), || {
        let (time, hits) = timed(|| points.iter().filter(|&&point| regionizer.region_at(point).is_some()).count());
        assert_eq!(hits, 778_307);
        time
    });
    timing
}

/// A region grows by one neighbouring column per tick: this must not cost more in a larger region.
fn growth(criterion: &mut Criterion) -> [Timed; 3] {
    const TICKS: i64 = 256;
    [(64, "of 400 sections"), (512, "of 17,424 sections"), (2048, "of 266,256 sections")].map(|(side, size)| {
        let mut timing = Timed::new("growth beside a region", size, None);
        timing.measure(criterion, TICKS as usize, || {
            let mut regionizer = regionizer();
            for column in (0..side).flat_map(|z| (0..side).map(move |x| ColumnPos::new(x, z))) {
                regionizer.add_column(column).expect("it is absent");
            }
            timed(|| {
                for tick in 0..TICKS {
                    let ticking = begin_all(&mut regionizer);
                    regionizer.add_column(ColumnPos::new(side + 4 * tick, 0)).expect("it is absent");
                    end_all(&mut regionizer, &ticking);
                }
            })
            .0
        });
        timing
    })
}

fn loaded(walk: &Walk) -> Regionizer<()> {
    let mut regionizer = regionizer();
    apply(&mut regionizer, &walk.load);
    regionizer.drain_events();
    regionizer
}

/// Bytes that a regionizer holds for each of its sections.
fn bytes_per_section(fill: impl FnOnce(&mut Regionizer<()>)) -> f64 {
    let (bytes, regionizer) = held_by(|| {
        let mut regionizer = regionizer();
        fill(&mut regionizer);
        regionizer.drain_events();
        regionizer
    });
    let sections: usize = regionizer.regions().into_iter().map(|id| regionizer.section_count(id)).sum();
    bytes as f64 / sections as f64
}

fn print_table(timings: &[Timed], walk: &Walk) {
    println!("\n{:<42} {:>9} {:>9}", "workload", "ours", "goal");
    let print = |name: &str, ours: f64, goal: Option<f64>, unit| {
        let goal = goal.map_or(String::new(), |goal| format!("{goal:.1}"));
        println!("{name:<42} {ours:>9.1} {goal:>9} {unit}");
    };
    for timing in timings {
        if let Some(ours) = timing.median {
            print(&format!("{} {}", timing.group, timing.part), ours, timing.goal, "ns");
        }
    }
    let goal = Some(48.0);
    let dense = bytes_per_section(|regionizer| {
        square().into_iter().for_each(|column| drop(regionizer.add_column(column)));
    });
    print("memory, R1 after the adds", dense, goal, "B a section");
    print("memory, R2", bytes_per_section(|regionizer| apply(regionizer, &walk.load)), goal, "B a section");
    let moved = bytes_per_section(|regionizer| {
        apply(regionizer, &walk.load);
        for step in &walk.steps {
            apply(regionizer, step);
            tick_all(regionizer);
        }
    });
    print("memory, R3 at the end", moved, goal, "B a section");
}

fn main() {
    let mut criterion = measure::criterion(Duration::from_secs(3), Duration::from_millis(500));
    let walk = Walk::on_square_of(20_000);
    let mut timings = Vec::from(dense(&mut criterion));
    timings.push(scattered(&mut criterion, &walk));
    timings.push(moving(&mut criterion, &walk));
    timings.extend(overlapped(&mut criterion, &walk));
    timings.push(lookups(&mut criterion, &walk));
    timings.extend(growth(&mut criterion));
    criterion.final_summary();
    print_table(&timings, &walk);
}
