//! What is left of a world after a panic.

use super::*;
use crate::simulation::{Address, Letter, LetterSender, Moving, Salvage, Viewer};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn letter(x: i64) -> Letter {
    Letter::run(Address::Place(DIMENSION, place(x).block), LetterSender::Main, Box::new(|_| {}))
}

/// A world in which nobody called "bomb" can be taken out.
fn regions() -> Regions {
    let forbid = |removed: On<Remove, Name>, names: Query<&Name>, migration: Option<Res<Moving>>| {
        let is_bomb = names.get(removed.entity).is_ok_and(|name| name.as_str() == "bomb");
        assert!(migration.is_none() || !is_bomb, "nobody leaves");
    };
    let mut regions = Regions::with_plugins(
        |_| {},
        move |region| {
            region.world_mut().add_observer(forbid);
        },
    );
    (1..=4).for_each(|region| _ = regions.open(region));
    regions
}

/// What is left of a task of region 1 that panics.
fn salvaged(regions: &mut Regions, inbox: Inbox, task: Task) -> Salvage {
    let mut assignment = regions.assignment(1, inbox, task);
    let ended = catch_unwind(AssertUnwindSafe(|| assignment.run(&regions.template, &WorldPool::new(0)).map(drop)));
    assert!(ended.is_err());
    assignment.salvage()
}

#[test]
fn worlds_that_were_not_absorbed_when_another_panicked_are_whole_and_no_letter_is_lost() {
    let mut regions = regions();
    regions.world(2).spawn((Name::new("fine"), place(20)));
    regions.world(3).spawn((Name::new("bomb"), place(30)));
    let camera = StableId(Uuid::from_u128(7));
    regions.world(3).spawn((Name::new("camera"), place(30), camera, Viewer::new().with_radius(1)));
    regions.world(4).spawn((Name::new("fine"), place(40)));
    regions.tick_with(3, Inbox { letters: vec![letter(30).with_delay(9)], ..Inbox::default() });
    let absorbed = [2, 3, 4].map(|region| regions.worlds.remove(&region).unwrap()).into();
    let inbox = Inbox { absorbed, letters: vec![letter(10)], ..Inbox::default() };
    let salvage = salvaged(&mut regions, inbox, Task::Save);
    let absorbed: Vec<_> = salvage.inbox.absorbed.iter().map(|world| world.region()).collect();
    assert_eq!(absorbed, [RegionId::new(4)]);
    let places: Vec<_> = salvage.inbox.letters.iter().filter_map(|letter| Some(letter.column()?.1.x)).collect();
    assert_eq!(places, [30, 10]);
    let kept = [20, 30, 40].map(|x| salvage.columns.contains(&column(x)));
    assert_eq!(kept, [true, true, false], "what the one that panicked had is lost with the others");
    assert_eq!(salvage.viewers, [camera.0], "its ground is held, or let go, by what the store knows");
}

#[test]
fn a_split_that_panics_has_handed_out_all_and_the_parts_before_are_whole() {
    let mut regions = regions();
    let bomb = (Name::new("bomb"), place(11));
    regions.world(1).spawn((Name::new("fine"), place(10)));
    regions.world(1).spawn(bomb);
    let part = |region: u64, x: i64| RegionPart { id: RegionId::new(region), sections: vec![column(x).section(0)] };
    let task = Task::Split { parts: vec![part(8, 10), part(9, 11)] };
    let outbox = salvaged(&mut regions, Inbox::default(), task).outbox.expect("all was handed out");
    let parts: Vec<_> = outbox.parts.iter().map(|(region, inbox)| (*region, inbox.travellers.len())).collect();
    assert_eq!(parts, [(RegionId::new(8), 1)]);
}
