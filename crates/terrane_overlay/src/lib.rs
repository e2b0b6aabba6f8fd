#![doc = include_str!("../README.md")]

mod clocks;
mod entities;
mod entity;
mod format;
mod generation;
mod jobs;
mod log;
mod map;
mod selected;
mod servers;
mod state;
mod summary;
mod table;
mod view;
mod widgets;

pub use view::{Overlay, OverlayList};

use bevy::prelude::*;
use bevy::window::WindowPlugin;
use bevy_egui::{EguiContexts, EguiPlugin, EguiPrimaryContextPass, egui};
use bevy_inspector_egui::DefaultInspectorConfigPlugin;
use bevy_terrane::chunk::RayHit;
use bevy_terrane::space::BlockPos;
use bevy_terrane::view::{DimensionOpen, Mirror, PublishedColumns, Regions};
use entities::Entities;
use entity::Followed;
use log::{Filter, RegionLog};
use map::Map;
use selected::RateOrder;
use std::iter;
use table::Table;
use terrane_inspect::Inspector;
use view::View;

/// Adds the overlay, and `EguiPlugin` if the app does not have it. Add it after `DefaultPlugins`. The overlay is hidden at
/// first, unless the game inserts an [`Overlay`] that is visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverlayPlugin;

impl Plugin for OverlayPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<Overlay>().register_type::<Overlay>();
        if !app.is_plugin_added::<WindowPlugin>() {
            error!("there is no overlay: OverlayPlugin must be added after DefaultPlugins, in an app that has windows");
            return;
        }
        if !app.is_plugin_added::<EguiPlugin>() {
            app.add_plugins(EguiPlugin::default());
        }
        app.add_plugins(DefaultInspectorConfigPlugin).add_message::<Picked>().add_observer(pick);
        let has_world = resource_exists::<PublishedColumns>;
        app.init_resource::<RegionLog>()
            .init_resource::<jobs::Traffic>()
            // Events are logged while the overlay is hidden too.
            .add_systems(Update, (log::note, jobs::note_traffic).run_if(has_world))
            .add_systems(Update, toggle.run_if(resource_exists::<ButtonInput<KeyCode>>))
            .add_systems(
                EguiPrimaryContextPass,
                show.run_if(has_world).run_if(|overlay: Res<Overlay>| overlay.visible),
            );
    }
}

fn toggle(keys: Res<ButtonInput<KeyCode>>, mut overlay: ResMut<Overlay>) {
    if keys.just_pressed(KeyCode::F3) {
        overlay.visible = !overlay.visible;
    }
}

/// The block that was clicked.
#[derive(Message)]
struct Picked(BlockPos);

/// Selects what is clicked in the world: an entity with a mirror, or the region of a block.
fn pick(
    click: On<Pointer<Click>>,
    (mut overlay, mut picked): (ResMut<Overlay>, MessageWriter<Picked>),
    (mirrors, parents): (Query<&Mirror>, Query<&ChildOf>),
    (open, regions): (Query<&DimensionOpen>, Option<Regions>),
    mut contexts: EguiContexts,
) {
    // Bevy's picking does not know the windows that cover the world.
    if contexts.ctx_mut().is_ok_and(|context| context.egui_wants_pointer_input()) {
        return;
    }
    let hit = click.original_event_target();
    // The event also reaches the parents.
    if !overlay.visible || !overlay.picks || click.entity != hit {
        return;
    }
    let with_parents = || iter::once(hit).chain(parents.iter_ancestors(hit));
    if let Some(mirror) = with_parents().find_map(|entity| mirrors.get(entity).ok()) {
        overlay.entity = Some(mirror.id);
    } else if let (Ok(open), Some(hit), Some(regions)) = (open.get(hit), click.hit.extra_as::<RayHit>(), regions) {
        picked.write(Picked(hit.block));
        if let Some(region) = regions.at(open.id, hit.block) {
            overlay.selected = Some((open.id, region.region));
        }
    }
}

