//! Servers that pause, die and lose messages, on a simulated database with simulated clocks.

mod simulation;
mod worlds;

use super::*;
use crate::MemoryStore;
use crate::space::{DimensionId, TilePos};
use simulation::{Faults, Simulation};
use std::collections::BTreeSet;
use std::time::Duration;

fn plot(x: i64, z: i64) -> Plot {
    (DimensionId(1), TilePos::new(x, z))
}

fn servers<const N: usize>() -> (Arc<MemoryStore>, [Incarnation; N]) {
    let store = Arc::new(MemoryStore::new());
    let join = |number: usize| Incarnation::join(store.clone(), &[number as u8]).unwrap();
    let servers = std::array::from_fn(join);
    (store, servers)
}

fn set(plots: &[(i64, i64)]) -> BTreeSet<Plot> {
    plots.iter().map(|(x, z)| plot(*x, *z)).collect()
}

#[test]
fn an_ended_server_can_write_nothing_and_its_number_is_not_used_again() {
    let (store, [first, second]) = servers();
    assert_eq!([first.number(), second.number()], [1, 2]);
    let sign = |number: u64| second.signs().unwrap().into_iter().find(|sign| sign.incarnation == number);
    let seen = sign(1).unwrap();
    assert_eq!(seen.address, [0]);
    first.beat().unwrap();
    assert_eq!(second.end(&seen), Ok(false), "it has shown life since");
    assert_eq!(second.end(&sign(1).unwrap()), Ok(true));
    assert_eq!(sign(1), None);
    let mut batch = WriteBatch::default();
    batch.put(Family::Chunks, *b"chunk", vec![1]);
    assert!(matches!(first.write(batch), Err(StoreError::Superseded { session: 1, .. })));
    assert!(matches!(first.beat(), Err(StoreError::Superseded { session: 1, .. })));
    assert!(matches!(first.acquire(&set(&[(0, 0)])), Err(StoreError::Superseded { session: 1, .. })));
    assert_eq!(store.get(Family::Chunks, b"chunk"), Ok(None));
    second.leave().unwrap();
    assert_eq!(Incarnation::join(store, b"").unwrap().number(), 3);
}

#[test]
fn a_plot_and_its_neighbors_belong_to_one_server() {
    let (_, [first, second]) = servers();
    assert_eq!(first.acquire(&set(&[(0, 0)])), Ok(BTreeMap::new()));
    assert_eq!(second.acquire(&set(&[(1, -1), (5, 5)])), Ok([(plot(0, 0), 1)].into()));
    assert_eq!(second.acquire(&set(&[(2, 0), (5, 5)])), Ok(BTreeMap::new()), "all or none");
    // One unowned plot lies between them, and neither may have it.
    assert_eq!(first.acquire(&set(&[(1, 0)])), Ok([(plot(2, 0), 2)].into()));
    first.release(&set(&[(0, 0), (2, 0)])).unwrap();
    assert_eq!(first.acquire(&set(&[(1, 0)])), Ok([(plot(2, 0), 2)].into()), "only own plots are released");
    assert_eq!(second.acquire(&set(&[(1, 0)])), Ok(BTreeMap::new()));
    second.leave().unwrap();
    assert_eq!(first.acquire(&set(&[(1, 0)])), Ok(BTreeMap::new()));
}

#[test]
fn the_larger_territory_gets_the_smaller_one() {
    let (_, [first, second, third]) = servers();
    first.acquire(&set(&[(0, 0)])).unwrap();
    second.acquire(&set(&[(2, 0), (3, 0)])).unwrap();
    assert_eq!(third.ask_to_join(plot(1, 0)), Ok(Join::Belongs(1)));
    assert_eq!(first.ask_to_join(plot(-1, 0)), Ok(Join::Free));
    assert_eq!(first.ask_to_join(plot(1, 0)), Ok(Join::Root(2)));
    assert_eq!(second.ask_to_join(plot(1, 0)), Ok(Join::Root(2)));
    let leaving = |server: &Incarnation| server.leaving_territories(DimensionId(1)).unwrap();
    assert_eq!(leaving(&second), []);
    assert_eq!(leaving(&first), [(set(&[(0, 0)]), 2)]);
    assert_eq!(first.hand_over(&set(&[(0, 0)]), 3), Ok(false));
    assert_eq!(first.hand_over(&set(&[(0, 0)]), 2), Ok(true));
    assert_eq!(first.hand_over(&set(&[(0, 0)]), 2), Ok(false));
    assert_eq!(second.acquire(&set(&[(1, 0)])), Ok(BTreeMap::new()));
    // The join has reached its goal, so its ground can part again.
    assert_eq!(leaving(&second), []);
    second.release(&set(&[(1, 0)])).unwrap();
    third.acquire(&set(&[(-2, 0), (-3, 0)])).unwrap();
    assert_eq!(third.ask_to_join(plot(-1, 0)), Ok(Join::Root(3)));
    assert_eq!(leaving(&second), [(set(&[(0, 0)]), 3)]);
}

