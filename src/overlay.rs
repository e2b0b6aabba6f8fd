//! The egui overlay: what the simulation does at this moment.
//!
//! A window with a summary, the clocks of the dimensions, a map of the regions, and a table of them, a log of what
//! happened to them, the pre-generations, which can be paused, resumed and cancelled, or the far views. A click on a
//! region opens another one with all that is known of it, and with what it can be told to do: pause, step, tick at a
//! rate of its own, halt, restart. Below the clocks stands how far the ground of a dimension is generated, and what
//! failed; it can be capped, held, and told to try again. All of it goes through [`view`](crate::view), as a game would
//! do it. F3 shows and hides the overlay, and so does the resource [`Overlay`].
//!
//! ```no_run
//! use bevy_terrane::overlay::OverlayPlugin;
//! use bevy_terrane::prelude::*;
//!
//! # let mut app = App::new();
//! // After DefaultPlugins and TerranePlugin:
//! app.add_plugins(OverlayPlugin::default());
//! ```
//!
//! On the map, x points to the right and z down. Every square is a section in its region's color, a faint one a section
//! without columns, which keeps other regions at a distance. Dots are viewers, circles their radii.
//!
//! It is drawn by the primary egui context, which `bevy_egui` puts on the first camera.

mod background_jobs;
mod clocks;
mod color;
mod far_views;
mod format;
mod generation;
mod log;
mod map;
mod pregenerations;
mod selected;
mod snapshot_jobs;
mod state;
mod summary;
mod table;
mod wish;

use crate::coordinator::{DimensionClock, RetryColumns, SnapshotProgress, Statistics};
use crate::region::RegionId;
use crate::space::{DimensionId, SectionPos};
use crate::view::{
    ControlPregeneration, ControlRegion, Dimension, DimensionOpen, FarColumnReceived, FarColumns, FarView,
    Pregeneration, PregenerationProgress, PublishedColumns, RegionCreated, RegionDestroyed, RegionHalted, RegionHung,
    RegionMerged, RegionRestarted, RegionSplit, SnapshotJob, StepDimension, WorldStatistics,
};
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use bevy::window::WindowPlugin;
use bevy_egui::{EguiContexts, EguiPlugin, EguiPrimaryContextPass, egui};
use log::{Filter, RegionLog};
use map::Map;
use pregenerations::PregenerationRow;
use rustc_hash::{FxHashMap, FxHashSet};
use selected::Selected;
use snapshot_jobs::SnapshotRow;
use table::Table;
use wish::{RegionKey, Wish, Wishes};

/// Adds the overlay, and `EguiPlugin` if the app does not have it. It is added after `DefaultPlugins`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverlayPlugin {
    /// Whether it is shown from the start.
    pub visible: bool,
}

/// Whether the overlay is shown, and which region it shows more of.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlay {
    /// F3 switches it.
    pub visible: bool,
    /// The region that the map highlights, with a window of its own. A click selects it, and it follows a merge.
    pub selected: Option<(DimensionId, RegionId)>,
    /// What the lower part of its window lists.
    pub list: OverlayList,
}

/// What the lower part of the overlay's window lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverlayList {
    /// The regions, as a table.
    #[default]
    Regions,
    /// What happened to regions, the newest first.
    Log,
    /// The pre-generations and the snapshot jobs.
    Jobs,
    /// What listeners are told of ground that is far away.
    FarViews,
}

impl Plugin for OverlayPlugin {
    fn build(&self, app: &mut App) {
        if !app.world().contains_resource::<Overlay>() {
            app.insert_resource(Overlay { visible: self.visible, ..default() });
        }
        if !app.is_plugin_added::<WindowPlugin>() {
            error!("there is no overlay: OverlayPlugin must be added after DefaultPlugins, in an app that has windows");
            return;
        }
        if !app.is_plugin_added::<EguiPlugin>() {
            app.add_plugins(EguiPlugin::default());
        }
        add_log(app);
        app.init_resource::<WorldStatistics>()
            .init_resource::<PublishedColumns>()
            .add_message::<StepDimension>()
            .add_message::<ControlRegion>()
            .add_message::<RetryColumns>()
            .add_message::<ControlPregeneration>()
            .add_message::<FarColumnReceived>()
            .init_resource::<FarColumns>()
            .init_resource::<far_views::Traffic>()
            .add_systems(Update, far_views::note)
            .add_systems(Update, toggle.run_if(resource_exists::<ButtonInput<KeyCode>>))
            .add_systems(EguiPrimaryContextPass, show.run_if(|overlay: Res<Overlay>| overlay.visible));
    }
}

