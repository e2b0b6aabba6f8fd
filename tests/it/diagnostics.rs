//! The world's figures among Bevy's diagnostics, and its spans for tracing.

use crate::support::*;
use bevy::diagnostic::{DiagnosticPath, DiagnosticsStore};
use bevy::log::tracing::span::{Attributes, Id};
use bevy::log::tracing::{Dispatch, Subscriber, subscriber};
use bevy::log::tracing_subscriber::layer::{Context, SubscriberExt};
use bevy::log::tracing_subscriber::{Layer, registry};
use bevy_terrane::plugin::WorldDiagnosticsPlugin;
use bevy_terrane::prelude::*;
use bevy_terrane::view::WorldStatistics;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};
use terrane_metrics::{MetricsPlugin, MetricsServer};

fn value(world: &World, path: &DiagnosticPath) -> Option<f64> {
    world.resource::<DiagnosticsStore>().get(path)?.value()
}

/// Promise, figures: Bevy's diagnostics have the figures of the world.
#[test]
fn diagnostics_have_the_figures_of_the_world() {
    let mut app = game(lockstep());
    app.add_plugins(WorldDiagnosticsPlugin);
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    use WorldDiagnosticsPlugin as Figures;
    update_until(&mut app, "the ground is counted", |world| value(world, &Figures::COLUMNS) == Some(13.0));
    update_until(&mut app, "ticks are counted", |world| value(world, &Figures::SLOWEST_TPS).is_some());
    let statistics = app.world().resource::<WorldStatistics>();
    let of = |path: DiagnosticPath| value(app.world(), &path);
    assert_eq!(of(Figures::REGIONS), Some(1.0));
    assert_eq!(of(Figures::SLOWEST_TPS), statistics.slowest_tps());
    assert_eq!(of(Figures::MEDIAN_TPS), of(Figures::SLOWEST_TPS), "there is one region");
    assert_eq!((of(Figures::REMAINING), of(Figures::IN_FLIGHT)), (Some(0.0), Some(0.0)));
    assert_eq!(of(Figures::WORST_TICK), Some(statistics.tick_time_worst.as_secs_f64() * 1e3));
    assert!(of(Figures::WORST_TICK) >= of(Figures::MEDIAN_TICK) && of(Figures::PASS) > Some(0.0));
    assert_eq!(of(Figures::UNSAVED), Some(statistics.unsaved as f64));
}

/// Collects the names of the crate's spans.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<BTreeSet<&'static str>>>);

impl<S: Subscriber> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let metadata = attributes.metadata();
        if metadata.target().starts_with("bevy_terrane") {
            self.0.lock().unwrap().insert(metadata.name());
        }
    }
}

/// Promise, figures: A trace shows the coordinator's passes.
#[test]
fn a_trace_has_the_steps_of_the_crate() {
    let spans = Spans::default();
    // With a single subscriber, `tracing` asks that of the thread that meets a span first, which may be another test's.
    let _second = Dispatch::new(registry());
    subscriber::with_default(registry().with(spans.clone()), || {
        let mut app = game(lockstep());
        let dimension = flat(&mut app);
        viewer(&mut app, dimension, 0.0, 0.0, 2);
        start(&mut app);
        update(&mut app, 10);
    });
    // Regions tick on threads of their own, for which another subscriber counts.
    assert!(spans.0.lock().unwrap().contains("pass"), "{spans:?}", spans = spans.0);
}

/// The endpoint's answer, head and body.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nHost: terrane\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Promise, figures: A collector gets the figures of the world and of each region as OpenMetrics text.
#[test]
fn a_collector_gets_the_figures_of_the_world_and_of_each_region() {
    let mut app = game(lockstep());
    app.add_plugins(MetricsPlugin { address: (Ipv4Addr::LOCALHOST, 0).into() });
    let types = app.world().resource::<AppTypeRegistry>().clone();
    assert!(types.read().get_with_type_path("terrane_metrics::MetricsServer").is_some());
    let dimension = flat(&mut app);
    for place in [0.0, 4_000.0] {
        viewer(&mut app, dimension, place, 0.0, 2);
    }
    start(&mut app);
    update_until(&mut app, "both regions tick", |world| {
        let statistics = world.resource::<WorldStatistics>();
        statistics.regions.len() == 2 && statistics.regions.iter().all(|region| region.columns == 13)
    });
    let address = app.world().resource::<MetricsServer>().address();
    let answer = ask(address, "GET /metrics");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    for line in
        ["# TYPE terrane_regions gauge", "terrane_regions 2.0", "terrane_columns 26.0", "# TYPE terrane_ticks counter"]
    {
        assert!(body.lines().any(|known| known == line), "{line} in {body}");
    }
    for region in &app.world().resource::<WorldStatistics>().regions {
        let line = format!(
            "terrane_region_columns{{dimension=\"{}\",region=\"{}\"}} 13.0",
            dimension.0,
            region.region.index()
        );
        assert!(body.lines().any(|known| known == line), "{line} in {body}");
    }
    assert!(body.ends_with("# EOF\n"), "{body}");
    assert!(
        ask(address, "GET /").starts_with("HTTP/1.1 404") && ask(address, "POST /metrics").starts_with("HTTP/1.1 404")
    );
    // The world goes on without an address that is taken, and the endpoint ends with the app.
    let mut other = game(lockstep());
    other.add_plugins(MetricsPlugin { address });
    assert!(!other.world().contains_resource::<MetricsServer>());
    drop(app);
    let until = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(address).is_ok() {
        assert!(Instant::now() < until, "the endpoint still listens");
        sleep(Duration::from_millis(10));
    }
}
