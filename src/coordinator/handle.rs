//! The coordinator's thread, and the handle that keeps it running.

use crate::coordinator::closing::shutdown;
use crate::coordinator::messages::settings::Settings;
use crate::coordinator::passes::dispatch;
use crate::coordinator::publish::Publisher;
use crate::coordinator::threads::exchange::{Event, Inbound, MainLink};
use bevy::app::AppLabel;
use bevy::ecs::schedule::ScheduleLabel;
use bevy::platform::cell::SyncCell;
use bevy::prelude::*;
use std::io;
use std::mem;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The label of the coordinator's `SubApp`. The app has it from `TerranePlugin`'s `finish` to its `cleanup`, so that later
/// plugins can add systems to it in their own `finish`.
#[derive(AppLabel, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoordinatorApp;

/// The schedule of one pass of the coordinator.
#[derive(ScheduleLabel, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoordinatorMain;

/// The parts of one pass of the coordinator in [`CoordinatorMain`], in this order.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoordinatorSystems {
    /// Takes finished ticks and requests, ends ticks in the regionizer, routes the outboxes of regions.
    Collect,
    /// Orders the nearest missing ground of viewers, then that of pre-generations; finds ground that is no longer needed.
    Stream,
    /// Hands loaded columns, letters and entities to the region that now owns the place.
    Deliver,
    /// Starts due regions, earliest deadline first, and saves.
    Dispatch,
    /// Publishes changes for the main world.
    Publish,
}

/// Keeps the coordinator running. Dropping it saves everything and ends the coordinator.
#[derive(Resource)]
pub struct CoordinatorHandle {
    home: Home,
    link: MainLink,
}

enum Home {
    /// Its thread ends with `true` if everything was saved.
    Thread(JoinHandle<bool>),
    /// In lockstep. Boxed because a `SubApp` is large.
    Inline(Box<SyncCell<SubApp>>),
    Ended {
        is_saved: bool,
    },
}

impl CoordinatorHandle {
    /// Moves the coordinator to its own thread, or into the handle in lockstep.
    pub fn start(mut app: SubApp, link: MainLink) -> io::Result<Self> {
        if app.world().resource::<Settings>().tick_mode.is_lockstep() {
            return Ok(Self { home: Home::Inline(Box::new(SyncCell::new(app))), link });
        }
        let thread = std::thread::Builder::new().name("terrane coordinator".to_owned()).spawn(move || {
            run(&mut app);
            shutdown::shut_down(app.world_mut())
        })?;
        Ok(Self { home: Home::Thread(thread), link })
    }

    /// Runs one pass, in which every region ticks once, if the coordinator runs in lockstep.
    pub fn update_inline(&mut self) {
        if let Home::Inline(app) = &mut self.home {
            pass(app.get());
        }
    }

    /// Saves everything and ends the coordinator. Returns when it is done; a second call does nothing.
    pub fn shut_down(&mut self) {
        let is_saved = match mem::replace(&mut self.home, Home::Ended { is_saved: false }) {
            Home::Thread(thread) => {
                self.link.notifier.send(Event::Shutdown);
                let ended = thread.join();
                if ended.is_err() && !std::thread::panicking() {
                    error!("the coordinator panicked; unsaved changes are lost");
                }
                ended.unwrap_or(false)
            }
            Home::Inline(mut app) => shutdown::shut_down(app.get().world_mut()),
            Home::Ended { is_saved } => is_saved,
        };
        self.home = Home::Ended { is_saved };
    }

    /// Returns `true` if the coordinator has ended and has saved everything.
    pub fn has_saved_everything(&self) -> bool {
        matches!(self.home, Home::Ended { is_saved: true })
    }
}

impl Drop for CoordinatorHandle {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// The longest sleep of the coordinator; statistics and autosave need no more.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

fn run(app: &mut SubApp) {
    loop {
        let sleep = dispatch::until_next_deadline(app.world_mut()).min(LONGEST_SLEEP);
        let mut inbound = app.world_mut().resource_mut::<Inbound>();
        inbound.wait_until(Some(Instant::now() + sleep));
        inbound.receive();
        if inbound.is_shutting_down {
            return;
        }
        pass(app);
    }
}

fn pass(app: &mut SubApp) {
    let _span = debug_span!("pass").entered();
    let began = Instant::now();
    app.world_mut().run_schedule(CoordinatorMain);
    app.world_mut().resource_mut::<Publisher>().totals.note_pass(began.elapsed());
    app.world_mut().clear_trackers();
    app.world_mut().check_change_ticks();
}