/// The log is kept while the overlay is hidden too.
fn add_log(app: &mut App) {
    app.init_resource::<RegionLog>()
        .add_message::<RegionCreated>()
        .add_message::<RegionSplit>()
        .add_message::<RegionMerged>()
        .add_message::<RegionHalted>()
        .add_message::<RegionHung>()
        .add_message::<RegionRestarted>()
        .add_message::<RegionDestroyed>()
        .add_systems(Update, log::note);
}

fn toggle(keys: Res<ButtonInput<KeyCode>>, mut overlay: ResMut<Overlay>) {
    if keys.just_pressed(KeyCode::F3) {
        overlay.visible = !overlay.visible;
    }
}

/// What runs beside the regions.
#[derive(SystemParam)]
struct Background<'w, 's> {
    jobs: Query<'w, 's, (Entity, &'static Pregeneration, &'static PregenerationProgress, Option<&'static Name>)>,
    dimensions: Query<'w, 's, &'static Dimension>,
    open: Query<'w, 's, (&'static Dimension, &'static DimensionOpen)>,
    snapshots: Query<'w, 's, (Entity, &'static SnapshotJob, &'static SnapshotProgress)>,
    listeners: Query<'w, 's, (Entity, &'static FarView, Option<&'static Name>)>,
    columns: Res<'w, FarColumns>,
    traffic: Res<'w, far_views::Traffic>,
}

impl Background<'_, '_> {
    fn jobs(&self) -> background_jobs::Jobs {
        background_jobs::Jobs { pregenerations: self.pregenerations(), snapshots: self.snapshots() }
    }

    /// The pre-generations, the oldest entity first.
    fn pregenerations(&self) -> Vec<PregenerationRow> {
        let mut jobs: Vec<_> = self.jobs.iter().collect();
        jobs.sort_unstable_by_key(|(entity, ..)| *entity);
        let job = |(entity, job, progress, name): (Entity, &Pregeneration, &PregenerationProgress, Option<&Name>)| {
            let dimension = self.dimensions.get(job.dimension);
            PregenerationRow {
                entity,
                name: name.map(|name| name.as_str().to_owned()),
                dimension: dimension.map_or_else(|_| format::UNKNOWN.to_owned(), |it| it.name().to_owned()),
                area: job.area,
                progress: progress.clone(),
            }
        };
        jobs.into_iter().map(job).collect()
    }

    /// The snapshot jobs, the oldest first.
    fn snapshots(&self) -> Vec<SnapshotRow> {
        let mut jobs: Vec<_> = self.snapshots.iter().collect();
        jobs.sort_unstable_by_key(|(_, job, _)| job.id);
        let row = |(entity, job, progress): (Entity, &SnapshotJob, &SnapshotProgress)| {
            let dimension = self.open.iter().find(|(_, open)| open.id == job.dimension);
            SnapshotRow {
                entity,
                is_restore: job.is_restore,
                dimension: dimension.map_or_else(|| job.dimension.to_string(), |(it, _)| it.name().to_owned()),
                area: job.area,
                progress: progress.clone(),
            }
        };
        jobs.into_iter().map(row).collect()
    }

