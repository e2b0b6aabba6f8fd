#![doc = include_str!("../README.md")]

use bevy::prelude::*;
use bevy_terrane::view::{RegionStatistics, TickWindow, TimeWindow, WorldStatistics};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use tiny_http::{Header, Method, Request, Response, Server};

/// Serves the figures of the world at `http://ADDRESS/metrics`, in total and by region, as
/// [OpenMetrics](https://prometheus.io/docs/specs/om/open_metrics_spec/) text for Prometheus and other collectors.
///
/// There is no access control, and requests are answered one after the other: bind it to an address that only the collector reaches.
/// If the address cannot be bound, that is logged as an error, and the game runs without the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricsPlugin {
    /// The address to listen at, 127.0.0.1:9184 by default. With port 0 the system chooses one: see [`MetricsServer::address`].
    pub address: SocketAddr,
}

impl Default for MetricsPlugin {
    fn default() -> Self {
        Self { address: (Ipv4Addr::LOCALHOST, 9184).into() }
    }
}

impl Plugin for MetricsPlugin {
    fn build(&self, app: &mut App) {
        match MetricsServer::start(self.address) {
            Ok(server) => {
                app.insert_resource(server)
                    .register_type::<MetricsServer>()
                    .add_systems(Update, hand_over.run_if(resource_exists_and_changed::<WorldStatistics>));
            }
            Err(error) => error!("no metrics at {}: {error}", self.address),
        }
    }
}

fn hand_over(statistics: Res<WorldStatistics>, server: Res<MetricsServer>) {
    *server.figures.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(statistics.clone());
}

/// The endpoint of [`MetricsPlugin`]. Removing the resource closes it.
#[derive(Resource, Reflect)]
#[type_path = "terrane_metrics"]
#[reflect(from_reflect = false)]
#[reflect(Component)]
pub struct MetricsServer {
    #[reflect(ignore)]
    server: Arc<Server>,
    #[reflect(ignore)]
    address: SocketAddr,
    #[reflect(ignore)]
    figures: Figures,
}

impl MetricsServer {
    fn start(address: SocketAddr) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let server = Arc::new(Server::http(address)?);
        let address = server.server_addr().to_ip().unwrap_or(address);
        let figures = Figures::default();
        let mut registry = Registry::with_prefix("terrane");
        registry.register_collector(Box::new(figures.clone()));
        let serving = server.clone();
        let run = move || serving.incoming_requests().for_each(|request| answer(request, &registry));
        Builder::new().name("terrane metrics".to_owned()).spawn(run)?;
        Ok(Self { server, address, figures })
    }

    /// The address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        // The thread is not waited for: a collector that does not read its answer would block the app's end.
        self.server.unblock();
    }
}

fn answer(request: Request, registry: &Registry) {
    let path = request.url().split('?').next().unwrap_or_default();
    let mut text = String::new();
    let response = match (request.method(), path) {
        (Method::Get | Method::Head, "/metrics") if encode(&mut text, registry).is_ok() => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            let header = Header::from_bytes("Content-Type", kind);
            header.into_iter().fold(Response::from_string(text), Response::with_header)
        }
        _ => Response::from_string("the figures are at /metrics\n").with_status_code(404),
    };
    // A client that has gone needs no answer.
    let _ = request.respond(response);
}

/// The newest figures, encoded when a collector asks for them.
#[derive(Clone, Default)]
struct Figures(Arc<Mutex<Arc<WorldStatistics>>>);

impl fmt::Debug for Figures {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Figures")
    }
}

/// A figure that rises and falls.
type Gauge<T> = (&'static str, &'static str, fn(&T) -> Option<f64>);

