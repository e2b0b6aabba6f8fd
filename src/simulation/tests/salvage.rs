//! Salvaging a world after a panic.

use super::*;
use crate::simulation::Viewer;
use crate::simulation::entities::Moving;
use crate::simulation::letters::letter::{Address, Letter, LetterSender, Received, Returned, Undeliverable};
use crate::simulation::schedules::RegionTick;
use crate::simulation::tick::salvage::Salvage;
use std::any::type_name;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

fn letter(x: i64) -> Letter {
    Letter::run(Address::Place(DIMENSION, place(x).block), LetterSender::Main, Box::new(|_| {}))
}

/// Region worlds in which removing an entity named "bomb" panics.
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

/// The remains of a task of region 1 that panics and was about to absorb others.
fn salvaged(regions: &mut Regions, absorbed: &[u64], inbox: Inbox, task: Task) -> Salvage {
    let mut assignment = regions.assignment(1, inbox, task);
    assignment.worlds.extend(absorbed.iter().map(|region| regions.worlds.remove(region).unwrap()));
    let ended = catch_unwind(AssertUnwindSafe(|| assignment.run(&regions.template).map(drop)));
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
    let inbox = Inbox { letters: vec![letter(10)], ..Inbox::default() };
    let salvage = salvaged(&mut regions, &[2, 3, 4], inbox, Task::Save);
    let absorbed: Vec<_> = salvage.worlds.iter().map(|world| world.region()).collect();
    assert_eq!(absorbed, [RegionId::new(4)]);
    let places: Vec<_> = salvage.inbox.letters.iter().filter_map(|letter| Some(letter.column()?.1.x)).collect();
    assert_eq!(places, [30, 10]);
    let kept = [20, 30, 40].map(|x| salvage.columns.contains(&column(x)));
    assert_eq!(kept, [true, true, false], "what the one that panicked had is lost with the others");
    assert_eq!(salvage.viewers, [camera.0], "the stored viewer decides if its columns stay");
}

#[test]
fn a_split_that_panics_has_handed_out_all_and_the_parts_before_are_whole() {
    let mut regions = regions();
    let bomb = (Name::new("bomb"), place(11));
    regions.world(1).spawn((Name::new("fine"), place(10)));
    regions.world(1).spawn(bomb);
    let part = |region: u64, x: i64| RegionPart {
        id: RegionId::new(region),
        sections: vec![column(x).section(0)],
        section_shift: 0,
    };
    let task = Task::Split { parts: vec![part(8, 10), part(9, 11)] };
    let outbox = salvaged(&mut regions, &[], Inbox::default(), task).outbox.expect("all was handed out");
    let parts: Vec<_> = outbox.parts.iter().map(|(region, inbox)| (*region, inbox.travellers.len())).collect();
    assert_eq!(parts, [(RegionId::new(8), 1)]);
}

#[test]
fn a_viewer_that_left_in_the_tick_that_panics_is_known() {
    let mut regions = regions();
    let [camera, bomb] = [1, 2].map(|id| StableId(Uuid::from_u128(id)));
    regions.world(1).spawn((Name::new("camera"), place(20), camera, Viewer::new()));
    regions.world(1).spawn((Name::new("bomb"), place(20), bomb));
    let task = regions.next_tick();
    let salvage = salvaged(&mut regions, &[], Inbox::default(), task);
    assert_eq!(salvage.viewers, [camera.0], "no other viewer releases its columns");
}

/// Counts its clones. Cloning number 13 panics.
#[derive(Debug)]
struct Counted(u32);

static CLONES: AtomicUsize = AtomicUsize::new(0);

impl Clone for Counted {
    fn clone(&self) -> Self {
        CLONES.fetch_add(1, Ordering::Relaxed);
        assert!(self.0 != 13, "this one cannot be cloned");
        Self(self.0)
    }
}

#[derive(Resource, Default)]
struct Heard(Vec<u32>);

fn collect(mut received: MessageReader<Received<Counted>>, mut heard: ResMut<Heard>) {
    let new: Vec<_> = received.read().map(|received| received.message.0).collect();
    heard.0.extend(&new);
    assert!(!new.contains(&99), "that was too much");
}

#[test]
fn a_message_is_cloned_only_if_its_tick_panics_and_none_is_lost_untold() {
    let mut regions = Regions::with_plugins(
        |_| {},
        |region| {
            region.add_message::<Received<Counted>>().init_resource::<Heard>().add_systems(RegionTick, collect);
            region.add_message::<Returned<Counted>>();
        },
    );
    regions.open(1);
    let letters = |numbers: &[u32]| -> Vec<Letter> {
        let to = Address::Place(DIMENSION, place(10).block);
        numbers.iter().map(|number| Letter::message(to, LetterSender::Main, Counted(*number))).collect()
    };
    let clones = || CLONES.swap(0, Ordering::Relaxed);
    regions.tick_with(1, Inbox { letters: letters(&[1, 13]), ..Inbox::default() });
    assert_eq!((regions.world(1).resource::<Heard>().0.clone(), clones()), (vec![1, 13], 0));

    let task = Task::Tick { clock: Duration::from_secs(1), delta: Duration::ZERO, save: false };
    let inbox = Inbox { letters: letters(&[2, 13, 99]), ..Inbox::default() };
    let handed_over = salvaged(&mut regions, &[], inbox, task).undelivered;
    assert_eq!(clones(), 3, "one each");
    let halted = Undeliverable::Halted(RegionId::new(1));
    let is_listed = |(letter, reason): &(Letter, _)| letter.name() == type_name::<Counted>() && *reason == halted;
    assert!(handed_over.iter().all(is_listed));
    let back: Vec<_> = handed_over.into_iter().map(|(letter, reason)| letter.give_back(reason)).collect();
    assert!(back[1].is_none(), "the one that cannot be cloned is reported as lost");
    let mut sender = World::new();
    sender.init_resource::<Messages<Returned<Counted>>>();
    back.into_iter().flatten().for_each(|letter| _ = letter.hand_over(&mut sender, None));
    let mut returned = sender.resource_mut::<Messages<Returned<Counted>>>();
    let returned: Vec<_> = returned.drain().map(|returned| (returned.message.0, returned.reason)).collect();
    assert_eq!((returned, clones()), (vec![(2, halted), (99, halted)], 0));
}

#[test]
fn copies_of_a_message_for_several_regions_are_made_where_they_are_handed_over() {
    let letter = Letter::message(Address::Regions(None), LetterSender::Main, Counted(13));
    let copies: Vec<_> = (0..3).filter_map(|_| letter.copy()).collect();
    assert_eq!(copies.len(), 3, "this crate's own threads run no code of the game");
}
