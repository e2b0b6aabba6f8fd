//! Limits for careless or hostile senders and viewers.

use super::*;
use crate::coordinator::closing::close::close_dimension;
use crate::coordinator::mail::queue::MailQueue;
use crate::coordinator::messages::settings::LetterLimits;
use crate::coordinator::messages::settings::Limits;
use crate::coordinator::messages::settings::ViewerLimits;
use crate::coordinator::passes::letters::post_letters;
use crate::simulation::{Address, Letter, LetterSender, Undeliverable};
use crate::space::BlockPos;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Sends a closure that counts to a place `x` columns away.
fn send(unwatched: &Unwatched, x: i64, ran: &Arc<AtomicUsize>) {
    let block = BlockPos::new(x * 16, 0, 0);
    let ran = ran.clone();
    let run = move |_: &mut World| _ = ran.fetch_add(1, Ordering::Relaxed);
    let letter = Letter::run(Address::Place(DimensionId(0), block), LetterSender::Main, Box::new(run));
    unwatched.link.request(post_letters, vec![letter]);
}

/// Promise, messages: Messages to far places load a bounded number of places at a time.
#[test]
fn letters_to_far_places_load_ground_for_some_at_a_time_and_all_arrive() {
    let letters = LetterLimits { places: 5, ..LetterLimits::default() };
    let mut unwatched =
        Unwatched::with(TerranePlugin { limits: Limits { letters, ..default() }, ..TerranePlugin::default() });
    unwatched.pass(10);
    let (regions, columns) =
        (unwatched.dimension().regions.regionizer.regions().len(), unwatched.dimension().columns.iter().count());
    let ran = Arc::new(AtomicUsize::new(0));
    // Two for each of 150 places that lie far apart.
    (0..300).for_each(|x| send(&unwatched, 1_000 + x % 150 * 100, &ran));
    let mut passes = 0;
    while ran.load(Ordering::Relaxed) < 300 {
        unwatched.pass(1);
        passes += 1;
        let dimension = unwatched.dimension();
        let (more_regions, more_columns) =
            (dimension.regions.regionizer.regions().len() - regions, dimension.columns.iter().count() - columns);
        // A place is one region, and a disc of radius 2 at the most.
        assert!(more_regions <= 5 && more_columns <= 5 * 13, "{more_regions} regions, {more_columns} columns");
        assert!(passes < 10_000, "only {} of 300 letters arrived", ran.load(Ordering::Relaxed));
    }
    unwatched.pass(60);
    let dimension = unwatched.dimension();
    assert_eq!((dimension.regions.regionizer.regions().len(), dimension.columns.iter().count()), (regions, columns));
    assert_eq!(unwatched.app.world().resource::<MailQueue>().backlog.bytes(), 0);
}

#[test]
fn a_dimension_closes_while_letters_to_far_places_wait() {
    let letters = LetterLimits { places: 5, ..LetterLimits::default() };
    let mut unwatched =
        Unwatched::with(TerranePlugin { limits: Limits { letters, ..default() }, ..TerranePlugin::default() });
    let ran = Arc::new(AtomicUsize::new(0));
    (0..300).for_each(|x| send(&unwatched, 1_000 + x * 100, &ran));
    // Some are delivered by now, and ground is loaded for the next ones.
    unwatched.pass(8);
    unwatched.link.request(close_dimension, (DIMENSION, false));
    let mut passes = 0;
    while !unwatched.app.world().resource::<DimensionBook>().open.is_empty() {
        unwatched.pass(1);
        passes += 1;
        assert!(passes < 10_000, "it does not close");
    }
    unwatched.pass(2);
    assert!(ran.load(Ordering::Relaxed) < 300, "the others came back");
    assert_eq!(unwatched.app.world().resource::<MailQueue>().backlog.bytes(), 0);
}

/// Promise, messages: Messages beyond a sender's limit return, so no sender can fill the memory.
#[test]
fn a_flooding_sender_gets_its_letters_back_and_recovers() {
    let size = Letter::message(Address::Main, LetterSender::Main, 0_u64).bytes;
    let letters = LetterLimits { sender_bytes: 100 * size, ..LetterLimits::default() };
    let mut unwatched =
        Unwatched::with(TerranePlugin { limits: Limits { letters, ..default() }, ..TerranePlugin::default() });
    let region = unwatched.dimension().regions.regionizer.regions()[0];
    let id = unwatched.dimension().id;
    let order = |order| ControlRegion { dimension: id, region, order };
    unwatched.link.request(control_region, order(RegionOrder::Pause));
    unwatched.pass(2);
    unwatched.link.take_published();
    // To a region that does not tick: nothing is handed over.
    let mut returned = Vec::new();
    for number in 0..20_000_u64 {
        let here = Address::Place(DimensionId(0), BlockPos::new(0, 0, 0));
        unwatched.link.request(post_letters, vec![Letter::message(here, LetterSender::Main, number)]);
        if number % 1_000 == 999 {
            unwatched.pass(1);
            assert!(unwatched.app.world().resource::<MailQueue>().backlog.bytes() <= 100 * size);
            returned.extend(unwatched.link.take_published().into_iter().flat_map(|published| published.letters));
        }
    }
    assert_eq!(returned.len(), 20_000 - 100);
    assert!(returned.iter().all(|letter| letter.returned == Some(Undeliverable::TooManyLetters)));
    // Once those that wait are handed over, the next ones go.
    let ran = Arc::new(AtomicUsize::new(0));
    unwatched.link.request(control_region, order(RegionOrder::Resume));
    unwatched.pass(3);
    assert_eq!(unwatched.app.world().resource::<MailQueue>().backlog.bytes(), 0);
    (0..50).for_each(|_| send(&unwatched, 0, &ran));
    unwatched.pass(3);
    assert_eq!(ran.load(Ordering::Relaxed), 50);
}

/// Promise, worlds: A viewer that jumps around stays within its limits, and starves no other viewer.
#[test]
fn a_viewer_that_jumps_every_frame_stays_within_its_limits() {
    let viewers = ViewerLimits { generated_per_second: 20.0, ..ViewerLimits::default() };
    let mut unwatched =
        Unwatched::with(TerranePlugin { limits: Limits { viewers, ..default() }, ..TerranePlugin::default() });
    // Half a minute, a disc of 13 columns and what lies around it in its batches each time.
    for x in 0..600 {
        unwatched.look_from(x * 1_000);
        unwatched.pass(1);
    }
    let stored = unwatched.dimension().land.stored.completed_count();
    assert!(stored <= 30 * 20 + 20 + 2 * 23 + 64, "{stored} columns");
    // It stays, and has what it sees as soon as it may.
    unwatched.pass(60);
    let (dimension, here) = (unwatched.dimension(), ColumnPos::new(599_000, 0));
    assert!(dimension.columns.is_in_region(here) && dimension.land.stored.completed_count() >= 400);
}