    fn listeners(&self) -> Vec<far_views::Listener> {
        let mut listeners: Vec<_> = self.listeners.iter().collect();
        listeners.sort_unstable_by_key(|(entity, ..)| *entity);
        let listener = |(entity, view, name): (Entity, &FarView, Option<&Name>)| far_views::Listener {
            name: name.map_or_else(|| entity.to_string(), |name| name.as_str().to_owned()),
            view: *view,
            columns: self.columns.len(entity) as u64,
            bytes_per_second: self.traffic.bytes_per_second(entity),
        };
        listeners.into_iter().map(listener).collect()
    }
}

/// What the open dimensions are called, and how they are reached.
#[derive(Default)]
struct DimensionNames {
    open: FxHashMap<DimensionId, (String, Entity, Option<DimensionClock>)>,
}

impl DimensionNames {
    fn name(&self, id: DimensionId) -> String {
        self.open.get(&id).map_or_else(|| id.0.to_string(), |(name, ..)| name.clone())
    }

    /// Its entity, and the clock that the game gave it.
    fn entity(&self, id: DimensionId) -> Option<(Entity, Option<DimensionClock>)> {
        self.open.get(&id).map(|(_, entity, clock)| (*entity, *clock))
    }

    fn len(&self) -> usize {
        self.open.len()
    }
}

/// What the windows remember from frame to frame.
#[derive(Default)]
struct Remembered {
    map: Map,
    table: Table,
    filter: Filter,
    details: Selected,
    occupied: FxHashSet<(DimensionId, SectionPos)>,
    is_filled: bool,
    /// What is outlined on the map.
    outlined: Option<RegionKey>,
}

impl Remembered {
    /// Takes in new statistics.
    fn update(&mut self, statistics: &Statistics) {
        self.map.update(statistics, &self.occupied, self.outlined);
        self.table.update(statistics);
    }

    /// The map shows what was selected.
    fn follow(&mut self, statistics: &Statistics, selected: Option<RegionKey>) {
        if self.outlined != selected {
            self.outlined = selected;
            if let Some((dimension, _)) = selected {
                self.map.dimension = dimension;
            }
            self.map.update(statistics, &self.occupied, selected);
        }
    }
}

fn show(
    mut contexts: EguiContexts,
    mut overlay: ResMut<Overlay>,
    statistics: Res<WorldStatistics>,
    columns: Res<PublishedColumns>,
    log: Res<RegionLog>,
    dimensions: Query<(Entity, &Dimension, &DimensionOpen, Option<&DimensionClock>)>,
    background: Background,
    mut remembered: Local<Remembered>,
    mut sender: Wishes,
) -> Result {
    let context = contexts.ctx_mut()?;
    if statistics.is_changed() || !remembered.is_filled {
        remembered.is_filled = true;
        let shift = statistics.section_shift;
        remembered.occupied.clear();
        remembered.occupied.extend(columns.iter().map(|(dimension, column)| (dimension, column.pos().section(shift))));
        remembered.update(&statistics);
    }
    let open = dimensions.iter().map(|(entity, dimension, open, clock)| {
        let name = dimension.name().to_owned();
        (open.id, (name, entity, clock.copied()))
    });
    let view = View {
        statistics: &statistics,
        log: &log,
        names: &DimensionNames { open: open.collect() },
        // Only what is looked at is gathered.
        jobs: &if overlay.list == OverlayList::Jobs { background.jobs() } else { default() },
        listeners: &if overlay.list == OverlayList::FarViews { background.listeners() } else { Vec::new() },
    };
    let mut shown = *overlay;
    let mut wishes = Vec::new();
    windows(context, &view, &mut remembered, &mut shown, &mut wishes);
    wishes.into_iter().for_each(|wish| sender.send(wish));
    // The resource is not to look changed in every frame.
    overlay.set_if_neq(shown);
    Ok(())
}

/// What there is to show.
#[derive(Clone, Copy)]
struct View<'a> {
    statistics: &'a Statistics,
    log: &'a RegionLog,
    names: &'a DimensionNames,
    jobs: &'a background_jobs::Jobs,
    listeners: &'a [far_views::Listener],
}

