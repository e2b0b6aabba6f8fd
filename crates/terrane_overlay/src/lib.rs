#![doc = include_str!("../README.md")]

mod arenas;
mod clocks;
mod column;
mod entities;
mod entity;
mod format;
mod generation;
mod history;
mod jobs;
mod log;
mod map;
mod profile;
mod selected;
mod servers;
mod state;
mod storage;
mod summary;
mod table;
mod view;
mod widgets;

pub use view::{Overlay, OverlayTab};

use arenas::Arenas;
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use bevy::window::WindowPlugin;
use bevy_egui::{EguiContexts, EguiPlugin, EguiPrimaryContextPass, egui};
use bevy_inspector_egui::DefaultInspectorConfigPlugin;
use bevy_terrane::chunk::RayHit;
use bevy_terrane::space::BlockPos;
use bevy_terrane::view::{ChunksAnswer, ColumnAnswer, DimensionOpen, Mirror, PublishedColumns, Regions};
use column::ColumnDetails;
use entities::Entities;
use entity::{Crossings, Followed};
use log::{Filter, RegionLog};
use map::{Map, Occupied};
use profile::Profile;
use selected::RateOrder;
use std::time::Duration;
use std::{iter, mem};
use storage::Storage;
use table::Table;
use terrane_inspect::Inspector;
use uuid::Uuid;
use view::{ColumnKey, RegionKey, View};

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
            .init_resource::<Occupied>()
            .init_resource::<Crossings>()
            .init_resource::<history::History>()
            .init_resource::<Arenas>()
            .init_resource::<Storage>()
            // These also run while the overlay is hidden.
            .add_systems(
                Update,
                (log::note, jobs::note_traffic, map::note, entity::note, history::note, storage::note, arenas::note)
                    .run_if(has_world),
            )
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
        overlay.column = Some((open.id, hit.block.column()));
        if let Some(region) = regions.at(open.id, hit.block) {
            overlay.selected = Some((open.id, region.region));
        }
    }
}

/// The answers that reach the main world as messages.
#[derive(SystemParam)]
struct Answers<'w, 's> {
    picked: MessageReader<'w, 's, Picked>,
    columns: MessageReader<'w, 's, ColumnAnswer>,
    chunks: MessageReader<'w, 's, ChunksAnswer>,
}

/// The details that are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Details {
    #[default]
    Region,
    Column,
    Entity,
}

/// The state of the windows between frames.
#[derive(Default)]
struct Remembered {
    entities: Entities,
    followed: Followed,
    column: ColumnDetails,
    profile: Profile,
    map: Map,
    table: Table,
    filter: Filter,
    ordered: Option<RateOrder>,
    /// `true` if there are newer statistics than those of the map and the table.
    is_outdated: bool,
    details: Details,
    /// What was selected in the last frame.
    selected: (Option<RegionKey>, Option<ColumnKey>, Option<Uuid>),
}

impl Remembered {
    /// Applies new statistics.
    fn update(&mut self, view: &View, occupied: &Occupied) {
        self.map.update(&view.statistics, occupied);
        self.table.update(&view.statistics);
        self.is_outdated = false;
    }

    /// Takes in answers.
    fn hear(&mut self, answers: &mut Answers) {
        answers.picked.read().for_each(|Picked(block)| self.entities.look_near(*block));
        self.column.hear(&mut answers.columns, &mut answers.chunks);
    }

    /// Shows the details of what was selected last.
    fn choose_details(&mut self, overlay: &Overlay) {
        let Overlay { selected, column, entity, .. } = *overlay;
        let (region_before, column_before, entity_before) =
            mem::replace(&mut self.selected, (selected, column, entity));
        let is_new = |now: bool, is_same: bool| now && !is_same;
        if is_new(entity.is_some(), entity == entity_before) {
            self.details = Details::Entity;
        } else if is_new(selected.is_some(), selected == region_before) {
            self.details = Details::Region;
        } else if is_new(column.is_some(), column == column_before) && self.details != Details::Region {
            self.details = Details::Column;
        }
        let is_there = match self.details {
            Details::Region => selected.is_some(),
            Details::Column => column.is_some(),
            Details::Entity => entity.is_some(),
        };
        if !is_there {
            self.details = match (selected, column) {
                (Some(_), _) => Details::Region,
                (None, Some(_)) => Details::Column,
                (None, None) => Details::Entity,
            };
        }
    }
}

