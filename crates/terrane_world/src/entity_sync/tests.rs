//! A server and its clients, without a network.

mod bounds;
mod model;

use super::*;
use crate::space::{BlockPos, ChunkPos};
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

const TICK: Duration = Duration::from_millis(50);

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn at(x: i64, y: i64, z: i64) -> EntityPlace {
    EntityPlace { block: BlockPos::new(x, y, z), offset: [0.25, 0.5, 0.75], look: None }
}

fn types() -> Vec<String> {
    vec!["game::Name".into(), "game::Health".into()]
}

/// An entity as a client shows it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Shown {
    place: EntityPlace,
    clock: Duration,
    components: BTreeMap<String, Vec<u8>>,
}

/// A client and what it shows.
#[derive(Debug, Default)]
struct Player {
    client: EntityClient,
    shown: BTreeMap<Uuid, Shown>,
    bytes: usize,
    moves: usize,
}

impl Player {
    fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        assert_eq!(self.client.receive(bytes), Ok(true));
        while let Some(news) = self.client.next_news() {
            match news {
                EntityNews::Appeared { id, place, clock, components } => {
                    let shown = Shown { place, clock, components: components.into_iter().collect() };
                    self.shown.insert(id, shown);
                }
                EntityNews::Moved { id, place, clock, .. } => {
                    let shown = self.shown.get_mut(&id).unwrap();
                    assert!(shown.clock < clock);
                    (shown.place, shown.clock) = (place, clock);
                    self.moves += 1;
                }
                EntityNews::Changed { id, components } => {
                    let shown = self.shown.get_mut(&id).unwrap();
                    for (name, value) in components {
                        match value {
                            Some(value) => _ = shown.components.insert(name, value),
                            // It may have come and gone between two messages.
                            None => _ = shown.components.remove(&name),
                        }
                    }
                }
                EntityNews::Left(id) => assert!(self.shown.remove(&id).is_some(), "{id} leaves twice"),
            }
        }
    }
}

/// A server, and players by their numbers.
struct Game {
    server: EntityServer,
    players: BTreeMap<u64, Player>,
    now: Duration,
}

impl Game {
    fn new() -> Self {
        Self { server: EntityServer::new(types()), players: BTreeMap::new(), now: Duration::from_secs(100) }
    }

    fn join(&mut self, player: u64, limits: EntityLimits, at: ChunkPos) {
        self.server.connect(player, limits);
        self.server.look(player, at, None);
        self.players.insert(player, Player::default());
    }

    /// A tick. Packets for which `is_lost` returns `true` do not arrive.
    fn tick(&mut self, mut is_lost: impl FnMut() -> bool) {
        self.now += TICK;
        for ForClient { client, message, packets } in self.server.tick(self.now, self.now) {
            let player = self.players.get_mut(&client).unwrap();
            message.iter().for_each(|message| player.take(message));
            packets.iter().filter(|_| !is_lost()).for_each(|packet| player.take(packet));
        }
    }

    fn run(&mut self, ticks: u32) {
        (0..ticks).for_each(|_| self.tick(|| false));
    }

    fn put(&mut self, id: Uuid, place: EntityPlace, changes: &[(u16, Option<&[u8]>)]) {
        let changes = changes.iter().map(|(number, value)| (*number, value.map(<[u8]>::to_vec))).collect();
        // An entity has one place at a time.
        self.now += Duration::from_millis(1);
        self.server.put(id, place, self.now, changes);
    }
}

fn blocks_between(a: &EntityPlace, b: &EntityPlace) -> f64 {
    let along = |a: i64, b: i64, from: f32, to: f32| a as f64 - b as f64 + f64::from(from) - f64::from(to);
    let [x, y, z] = [
        along(a.block.x, b.block.x, a.offset[0], b.offset[0]),
        along(a.block.y, b.block.y, a.offset[1], b.offset[1]),
        along(a.block.z, b.block.z, a.offset[2], b.offset[2]),
    ];
    (x * x + y * y + z * z).sqrt()
}

/// Promise, entity sync: A client sees the entities around it, their changed and their removed components, and when they are gone.
#[test]
fn entities_come_change_and_go() {
    let mut game = Game::new();
    game.put(id(1), at(3, 64, 5), &[(0, Some(b"Ann")), (1, Some(b"20"))]);
    game.put(id(2), at(3_000, 64, 5), &[(0, Some(b"far"))]);
    game.join(7, EntityLimits::default(), ChunkPos::new(0, 4, 0));
    game.run(1);
    let shown = |game: &Game, number: u128| game.players[&7].shown.get(&id(number)).cloned();
    let ann = shown(&game, 1).unwrap();
    assert_eq!(
        ann.components,
        [("game::Name".into(), b"Ann".to_vec()), ("game::Health".into(), b"20".to_vec())].into()
    );
    assert!(blocks_between(&ann.place, &at(3, 64, 5)) < 0.006);
    assert_eq!(shown(&game, 2), None);
    // A component changes twice and another is removed; the entity walks into another cell.
    game.put(id(1), at(3, 64, 5), &[(1, Some(b"19"))]);
    game.put(id(1), at(17, 64, 5), &[(1, Some(b"18")), (0, None)]);
    game.run(1);
    let ann = shown(&game, 1).unwrap();
    assert_eq!(ann.components, [("game::Health".into(), b"18".to_vec())].into());
    assert!(blocks_between(&ann.place, &at(17, 64, 5)) < 0.006);
    // Out of sight, and back.
    game.put(id(1), at(170, 64, 5), &[]);
    game.run(1);
    assert_eq!(shown(&game, 1), None);
    game.put(id(1), at(20, 70, 5), &[(0, Some(b"Bob"))]);
    game.run(1);
    assert_eq!(shown(&game, 1).unwrap().components.len(), 2);
    game.server.remove(id(1));
    game.run(1);
    assert_eq!(shown(&game, 1), None);
    // The client walks to the other.
    game.server.look(7, ChunkPos::new(187, 4, 0), None);
    game.run(1);
    assert!(shown(&game, 2).is_some());
}

