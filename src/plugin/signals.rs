//! Ends the app in order when the process gets a signal to end, so that the world is saved.

use bevy::app::{TerminalCtrlCHandlerPlugin, ctrlc};
use bevy::prelude::*;

/// Ends the app on SIGINT, SIGTERM and SIGHUP (Ctrl+C, Ctrl+Break and closing the console on Windows), unless the game
/// handles them itself.
pub(super) fn handle(app: &mut App) {
    match ctrlc::try_set_handler(TerminalCtrlCHandlerPlugin::gracefully_exit) {
        Ok(()) if !app.is_plugin_added::<TerminalCtrlCHandlerPlugin>() => {
            app.add_systems(Update, TerminalCtrlCHandlerPlugin::exit_on_flag);
        }
        Ok(()) => {}
        // Bevy's plugin or the game handles the signals, or some are ignored.
        Err(_) => handle_each(app),
    }
}

#[cfg(not(unix))]
fn handle_each(_: &mut App) {}

/// Handles each signal that has no other handler. `ctrlc` handles all three signals or none, and none if one of them is
/// ignored, as SIGINT and SIGHUP are in a process that a script started in the background or with `nohup`.
#[cfg(unix)]
fn handle_each(app: &mut App) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, OnceLock};

    static ENDS: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    const EXIT_CODE: u8 = 130;

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
    let mask = |name| status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix(name)?.trim(), 16).ok());
    ["SigIgn:", "SigCgt:"].into_iter().filter_map(mask).any(|mask| mask >> (signal - 1) & 1 == 1)
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