#[test]
fn a_territory_is_handed_over_whole() {
    let (_, [first, _second]) = servers();
    first.acquire(&set(&[(0, 0), (1, 1), (5, 0)])).unwrap();
    assert_eq!(first.hand_over(&set(&[(0, 0)]), 2), Ok(false));
    assert_eq!(first.hand_over(&set(&[(0, 0), (1, 1), (2, 2)]), 2), Ok(false));
    assert_eq!(first.hand_over(&set(&[(0, 0), (1, 1)]), 9), Ok(false), "there is no such server");
    assert_eq!(first.hand_over(&set(&[(0, 0), (1, 1)]), 2), Ok(true));
}

#[test]
fn a_verification_knows_the_rows_of_servers() {
    let store = Arc::new(MemoryStore::new());
    let world = crate::WorldStore::from_store(store.clone()).unwrap();
    let [first, second] = [0, 1].map(|address| Incarnation::join(store.clone(), &[address]).unwrap());
    first.acquire(&set(&[(0, 0)])).unwrap();
    second.acquire(&set(&[(2, 0)])).unwrap();
    first.ask_to_join(plot(1, 0)).unwrap();
    let damage = || world.verify(|_| std::ops::ControlFlow::Continue(())).unwrap().damage.count();
    assert_eq!(damage(), 0);
    let mut batch = WriteBatch::default();
    batch.put(Family::Meta, keys::plot_key(DimensionId(1), TilePos::new(0, 0)), vec![1, 2]);
    batch.put(Family::Meta, keys::server_key(1), Vec::new());
    batch.put(Family::Meta, keys::beat_key(1), vec![1]);
    store.write(batch, Durability::Sync).unwrap();
    assert_eq!(damage(), 3);
}

#[test]
fn a_watch_waits_for_a_whole_term_of_readings() {
    let at = Duration::from_secs;
    let sign = |beat: u8| vec![Sign { incarnation: 7, address: Vec::new(), beat: vec![beat] }];
    let mut watch = Watch::new(at(8));
    let read = |watch: &mut Watch, from: u64, to: u64, beat: u8| {
        (from..to).map(|now| watch.read(at(now), at(now), &sign(beat)).len()).collect::<Vec<_>>()
    };
    assert_eq!(read(&mut watch, 0, 8, 1), [0; 8]);
    assert_eq!(read(&mut watch, 8, 10, 1), [1; 2]);
    assert_eq!(read(&mut watch, 10, 18, 2), [0; 8], "it has shown life");
    assert_eq!(read(&mut watch, 18, 19, 2), [1]);
    watch.failed();
    assert_eq!(read(&mut watch, 19, 27, 2), [0; 8], "a failed reading restarts the term");
    assert_eq!(read(&mut watch, 27, 28, 2), [1]);
    assert_eq!(read(&mut watch, 31, 39, 2), [0; 8], "so does a pause");
    // An answer that takes long says nothing about the time of its arrival.
    assert_eq!(watch.read(at(38), at(40), &sign(2)).len(), 0);
    assert_eq!(watch.read(at(39), at(41), &sign(2)).len(), 1);
}

#[test]
fn few_servers_that_pause_die_and_lose_messages_never_share_ground() {
    never_share_ground(&[2, 3]);
}

#[test]
fn many_servers_that_pause_die_and_lose_messages_never_share_ground() {
    never_share_ground(&[8]);
}

fn never_share_ground(counts: &[usize]) {
    let (mut acknowledged, mut ended, mut handed_over) = (0, 0, 0);
    for seed in 0..rounds(12) {
        for &servers in counts {
            let seen = Simulation::run(servers, seed, delay(seed), Faults::All, 1_500);
            acknowledged += seen.acknowledged;
            ended += seen.ended;
            handed_over += seen.handed_over;
        }
    }
    println!("{acknowledged} commits, {ended} servers ended, {handed_over} territories handed over");
    assert!(acknowledged > 1_000 && ended > 50 && handed_over > 10, "{acknowledged}, {ended}, {handed_over}");
}

#[test]
fn no_server_is_ended_by_an_outage_of_the_database() {
    for seed in 0..rounds(5) {
        let seen = Simulation::run(4, seed, delay(seed), Faults::Outage, 1_500);
        assert_eq!(seen.ended, 0, "seed {seed}");
        assert!(seen.acknowledged > 10, "seed {seed}: {seen:?}");
    }
}

#[test]
fn servers_in_a_ring_that_want_to_join_end_in_one_root() {
    for seed in 0..rounds(10) {
        for servers in [2, 3, 8] {
            assert_eq!(Simulation::join_in_a_ring(servers, seed, delay(seed)), 1, "{servers} servers, seed {seed}");
        }
    }
}

/// The time to the database, which the seeds take in turns, or `TERRANE_DELAY` in milliseconds.
fn delay(seed: u64) -> Duration {
    let chosen = std::env::var("TERRANE_DELAY").ok().and_then(|delay| delay.parse().ok());
    Duration::from_millis(chosen.unwrap_or([0, 5, 25, 50][seed as usize % 4]))
}

/// The number of repetitions: `few` times `TERRANE_ROUNDS`.
fn rounds(few: u64) -> u64 {
    few * std::env::var("TERRANE_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}