const WORLD_GAUGES: [Gauge<WorldStatistics>; 12] = [
    ("regions", "Regions", |world| Some(world.regions.len() as f64)),
    ("columns", "Columns in regions", |world| Some(world.columns as f64)),
    ("viewers", "Viewers", |world| Some(world.viewers.len() as f64)),
    ("in_flight_columns", "Columns that are being generated or loaded", |world| Some(world.in_flight as f64)),
    ("remaining_columns", "Columns in range of viewers that are not loaded yet", |world| Some(world.remaining as f64)),
    ("unsaved_changes", "Changes that wait for the store", |world| Some(world.unsaved as f64)),
    ("slowest_ticks_per_second", "Rate of the slowest region that ticks, over 5 seconds", WorldStatistics::slowest_tps),
    ("median_ticks_per_second", "Median of the regions' rates, over 5 seconds", WorldStatistics::median_tps),
    ("median_tick_seconds", "Median tick of 5 seconds", |world| Some(world.tick_time_median.as_secs_f64())),
    ("worst_tick_seconds", "Longest tick of 5 seconds", |world| Some(world.tick_time_worst.as_secs_f64())),
    ("median_pass_seconds", "Median of the coordinator's last passes", |world| Some(world.pass_times.0.as_secs_f64())),
    ("p99_pass_seconds", "99th percentile of the coordinator's last passes", |world| {
        Some(world.pass_times.1.as_secs_f64())
    }),
];

/// Figures that only rise.
const WORLD_COUNTERS: [Gauge<WorldStatistics>; 9] = [
    ("ticks", "Ticks of regions", |world| Some(world.ticks as f64)),
    ("generated_columns", "Columns generated", |world| Some(world.generated as f64)),
    ("loaded_columns", "Columns loaded from the store", |world| Some(world.loaded as f64)),
    ("merges", "Merges of regions", |world| Some(world.merges as f64)),
    ("splits", "Splits of regions", |world| Some(world.splits as f64)),
    ("commits", "Commits to the store", |world| Some(world.saves as f64)),
    ("commit_seconds", "Time of all commits", |world| Some(world.save_time.as_secs_f64())),
    ("saved_bytes", "Bytes handed to the store", |world| Some(world.bytes_saved as f64)),
    ("written_bytes", "Bytes written by the store", |world| world.bytes_written.map(|bytes| bytes as f64)),
];

fn recent(region: &RegionStatistics) -> &TickWindow {
    region.window(TimeWindow::FiveSeconds)
}

const REGION_GAUGES: [Gauge<RegionStatistics>; 9] = [
    ("region_ticks_per_second", "Rate over 5 seconds", |region| recent(region).ticks_per_second),
    ("region_median_tick_seconds", "Median tick of 5 seconds", |region| Some(recent(region).median.as_secs_f64())),
    ("region_p95_tick_seconds", "95th percentile of 5 seconds", |region| Some(recent(region).p95.as_secs_f64())),
    ("region_worst_tick_seconds", "Longest tick of 5 seconds", |region| Some(recent(region).worst.as_secs_f64())),
    ("region_utilisation", "Share of 5 seconds spent ticking", |region| Some(recent(region).utilisation)),
    ("region_columns", "Columns", |region| Some(region.columns as f64)),
    ("region_entities", "Entities with a stable id", |region| Some(region.entities as f64)),
    ("region_viewers", "Viewers", |region| Some(region.viewers as f64)),
    ("region_halted", "1 if it has halted", |region| Some(f64::from(u8::from(region.halted)))),
];

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let world = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (name, help, value) in WORLD_GAUGES {
            if let Some(value) = value(&world) {
                let gauge = ConstGauge::new(value);
                gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
            }
        }
        for (name, help, value) in WORLD_COUNTERS {
            if let Some(value) = value(&world) {
                let counter = ConstCounter::new(value);
                counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
            }
        }
        for (name, help, value) in REGION_GAUGES {
            let mut family = encoder.encode_descriptor(name, help, None, ConstGauge::new(0.0).metric_type())?;
            for region in &world.regions {
                if let Some(value) = value(region) {
                    let labels = [("dimension", region.dimension.0), ("region", region.region.index())];
                    ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }
}