fn show(
    mut contexts: EguiContexts,
    mut overlay: ResMut<Overlay>,
    view: View,
    occupied: Res<Occupied>,
    (crossings, mut arenas, mut storage): (Res<Crossings>, ResMut<Arenas>, ResMut<Storage>),
    mut remembered: Local<Remembered>,
    (mut commands, mut inspector, mut answers): (Commands, Inspector, Answers),
    time: Res<Time<Real>>,
) -> Result {
    let context = contexts.ctx_mut()?;
    remembered.hear(&mut answers);
    remembered.is_outdated |= view.statistics.is_changed();
    if remembered.is_outdated && overlay.tab == OverlayTab::Regions {
        remembered.update(&view, &occupied);
    }
    let mut shown = *overlay;
    let panels = (&*crossings, &mut *arenas, &mut *storage);
    let sinks = (&mut commands, &mut inspector);
    windows(context, &view, &mut remembered, &mut shown, panels, sinks, time.elapsed());
    // Set only if different, so that change detection stays useful.
    overlay.set_if_neq(shown);
    Ok(())
}

/// The distance of the windows from the edges of the screen and from each other, in points.
const MARGIN: f32 = 6.0;
/// The width of the contents of the main window and of the details, in points. Together they fit 960 points.
const WIDTHS: [f32; 2] = [564.0, 342.0];
/// What a window takes beside its contents: its title and its frame.
const FRAME: [f32; 2] = [14.0, 44.0];
/// The greatest height of the contents of a window, in points.
const GREATEST_HEIGHT: f32 = 640.0;

/// Shows the windows. A click changes the selection, or sends the simulation a request, as any game would.
fn windows(
    context: &egui::Context,
    view: &View,
    remembered: &mut Remembered,
    overlay: &mut Overlay,
    (crossings, arenas, storage): (&Crossings, &mut Arenas, &mut Storage),
    (commands, inspector): (&mut Commands, &mut Inspector),
    now: Duration,
) {
    let mut is_open = true;
    let height = (context.content_rect().height() - 2.0 * MARGIN - FRAME[1]).clamp(200.0, GREATEST_HEIGHT);
    egui::Window::new("Terrane")
        .default_pos([MARGIN, MARGIN])
        .default_size([WIDTHS[0], height])
        .min_width(WIDTHS[0])
        .min_height(200.0)
        .open(&mut is_open)
        .show(context, |ui| {
            ui.horizontal(|ui| {
                ui.spacing_mut().item_spacing.x = 2.0;
                for (tab, name, hint) in TABS {
                    ui.selectable_value(&mut overlay.tab, tab, name).on_hover_text(hint);
                }
            });
            ui.separator();
            show_tab(ui, view, remembered, overlay, (arenas, storage), (commands, inspector), now);
        });
    overlay.visible = is_open;
    show_details(context, height, view, (remembered, crossings), overlay, (commands, inspector));
}

/// The names of the tabs, with what they show.
const TABS: [(OverlayTab, &str, &str); 9] = [
    (OverlayTab::World, "world", "figures, clocks, generation"),
    (OverlayTab::Regions, "regions", "a map and a table; the servers of a shared world"),
    (OverlayTab::Entities, "entities", "of the selected region"),
    (OverlayTab::Plots, "plots", "the last ten minutes"),
    (OverlayTab::Storage, "storage", "tiers, saves, backups"),
    (OverlayTab::Arenas, "arenas", "arenas and snapshots"),
    (OverlayTab::Jobs, "jobs", "pre-generations, captures and restores"),
    (OverlayTab::FarViews, "far views", "and their traffic"),
    (OverlayTab::Log, "log", "events of regions"),
];

