//! The cost of a crowd, and messages of hostile sides.

use super::*;
use proptest::prelude::*;

/// A crowd in a town that walks in each tick, with this many players who all watch it. Returns the game after some seconds.
fn crowd(players: u64, limits: EntityLimits, seconds: u32) -> Game {
    let mut game = Game::new();
    let place = |player: u64, tick: u32| {
        let (x, z) = ((player * 37 % 128) as i64, (player * 53 % 127) as i64);
        let mut place = at(x, 64, z);
        place.offset[0] = (tick % 20) as f32 / 20.0;
        place
    };
    for player in 0..players {
        game.put(id(player.into()), place(player, 0), &[(0, Some(b"name"))]);
        game.join(player, limits, place(player, 0).cell());
        game.server.look(player, place(player, 0).cell(), Some(id(player.into())));
    }
    for tick in 0..20 * seconds {
        let (now, server) = (game.now, &mut game.server);
        (0..players).for_each(|player| server.put(id(player.into()), place(player, tick), now, Vec::new()));
        game.run(1);
    }
    game
}

/// Promise, entity sync: The places of a cell are encoded once for all clients: encodings do not grow with the number of clients.
#[test]
fn encodings_do_not_grow_with_clients_and_bytes_are_bounded() {
    let limits = EntityLimits { radius: 8, bytes_per_second: 6_000 };
    let [few, many] = [100, 400].map(|players| crowd(players, limits, 5));
    // There are 64 cells in the town, and four rates.
    assert!(
        many.server.encodings() <= few.server.encodings() * 2,
        "{} {}",
        few.server.encodings(),
        many.server.encodings()
    );
    for game in [&few, &many] {
        for player in game.players.values() {
            let places = player.bytes - game.players.len() * 40;
            assert!(places < 6_000 * 6, "{}", player.bytes);
        }
    }
    let moves = |game: &Game| game.players.values().map(|player| player.moves).sum::<usize>() / game.players.len();
    assert!(moves(&many) > 5 * 400 / 3, "each sees most of the crowd move each second: {}", moves(&many));
    // The nearest are seen more often than the others.
    let player = &many.players[&0];
    let own = at(0, 64, 0);
    let late = |near: bool| {
        let ages = player.shown.values().filter(|shown| (blocks_between(&shown.place, &own) < 16.0) == near);
        let ages: Vec<_> = ages.map(|shown| (many.now - shown.clock).as_millis() as u64).collect();
        ages.iter().sum::<u64>() / ages.len() as u64
    };
    assert!(late(true) < 150 && late(true) * 3 < late(false), "{} {}", late(true), late(false));
}

/// Promise, entity sync: What waits for a client that does not read is bounded, and it starts anew when it reads again.
#[test]
fn a_client_that_does_not_read_starts_anew() {
    let mut game = Game::new();
    game.join(7, EntityLimits::default(), ChunkPos::new(0, 4, 0));
    game.run(1);
    game.server.set_reading(7, false, false);
    for round in 0..200_u128 {
        for number in 0..40 {
            game.put(id(round * 100 + number), at(3, 64, 5), &[(0, Some(&[7; 200]))]);
            game.server.remove(id((round.max(1) - 1) * 100 + number));
        }
        game.run(1);
    }
    game.server.set_reading(7, true, true);
    game.run(1);
    let player = &game.players[&7];
    assert_eq!(player.shown.len(), 40);
    assert!(player.bytes < 600 << 10, "{}", player.bytes);
}

/// Promise, entity sync: A client that could not take in packets for a while is sent the places that it has missed.
#[test]
fn who_has_missed_places_is_sent_them() {
    for (messages, packets) in [(true, false), (false, false), (false, true)] {
        let mut game = Game::new();
        game.put(id(1), at(3, 64, 5), &[(0, Some(b"Ann"))]);
        game.join(7, EntityLimits::default(), ChunkPos::new(0, 4, 0));
        game.run(30);
        game.server.set_reading(7, messages, packets);
        game.run(1);
        game.put(id(1), at(4, 64, 5), &[]);
        game.run(30);
        assert!(blocks_between(&game.players[&7].shown[&id(1)].place, &at(3, 64, 5)) < 0.01);
        game.server.set_reading(7, true, true);
        game.run(2);
        assert!(blocks_between(&game.players[&7].shown[&id(1)].place, &at(4, 64, 5)) < 0.01);
    }
}