/// Shows the windows. A click changes what the overlay shows, or is a wish.
fn windows(
    context: &egui::Context,
    view: &View,
    remembered: &mut Remembered,
    overlay: &mut Overlay,
    wishes: &mut Vec<Wish>,
) {
    remembered.follow(view.statistics, overlay.selected);
    let mut is_open = true;
    egui::Window::new("Terrane")
        .default_pos([12.0, 12.0])
        .default_size([620.0, 660.0])
        .min_width(560.0)
        .min_height(320.0)
        .open(&mut is_open)
        .show(context, |ui| {
            section(ui, "simulation", |ui| summary::show(ui, view.statistics));
            section(ui, "dimensions", |ui| clocks::show(ui, &view.statistics.dimensions, view.names, wishes));
            section(ui, "map", |ui| show_map(ui, view, remembered, &mut overlay.selected));
            ui.add_space(4.0);
            show_lists(ui, view, remembered, overlay, wishes);
        });
    overlay.visible = is_open;
    remembered.details.show(context, view.statistics, view.names, &mut overlay.selected, wishes);
}

/// A part of the window that can be folded.
fn section(ui: &mut egui::Ui, title: &str, contents: impl FnOnce(&mut egui::Ui)) {
    egui::CollapsingHeader::new(title).default_open(true).show_unindented(ui, contents);
}

fn show_map(ui: &mut egui::Ui, view: &View, remembered: &mut Remembered, selected: &mut Option<RegionKey>) {
    let available = ui.available_size();
    let size = egui::vec2(available.x, (available.y * 0.5).clamp(120.0, 420.0));
    if remembered.map.show(ui, size, view.statistics, view.names, selected) {
        remembered.map.update(view.statistics, &remembered.occupied, remembered.outlined);
    }
}