#[test]
fn a_client_does_not_see_its_own_entity() {
    let mut game = Game::new();
    game.put(id(1), at(3, 64, 5), &[(0, Some(b"own"))]);
    game.join(7, EntityLimits::default(), ChunkPos::new(0, 4, 0));
    game.server.look(7, ChunkPos::new(0, 4, 0), Some(id(1)));
    game.run(2);
    assert!(game.players[&7].shown.is_empty());
    game.put(id(1), at(30, 64, 5), &[(0, Some(b"elsewhere"))]);
    game.run(2);
    game.server.look(7, ChunkPos::new(0, 4, 0), Some(id(2)));
    game.run(1);
    assert_eq!(game.players[&7].shown.len(), 1);
    game.server.look(7, ChunkPos::new(0, 4, 0), Some(id(1)));
    game.run(1);
    assert!(game.players[&7].shown.is_empty());
}

/// Promise, entity sync: After a lost connection, packets show nothing before the next server has told of its entities; what it does not
/// have leaves.
#[test]
fn packets_of_the_next_server_wait_for_its_first_message() {
    let mut game = Game::new();
    game.put(id(1), at(3, 64, 5), &[(0, Some(b"Ann"))]);
    game.join(7, EntityLimits::default(), ChunkPos::new(0, 4, 0));
    game.run(1);
    let mut ann_alone = game.players.remove(&7).unwrap();
    ann_alone.client.disconnected();
    // On the next server, Bob has Ann's number.
    let mut next = Game::new();
    next.put(id(2), at(6, 64, 5), &[(0, Some(b"Bob"))]);
    next.server.connect(7, EntityLimits::default());
    next.server.look(7, ChunkPos::new(0, 4, 0), None);
    let mut sent = Vec::new();
    for step in 0..5 {
        next.put(id(2), at(6 + step, 64, 5), &[]);
        next.now += TICK;
        sent.extend(next.server.tick(next.now, next.now));
    }
    let (shown, moves) = (ann_alone.shown.clone(), ann_alone.moves);
    let packets: Vec<_> = sent.iter().flat_map(|sent| &sent.packets).collect();
    assert!(!packets.is_empty());
    packets.iter().for_each(|packet| ann_alone.take(packet));
    assert_eq!((&ann_alone.shown, ann_alone.moves), (&shown, moves));
    sent.iter().flat_map(|sent| &sent.message).for_each(|message| ann_alone.take(message));
    assert_eq!(ann_alone.shown.keys().collect::<Vec<_>>(), [&id(2)]);
    packets.iter().for_each(|packet| ann_alone.take(packet));
    assert!(ann_alone.moves > moves);
}

/// Promise, entity sync: Places are exact to half a 256th of a block at any distance, and looks to a 256th of a turn.
#[test]
fn places_are_exact_everywhere() {
    let mut game = Game::new();
    for (number, far) in [(1, 0), (2, 30_000_000), (3, -(1 << 60))] {
        let cell = BlockPos::new(far, -70, far + 9).chunk();
        game.join(number, EntityLimits::default(), cell);
        let mut place = EntityPlace { block: BlockPos::new(far, -70, far + 9), offset: [0.0, 0.999, 1.0], look: None };
        game.put(id(number.into()), place, &[]);
        for step in 0..40_u8 {
            place.offset = [f32::from(step) / 40.0, 1.0 - f32::from(step) / 40.0, 0.5];
            place.look = Some([f32::from(step) - 20.0, f32::from(step) / 20.0 - 1.0]);
            game.put(id(number.into()), place, &[]);
            game.run(1);
            let shown = game.players[&number].shown[&id(number.into())].place;
            assert!(blocks_between(&shown, &place) < 0.5 / 256.0 * 1.8, "{shown:?} {place:?}");
            let ([turn, rise], [left, up]) = (shown.look.unwrap(), place.look.unwrap());
            let apart = (turn - left).rem_euclid(std::f32::consts::TAU);
            assert!(apart.min(std::f32::consts::TAU - apart) < 0.013, "{apart}");
            assert!((rise - up).abs() < 0.013);
        }
    }
}
