//! The workloads G1 to G7 of a distance graph, and its memory.
//!
//! After Criterion's own report comes one table: the median of all runs that were measured, and the fastest of them,
//! which is more reliable on a shared machine, and the goal.

#[path = "../../../benches/shared/counting.rs"]
mod counting;
#[path = "../../../benches/shared/measure.rs"]
mod measure;
#[path = "../src/generation/distance_graph/tests/workload.rs"]
mod workload;

use counting::held_by;
use criterion::Criterion;
use measure::timed;
use std::hint::black_box;
use std::sync::Mutex;
use std::time::Duration;
use terrane_world::generation::{BatchColumns, DistanceGraph, ListenerId};
use terrane_world::space::{BatchPos, ColumnArea, ColumnPos};
use workload::{
    Ground, ORIGIN, Random, Shape, collect, fill, fill_with_window, listened, rows, shuffled, square, walk,
};

/// One line of the table.
struct Line {
    name: String,
    ours: f64,
    fastest: Option<f64>,
    goal: Option<f64>,
    unit: &'static str,
}

/// Measures, and keeps the result for the table.
struct Bench {
    criterion: Criterion,
    lines: Vec<Line>,
}

impl Bench {
    /// Measures runs of this number of operations, in nanoseconds per operation; `run` returns how long its timed part
    /// took. The goal is in nanoseconds an operation too.
    fn measure(
        &mut self,
        group: &str,
        part: &str,
        goal: impl Into<Option<f64>>,
        operations: usize,
        run: impl FnMut() -> Duration,
    ) {
        let runs = measure::runs(&mut self.criterion, group, part, operations, run);
        if let Some(median) = measure::median(&runs) {
            let (name, fastest) = (format!("{group} {part}"), runs.first().copied());
            self.lines.push(Line { name, ours: median, fastest, goal: goal.into(), unit: "ns" });
        }
    }

    fn print_table(&self) {
        println!("\n{:<48} {:>13} {:>13} {:>11}", "workload", "ours", "fastest", "goal");
        for Line { name, ours, fastest, goal, unit } in &self.lines {
            let fastest = fastest.map_or(String::new(), |fastest| format!("{fastest:.1}"));
            let goal = goal.map_or(String::new(), |goal| format!("{goal:.0}"));
            println!("{name:<48} {ours:>13.1} {fastest:>13} {goal:>11} {unit}");
        }
    }
}

/// G1, G1w, G2: find work and mark it, in nanoseconds a batch.
fn find(bench: &mut Bench) {
    for (radius, batches, goal) in [(64, 850, 300.0), (128, 3_300, 300.0), (256, 13_052, 400.0), (512, 51_832, 500.0)] {
        bench.measure("G1", &format!("fill, r = {radius}, a batch"), goal, batches, || {
            let mut graph = DistanceGraph::new();
            let (time, count) = timed(|| fill(&mut graph, radius));
            assert_eq!(count, batches);
            time
        });
    }
    for (window, goal) in [(64, 500.0), (1024, 1000.0)] {
        bench.measure("G1w", &format!("window of {window}, r = 128, a batch"), goal, 3_300, || {
            let mut graph = DistanceGraph::new();
            timed(|| fill_with_window(&mut graph, 128, window)).0
        });
    }
    bench.measure("G2", "moving, a batch", 500.0, 8_000, || {
        let mut graph = DistanceGraph::new();
        let (time, count) = timed(|| walk(&mut graph));
        assert_eq!(count, 8_000);
        time
    });
    // The cost of a peek for each of several viewers that are asked in turn.
    let viewers: Vec<_> = (0..16).map(|x| ColumnPos::new(x * 100, 0)).collect();
    let mut graph = DistanceGraph::new();
    let far = ColumnPos::new(2_000, 300);
    let near = ColumnArea::Box { min: ColumnPos::new(-300, -300), max: far };
    near.batches().for_each(|(batch, mask)| _ = graph.mark_batch(batch, mask));
    bench.measure("peek", "nearest_missing, 16 viewers in turn", None, 16 * 1000, || {
        timed(|| {
            for viewer in viewers.iter().cycle().take(16 * 1000) {
                black_box(graph.nearest_missing(*viewer, 512));
            }
        })
        .0
    });
}

/// G3: mark the columns of a root, in nanoseconds a mark.
fn mark(bench: &mut Bench) {
    for (order, columns, goal) in [("row-major", rows(), 4.0), ("random", shuffled(), 60.0)] {
        bench.measure("G3", &format!("mark, {order}"), goal, columns.len(), || {
            let mut graph = DistanceGraph::new();
            timed(|| columns.iter().for_each(|column| _ = graph.mark_completed(*column))).0
        });
    }
    bench.measure("G3", "mark_batch, row-major, a batch", None, 512 * 512, || {
        let mut graph = DistanceGraph::new();
        let batches = (0..512).flat_map(|z| (0..512).map(move |x| BatchPos::new(x, z)));
        timed(|| batches.for_each(|batch| _ = graph.mark_batch(batch, u16::MAX))).0
    });
}