/// The table of the regions, the log, the jobs, or the far views.
fn show_lists(
    ui: &mut egui::Ui,
    view: &View,
    remembered: &mut Remembered,
    overlay: &mut Overlay,
    wishes: &mut Vec<Wish>,
) {
    let Remembered { table, filter, .. } = remembered;
    let Overlay { selected, list, .. } = overlay;
    ui.horizontal(|ui| {
        ui.selectable_value(list, OverlayList::Regions, "regions");
        ui.selectable_value(list, OverlayList::Log, "log");
        ui.selectable_value(list, OverlayList::Jobs, "jobs").on_hover_text("pre-generations, captures and restores");
        ui.selectable_value(list, OverlayList::FarViews, "far views");
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| match list {
            OverlayList::Regions => table.windows(ui, view.statistics),
            OverlayList::Log => log::filters(ui, filter),
            OverlayList::Jobs | OverlayList::FarViews => {}
        });
    });
    match list {
        OverlayList::Regions => table.show(ui, view.statistics, view.names, selected),
        OverlayList::Log => log::show(ui, view.log, *filter, view.names, selected),
        OverlayList::Jobs => background_jobs::show(ui, view.jobs, wishes),
        OverlayList::FarViews => far_views::show(ui, view.listeners),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::{DimensionStatistics, RegionStatistics, TickWindow};
    use crate::space::ColumnPos;
    use bevy::input::InputPlugin;
    use std::time::Duration;

    fn statistics(regions: u64) -> Statistics {
        let region = |id: u64| {
            let (median, worst) = (Duration::from_micros(120 * id), Duration::from_millis(id));
            let recent = TickWindow { ticks_per_second: (id != 4).then_some(20.0), median, worst, ..default() };
            let sections = (0..5).flat_map(|x| (0..5).map(move |z| SectionPos::new(id as i64 * 9 + x, z)));
            RegionStatistics {
                halted: id == 3,
                paused: id == 2,
                columns: 1_234,
                entities: 56_789,
                viewers: 1,
                ticks: 100,
                windows: [recent, recent, recent],
                sections: sections.collect(),
                ..RegionStatistics::new(DimensionId(id % 2), RegionId::new(id))
            }
        };
        let viewers = (0..regions).map(|id| (DimensionId(id % 2), ColumnPos::new(id as i64 * 144 + 40, 40), 12));
        let clock = |id: u64| DimensionStatistics {
            dimension: DimensionId(id),
            clock: DimensionClock::default(),
            now: Duration::from_secs(id * 5_000),
            ..default()
        };
        let mut regions: Vec<_> = (0..regions).map(region).collect();
        regions.sort_unstable_by_key(|region| (region.dimension, region.region));
        Statistics {
            regions,
            dimensions: (0..2).map(clock).collect(),
            viewers: viewers.collect(),
            section_shift: 4,
            ..default()
        }
    }

    fn names() -> DimensionNames {
        let mut world = World::new();
        let open = [0, 1].map(|id| (DimensionId(id), (format!("dimension_{id}"), world.spawn_empty().id(), None)));
        DimensionNames { open: open.into_iter().collect() }
    }

    /// Shows the overlay on a small screen, six frames long. Gives the last frame, and where the windows were.
    fn show_a_while(statistics: &Statistics, selected: RegionKey) -> (egui::FullOutput, Vec<[egui::Rect; 2]>) {
        let context = egui::Context::default();
        let names = names();
        let mut remembered = Remembered::default();
        let view = View { statistics, log: &RegionLog::default(), names: &names, jobs: &default(), listeners: &[] };
        remembered.update(statistics);
        let mut places = Vec::new();
        let mut last = None;
        for _ in 0..6 {
            let pointer = egui::Event::PointerMoved(egui::pos2(270.0, 400.0));
            let input = egui::RawInput { screen_rect: Some(SCREEN), events: vec![pointer], ..default() };
            let mut overlay = Overlay { visible: true, selected: Some(selected), ..default() };
            last = Some(context.run_ui(input, |ui| {
                windows(ui.ctx(), &view, &mut remembered, &mut overlay, &mut Vec::new());
            }));
            let place = |id: &str| context.memory(|memory| memory.area_rect(egui::Id::new(id))).unwrap();
            places.push([place("Terrane"), place("Terrane region")]);
        }
        (last.unwrap(), places)
    }

    const SCREEN: egui::Rect = egui::Rect { min: egui::Pos2::ZERO, max: egui::pos2(1280.0, 720.0) };

    #[test]
    fn the_windows_keep_their_places_on_a_small_screen_whatever_there_is_to_show() {
        for regions in [0, 1, 7, 500] {
            let (last, places) = show_a_while(&statistics(regions), (DimensionId(1), RegionId::new(3)));
            assert!(last.shapes.len() > 20, "{regions} regions give {} shapes", last.shapes.len());
            assert_eq!(places[4], places[5], "they do not grow by themselves");
            let [overlay, region] = places[5];
            assert!(SCREEN.contains_rect(overlay) && SCREEN.contains_rect(region), "{regions}: {overlay} {region}");
            assert!(!overlay.intersects(region), "{regions}: {overlay} {region}");
        }
    }

    #[test]
    fn only_the_rows_that_are_seen_are_laid_out() {
        let shapes = |regions| {
            let mut statistics = statistics(regions);
            // The map is not what is measured here.
            statistics.regions.iter_mut().for_each(|region| region.sections = Vec::new().into());
            statistics.viewers.clear();
            show_a_while(&statistics, (DimensionId(1), RegionId::new(3))).0.shapes.len()
        };
        assert!(shapes(10_000) <= shapes(100) + 20);
    }

    #[test]
    fn f3_switches_it() {
        let mut app = App::new();
        app.add_plugins((MinimalPlugins, InputPlugin)).init_resource::<Overlay>();
        app.update();
        for expected in [true, false] {
            app.world_mut().resource_mut::<ButtonInput<KeyCode>>().press(KeyCode::F3);
            app.world_mut().run_system_cached(toggle).unwrap();
            assert_eq!(app.world().resource::<Overlay>().visible, expected);
            app.world_mut().resource_mut::<ButtonInput<KeyCode>>().reset_all();
        }
    }

    #[test]
    fn an_app_without_windows_runs_on() {
        let mut app = App::new();
        app.add_plugins((MinimalPlugins, OverlayPlugin { visible: true }));
        app.finish();
        app.cleanup();
        app.update();
        assert!(app.world().resource::<Overlay>().visible);
        assert!(!app.is_plugin_added::<EguiPlugin>());
    }
}