/// The state of the windows between frames.
#[derive(Default)]
struct Remembered {
    entities: Entities,
    followed: Followed,
    map: Map,
    table: Table,
    filter: Filter,
    ordered: Option<RateOrder>,
}

impl Remembered {
    /// Applies new statistics.
    fn update(&mut self, view: &View) {
        let shift = view.statistics.section_shift;
        let occupied = view.published.iter().map(|(dimension, column)| (dimension, column.pos().section(shift)));
        self.map.update(&view.statistics, &occupied.collect());
        self.table.update(&view.statistics);
    }
}

fn show(
    mut contexts: EguiContexts,
    mut overlay: ResMut<Overlay>,
    view: View,
    mut remembered: Local<Remembered>,
    (mut commands, mut inspector, mut picked): (Commands, Inspector, MessageReader<Picked>),
) -> Result {
    let context = contexts.ctx_mut()?;
    picked.read().for_each(|Picked(block)| remembered.entities.look_near(*block));
    if view.statistics.is_changed() {
        remembered.update(&view);
    }
    let mut shown = *overlay;
    windows(context, &view, &mut remembered, &mut shown, (&mut commands, &mut inspector));
    // Set only if different, so that change detection stays useful.
    overlay.set_if_neq(shown);
    Ok(())
}

/// Shows the windows. A click changes the selection, or sends the simulation a request, as any game would.
fn windows(
    context: &egui::Context,
    view: &View,
    remembered: &mut Remembered,
    overlay: &mut Overlay,
    (commands, inspector): (&mut Commands, &mut Inspector),
) {
    let mut is_open = true;
    egui::Window::new("Terrane")
        .default_pos([12.0, 12.0])
        .default_size([620.0, 660.0])
        .min_width(560.0)
        .min_height(320.0)
        .open(&mut is_open)
        .show(context, |ui| {
            section(ui, "simulation", |ui| summary::show(ui, &view.statistics));
            if !view.statistics.servers.is_empty() {
                section(ui, "servers", |ui| servers::show(ui, &view.statistics, commands));
            }
            section(ui, "dimensions", |ui| clocks::show(ui, view, commands));
            section(ui, "map", |ui| remembered.map.show(ui, view, &mut overlay.selected));
            ui.add_space(4.0);
            show_lists(ui, view, remembered, overlay, (commands, inspector));
        });
    overlay.visible = is_open;
    selected::show(context, view, &mut remembered.ordered, &mut overlay.selected, commands);
    let Overlay { selected, entity, .. } = overlay;
    remembered.followed.show(context, view, inspector, (selected, entity));
}

/// A collapsible part of the window.
fn section(ui: &mut egui::Ui, title: &str, contents: impl FnOnce(&mut egui::Ui)) {
    egui::CollapsingHeader::new(title).default_open(true).show_unindented(ui, contents);
}

/// The table of the regions, the entities of one, the log, the jobs, or the far views.
fn show_lists(
    ui: &mut egui::Ui,
    view: &View,
    remembered: &mut Remembered,
    overlay: &mut Overlay,
    (commands, inspector): (&mut Commands, &mut Inspector),
) {
    let Remembered { entities, table, filter, .. } = remembered;
    let Overlay { selected, list, entity, picks, .. } = overlay;
    ui.horizontal(|ui| {
        ui.selectable_value(list, OverlayList::Regions, "regions");
        ui.selectable_value(list, OverlayList::Entities, "entities").on_hover_text("of the selected region");
        ui.selectable_value(list, OverlayList::Log, "log");
        ui.selectable_value(list, OverlayList::Jobs, "jobs").on_hover_text("pre-generations, captures and restores");
        ui.selectable_value(list, OverlayList::FarViews, "far views");
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| match list {
            OverlayList::Regions => table.windows(ui, &view.statistics),
            OverlayList::Entities => {
                ui.checkbox(picks, "pick").on_hover_text("a click into the world selects an entity, or a region");
                entities.more(ui, inspector);
            }
            OverlayList::Log => log::filters(ui, filter),
            OverlayList::Jobs | OverlayList::FarViews => {}
        });
    });
    match list {
        OverlayList::Regions => table.show(ui, view, selected),
        OverlayList::Entities => entities.show(ui, inspector, *selected, entity),
        OverlayList::Log => log::show(ui, view, *filter, selected),
        OverlayList::Jobs => jobs::show(ui, view, commands),
        OverlayList::FarViews => jobs::show_far_views(ui, view),
    }
}

