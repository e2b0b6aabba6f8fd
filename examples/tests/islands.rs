//! The game of islands is played by its keys: the player walks, digs, builds a bridge, is saved, and goes on.

#[path = "../islands/game/mod.rs"]
mod game;

use bevy::ecs::system::RunSystemOnce;
use bevy::input::InputSystems;
use bevy::input::mouse::AccumulatedMouseMotion;
use bevy_terrane::chunk::RayHit;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::{KeyValueStore, MemoryStore, StorageConfig};
use bevy_terrane::testing;
use game::bag::{BLOCKS, Bag, Chosen, Items};
use game::chests::{self, CHEST, Transfer};
use game::hand::Aim;
use game::land;
use std::sync::Arc;
use terrane_dev::FirstPersonPlugin;

/// The game without a window.
struct Play(App);

impl Play {
    fn open(store: &Arc<MemoryStore>) -> Self {
        let disk: Arc<dyn KeyValueStore> = store.clone();
        let plugin = TerranePlugin {
            basic_blocks: false,
            tick_mode: TickMode::Lockstep,
            ..TerranePlugin::stored_in(StorageConfig::Custom(disk))
        };
        let mut app = App::new();
        app.add_plugins((MinimalPlugins, plugin, FirstPersonPlugin));
        app.init_resource::<ButtonInput<KeyCode>>()
            .init_resource::<ButtonInput<MouseButton>>()
            .init_resource::<AccumulatedMouseMotion>()
            .configure_sets(PreUpdate, InputSystems);
        game::build(&mut app).unwrap();
        testing::start(&mut app);
        let mut play = Self(app);
        testing::update_until(&mut play.0, "the player is there", |world| {
            world.query::<&OwnBody>().iter(world).any(|own| own.state().is_some())
        });
        play.update(60);
        play
    }

    /// Updates; keys stay down, and are pressed only in the first of these updates.
    fn update(&mut self, times: usize) {
        for _ in 0..times {
            testing::update(&mut self.0, 1);
            self.0.world_mut().resource_mut::<ButtonInput<KeyCode>>().clear();
            self.0.world_mut().resource_mut::<ButtonInput<MouseButton>>().clear();
        }
    }

    fn hold(&mut self, keys: &[KeyCode], ticks: usize) {
        let input = |play: &mut Self, change: fn(&mut ButtonInput<KeyCode>, KeyCode)| {
            let mut input = play.0.world_mut().resource_mut::<ButtonInput<KeyCode>>();
            keys.iter().for_each(|key| change(&mut input, *key));
        };
        input(self, |input, key| input.press(key));
        self.update(ticks);
        input(self, |input, key| input.release(key));
    }

    fn click(&mut self, button: MouseButton) {
        self.0.world_mut().resource_mut::<ButtonInput<MouseButton>>().press(button);
        self.update(1);
        self.0.world_mut().resource_mut::<ButtonInput<MouseButton>>().release(button);
        self.update(5);
    }

    fn look(&mut self, yaw: f32, pitch: f32) {
        let mut own = self.0.world_mut().query_filtered::<&mut Intent, With<OwnBody>>();
        own.single_mut(self.0.world_mut()).unwrap().look = Vec2::new(yaw, pitch);
        self.update(2);
    }

    fn intent(&mut self) -> Intent {
        let mut own = self.0.world_mut().query_filtered::<&Intent, With<OwnBody>>();
        *own.single(self.0.world()).unwrap()
    }

    fn state(&mut self) -> (Position, Grounded) {
        let mut own = self.0.world_mut().query::<&OwnBody>();
        let state = own.single(self.0.world()).unwrap().state().unwrap();
        (state.position, state.grounded)
    }

    fn bag(&mut self) -> Bag {
        let mut bags = self.0.world_mut().query_filtered::<&Bag, With<Player>>();
        bags.single(self.0.world()).unwrap().clone()
    }

    fn player(&mut self) -> uuid::Uuid {
        let mut own = self.0.world_mut().query::<&OwnBody>();
        own.single(self.0.world()).unwrap().id()
    }

    /// The block at which the hand aims.
    fn aim(&self) -> Option<RayHit> {
        self.0.world().resource::<Aim>().0
    }

    fn kind(&self, name: &str) -> usize {
        BLOCKS.iter().position(|block| *block == name).unwrap()
    }

    /// The items in a chest, as they are shown.
    fn in_chest(&mut self, chest: BlockPos) -> Items {
        let dimension = self.dimension();
        let find =
            move |blocks: PublishedBlocks, types: Res<BlockTypes>| chests::items(&blocks, &types, dimension, chest);
        self.0.world_mut().run_system_once(find).unwrap().expect("a chest")
    }

    fn dimension(&self) -> DimensionId {
        self.0.world().resource::<Dimensions>().id(land::NAME)
    }

    fn block(&self, position: BlockPos) -> String {
        let block = testing::block_at(self.0.world(), self.dimension(), position).expect("it is loaded");
        self.0.world().resource::<BlockTypes>().block(block).name().to_owned()
    }

    fn set(&mut self, position: BlockPos, name: &str) {
        let (dimension, block) = (self.dimension(), testing::id_of(self.0.world(), name));
        self.0.world_mut().write_message(SetBlock { dimension, position, block });
    }
}

