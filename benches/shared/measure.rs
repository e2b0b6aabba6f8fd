//! Measurements by criterion, with every run kept for a separate table.

use criterion::{BenchmarkId, Criterion, Throughput};
use std::time::{Duration, Instant};

/// Ten samples within this time.
pub fn criterion(measured: Duration, warm_up: Duration) -> Criterion {
    Criterion::default().configure_from_args().sample_size(10).measurement_time(measured).warm_up_time(warm_up)
}

/// Measures runs with this many operations each; `run` returns the duration of its timed part. Returns the nanoseconds per
/// operation of each run, sorted; empty if a filter excluded the benchmark.
pub fn runs(
    criterion: &mut Criterion,
    group: &str,
    part: &str,
    operations: usize,
    mut run: impl FnMut() -> Duration,
) -> Vec<f64> {
    let mut runs = Vec::new();
    let mut group = criterion.benchmark_group(group);
    group.throughput(Throughput::Elements(operations as u64));
    group.bench_function(BenchmarkId::from_parameter(part), |bencher| {
        bencher.iter_custom(|count| {
            let mut total = Duration::ZERO;
            for _ in 0..count {
                let time = run();
                runs.push(time.as_nanos() as f64 / operations as f64);
                total += time;
            }
            total
        });
    });
    group.finish();
    runs.sort_unstable_by(f64::total_cmp);
    runs
}

/// The median of sorted runs.
pub fn median(runs: &[f64]) -> Option<f64> {
    runs.get(runs.len() / 2).copied()
}

/// Calls `run` and returns its duration and result.
pub fn timed<R>(run: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = run();
    (start.elapsed(), result)
}