#[cfg(test)]
mod tests {
    use super::view::RegionKey;
    use super::*;
    use bevy::ecs::system::RunSystemOnce;
    use bevy::input::InputPlugin;
    use bevy_terrane::generation::Void;
    use bevy_terrane::region::RegionId;
    use bevy_terrane::space::{ColumnPos, DimensionId, SectionPos};
    use bevy_terrane::view::{
        Dimension, DimensionClock, DimensionOpen, DimensionStatistics, FarColumns, RegionStatistics, TickWindow,
        WorldStatistics,
    };
    use std::time::Duration;

    fn statistics(regions: u64) -> WorldStatistics {
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
        WorldStatistics {
            regions,
            dimensions: (0..2).map(clock).collect(),
            viewers: viewers.collect(),
            section_shift: 4,
            ..default()
        }
    }

    /// Shows the overlay on a small screen for six frames. Returns the last frame, and the places of the windows.
    fn show_a_while(statistics: WorldStatistics, selected: RegionKey) -> (egui::FullOutput, Vec<[egui::Rect; 2]>) {
        let mut world = World::new();
        world.insert_resource(statistics);
        world.init_resource::<PublishedColumns>();
        world.init_resource::<RegionLog>();
        world.init_resource::<bevy_terrane::view::Dimensions>();
        world.init_resource::<FarColumns>();
        world.init_resource::<jobs::Traffic>();
        world.init_resource::<AppTypeRegistry>();
        for id in 0..2 {
            world.spawn((Dimension::new(format!("dimension_{id}"), Void), DimensionOpen { id: DimensionId(id) }));
        }
        let frames = move |view: View, mut commands: Commands, mut inspector: Inspector| {
            let context = egui::Context::default();
            let mut remembered = Remembered::default();
            remembered.update(&view);
            let mut places = Vec::new();
            let mut last = None;
            for _ in 0..6 {
                let pointer = egui::Event::PointerMoved(egui::pos2(270.0, 400.0));
                let input = egui::RawInput { screen_rect: Some(SCREEN), events: vec![pointer], ..default() };
                let mut overlay = Overlay { visible: true, selected: Some(selected), ..default() };
                last = Some(context.run_ui(input, |ui| {
                    windows(ui.ctx(), &view, &mut remembered, &mut overlay, (&mut commands, &mut inspector));
                }));
                let place = |id: &str| context.memory(|memory| memory.area_rect(egui::Id::new(id))).unwrap();
                places.push([place("Terrane"), place("Terrane region")]);
            }
            (last.unwrap(), places)
        };
        world.run_system_once(frames).unwrap()
    }

    const SCREEN: egui::Rect = egui::Rect { min: egui::Pos2::ZERO, max: egui::pos2(1280.0, 720.0) };

    #[test]
    fn the_windows_keep_their_places_on_a_small_screen_with_any_content() {
        for regions in [0, 1, 7, 500] {
            let (last, places) = show_a_while(statistics(regions), (DimensionId(1), RegionId::new(3)));
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
            // The map is not measured here.
            statistics.regions.iter_mut().for_each(|region| region.sections = Vec::new().into());
            statistics.viewers.clear();
            show_a_while(statistics, (DimensionId(1), RegionId::new(3))).0.shapes.len()
        };
        assert!(shapes(10_000) <= shapes(100) + 20);
    }

    /// Promise, first game: F3 shows and hides the overlay.
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
        app.add_plugins((MinimalPlugins, OverlayPlugin));
        app.finish();
        app.cleanup();
        app.update();
        assert!(!app.is_plugin_added::<EguiPlugin>());
    }
}