fn show_tab(
    ui: &mut egui::Ui,
    view: &View,
    remembered: &mut Remembered,
    overlay: &mut Overlay,
    (arenas, storage): (&mut Arenas, &mut Storage),
    (commands, inspector): (&mut Commands, &mut Inspector),
    now: Duration,
) {
    let Remembered { entities, table, filter, map, .. } = remembered;
    let Overlay { selected, column, entity, picks, .. } = overlay;
    match overlay.tab {
        OverlayTab::World => {
            egui::ScrollArea::vertical().id_salt("world").auto_shrink([false, false]).show(ui, |ui| {
                summary::show(ui, &view.statistics);
                ui.separator();
                clocks::show(ui, view, commands);
            });
        }
        OverlayTab::Regions => {
            // They are also the legend of the map.
            if !view.statistics.servers.is_empty() {
                servers::show(ui, &view.statistics, commands);
            }
            map.show(ui, view, selected, column);
            to_the_right(ui, |ui| table.windows(ui, &view.statistics));
            table.show(ui, view, selected);
        }
        OverlayTab::Entities => {
            to_the_right(ui, |ui| {
                ui.checkbox(picks, "pick").on_hover_text("a click into the world selects an entity, or a region");
                entities.more(ui, inspector);
            });
            entities.show(ui, inspector, *selected, entity);
        }
        OverlayTab::Plots => history::show(ui, &view.history, now),
        OverlayTab::Storage => storage.show(ui, &view.statistics, (&view.history, now), commands),
        OverlayTab::Arenas => arenas.show(ui, view, *column),
        OverlayTab::Jobs => jobs::show(ui, view, commands),
        OverlayTab::FarViews => jobs::show_far_views(ui, view),
        OverlayTab::Log => {
            to_the_right(ui, |ui| log::filters(ui, filter));
            log::show(ui, view, *filter, selected);
        }
    }
}

/// A row whose contents come from right to left.
fn to_the_right(ui: &mut egui::Ui, contents: impl FnOnce(&mut egui::Ui)) {
    let layout = egui::Layout::right_to_left(egui::Align::Center);
    ui.allocate_ui_with_layout(egui::vec2(ui.available_width(), ui.spacing().interact_size.y), layout, contents);
}

/// Shows the details of the selected region, column or entity. Closing the window clears the selection.
fn show_details(
    context: &egui::Context,
    height: f32,
    view: &View,
    (remembered, crossings): (&mut Remembered, &Crossings),
    overlay: &mut Overlay,
    (commands, inspector): (&mut Commands, &mut Inspector),
) {
    remembered.choose_details(overlay);
    if overlay.selected.is_none() && overlay.column.is_none() && overlay.entity.is_none() {
        return;
    }
    let mut is_open = true;
    egui::Window::new("Details")
        .id(egui::Id::new("Terrane details"))
        .default_pos([2.0 * MARGIN + WIDTHS[0] + FRAME[0], MARGIN])
        .default_size([WIDTHS[1], height])
        .min_width(WIDTHS[1])
        .min_height(200.0)
        .open(&mut is_open)
        .show(context, |ui| {
            let details = &mut remembered.details;
            ui.horizontal(|ui| {
                if let Some((_, region)) = overlay.selected {
                    ui.selectable_value(details, Details::Region, format!("Region {}", region.index()));
                }
                if let Some((_, column)) = overlay.column {
                    ui.selectable_value(details, Details::Column, format!("Column {column}"));
                }
                if let Some(id) = overlay.entity {
                    ui.selectable_value(details, Details::Entity, format!("Entity {}", entity::short(id)));
                }
            });
            ui.separator();
            let Remembered { ordered, profile, column, followed, .. } = remembered;
            let Overlay { selected: region, column: place, entity, .. } = overlay;
            match (*details, *region, place, *entity) {
                (Details::Region, Some(region), ..) => {
                    selected::show(ui, view, region, (ordered, profile), (commands, inspector));
                }
                (Details::Column, _, Some(place), _) => column.show(ui, view, (region, place, entity), commands),
                (Details::Entity, .., Some(id)) => {
                    followed.show(ui, view, crossings, (overlay, id), inspector);
                }
                _ => {}
            }
        });
    if !is_open {
        (overlay.selected, overlay.column, overlay.entity) = (None, None, None);
    }
}

#[cfg(test)]
mod tests {
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