fn number(bag: &Bag, name: &str) -> u16 {
    bag.0[BLOCKS.iter().position(|block| *block == name).unwrap()]
}

/// Promise, examples: The game of islands can be played: walking, digging, building, saving and going on.
#[test]
fn a_player_walks_digs_builds_a_bridge_and_goes_on_after_a_restart() {
    let store = Arc::new(MemoryStore::new());
    let mut play = Play::open(&store);
    let (start, grounded) = play.state();
    assert!(grounded.ground, "{start:?} {grounded:?}");

    // A platform, and a gap to the north of it (-z), so that the way does not depend on the hills. Sand falls onto it.
    let middle = start.block.offset(0, 4, 0);
    for (x, y, z) in (-3..=3).flat_map(|x| (-8..=8).flat_map(move |z| (-4..8).map(move |y| (x, y, z)))) {
        let is_platform = (-1..=0).contains(&y) && z >= 0;
        play.set(middle.offset(x, y, z), if is_platform { "terrane:stone" } else { "terrane:air" });
    }
    play.update(2);
    play.set(middle.offset(2, 4, 4), "terrane:sand");
    testing::in_region(&mut play.0, start.dimension, middle, {
        let place = Position::new(start.dimension, middle.offset(0, 1, 6));
        move |region: &mut World| {
            let mut players = region.query_filtered::<&mut Position, With<Player>>();
            players.single_mut(region).map(|mut position| *position = place).unwrap();
        }
    });
    play.update(40);
    assert_eq!(play.state().0.block, middle.offset(0, 1, 6), "it stands on the platform");
    assert_eq!(play.block(middle.offset(2, 1, 4)), "terrane:sand");
    assert_eq!(play.block(middle.offset(2, 4, 4)), "terrane:air");

    // It digs down, falls into the hole, and jumps out of it.
    play.look(0.0, -1.5);
    play.click(MouseButton::Left);
    play.update(10);
    assert_eq!(number(&play.bag(), "terrane:stone"), 1);
    assert_eq!(play.state().0.block, middle.offset(0, 0, 6));
    play.hold(&[KeyCode::KeyW, KeyCode::Space], 16);
    play.update(10);
    let walked = play.state().0.block;
    assert!(walked.y == middle.y + 1 && walked.z < middle.z + 6, "{walked:?}");

    // It sneaks to the edge, and sets one block of wood after the other into the gap.
    play.hold(&[KeyCode::Digit5], 1);
    assert_eq!(BLOCKS[play.0.world().resource::<Chosen>().0], "terrane:wood");
    for number in 1..=3 {
        play.look(0.0, 0.0);
        play.hold(&[KeyCode::KeyW, KeyCode::ShiftLeft], 120);
        let edge = play.state().0;
        assert_eq!(edge.block, middle.offset(0, 1, -number), "it stands over the edge, and does not fall");
        play.look(std::f32::consts::PI, -1.42);
        play.click(MouseButton::Right);
        assert_eq!(play.block(middle.offset(0, 0, -number)), "terrane:wood", "{edge:?}");
    }
    assert_eq!(number(&play.bag(), "terrane:wood"), 13);

    // It sets a chest behind itself. While there is something in it, the chest cannot be dug.
    play.hold(&[KeyCode::Digit7], 1);
    play.look(std::f32::consts::PI, -0.9);
    let chest = play.aim().expect("something to build on").before();
    play.click(MouseButton::Right);
    assert_eq!((play.block(chest).as_str(), number(&play.bag(), CHEST)), (CHEST, 0));
    let (wood, player) = (play.kind("terrane:wood"), play.player());
    testing::act(&mut play.0, player, Transfer { chest, kind: wood, into_chest: true });
    play.update(1);
    assert_eq!((play.in_chest(chest)[wood], number(&play.bag(), "terrane:wood")), (1, 12), "shown at once");
    play.update(5);
    play.click(MouseButton::Left);
    assert_eq!((play.block(chest).as_str(), play.in_chest(chest)[wood]), (CHEST, 1));
    testing::act(&mut play.0, player, Transfer { chest, kind: wood, into_chest: false });
    play.update(5);
    assert_eq!(number(&play.bag(), "terrane:wood"), 13);
    play.click(MouseButton::Left);
    assert_eq!((play.block(chest).as_str(), number(&play.bag(), CHEST)), ("terrane:air", 1));
    let sheep =
        |play: &mut Play| play.0.world_mut().query::<(&game::sheep::Sheep, &Mirror)>().iter(play.0.world()).count();
    assert_eq!(sheep(&mut play), 8);

    // After a restart it is there, with its bag, and looks where it looked.
    let (there, bag, look) = (play.state().0, play.bag(), play.intent().look);
    testing::save(&mut play.0);
    let mut play = testing::reopen(play.0, || Play::open(&store));
    assert_eq!((play.state().0, play.bag(), play.intent().look), (there, bag, look));
    assert_eq!(sheep(&mut play), 8);
    assert_eq!(play.block(middle.offset(0, 0, -3)), "terrane:wood");
    play.hold(&[KeyCode::KeyW], 20);
    assert!(play.state().0.block.z > there.block.z, "it walks on, back to the platform");
}
