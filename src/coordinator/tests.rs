//! A coordinator without a main world: its memory, and the effects of outboxes.

mod bounds;
mod effects;

use super::closing::opening::open_dimension;
use super::collect::move_viewers;
use super::dimension::{DimensionBook, OpenDimension};
use super::publish::Publisher;
use super::schedule::control::control_region;
use super::{CoordinatorMain, coordinator_app};
use crate::block::BlockRegistry;
use crate::chunk::Column;
use crate::coordinator::clock::LONG_WAIT;
use crate::coordinator::messages::clocks::{ControlRegion, RegionOrder};
use crate::coordinator::messages::dimensions::DimensionSpec;
use crate::coordinator::messages::published::{ColumnUpdate, Published};
use crate::coordinator::messages::settings::{SaveSettings, TerranePlugin, TickMode};
use crate::coordinator::threads::exchange::MainLink;
use crate::generation::Void;
use crate::region::RegionPart;
use crate::simulation::{Floor, MirrorUpdate, Position, RegionComponents, RegionTemplate, ViewerRadii};
use crate::space::{ChunkPos, ColumnPos, DimensionId};
use crate::storage::{StorageConfig, WorldStore};
use bevy::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

const VIEWER: Entity = Entity::from_raw_u32(1).unwrap();
const DIMENSION: Entity = Entity::from_raw_u32(2).unwrap();

/// A coordinator in lockstep with one dimension of air and a viewer in it, and a main world that never looks.
struct Unwatched {
    app: SubApp,
    link: MainLink,
}

impl Unwatched {
    fn new() -> Self {
        Self::with(TerranePlugin::default())
    }

    fn with(config: TerranePlugin) -> Self {
        let saving = SaveSettings::every(Duration::from_millis(500));
        Self::of(TerranePlugin { saving, ..config }, RegionComponents::with_builtin(), BlockRegistry::new())
    }

    fn of(config: TerranePlugin, components: RegionComponents, blocks: BlockRegistry) -> Self {
        let template = RegionTemplate {
            actions_per_second: 64,
            fresh: Arc::default(),
            plugins: Vec::new(),
            components: Arc::new(components),
            messages: Arc::default(),
            blocks: Arc::new(blocks),
            types: AppTypeRegistry::default(),
            parallel_from: usize::MAX,
            error_handler: None,
            seed: 1,
        };
        let config = TerranePlugin { tick_mode: TickMode::Lockstep, ..config };
        let store = Arc::new(WorldStore::open(&StorageConfig::Memory).unwrap());
        let (app, link) = coordinator_app::<Box<dyn std::error::Error>>(&config, template, store).unwrap();
        let spec = DimensionSpec {
            entity: DIMENSION,
            name: "air".to_owned(),
            heights: 0..64,
            floor: Floor::default(),
            generator: Arc::new(Void),
            clock: None,
            time_of_day: None,
            generation: None,
        };
        link.request(open_dimension, spec);
        let mut unwatched = Self { app, link };
        unwatched.look_from(0);
        unwatched.pass(10);
        unwatched
    }

    fn pass(&mut self, times: usize) {
        (0..times).for_each(|_| self.app.world_mut().run_schedule(CoordinatorMain));
    }

    fn look_from(&self, x: i64) {
        let (chunk, radii) = (ChunkPos::new(x, 0, 0), ViewerRadii::new(2, 0, 0));
        self.link.request(move_viewers, vec![(VIEWER, Some((DimensionId(0), chunk, radii)))]);
    }

    fn dimension(&self) -> &OpenDimension {
        self.app.world().resource::<DimensionBook>().open.values().next().unwrap()
    }

    fn order(&mut self, order: RegionOrder) {
        let (dimension, region) = (self.dimension().id, self.dimension().regions.regionizer.regions()[0]);
        self.link.request(control_region, ControlRegion { dimension, region, order });
        self.pass(2);
    }
}

#[test]
fn regions_are_looked_through_for_idle_ones_only_while_there_is_one() {
    let mut unwatched = Unwatched::new();
    assert!(!unwatched.dimension().may_be_idle());
    let slow = 0.5 / LONG_WAIT.as_secs_f64();
    for (order, is_idle) in [
        (RegionOrder::Pause, true),
        (RegionOrder::Resume, false),
        (RegionOrder::TickRate(Some(slow)), true),
        (RegionOrder::TickRate(Some(10.0)), false),
        (RegionOrder::Halt, true),
        (RegionOrder::Restart, false),
    ] {
        unwatched.order(order);
        assert_eq!(unwatched.dimension().may_be_idle(), is_idle, "{order:?}");
    }
}

