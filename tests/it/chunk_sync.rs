//! Clients of a server see its columns, and receive only the chunks that they lack.

use crate::light::wrong_light;
use crate::support::*;
use bevy_terrane::chunk_sync::SyncLimits;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{ChunkSyncClient, ChunkSyncPeer, ChunksAnswer, DimensionOpen, Pregeneration};
use std::path::Path;

/// The number of the server's dimension on clients.
const REMOTE: DimensionId = DimensionId(1 << 32);

struct Server {
    app: App,
    dimension: DimensionId,
}

/// A server with hills around a viewer.
fn server(heights: std::ops::Range<i64>) -> Server {
    let mut app = game(lockstep());
    let dimension = Dimension::new("overworld", Hills::seeded(3)).with_height(heights);
    let dimension = spawn_dimension(&mut app, dimension);
    viewer(&mut app, dimension, 0.0, 0.0, 4);
    start(&mut app);
    update(&mut app, 60);
    Server { app, dimension }
}

impl Server {
    /// A client without a viewer, which may look anywhere.
    fn connect(&mut self) -> Entity {
        let peer = self.peer().untied();
        self.app.world_mut().spawn(peer).id()
    }

    fn peer(&self) -> ChunkSyncPeer {
        let limits = SyncLimits { bytes_per_second: u64::MAX >> 1, ..SyncLimits::default() };
        ChunkSyncPeer::new(self.dimension).with_limits(limits)
    }

    fn viewer(&mut self) -> Entity {
        let mut viewers = self.app.world_mut().query_filtered::<Entity, With<Viewer>>();
        viewers.single(self.app.world()).expect("one viewer")
    }

    fn build(&mut self, position: BlockPos) {
        let block = id_of(self.app.world(), "terrane:stone");
        self.app.world_mut().write_message(SetBlock { dimension: self.dimension, position, block });
        update(&mut self.app, 4);
    }
}

struct Client {
    app: App,
    view: Entity,
    peer: Option<Entity>,
}

/// A client with other block ids than the server.
fn client(cache: &Path, radius: u32) -> Client {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, TerranePlugin { basic_blocks: false, ..lockstep() }));
    for name in ["game:own", "terrane:water", "terrane:dirt", "terrane:stone", "terrane:grass", "terrane:sand"] {
        app.register_block(BlockType::new(name)).unwrap();
    }
    let view = ChunkSyncClient::new(REMOTE).with_radius(radius).with_vertical_radius(2).with_cache(cache, 64 << 20);
    let view = app.world_mut().spawn((view, Transform::default())).id();
    start(&mut app);
    Client { app, view, peer: None }
}

impl Client {
    fn view(&mut self) -> Mut<'_, ChunkSyncClient> {
        self.app.world_mut().get_mut(self.view).expect("a view")
    }

    fn columns(&self) -> usize {
        self.app.world().resource::<PublishedColumns>().iter().filter(|(of, _)| *of == REMOTE).count()
    }

    fn end(mut self) {
        self.app.world_mut().write_message(AppExit::Success);
        self.app.update();
    }

    /// Delivers messages until `done`.
    fn talk(&mut self, server: &mut Server, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let peer = *self.peer.get_or_insert_with(|| server.connect());
        update_until(&mut server.app, what, |world| {
            let mut peer = world.get_mut::<ChunkSyncPeer>(peer).unwrap();
            peer.take_messages().into_iter().for_each(|message| self.view().receive(message));
            self.app.update();
            self.view().take_messages().iter().for_each(|message| peer.receive(message).unwrap());
            done(self)
        });
    }

    /// Runs until the server has answered for everything nearby.
    fn settle(&mut self, server: &mut Server) {
        // So that the client knows its position.
        self.app.update();
        self.talk(server, "all is answered", |client| client.view().is_complete());
        update(&mut self.app, 20);
    }
}

fn names(app: &App, dimension: DimensionId, column: ColumnPos, blocks: impl Iterator<Item = BlockPos>) -> Vec<String> {
    let types = app.world().resource::<BlockTypes>();
    let published = app.world().resource::<PublishedColumns>();
    let column = published.column(dimension, column).unwrap_or_else(|| panic!("{column} is not there"));
    blocks.map(|block| types.block(column.block(block)).name().to_owned()).collect()
}

