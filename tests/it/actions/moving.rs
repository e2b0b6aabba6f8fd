//! Actions of entities that are on the move: between regions that merge and split, and out of the world and back.

use super::*;
use bevy_terrane::view::{LogOut, PlayerLoggedOut, RegionMerged, RegionSplit};

const BOB: Uuid = Uuid::from_u128(0xb0b);

/// Promise, actions: Each action is done once, and in order, while regions merge and split.
#[test]
fn actions_are_done_once_and_in_order_while_regions_merge_and_split() {
    let (mut app, dimension) = world_with_ann(TerranePlugin { regionizer: parting_soon(), ..lockstep() });
    listen::<RegionMerged>(&mut app);
    listen::<RegionSplit>(&mut app);
    let there = BlockPos::new(16 * 60, -1, 0);
    viewer(&mut app, dimension, 16.0 * 60.0, 0.0, 2);
    let bridge = viewer(&mut app, dimension, 0.0, 0.0, 1);
    update_until(&mut app, "the other ground is there", |world| block_at(world, dimension, there).is_some());
    spawn_in_region(&mut app, dimension, there, (StableId(BOB), Actor::default(), Bag(0)));
    update_until(&mut app, "Bob is mirrored", |world| mirror(world, BOB).is_some());
    let mut made = Vec::new();
    for step in 0..600_i64 {
        let x = if step % 200 < 100 { step % 100 } else { 100 - step % 100 };
        move_viewer(&mut app, bridge, (x * 16 * 60 / 100) as f32, 0.0);
        for (actor, home) in [(ANN, HERE), (BOB, there)] {
            let place = top(home.x + step / 2 % 5, 3);
            made.push(match step % 2 {
                0 => act(&mut app, actor, Dig(place)),
                _ => act(&mut app, actor, Build(place)),
            });
        }
        app.update();
    }
    let last = *made.last().unwrap();
    outcome_of(&mut app, last);
    update(&mut app, 5);
    let (merges, splits) = (heard::<RegionMerged>(&app).len(), heard::<RegionSplit>(&app).len());
    assert!(merges > 2 && splits > 2, "{merges} merges, {splits} splits");
    // A block that was dug twice, or built before it was dug, would have been refused.
    for actor in [ANN, BOB] {
        let answers = heard::<ActionAnswer>(&app).iter().filter(|answer| answer.actor == actor);
        let decided: Vec<_> = answers.filter(|answer| answer.outcome != ActionOutcome::Durable).collect();
        assert!(decided.iter().all(|answer| answer.outcome == ActionOutcome::Done), "{decided:?}");
        assert!(decided.len() == 600 && decided.is_sorted_by_key(|answer| answer.action));
    }
    assert_eq!((bag(&app), mirror(app.world(), BOB).unwrap().get::<Bag>()), (0, Some(&Bag(0))));
}

/// Promise, actions: A player that logs out while its actions are on their way has done exactly those that are answered as done.
#[test]
fn what_a_player_does_while_it_logs_out_is_done_or_refused() {
    let store = Arc::new(MemoryStore::new());
    let (mut app, dimension) = world(lockstep_on(&store));
    listen::<PlayerLoggedIn>(&mut app);
    listen::<PlayerLoggedOut>(&mut app);
    let name = "Ann".to_owned();
    let (mut done, mut refused) = (0, 0);
    for round in 0..12 {
        app.world_mut().write_message(LogIn { name: name.clone(), first_place: Some((dimension, HERE)) });
        update_until(&mut app, "Ann is in", |world| world.resource::<Heard<PlayerLoggedIn>>().0.len() == round + 1);
        let ann = heard::<PlayerLoggedIn>(&app)[0].id;
        if round == 0 {
            in_region(&mut app, dimension, HERE, move |world| {
                let entity = world.resource::<EntityIndex>().entity(ann).unwrap();
                world.entity_mut(entity).insert(Bag(0));
            });
        }
        update_until(&mut app, "her bag is there", |world| {
            mirror(world, ann).is_some_and(|mirror| mirror.contains::<Bag>())
        });
        assert_eq!(mirror(app.world(), ann).unwrap().get::<Bag>(), Some(&Bag(done)), "after {round} rounds");
        let before = heard::<ActionAnswer>(&app).len();
        let dig = |app: &mut App, z: i64| act(app, ann, Dig(top(round as i64, z)));
        let mut made = vec![dig(&mut app, 0), dig(&mut app, 1)];
        update(&mut app, round % 3);
        app.world_mut().write_message(LogOut { name: name.clone() });
        made.push(dig(&mut app, 2));
        update(&mut app, round % 4);
        made.push(dig(&mut app, 3));
        update_until(&mut app, "she is out and all is decided", |world| {
            let answers = world.resource::<Heard<ActionAnswer>>().0[before..].iter();
            let decided = answers.filter(|answer| !matches!(answer.outcome, ActionOutcome::Durable));
            decided.count() == made.len() && world.resource::<Heard<PlayerLoggedOut>>().0.len() == round + 1
        });
        for action in made {
            match &outcomes(&app, action)[0] {
                ActionOutcome::Done => done += 1,
                ActionOutcome::Refused(Refusal::NotHere) => refused += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(done >= 20 && refused >= 5, "{done} done, {refused} refused");
    save(&mut app);
    // A crash brings back what was saved.
    let mut app = reopen(app, || world(lockstep_on(&store)).0);
    listen::<PlayerLoggedIn>(&mut app);
    app.world_mut().write_message(LogIn { name, first_place: None });
    update_until(&mut app, "Ann is in", |world| !world.resource::<Heard<PlayerLoggedIn>>().0.is_empty());
    assert_eq!(in_region_bag(&mut app, dimension), done);
}
