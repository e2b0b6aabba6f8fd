//! Figures of the last ten minutes, and plots of them.

use super::format::{bytes, time};
use bevy::diagnostic::{DiagnosticPath, DiagnosticsStore};
use bevy::platform::collections::HashMap;
use bevy::prelude::*;
use bevy_egui::egui;
use bevy_egui::egui::{Color32, RichText, ScrollArea, Ui, Vec2b};
use bevy_terrane::view::{
    ChunkSyncPeer, FarColumnChanged, PublishedColumns, RegionHalted, RegionHung, RegionMerged, WorldSaved,
    WorldStatistics,
};
use egui_plot::{Legend, Line, LineStyle, Plot, PlotPoints, VLine};
use std::collections::VecDeque;
use std::time::Duration;

/// The time between two samples.
const PERIOD: Duration = Duration::from_secs(2);
/// The number of samples that are kept: ten minutes.
const SAMPLES: usize = 300;
/// The number of marks of each kind that are kept.
const MARKS: usize = 256;
/// The height of a plot, in points.
const HEIGHT: f32 = 130.0;
/// The number of columns whose memory stands for that of all.
const MEASURED: usize = 256;

/// The memory of the chunks' meshes on the graphics card, which `terrane_render` measures.
const MESHES: DiagnosticPath = DiagnosticPath::const_new("terrane/mesh_bytes");

/// The curves, by their place in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Curve {
    SlowestRate,
    MedianRate,
    MedianTick,
    WorstTick,
    Frame,
    InFlight,
    ToLoad,
    Unsaved,
    Saved,
    Written,
    Clients,
    Blocks,
    Light,
    Store,
    Meshes,
}

const CURVES: usize = Curve::Meshes as usize + 1;

/// How the values of a plot are written.
type Text = fn(f64) -> String;

/// The plots: titles, units, and the names of their curves.
const PLOTS: [(&str, Text, &[(&str, Curve)]); 7] = [
    ("ticks a second", number, &[("slowest region", Curve::SlowestRate), ("median", Curve::MedianRate)]),
    (
        "ms",
        number,
        &[("median tick", Curve::MedianTick), ("worst tick", Curve::WorstTick), ("worst frame", Curve::Frame)],
    ),
    ("columns", number, &[("in flight", Curve::InFlight), ("to load", Curve::ToLoad)]),
    ("changes that wait for the store", number, &[("unsaved", Curve::Unsaved)]),
    ("to the store", rate, &[("saved", Curve::Saved), ("written", Curve::Written)]),
    ("to clients", rate, &[("chunks and far views", Curve::Clients)]),
    (
        "memory",
        size,
        &[("blocks", Curve::Blocks), ("light", Curve::Light), ("store", Curve::Store), ("meshes", Curve::Meshes)],
    ),
];

fn number(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn size(value: f64) -> String {
    bytes(value.max(0.0) as u64)
}

fn rate(value: f64) -> String {
    format!("{}/s", size(value))
}

/// What happened at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Merge,
    Fault,
    Saved,
}

impl Mark {
    const ALL: [Self; 3] = [Self::Merge, Self::Fault, Self::Saved];

    const fn name(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Fault => "fault",
            Self::Saved => "world saved",
        }
    }

    const fn color(self) -> Color32 {
        match self {
            Self::Merge => Color32::from_gray(110),
            Self::Fault => Color32::from_rgb(220, 70, 60),
            Self::Saved => Color32::from_rgb(70, 150, 90),
        }
    }
}

/// The figures of the last ten minutes, noted while the overlay is hidden too.
#[derive(Resource, Default)]
pub(super) struct History {
    /// The samples, oldest first, each with its time in seconds.
    samples: VecDeque<(f64, [f32; CURVES])>,
    marks: VecDeque<(f64, Mark)>,
    /// The time of the last sample, and of the next one.
    sampled: Duration,
    due: Duration,
    /// The longest frame since the last sample.
    frame: Duration,
    /// The totals at the last sample: bytes saved and written, and the bytes of far views since the app began.
    totals: (u64, u64),
    far_bytes: u64,
    /// The bytes that were sent to each client at the last sample.
    clients: HashMap<Entity, u64>,
    /// The number of commits, and when it last grew.
    commits: u64,
    committed_at: Option<Duration>,
}

impl History {
    /// The time of the last commit, on the app's clock.
    pub fn committed_at(&self) -> Option<Duration> {
        self.committed_at
    }