/// Compares some blocks of each column by name.
fn assert_same(server: &Server, client: &Client, radius: i64) {
    let id = server.dimension;
    for column in (-radius..=radius).flat_map(|x| (-radius..=radius).map(move |z| ColumnPos::new(x, z))) {
        if column.x.pow(2) + column.z.pow(2) > radius.pow(2) {
            continue;
        }
        let blocks = || (-32..40).map(|y| BlockPos::new(column.x * 16 + 3, y, column.z * 16 + (y & 15)));
        let there = names(&server.app, id, column, blocks());
        assert!(there.iter().any(|name| name != "terrane:air"));
        assert_eq!(names(&client.app, REMOTE, column, blocks()), there, "{column}");
    }
}

/// Promise, multiplayer: A client sees the server's columns, and every change of them, as published columns of its own.
/// Promise, multiplayer: A client computes the light of the columns that it sees.
/// Promise, multiplayer: A client and its server match blocks by their names.
/// Promise, chunk sync: A client asks for whole columns in a dimension of up to 64 chunks of height.
#[test]
fn a_client_sees_the_ground_of_the_server_and_every_change() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = server(-64..320);
    let mut client = client(&folder.path().join("cache"), 3);
    client.settle(&mut server);
    assert_eq!(client.columns(), 29);
    assert_same(&server, &client, 3);
    client.talk(&mut server, "the light is right", |client| wrong_light(client.app.world(), REMOTE, -4..20).is_none());
    // Built while the client is watching.
    let high = BlockPos::new(5, 100, 5);
    server.build(high);
    client.talk(&mut server, "the block is seen", |client| {
        names(&client.app, REMOTE, high.column(), [high].into_iter()) == ["terrane:stone"]
    });
    client.talk(&mut server, "its shadow is seen", |client| wrong_light(client.app.world(), REMOTE, -4..20).is_none());
    let published = client.app.world().resource::<PublishedColumns>();
    let light = published.light(REMOTE, high.column()).and_then(|light| light.levels(high.offset(0, -1, 0)));
    assert_eq!(light, Some([14, 0]));
    let progress = client.view().progress();
    assert_eq!((progress.received, progress.changes), (29 * 24, 1), "the block is sent, and not its chunk");
    // The client moves away, and the columns behind it are unloaded.
    client.app.world_mut().get_mut::<Transform>(client.view).unwrap().translation.x = -200.0;
    client.settle(&mut server);
    assert!(client.app.world().resource::<PublishedColumns>().column(REMOTE, ColumnPos::new(3, 0)).is_none());
    // The client leaves.
    client.app.world_mut().despawn(client.view);
    update(&mut client.app, 3);
    assert_eq!(client.columns(), 0);
}

/// Promise, multiplayer: A changed block is sent to all clients without a look-up of its chunk. A change of light is not sent.
#[test]
fn changed_blocks_are_sent_without_a_look_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = server(-64..320);
    let mut clients = ["one", "two", "three"].map(|name| client(&folder.path().join(name), 2));
    clients.iter_mut().for_each(|client| client.settle(&mut server));
    listen::<ChunksAnswer>(&mut server.app);
    update(&mut server.app, 10);
    let before = heard::<ChunksAnswer>(&server.app).len();
    // It throws a long shadow.
    let high = BlockPos::new(5, 100, 5);
    server.build(high);
    update_until(&mut server.app, "the shadow is there", |world| {
        let light = world.resource::<PublishedColumns>().light(server.dimension, high.column());
        light.and_then(|light| light.levels(high.offset(0, -1, 0))) == Some([14, 0])
    });
    update(&mut server.app, 20);
    assert_eq!(heard::<ChunksAnswer>(&server.app).len(), before);
    for mut client in clients {
        client.talk(&mut server, "the block is seen", |client| {
            names(&client.app, REMOTE, high.column(), [high].into_iter()) == ["terrane:stone"]
        });
    }
}

