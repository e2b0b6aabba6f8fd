//! Ends the app in order when the process gets a signal to end, so that the world is saved.

use bevy::app::{TerminalCtrlCHandlerPlugin, ctrlc};
use bevy::prelude::*;

/// Ends the app on SIGINT, SIGTERM and SIGHUP (Ctrl+C, Ctrl+Break and closing the console on Windows), unless the game
/// handles them itself. The status is 0 if everything is saved after SIGTERM, by which supervisors end a service, and otherwise 130.
pub(super) fn handle(app: &mut App) {
    let is_handled = ctrlc::try_set_handler(TerminalCtrlCHandlerPlugin::gracefully_exit).is_ok();
    if !is_handled {
        // Bevy's plugin or the game handles the signals, or some are ignored.
        handle_each(app);
    } else if !app.is_plugin_added::<TerminalCtrlCHandlerPlugin>() {
        app.add_systems(Update, TerminalCtrlCHandlerPlugin::exit_on_flag);
    }
    succeed_after_termination(app, is_handled);
}

#[cfg(not(unix))]
fn handle_each(_: &mut App) {}

#[cfg(not(unix))]
fn succeed_after_termination(_: &mut App, _: bool) {}

/// The status of an app that a signal ended. Bevy's plugin has the same.
#[cfg(unix)]
const EXIT_CODE: u8 = 130;

/// Replaces the exit code that all signals have, if the signal was SIGTERM and everything is saved. `is_handled` if it surely has a
/// handler.
#[cfg(unix)]
fn succeed_after_termination(app: &mut App, is_handled: bool) {
    use crate::coordinator::CoordinatorHandle;
    use crate::view::ViewSystems;
    use signal_hook::consts::SIGTERM;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, OnceLock};

    static TERMINATED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let terminated = TERMINATED.get_or_init(|| {
        let terminated = Arc::<AtomicBool>::default();
        // The handler that is there is called too. A signal that is ignored stays ignored.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        if (is_handled || is_in(&status, "SigCgt:", SIGTERM))
            && let Err(error) = signal_hook::flag::register(SIGTERM, terminated.clone())
        {
            warn!("the status after SIGTERM is {EXIT_CODE}: {error}");
        }
        terminated
    });
    let terminated = terminated.clone();
    let succeed = move |mut exits: ResMut<Messages<AppExit>>, handle: Option<Res<CoordinatorHandle>>| {
        if terminated.load(Ordering::Relaxed) && handle.is_some_and(|handle| handle.has_saved_everything()) {
            let by_signal = AppExit::from_code(EXIT_CODE);
            let ends: Vec<_> = exits.drain().collect();
            exits.write_batch(ends.into_iter().map(|end| if end == by_signal { AppExit::Success } else { end }));
        }
    };
    app.add_systems(Last, succeed.after(ViewSystems::Send));
}

/// Handles each signal that has no other handler. `ctrlc` handles all three signals or none, and none if one of them is
/// ignored, as SIGINT and SIGHUP are in a process that a script started in the background or with `nohup`.
#[cfg(unix)]
fn handle_each(app: &mut App) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, OnceLock};

    static ENDS: OnceLock<Arc<AtomicBool>> = OnceLock::new();

    let ends = ENDS.get_or_init(|| {
        let ends = Arc::<AtomicBool>::default();
        // Systems that do not tell which signals have handlers are left alone.
        let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return ends };
        for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_taken(&status, *signal)) {
            // A second signal ends the process at once. This handler comes first, so it does not see the flag of its own signal.
            let twice = signal_hook::flag::register_conditional_shutdown(signal, EXIT_CODE.into(), ends.clone());
            if let Err(error) = twice.and_then(|_| signal_hook::flag::register(signal, ends.clone())) {
                warn!("signal {signal} ends the process without a last save: {error}");
            }
        }
        ends
    });
    let ends = ends.clone();
    app.add_systems(Update, move |mut exit: MessageWriter<AppExit>| {
        if ends.load(Ordering::Relaxed) {
            exit.write(AppExit::from_code(EXIT_CODE));
        }
    });
}

/// Returns `true` if the process ignores or handles the signal already, according to Linux.
#[cfg(unix)]
fn is_taken(status: &str, signal: i32) -> bool {
    is_in(status, "SigIgn:", signal) || is_in(status, "SigCgt:", signal)
}

/// Returns `true` if the set of signals with this name contains the signal.
#[cfg(unix)]
fn is_in(status: &str, set: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix(set)?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn ignored_and_handled_signals_are_left_alone() {
        // The state after `nohup` and a shell's `&`, with a handler for SIGUSR1.
        let status = "Name:\tgame\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001007\nSigCgt:\t0000000000000200\n";
        let taken = [1, 2, 3, 10, 13, 15].map(|signal| is_taken(status, signal));
        assert_eq!(taken, [true, true, true, true, true, false]);
        assert!(!is_taken("", 15));
    }
}