    fn mark(&mut self, now: Duration, mark: Mark) {
        let of_kind = self.marks.iter().filter(|(_, known)| *known == mark).count();
        if of_kind >= MARKS
            && let Some(oldest) = self.marks.iter().position(|(_, known)| *known == mark)
        {
            self.marks.remove(oldest);
        }
        self.marks.push_back((now.as_secs_f64(), mark));
    }

    fn push(&mut self, now: Duration, sample: [f32; CURVES]) {
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back((now.as_secs_f64(), sample));
    }

    /// The points of a curve, with the time before now in seconds. Values that are not known are left out.
    fn points(&self, curve: Curve, now: f64) -> Vec<[f64; 2]> {
        let known = self.samples.iter().filter(|(_, values)| !values[curve as usize].is_nan());
        known.map(|(at, values)| [at - now, f64::from(values[curve as usize])]).collect()
    }
}

/// Takes a sample if it is time.
pub(super) fn note(
    mut history: ResMut<History>,
    time: Res<Time<Real>>,
    statistics: Res<WorldStatistics>,
    published: Res<PublishedColumns>,
    diagnostics: Option<Res<DiagnosticsStore>>,
    peers: Query<(Entity, &ChunkSyncPeer)>,
    mut far: MessageReader<FarColumnChanged>,
    mut merged: MessageReader<RegionMerged>,
    (mut halted, mut hung, mut saved): (
        MessageReader<RegionHalted>,
        MessageReader<RegionHung>,
        MessageReader<WorldSaved>,
    ),
) {
    let (history, now) = (&mut *history, time.elapsed());
    history.frame = history.frame.max(time.delta());
    history.far_bytes += far.read().map(|column| column.bytes).sum::<u64>();
    if statistics.saves > history.commits {
        (history.commits, history.committed_at) = (statistics.saves, Some(now));
    }
    for (mark, count) in [
        (Mark::Merge, merged.read().count()),
        (Mark::Fault, halted.read().count() + hung.read().count()),
        (Mark::Saved, saved.read().count()),
    ] {
        if count > 0 {
            history.mark(now, mark);
        }
    }
    if now < history.due {
        return;
    }
    history.due = now + PERIOD;
    let since = now.saturating_sub(std::mem::replace(&mut history.sampled, now)).as_secs_f64().max(1e-3);
    let written = statistics.bytes_written;
    let per_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / since;
    let (saved_before, written_before) = history.totals;
    history.totals = (statistics.bytes_saved, written.unwrap_or(0));
    let sent: HashMap<Entity, u64> = peers.iter().map(|(peer, sync)| (peer, sync.progress().bytes)).collect();
    let before = |peer: &Entity| history.clients.get(peer).copied().unwrap_or(0);
    let to_clients: f64 = sent.iter().map(|(peer, bytes)| per_second(*bytes, before(peer))).sum();
    history.clients = sent;
    let to_far_views = per_second(std::mem::take(&mut history.far_bytes), 0);
    let (blocks, light) = memory(&published);
    let milliseconds = |time: Duration| Some(time.as_secs_f64() * 1e3).filter(|_| statistics.ticks > 0);
    let meshes = diagnostics.and_then(|diagnostics| diagnostics.get(&MESHES)?.value());
    let mut sample = [f32::NAN; CURVES];
    let values = [
        (Curve::SlowestRate, statistics.slowest_tps()),
        (Curve::MedianRate, statistics.median_tps()),
        (Curve::MedianTick, milliseconds(statistics.tick_time_median)),
        (Curve::WorstTick, milliseconds(statistics.tick_time_worst)),
        (Curve::Frame, Some(std::mem::take(&mut history.frame).as_secs_f64() * 1e3)),
        (Curve::InFlight, Some(statistics.in_flight as f64)),
        (Curve::ToLoad, Some(statistics.remaining as f64)),
        (Curve::Unsaved, Some(statistics.unsaved as f64)),
        (Curve::Saved, Some(per_second(statistics.bytes_saved, saved_before))),
        (Curve::Written, written.map(|written| per_second(written, written_before))),
        (Curve::Clients, Some(to_clients + to_far_views)),
        (Curve::Blocks, Some(blocks)),
        (Curve::Light, Some(light)),
        (Curve::Store, statistics.tiers.memory_bytes.map(|bytes| bytes as f64)),
        (Curve::Meshes, meshes),
    ];
    for (curve, value) in values {
        sample[curve as usize] = value.map_or(f32::NAN, |value| value as f32);
    }
    history.push(now, sample);
}