/// Promise, multiplayer: A client is sent only the chunks that it does not have.
/// Promise, multiplayer: A client sees its cached chunks before the server's first message.
#[test]
fn the_second_time_the_cache_is_seen_at_once_and_only_changes_are_sent() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let mut server = server(-64..320);
    let mut first = client(&cache, 3);
    first.settle(&mut server);
    let before = first.view().progress();
    first.end();
    let high = BlockPos::new(5, 100, 5);
    server.build(high);

    let mut second = client(&cache, 3);
    // No message has been exchanged yet.
    update_until(&mut second.app, "the cache is seen", |world| world.resource::<PublishedColumns>().len() == 29);
    assert_eq!(names(&second.app, REMOTE, high.column(), [high].into_iter()), ["terrane:air"]);
    second.settle(&mut server);
    assert_same(&server, &second, 3);
    assert_eq!(names(&second.app, REMOTE, high.column(), [high].into_iter()), ["terrane:stone"]);
    let after = second.view().progress();
    assert_eq!((after.cached, after.current, after.received), (29 * 24, 29 * 24 - 1, 1));
    assert!(after.message_bytes * 4 < before.message_bytes, "{} of {}", after.message_bytes, before.message_bytes);
    second.end();
}

#[test]
fn a_client_gets_unloaded_columns_from_the_store_and_new_ones_once_generated() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = server(-64..320);
    let high = BlockPos::new(5, 100, 5);
    server.build(high);
    let viewer = server.viewer();
    move_viewer(&mut server.app, viewer, 10_000.0, 0.0);
    let dimension = server.dimension;
    update_until(&mut server.app, "the column is evicted", |world| block_at(world, dimension, high).is_none());

    let mut client = client(&folder.path().join("cache"), 3);
    client.settle(&mut server);
    assert_eq!(client.columns(), 29);
    assert_eq!(names(&client.app, REMOTE, high.column(), [high].into_iter()), ["terrane:stone"]);
    // No client was there before.
    client.app.world_mut().get_mut::<Transform>(client.view).unwrap().translation.x = -2_000.0;
    client.settle(&mut server);
    assert_eq!(client.columns(), 0);
    move_viewer(&mut server.app, viewer, -2_000.0, 0.0);
    client.talk(&mut server, "the new ground is seen", |client| client.columns() == 29);
}

/// Promise, multiplayer: A client receives the chunks that its viewer sees, and no others.
/// Promise, chunk sync: Questions about chunks outside of a client's view wait until they are in view.
#[test]
fn a_client_gets_only_the_chunks_near_its_viewer() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = server(-64..320);
    let (viewer, dimension, high) = (server.viewer(), server.dimension, BlockPos::new(5, 100, 5));
    move_viewer(&mut server.app, viewer, 10_000.0, 0.0);
    update_until(&mut server.app, "the column is evicted", |world| block_at(world, dimension, high).is_none());
    // The client looks at stored columns far from its viewer.
    let mut client = client(&folder.path().join("cache"), 20);
    let peer = server.peer();
    server.app.world_mut().entity_mut(viewer).insert(peer);
    client.peer = Some(viewer);
    let mut rounds = 0;
    client.talk(&mut server, "it has asked", |client| {
        rounds += 1;
        client.view().progress().wanted > 0 && rounds > 100
    });
    assert_eq!((client.view().progress().answered, client.columns()), (0, 0));
    // Its view is cut to that of its viewer, and is complete when the viewer is there.
    move_viewer(&mut server.app, viewer, 0.0, 0.0);
    client.settle(&mut server);
    assert_eq!(client.columns(), 49);
    assert_same(&server, &client, 4);
    // The game increases the player's viewing distance.
    server.app.world_mut().get_mut::<Viewer>(viewer).unwrap().radius = 6;
    client.talk(&mut server, "it sees farther too", |client| client.columns() == 113);
    client.settle(&mut server);
    assert_same(&server, &client, 6);
}

