//! Finds the place where a panic on a region thread was raised. Only the panic hook knows it; the payload does not.

use crate::coordinator::messages::faults::RegionFault;
use crate::work::panic_message;
use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    /// The last panic; the ones before it were caught. Its backtrace takes milliseconds to read, so it is read only if the game
    /// does not catch the panic.
    static RAISED: RefCell<Option<(RegionFault, Backtrace)>> = const { RefCell::new(None) };
}

/// Runs `work`. A panic is returned as a fault with the place where it was raised, and with the payload to resume it.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, (RegionFault, Box<dyn Any + Send>)> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            note(info);
            before(info);
        }));
    });
    WATCHED.set(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    WATCHED.set(false);
    let raised = RAISED.take();
    result.map_err(|payload| {
        let reason = panic_message(&*payload);
        // A panic of another thread, or one that resumed after it was caught, is not the last one raised on this thread.
        let raised = raised.filter(|(raised, _)| raised.reason == reason);
        let (location, system) = match (system_of_error(&reason), raised) {
            (Some(system), _) => (None, Some(system)),
            (None, Some((raised, backtrace))) => (raised.location, system_in(&backtrace.to_string())),
            (None, None) => (None, None),
        };
        (RegionFault { location, system, ..RegionFault::new(reason) }, payload)
    })
}

/// The path of this module.
const OWN: &str = module_path!();

fn note(info: &PanicHookInfo) {
    if !WATCHED.get() {
        return;
    }
    let location = info.location().map(ToString::to_string);
    let raised = RegionFault { location, ..RegionFault::new(panic_message(info.payload())) };
    RAISED.set(Some((raised, Backtrace::force_capture())));
}

/// The function that Bevy called as a system: in a backtrace, the game's last function before Bevy's calling functions.
///
/// An inlined function has a name without a path, but the line below names its file.
fn system_in(backtrace: &str) -> Option<String> {
    // The hook and what catches the panic.
    let own_file = format!("{}.rs", OWN.trim_start_matches("bevy_terrane").replace("::", "/"));
    let mut system = None;
    let mut lines = backtrace.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((number, name)) = line.trim_start().split_once(": ") else { continue };
        if number.parse::<u32>().is_err() {
            continue;
        }
        let file = lines.peek().and_then(|line| line.trim_start().strip_prefix("at ")).unwrap_or_default();
        if name.contains("function_system::") || name.contains("run_without_applying_deferred") {
            return system;
        }
        let path = name.trim_start_matches(['<', '&']);
        let foreign = ["std::", "core::", "alloc::", "bevy_ecs::", "rust_begin_unwind", "__rust"];
        let is_foreign = foreign.iter().any(|prefix| path.starts_with(prefix))
            || ["/rustc/", "/bevy_ecs", &own_file].iter().any(|part| file.contains(part))
            || path.starts_with(OWN);
        if !is_foreign {
            system = Some(name.trim_end_matches("::{{closure}}").to_owned());
        }
    }
    None
}

/// The system whose returned error Bevy's handler turned into a panic. The place of such a panic is meaningless.
fn system_of_error(reason: &str) -> Option<String> {
    let (_, rest) = reason.split_once("Encountered an error in ")?;
    let (_, name) = rest.split_once('`')?;
    Some(name.split_once('`')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_panic_is_known() {
        let fails = || {
            if std::hint::black_box(true) {
                panic!("no more {}", "cheese")
            }
        };
        let (caught, _) = catch(fails).err().unwrap();
        assert_eq!(caught.reason, "no more cheese");
        assert!(caught.location.is_some_and(|at| at.contains("panic.rs:")));
        assert!(catch(|| 7).is_ok_and(|seven| seven == 7));
    }

    #[test]
    fn the_place_is_that_of_the_panic_that_is_not_caught() {
        let caught_before = || catch_unwind(|| panic!("caught")).unwrap_err();
        let line = line!() + 4;
        let last = catch(|| {
            let _ = caught_before();
            if std::hint::black_box(true) {
                panic!("not caught")
            }
        });
        let (last, _) = last.err().unwrap();
        assert_eq!(last.reason, "not caught");
        assert!(last.location.is_some_and(|at| at.contains(&format!("panic.rs:{line}:"))));

        // A panic that resumes after another one was caught: no place is better than a wrong one.
        let goes_on = catch::<()>(|| {
            let first = catch_unwind(|| panic!("first")).unwrap_err();
            let _ = caught_before();
            std::panic::resume_unwind(first)
        });
        let (goes_on, _) = goes_on.err().unwrap();
        assert_eq!((goes_on.reason.as_str(), goes_on.location), ("first", None));
    }

    #[test]
    fn the_system_is_the_last_function_before_bevy() {
        let backtrace = "   0: std::backtrace::Backtrace::create\n             at /rustc/library/std\n   \
            1: core::panicking::panic_fmt\n   2: my_game::mobs::eat::{{closure}}\n   3: my_game::mobs::tick_mobs\n   \
            4: core::ops::function::FnMut::call_mut\n   \
            5: <F as bevy_ecs::system::function_system::SystemParamFunction<M>>::run\n   6: my_game::main\n";
        assert_eq!(system_in(backtrace).as_deref(), Some("my_game::mobs::tick_mobs"));
        assert_eq!(system_in("   0: std::panicking::begin_panic\n   1: my_game::main\n"), None);
        let inlined = "   0: panic_fmt\n             at /rustc/core/panicking.rs:80:14\n   1: {closure#0}\n             \
            at ./src/mobs.rs:9:1\n   2: resource_scope<my_game::Food>\n             at /cargo/bevy_ecs-0.19/src/world.rs:7:3\n   \
            3: tick_mobs\n             at ./src/mobs.rs:7:1\n   4: call_mut<fn()>\n             at /rustc/core/ops.rs:1:1\n   \
            5: run_without_applying_deferred<fn()>\n             at /cargo/bevy_ecs-0.19/src/system.rs:1:1\n";
        assert_eq!(system_in(inlined).as_deref(), Some("tick_mobs"));
    }

    #[test]
    fn the_functions_that_catch_a_panic_are_no_systems() {
        let bevy = "  99: run_without_applying_deferred<fn()>\n";
        let backtrace = Backtrace::force_capture().to_string();
        let own = backtrace.find("the_functions_that_catch_a_panic_are_no_systems").unwrap();
        // The frames up to the one of this test, with the line that names its file.
        let end = backtrace[own..].match_indices('\n').nth(1).map_or(backtrace.len(), |(end, _)| own + end + 1);
        assert_eq!(system_in(&format!("{}{bevy}", &backtrace[..end])), None);
        // Inlined, it has no path.
        let inlined = format!("   0: note\n             at ./{}:1:1\n{bevy}", file!());
        assert_eq!(system_in(&inlined), None);
    }

    #[test]
    fn an_error_that_was_returned_names_its_system() {
        let reason = "Encountered an error in system `my_game::eat`: the `food` is bad";
        assert_eq!(system_of_error(reason).as_deref(), Some("my_game::eat"));
        assert_eq!(system_of_error("no more cheese"), None);
    }
}
