//! Reading and changing blocks in regions and from the main world.

use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::RegionColumns;

fn world(radius: u32) -> (App, DimensionId) {
    let mut app = game(lockstep());
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 0.0, 0.0, radius);
    (app, dimension)
}

/// Promise, worlds: The main world edits blocks with `SetBlock`, and sees the edits in `PublishedBlocks`.
#[test]
fn an_edit_from_the_main_world_is_published_again() {
    let (mut app, dimension) = world(2);
    start(&mut app);
    update(&mut app, 20);
    let stone = id_of(app.world(), "terrane:stone");
    let position = BlockPos::new(-3, 10, 5);
    app.world_mut().write_message(SetBlock { dimension, position, block: stone });
    update(&mut app, 3);
    assert_eq!(block_at(app.world_mut(), dimension, position), Some(stone));
}

#[test]
fn an_edit_where_nothing_is_loaded_or_outside_the_heights_comes_back() {
    let (mut app, dimension) = world(2);
    listen::<BlockRefused>(&mut app);
    start(&mut app);
    update(&mut app, 20);
    let stone = id_of(app.world(), "terrane:stone");
    let far = SetBlock { dimension, position: BlockPos::new(100_000, 0, 0), block: stone };
    let high = SetBlock { dimension, position: BlockPos::new(0, 320, 0), block: stone };
    app.world_mut().write_message(far);
    app.world_mut().write_message(high);
    update(&mut app, 4);
    let refused = heard::<BlockRefused>(&app);
    assert_eq!(refused.iter().map(|refused| refused.request).collect::<Vec<_>>(), [far, high]);
    assert!(refused[1].error.to_string().contains("-64..320"), "{}", refused[1].error);
}

/// Promise, worlds: A system in a region can read and write only the blocks of its own region.
#[test]
fn a_system_in_a_region_reads_and_writes_its_own_blocks_only() {
    #[derive(Resource, Default)]
    struct Done(bool);
    fn build(mut blocks: RegionBlocks, types: Res<BlockTypes>, mut done: ResMut<Done>) -> Result {
        let home = BlockPos::new(4, 20, 4);
        if done.0 || !blocks.contains(home) {
            return Ok(());
        }
        done.0 = true;
        let (stone, grass) = (types.id("terrane:stone").unwrap(), types.id("terrane:grass").unwrap());
        assert_eq!(blocks.surface(4, 4), Some(BlockPos::new(4, 0, 4)));
        assert_eq!(blocks.block(BlockPos::new(4, 0, 4))?, grass);
        assert_eq!(blocks.set_block(home, stone)?, BlockId::AIR);
        assert_eq!(blocks.block(home)?, stone);
        assert_eq!(blocks.surface(4, 4), Some(home));
        let elsewhere = BlockPos::new(1 << 20, 0, 0);
        assert!(!blocks.contains(elsewhere));
        assert!(blocks.block(elsewhere).is_err());
        assert!(blocks.set_block(elsewhere, stone).is_err());
        Ok(())
    }
    let (mut app, dimension) = world(2);
    app.add_region_plugins(|region| {
        region.init_resource::<Done>().add_systems(RegionTick, build);
    });
    start(&mut app);
    update(&mut app, 20);
    let stone = id_of(app.world(), "terrane:stone");
    assert_eq!(block_at(app.world_mut(), dimension, BlockPos::new(4, 20, 4)), Some(stone));
}

/// Promise, messages: A message to a place loads that place.
#[test]
fn code_sent_to_a_place_that_is_not_loaded_runs_there_once() {
    #[derive(Resource, Clone, Default)]
    struct Runs(std::sync::Arc<std::sync::Mutex<Vec<(RegionId, bool)>>>);
    let (mut app, dimension) = world(1);
    let runs = Runs::default();
    start(&mut app);
    update(&mut app, 5);
    let far = BlockPos::new(-5_000, 7, 3_000);
    let report = runs.clone();
    app.world_mut().commands().run_in_region(dimension, far, move |region: &mut World| {
        let loaded = region.resource::<RegionColumns>().contains(far.column());
        report.0.lock().unwrap().push((region.resource::<RegionInfo>().region, loaded));
    });
    app.world_mut().flush();
    update(&mut app, 40);
    let runs = runs.0.lock().unwrap();
    assert_eq!(runs.len(), 1);
    assert!(runs[0].1, "the column is loaded when the code runs");
    // No viewer holds the place any more.
    assert_eq!(block_at(app.world_mut(), dimension, far), None);
}

#[test]
fn code_that_is_sent_in_startup_runs_too() {
    fn begin(mut commands: Commands, dimensions: Res<Dimensions>) {
        commands.spawn(Dimension::new("overworld", Flat::new()));
        let overworld = dimensions.id("overworld");
        let place = BlockPos::new(0, 5, 0);
        commands.run_in_region(overworld, place, move |region: &mut World| {
            region.spawn((walker("early", 0.0), Viewer::new().with_radius(1), Position::new(overworld, place)));
        });
    }
    let mut app = game(lockstep());
    app.add_systems(Startup, begin);
    start(&mut app);
    update(&mut app, 15);
    assert_eq!(walkers(app.world_mut()).len(), 1);
}