/// Promise, entity sync: A place that a far client was not sent yet is sent when the client comes near.
#[test]
fn who_comes_near_misses_no_place() {
    for ticks in 0..25 {
        let mut game = Game::new();
        game.put(id(1), at(3, 64, 5), &[(0, Some(b"Ann"))]);
        game.join(7, EntityLimits::default(), ChunkPos::new(6, 4, 0));
        game.run(40 + ticks);
        game.put(id(1), at(4, 64, 5), &[]);
        game.run(4);
        game.server.look(7, ChunkPos::new(0, 4, 0), None);
        game.run(2);
        assert!(blocks_between(&game.players[&7].shown[&id(1)].place, &at(4, 64, 5)) < 0.01, "after {ticks} ticks");
    }
}

/// Promise, entity sync: A client sees the steps of an entity that comes into a cell where only the client's own one is.
#[test]
fn who_comes_to_the_own_entity_misses_no_place() {
    for ticks in 0..12 {
        let mut game = Game::new();
        game.join(7, EntityLimits::default(), ChunkPos::new(0, 4, 0));
        game.server.look(7, ChunkPos::new(0, 4, 0), Some(id(2)));
        game.run(ticks);
        game.put(id(2), at(3, 64, 5), &[]);
        game.put(id(1), at(6, 64, 5), &[(0, Some(b"Ann"))]);
        game.run(1);
        game.put(id(1), at(7, 64, 5), &[]);
        game.run(2);
        assert!(blocks_between(&game.players[&7].shown[&id(1)].place, &at(7, 64, 5)) < 0.01, "after {ticks} ticks");
    }
}

/// Promise, entity sync: A client keeps a bounded number of entities of a server.
#[test]
fn a_server_with_too_many_entities_is_an_error() {
    let mut server = EntityServer::new(Vec::new());
    server.connect(1, EntityLimits::default());
    server.look(1, ChunkPos::new(0, 4, 0), None);
    for number in 0..70_000 {
        server.put(id(number), at(3, 64, 5), Duration::ZERO, Vec::new());
    }
    let message = server.tick(TICK, TICK).remove(0).message.unwrap();
    let error = EntityClient::default().receive(&message).unwrap_err();
    assert_eq!(error.to_string(), "the server has more than 65536 entities around the client");
}

#[test]
fn what_is_not_about_entities_is_left_to_others() {
    let mut client = EntityClient::default();
    assert_eq!(client.receive(&[]), Ok(false));
    assert_eq!(client.receive(&[crate::chunk_sync::PROTOCOL, 0, 1]), Ok(false));
    let short = [crate::chunk_sync::PROTOCOL, MESSAGE, 1, 7];
    assert_eq!(client.receive(&short), Err(EntityMessageError::Malformed { offset: 2 }));
}

proptest! {
    /// Promise, entity sync: Any bytes are a message, a packet or an error.
    #[test]
    fn any_bytes_are_taken_in_or_an_error(kind in 4..6_u8, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut client = EntityClient::default();
        let mut game = Game::new();
        game.put(id(1), at(3, 64, 5), &[(0, Some(b"Ann"))]);
        game.join(7, EntityLimits::default(), ChunkPos::new(0, 4, 0));
        let message = game.server.tick(TICK, TICK).remove(0).message.unwrap();
        client.receive(&message).unwrap();
        let message = [&[crate::chunk_sync::PROTOCOL, kind][..], &bytes].concat();
        let _ = client.receive(&message);
        while client.next_news().is_some() {}
    }

    #[test]
    fn a_flipped_bit_is_taken_in_or_an_error(flips in proptest::collection::vec(any::<u16>(), 1..5)) {
        let mut game = Game::new();
        for number in 0..20 {
            game.put(id(number), at(number as i64, 64, 5), &[(0, Some(b"Ann")), (1, Some(b"20"))]);
        }
        game.join(7, EntityLimits::default(), ChunkPos::new(0, 4, 0));
        let mut client = EntityClient::default();
        for round in 0..5 {
            (0..20).for_each(|number| game.put(id(number), at(number as i64, 60 + round, 5), &[(1, Some(&[round as u8]))]));
            game.now += TICK;
            for ForClient { message, packets, .. } in game.server.tick(game.now, game.now) {
                for mut bytes in message.into_iter().chain(packets) {
                    for flip in &flips {
                        let place = 2 + usize::from(flip >> 3) % (bytes.len() - 2);
                        bytes[place] ^= 1 << (flip & 7);
                    }
                    let _ = client.receive(&bytes);
                    while client.next_news().is_some() {}
                }
            }
        }
    }
}
