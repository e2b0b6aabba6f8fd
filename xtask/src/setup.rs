//! Finds the requirements of the build and the demo, and installs missing ones.

mod apt;
mod machine;
mod needs;

use machine::Machine;
use needs::Need;
pub use needs::Of;
use std::env;
use std::process::Command;

/// Ensures that all requirements other than Rust are installed: libclang, a C++ compiler, Vulkan, with a display X11, and those of some
/// purposes.
pub fn machine(also: &[Of]) -> Result<(), String> {
    if env::var_os("XTASK_SKIP_SETUP").is_some_and(|value| value == "1") {
        return Ok(());
    }
    if !cfg!(target_os = "linux") {
        println!("Needed besides Rust: a C++ compiler, libclang (LIBCLANG_PATH) and a graphics driver.");
        return Ok(());
    }
    let missing = needs::missing(&Machine::this(), also);
    if missing.is_empty() {
        return Ok(());
    }
    println!("Missing on this machine:\n{}", list(&missing));
    apt::install(&packages(&missing))?;

    let still_missing = needs::missing(&Machine::this(), also);
    if still_missing.is_empty() {
        return Ok(());
    }
    Err(format!("installed, but still not found (XTASK_SKIP_SETUP=1 continues without):\n{}", list(&still_missing)))
}

/// Ensures that rustfmt and clippy are installed, which a minimal Rust lacks.
pub fn rust_components() -> Result<(), String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    for (tool, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        let works = || Command::new(&cargo).args([tool, "--version"]).output().is_ok_and(|out| out.status.success());
        if works() {
            continue;
        }
        println!("Missing: {component}. Running `rustup component add {component}`");
        let added = Command::new("rustup").args(["component", "add", component]).status();
        if !added.is_ok_and(|status| status.success()) || !works() {
            return Err(format!("`cargo {tool}` does not work; install it with `rustup component add {component}`"));
        }
    }
    Ok(())
}

fn list(needs: &[&Need]) -> String {
    needs.iter().map(|need| format!("  {:<20} {}\n", need.package, need.purpose)).collect()
}

/// The packages in the order of the needs, without duplicates.
fn packages(needs: &[&Need]) -> Vec<&'static str> {
    let mut packages = Vec::new();
    for need in needs {
        if !packages.contains(&need.package) {
            packages.push(need.package);
        }
    }
    packages
}