/// The memory of the published columns' blocks and light, estimated from some of them.
fn memory(published: &PublishedColumns) -> (f64, f64) {
    let (mut measured, mut blocks, mut light) = (0, 0, 0);
    for (dimension, column) in published.iter().take(MEASURED) {
        measured += 1;
        blocks += column.chunks().map(|(_, chunk)| chunk.heap_bytes()).sum::<usize>();
        light += published.light(dimension, column.pos()).map_or(0, |light| light.heap_bytes());
    }
    let all = |bytes: usize| bytes as f64 * published.len() as f64 / f64::from(measured.max(1));
    (all(blocks), all(light))
}

/// Shows the plots, one below the other.
pub(super) fn show(ui: &mut Ui, history: &History, now: Duration) {
    if history.samples.len() < 2 {
        ui.weak("The first samples are being taken.");
        return;
    }
    let now = now.as_secs_f64();
    ui.horizontal(|ui| {
        for mark in Mark::ALL {
            ui.label(RichText::new(format!("| {}", mark.name())).color(mark.color()));
        }
        ui.weak("of the last ten minutes");
    });
    let row = HEIGHT + ui.text_style_height(&egui::TextStyle::Body) + ui.spacing().item_spacing.y;
    ScrollArea::vertical().auto_shrink([false, false]).show_rows(ui, row, PLOTS.len(), |ui, shown| {
        for (title, text, curves) in PLOTS.into_iter().skip(shown.start).take(shown.len()) {
            ui.label(RichText::new(title).small());
            plot(ui, title, text, curves, history, now);
        }
    });
}

fn plot(ui: &mut Ui, title: &str, text: Text, curves: &[(&str, Curve)], history: &History, now: f64) {
    let span = SAMPLES as f64 * PERIOD.as_secs_f64();
    Plot::new(title)
        .height(HEIGHT)
        .legend(Legend::default())
        .allow_drag(false)
        .allow_zoom(false)
        .allow_scroll(false)
        .allow_boxed_zoom(false)
        .auto_bounds(Vec2b::new(false, true))
        .default_x_bounds(-span, 0.0)
        .include_y(0.0)
        .y_axis_min_width(52.0)
        .x_axis_formatter(|mark, _| ago(mark.value))
        .y_axis_formatter(move |mark, _| text(mark.value))
        .label_formatter(move |name, point| format!("{name}\n{}\n{}", text(point.y), ago(point.x)))
        .link_cursor("terrane plots", Vec2b::new(true, false))
        .show(ui, |ui| {
            for (at, mark) in &history.marks {
                if at - now >= -span {
                    let line = VLine::new("", at - now).color(mark.color()).style(LineStyle::dashed_dense());
                    ui.vline(line.allow_hover(false));
                }
            }
            for (name, curve) in curves {
                ui.line(Line::new(*name, PlotPoints::new(history.points(*curve, now))));
            }
        });
}

/// `-4:05`: a time before now.
fn ago(seconds: f64) -> String {
    match Duration::try_from_secs_f64(-seconds) {
        Ok(before) if before.as_secs() > 0 => format!("-{}", time(before)),
        _ => "now".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(value: f32) -> [f32; CURVES] {
        [value; CURVES]
    }

    #[test]
    fn ten_minutes_are_kept() {
        let mut history = History::default();
        for number in 0..1_000_u64 {
            history.push(PERIOD * number as u32, sample(number as f32));
        }
        let now = (PERIOD * 999).as_secs_f64();
        let points = history.points(Curve::Unsaved, now);
        assert_eq!((points.len(), points[0][1], points[SAMPLES - 1]), (SAMPLES, 700.0, [0.0, 999.0]));
        assert!((points[0][0] + 598.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let mut history = History::default();
        history.push(Duration::from_secs(1), sample(f32::NAN));
        history.push(Duration::from_secs(3), sample(2.0));
        assert_eq!(history.points(Curve::Meshes, 3.0), [[0.0, 2.0]]);
    }

    #[test]
    fn marks_of_one_kind_do_not_push_out_others() {
        let mut history = History::default();
        history.mark(Duration::ZERO, Mark::Fault);
        (0..10 * MARKS as u64).for_each(|second| history.mark(Duration::from_secs(second), Mark::Merge));
        let of = |mark| history.marks.iter().filter(|(_, known)| *known == mark).count();
        assert_eq!((of(Mark::Fault), of(Mark::Merge)), (1, MARKS));
        assert_eq!(history.marks.back(), Some(&((10 * MARKS - 1) as f64, Mark::Merge)));
    }

    #[test]
    fn times_are_before_now() {
        assert_eq!((ago(-245.0), ago(0.0), ago(-0.2)), ("-4:05".to_owned(), "now".to_owned(), "now".to_owned()));
    }
}