    /// Shows the overlay for six frames. Returns the last frame, and the places of the windows.
    fn show_a_while(
        statistics: WorldStatistics,
        selected: RegionKey,
        (screen, tab): (egui::Rect, OverlayTab),
    ) -> (egui::FullOutput, Vec<[egui::Rect; 2]>) {
        let mut world = World::new();
        world.insert_resource(statistics);
        world.init_resource::<PublishedColumns>();
        world.init_resource::<RegionLog>();
        world.init_resource::<bevy_terrane::view::Dimensions>();
        world.init_resource::<FarColumns>();
        world.init_resource::<jobs::Traffic>();
        world.init_resource::<AppTypeRegistry>();
        world.init_resource::<history::History>();
        for id in 0..2 {
            world.spawn((Dimension::new(format!("dimension_{id}"), Void), DimensionOpen { id: DimensionId(id) }));
        }
        let frames = move |view: View, mut commands: Commands, mut inspector: Inspector| {
            let context = egui::Context::default();
            let mut remembered = Remembered::default();
            remembered.update(&view, &Occupied::default());
            let crossings = Crossings::default();
            let (mut arenas, mut storage) = (Arenas::default(), Storage::default());
            let mut places = Vec::new();
            let mut last = None;
            for _ in 0..6 {
                let pointer = egui::Event::PointerMoved(egui::pos2(270.0, 400.0));
                let input = egui::RawInput { screen_rect: Some(screen), events: vec![pointer], ..default() };
                let mut overlay = Overlay { visible: true, selected: Some(selected), tab, ..default() };
                last = Some(context.run_ui(input, |ui| {
                    let (panels, sinks) = ((&crossings, &mut arenas, &mut storage), (&mut commands, &mut inspector));
                    windows(ui.ctx(), &view, &mut remembered, &mut overlay, panels, sinks, Duration::from_secs(9));
                }));
                let place = |id: &str| context.memory(|memory| memory.area_rect(egui::Id::new(id))).unwrap();
                places.push([place("Terrane"), place("Terrane details")]);
            }
            (last.unwrap(), places)
        };
        world.run_system_once(frames).unwrap()
    }

    fn screen(width: f32, height: f32) -> egui::Rect {
        egui::Rect::from_min_size(egui::Pos2::ZERO, egui::vec2(width, height))
    }

    /// Promise, overlay: The overlay fits a screen of 960 x 540 points.
    #[test]
    fn the_windows_keep_their_places_on_a_small_screen_with_any_content() {
        for screen in [screen(960.0, 540.0), screen(1280.0, 720.0)] {
            for (regions, tab) in [0, 1, 7, 500].into_iter().zip(iter::repeat(OverlayTab::Regions)).chain(ALL_TABS) {
                let (last, places) =
                    show_a_while(statistics(regions), (DimensionId(1), RegionId::new(3)), (screen, tab));
                let what = format!("{tab:?}, {regions} regions on {screen}");
                assert!(last.shapes.len() > 20, "{what}: {} shapes", last.shapes.len());
                assert_eq!(places[4], places[5], "{what}: they grow by themselves");
                let [overlay, details] = places[5];
                assert!(screen.contains_rect(overlay) && screen.contains_rect(details), "{what}: {overlay} {details}");
                assert!(!overlay.intersects(details), "{what}: {overlay} {details}");
            }
        }
    }

    const ALL_TABS: [(u64, OverlayTab); 9] = [
        (7, OverlayTab::World),
        (7, OverlayTab::Regions),
        (7, OverlayTab::Entities),
        (7, OverlayTab::Plots),
        (7, OverlayTab::Storage),
        (7, OverlayTab::Arenas),
        (7, OverlayTab::Jobs),
        (7, OverlayTab::FarViews),
        (7, OverlayTab::Log),
    ];

    #[test]
    fn only_the_rows_that_are_seen_are_laid_out() {
        let shapes = |regions| {
            let mut statistics = statistics(regions);
            // The map is not measured here.
            statistics.regions.iter_mut().for_each(|region| region.sections = Vec::new().into());
            statistics.viewers.clear();
            let shown = (screen(1280.0, 720.0), OverlayTab::Regions);
            show_a_while(statistics, (DimensionId(1), RegionId::new(3)), shown).0.shapes.len()
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