#[test]
fn orders_to_halt_and_to_restart_that_come_together_are_done_in_their_order() {
    let mut unwatched = Unwatched::new();
    let (dimension, region) = (unwatched.dimension().id, unwatched.dimension().regions.regionizer.regions()[0]);
    let order = |order| ControlRegion { dimension, region, order };
    let is_halted =
        |unwatched: &Unwatched| unwatched.dimension().regions.regionizer.data(region).unwrap().halted.is_some();
    unwatched.link.request(control_region, order(RegionOrder::Halt));
    unwatched.link.request(control_region, order(RegionOrder::Restart));
    unwatched.pass(2);
    assert!(!is_halted(&unwatched));
    unwatched.link.request(control_region, order(RegionOrder::Restart));
    unwatched.link.request(control_region, order(RegionOrder::Halt));
    unwatched.pass(2);
    assert!(is_halted(&unwatched));
}

#[test]
fn revived_columns_are_reloaded_even_in_a_part_that_split_off_at_once() {
    let mut unwatched = Unwatched::new();
    let (viewer, radii) = (Entity::from_raw_u32(3).unwrap(), ViewerRadii::new(2, 0, 0));
    let chunk = ChunkPos::new(1_000, 0, 0);
    unwatched.link.request(move_viewers, vec![(viewer, Some((DimensionId(0), chunk, radii)))]);
    unwatched.pass(10);
    let mut dimensions = unwatched.app.world_mut().resource_mut::<DimensionBook>();
    let dimension = dimensions.open.values_mut().next().unwrap();
    let regions = dimension.regions.regionizer.regions();
    let [first, part] = regions[..] else { panic!("there are {} regions", regions.len()) };
    let columns: Vec<ColumnPos> = dimension.columns.iter().map(|(column, _)| column).collect();
    columns.iter().for_each(|column| dimension.columns.halt(*column, 1));
    let sections = dimension.regions.regionizer.sections(part).collect();
    dimension.regions.regionizer.data_mut(first).unwrap().parts.push(RegionPart {
        id: part,
        sections,
        section_shift: 2,
    });
    dimension.revive(first, |_| true);
    let lost: Vec<_> = dimension.columns.lost().into_iter().map(|(column, _)| column).collect();
    assert_eq!(lost, columns.into_iter().collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>());
}

#[test]
fn unread_published_state_is_bounded() {
    let mut unwatched = Unwatched::new();
    for x in 0..40 {
        unwatched.look_from(x * 10);
        unwatched.pass(10);
    }
    unwatched.pass(40);
    let loaded = unwatched.dimension().columns.iter().count();
    let published = unwatched.link.take_published().unwrap();
    assert!(published.columns.values().all(|update| matches!(update, ColumnUpdate::Loaded { is_new: true, .. })));
    assert_eq!(published.columns.len(), loaded);

    // The end of known columns is published once, and other columns are not published.
    for x in 0..40 {
        unwatched.look_from(x * 10 + 5);
        unwatched.pass(10);
    }
    unwatched.pass(40);
    let published = unwatched.link.take_published().unwrap();
    let gone = published.columns.values().filter(|update| matches!(update, ColumnUpdate::Unloaded)).count();
    assert!(gone <= loaded, "{gone} are gone of {loaded}");
}

fn column(x: i64) -> ((DimensionId, ColumnPos), Column) {
    let column = ColumnPos::new(x, 0);
    ((DimensionId(0), column), Column::new(column))
}

#[test]
fn columns_that_come_and_go_between_two_frames_are_not_published() {
    let shared = Arc::default();
    let mut publisher = Publisher::new(Arc::clone(&shared));
    let take = |publisher: &mut Publisher| -> Published {
        publisher.hand_over();
        std::mem::take(&mut *shared.lock().unwrap())
    };
    let place = (Position::new(DimensionId(0), default()), Duration::ZERO);
    let shown = |id: u128| MirrorUpdate { position: Some(place), ..MirrorUpdate::gone(Uuid::from_u128(id)) };
    let gone = |id: u128| MirrorUpdate::gone(Uuid::from_u128(id));
    let (id, here) = column(1);

    publisher.loaded(id.0, here.clone());
    publisher.mirrors(vec![shown(1)]);
    publisher.hand_over();
    publisher.unloaded(id.0, id.1);
    publisher.mirrors(vec![gone(1), gone(2)]);
    assert!(take(&mut publisher).is_empty());

    publisher.loaded(id.0, here.clone());
    publisher.mirrors(vec![shown(1)]);
    let seen = take(&mut publisher);
    assert_eq!((seen.columns.len(), seen.mirrors.len()), (1, 1));
    // The main world has them, so their end must be published, even if they come and go once more.
    for _ in 0..2 {
        publisher.unloaded(id.0, id.1);
        publisher.mirrors(vec![gone(1)]);
        publisher.hand_over();
        publisher.loaded(id.0, here.clone());
        publisher.mirrors(vec![shown(1)]);
        publisher.hand_over();
    }
    publisher.unloaded(id.0, id.1);
    publisher.mirrors(vec![gone(1)]);
    let seen = take(&mut publisher);
    assert!(matches!(seen.columns[&id], ColumnUpdate::Unloaded));
    assert!(seen.mirrors[&Uuid::from_u128(1)].position.is_none());
    publisher.unloaded(id.0, id.1);
    publisher.mirrors(vec![gone(1)]);
    assert!(take(&mut publisher).is_empty(), "once");
}
