//! Criterion measures, and every run is kept for a table of its own.

use criterion::{BenchmarkId, Criterion, Throughput};
use std::time::{Duration, Instant};

/// Ten samples in so much time.
pub fn criterion(measured: Duration, warm_up: Duration) -> Criterion {
    Criterion::default().configure_from_args().sample_size(10).measurement_time(measured).warm_up_time(warm_up)
}

/// Measures runs of so many operations each; `run` answers how long its timed part took. Gives the nanoseconds an
/// operation of each run, in order of size: none if a filter left it out.
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

/// The one in the middle.
pub fn median(runs: &[f64]) -> Option<f64> {
    runs.get(runs.len() / 2).copied()
}

/// How long it takes, and what it gives.
pub fn timed<R>(run: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = run();
    (start.elapsed(), result)
}
