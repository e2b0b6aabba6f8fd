//! Random games beside a simple model, with lost packets and clients that stop reading.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Deed {
    Put(u128, (i64, i64, i64), Option<(u16, Option<u8>)>),
    Remove(u128),
    Look(u64, (i64, i64), Option<u128>),
    Read(u64, bool),
    Reconnect(u64, u32),
    Tick,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let place = (-100..100_i64, 50..90_i64, -100..100_i64);
    let component = proptest::option::of((0..2_u16, proptest::option::of(any::<u8>())));
    let deed = prop_oneof![
        8 => (0..12_u128, place, component).prop_map(|(id, place, component)| Deed::Put(id, place, component)),
        1 => (0..12_u128).prop_map(Deed::Remove),
        2 => (0..3_u64, (-6..6_i64, -6..6_i64), proptest::option::of(0..12_u128))
            .prop_map(|(client, place, own)| Deed::Look(client, place, own)),
        1 => (0..3_u64, any::<bool>()).prop_map(|(client, is_reading)| Deed::Read(client, is_reading)),
        1 => (0..3_u64, 1..7_u32).prop_map(|(client, radius)| Deed::Reconnect(client, radius)),
        6 => Just(Deed::Tick),
    ];
    proptest::collection::vec(deed, 1..200)
}

proptest! {
    /// Promise, entity sync: In the end a client shows the entities around it as they are, whatever was lost on the way.
    #[test]
    fn in_the_end_clients_show_what_is_there(deeds in deeds(), seed in any::<u64>(), loss in 0..60_u64) {
        let mut game = Game::new();
        let mut world = BTreeMap::<u128, (EntityPlace, BTreeMap<u16, Vec<u8>>)>::new();
        let mut looks = BTreeMap::new();
        let mut dice = seed | 1;
        let mut roll = move || {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            dice >> 33
        };
        for client in 0..3 {
            game.join(client, EntityLimits { radius: 3, ..EntityLimits::default() }, ChunkPos::new(0, 4, 0));
            looks.insert(client, (ChunkPos::new(0, 4, 0), 3, None));
        }
        for deed in deeds {
            match deed {
                Deed::Put(number, (x, y, z), change) => {
                    let (place, components) = world.entry(number).or_default();
                    *place = at(x, y, z);
                    let value = change.and_then(|(_, value)| value).map(|value| vec![value]);
                    match (change, value.clone()) {
                        (Some((component, _)), Some(value)) => _ = components.insert(component, value),
                        (Some((component, _)), None) => _ = components.remove(&component),
                        (None, _) => {}
                    }
                    let changes: Vec<_> = change.iter().map(|(component, _)| (*component, value.as_deref())).collect();
                    game.put(id(number), *place, &changes);
                }
                Deed::Remove(number) => {
                    world.remove(&number);
                    game.server.remove(id(number));
                }
                Deed::Look(client, (x, z), own) => {
                    let center = ChunkPos::new(x, 4, z);
                    game.server.look(client, center, own.map(id));
                    looks.entry(client).and_modify(|look| (look.0, look.2) = (center, own));
                }
                Deed::Read(client, is_reading) => game.server.set_reading(client, is_reading, roll() % 3 > 0),
                Deed::Reconnect(client, radius) => {
                    game.server.disconnect(client);
                    let (center, reach, own) = looks.get_mut(&client).unwrap();
                    *reach = radius;
                    game.join(client, EntityLimits { radius, ..EntityLimits::default() }, *center);
                    game.server.look(client, *center, own.map(id));
                }
                Deed::Tick => game.tick(|| roll() % 100 < loss),
            }
        }
        (0..3).for_each(|client| game.server.set_reading(client, true, true));
        // All places are sent again now and then.
        game.run(401);
        for (client, (center, radius, own)) in looks {
            let is_near = |place: &EntityPlace| {
                let ChunkPos { x, y, z } = place.cell();
                let (x, y, z) = (x - center.x, y - center.y, z - center.z);
                x * x + z * z <= i64::from(radius).pow(2) && y.unsigned_abs() <= u64::from(radius)
            };
            let shown = &game.players[&client].shown;
            let seen = world.iter().filter(|(number, (place, _))| is_near(place) && own != Some(**number));
            let seen: BTreeMap<_, _> = seen.map(|(number, entity)| (id(*number), entity)).collect();
            prop_assert_eq!(shown.keys().collect::<Vec<_>>(), seen.keys().collect::<Vec<_>>());
            for (number, (place, components)) in seen {
                let Shown { place: there, components: told, .. } = &shown[&number];
                prop_assert!(blocks_between(place, there) < 0.006);
                let named = components.iter().map(|(component, value)| (types()[usize::from(*component)].clone(), value.clone()));
                prop_assert_eq!(told, &named.collect());
            }
        }
    }
}