#[test]
fn of_a_tall_dimension_the_heights_around_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = server(-100_000..100_000);
    let mut client = client(&folder.path().join("cache"), 2);
    client.settle(&mut server);
    assert_same(&server, &client, 2);
    let column = |client: &Client| {
        let published = client.app.world().resource::<PublishedColumns>();
        published.column(REMOTE, ColumnPos::new(0, 0)).cloned()
    };
    let seen = column(&client).unwrap();
    assert!(seen.is_loaded(2) && seen.is_loaded(-2) && !seen.is_loaded(5));
    // Far below, nothing is generated yet.
    client.app.world_mut().get_mut::<Transform>(client.view).unwrap().translation.y = -5_000.0;
    client.settle(&mut server);
    assert_eq!(column(&client), None);
}

/// Promise, chunk sync: A client whose chunk was reported missing is sent the chunk once it exists.
#[test]
fn a_client_gets_generated_columns_once_they_are_stored() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = server(-64..320);
    let mut client = client(&folder.path().join("cache"), 2);
    client.app.world_mut().get_mut::<Transform>(client.view).unwrap().translation.x = -2_000.0;
    client.settle(&mut server);
    assert_eq!(client.columns(), 0);
    let area = ColumnArea::Disc { center: ColumnPos::new(-125, 0), radius: 6 };
    server.app.world_mut().spawn(Pregeneration { dimension: server.dimension, area });
    client.talk(&mut server, "the new ground is seen", |client| client.columns() == 13);
}

#[test]
fn a_client_that_comes_back_at_once_finds_its_cache() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let mut server = server(-64..320);
    let mut client = client(&cache, 3);
    client.settle(&mut server);
    // Another client takes its place: the old one may still be writing.
    let again = |dimension| ChunkSyncClient::new(dimension).with_radius(3).with_cache(&cache, 64 << 20);
    const OTHER: DimensionId = DimensionId(1 << 33);
    client.app.world_mut().entity_mut(client.view).insert(again(OTHER));
    update_until(&mut client.app, "the cache is seen", |world| {
        let published = world.resource::<PublishedColumns>();
        published.iter().count() == 29 && published.iter().all(|(of, _)| of == OTHER)
    });
    assert_eq!(client.app.world().get::<DimensionOpen>(client.view).map(|open| open.id), Some(OTHER));
    client.app.world_mut().entity_mut(client.view).remove::<ChunkSyncClient>();
    update(&mut client.app, 3);
    assert_eq!(client.app.world().resource::<PublishedColumns>().len(), 0);
    assert_eq!(client.app.world().get::<DimensionOpen>(client.view), None);
}

#[test]
fn a_client_that_leaves_at_once_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let mut server = server(-64..320);
    let mut first = client(&cache, 3);
    first.settle(&mut server);
    first.end();
    let mut second = client(&cache, 3);
    update_until(&mut second.app, "something is seen", |world| !world.resource::<PublishedColumns>().is_empty());
    second.app.world_mut().despawn(second.view);
    update(&mut second.app, 10);
    assert_eq!(second.columns(), 0);
}

#[test]
fn a_client_gets_a_reopened_dimension_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = server(-64..320);
    let mut client = client(&folder.path().join("cache"), 2);
    client.settle(&mut server);
    let dimension = Dimension::new("overworld", Hills::seeded(3));
    let entity = dimension_entity(server.app.world_mut(), server.dimension);
    server.app.world_mut().entity_mut(entity).remove::<Dimension>();
    update(&mut server.app, 20);
    server.app.world_mut().entity_mut(entity).insert(dimension);
    update(&mut server.app, 60);
    let high = BlockPos::new(5, 100, 5);
    server.build(high);
    client.talk(&mut server, "the block is seen", |client| {
        let published = client.app.world().resource::<PublishedColumns>();
        published.column(REMOTE, high.column()).is_some_and(|column| column.block(high) != BlockId::AIR)
    });
    client.settle(&mut server);
    assert_same(&server, &client, 2);
}

#[test]
fn messages_of_a_client_are_checked() {
    let mut server = server(-64..320);
    let peer = server.connect();
    update(&mut server.app, 2);
    let mut peer = server.app.world_mut().get_mut::<ChunkSyncPeer>(peer).unwrap();
    assert!(peer.receive(b"GET / HTTP/1.1").is_err());
    assert!(peer.receive(&[]).is_err());
    update(&mut server.app, 3);
}