/// G4: bytes on the heap.
fn memory(bench: &mut Bench) {
    let random = |chance: f64, columns_at_once: i64| {
        let mut random = Random(42);
        let mut graph = DistanceGraph::new();
        for z in 0..10_000 / columns_at_once {
            for x in (0..10_000 / columns_at_once).filter(|_| random.chance(chance)) {
                match columns_at_once {
                    1 => _ = graph.mark_completed(ColumnPos::new(x, z)),
                    _ => _ = graph.mark_batch(BatchPos::new(x, z), u16::MAX),
                }
            }
        }
        graph
    };
    let figure = |shape| {
        let mut graph = DistanceGraph::new();
        let mut mark = |column| _ = graph.mark_completed(column);
        match shape {
            Shape::Square(side) => square(0, side).for_each(&mut mark),
            Shape::Disc(radius) => square(-radius, radius + 1)
                .filter(|column| column.x * column.x + column.z * column.z <= radius * radius)
                .for_each(&mut mark),
        }
        graph
    };
    let mut measure = |name: &str, goal: Option<f64>, make: &dyn Fn() -> DistanceGraph| {
        let (bytes, graph) = held_by(make);
        drop(graph);
        let name = format!("G4 {name}");
        bench.lines.push(Line { name, ours: bytes as f64, fastest: None, goal, unit: "B" });
    };
    for (chance, name, goal) in [(0.5, "50 %", 18e6), (0.9, "90 %", 16e6), (0.99, "99 %", 6e6)] {
        measure(&format!("random, {name}"), Some(goal), &|| random(chance, 1));
    }
    for (chance, name) in [(0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %")] {
        measure(&format!("whole batches at random, {name}"), None, &|| random(chance, 4));
    }
    for (shape, name, goal) in Shape::FIGURES {
        measure(name, Some(goal), &|| figure(shape));
    }
}

/// G5: counts the missing columns within 512, in nanoseconds per call.
fn count(bench: &mut Bench) {
    for (ground, name, goal) in [
        (Ground::Empty, "empty", 20e3),
        (Ground::Checkerboard, "checkerboard", 15e3),
        (Ground::Random, "random", 300e3),
        (Ground::Full, "full", 1e3),
    ] {
        let graph = ground.graph();
        let run = |count: &dyn Fn() -> u128| timed(|| (0..100).for_each(|_| _ = black_box(count()))).0;
        let area = ColumnArea::Disc { center: ORIGIN, radius: 512 };
        bench.measure("G5", &format!("count_missing_in, {name}"), goal, 100, || {
            run(&|| black_box(&graph).count_missing_in(&area))
        });
    }
}

/// G6: everything in steps of 64, in nanoseconds.
fn listen(bench: &mut Bench) {
    let (graph, listener) = listened();
    bench.measure("G6", "collect all in steps of 64", 10e6, 1, || {
        let mut graph = graph.clone();
        let (time, count) = timed(|| collect(&mut graph, listener, 64));
        assert_eq!(count, 205_861);
        time
    });
}

/// G7: two threads complete columns of the same batches while a third finds work, in nanoseconds a column.
fn share(bench: &mut Bench) {
    bench.measure("G7", "three threads, a column", None, 256 * 256, || {
        let graph = Mutex::new(DistanceGraph::new());
        let (time, ()) = timed(|| {
            std::thread::scope(|scope| {
                let workers = [0, 1].map(|rest| {
                    let own = square(0, 256).filter(move |column| column.x & 1 == rest);
                    let graph = &graph;
                    scope.spawn(move || own.for_each(|column| _ = graph.lock().unwrap().mark_completed(column)))
                });
                while workers.iter().any(|worker| !worker.is_finished()) {
                    black_box(graph.lock().unwrap().nearest_missing(ColumnPos::new(128, 128), 256));
                }
            });
        });
        assert_eq!(graph.into_inner().unwrap().completed_count(), 256 * 256);
        time
    });
}

fn main() {
    let criterion = measure::criterion(Duration::from_secs(2), Duration::from_millis(300));
    let mut bench = Bench { criterion, lines: Vec::new() };
    find(&mut bench);
    mark(&mut bench);
    count(&mut bench);
    listen(&mut bench);
    share(&mut bench);
    // Criterion knows nothing of this group, which takes half a minute.
    let mut filters = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).peekable();
    if filters.peek().is_none() || filters.any(|filter| "G4".contains(&filter)) {
        memory(&mut bench);
    }
    bench.criterion.final_summary();
    bench.print_table();
}
