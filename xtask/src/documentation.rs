//! `cargo xtask doc`: the documentation, with everything to which its pages link.

use crate::cargo::Cargo;
use crate::test::root;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The files and folders to which README and guide link, each with the place where rustdoc's pages look for it. Rustdoc itself copies no
/// pictures.
const LINKED: [(&str, &str); 11] = [
    ("assets/jacksboro_fault_dem.md", "assets/jacksboro_fault_dem.md"),
    ("docs", "docs"),
    ("docs", "guide"),
    ("examples", "examples"),
    ("template", "template"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("CONTRIBUTING.md", "CONTRIBUTING.md"),
    ("crates/terrane_shared_build/README.md", "crates/terrane_shared_build/README.md"),
    ("GLOSSARY.md", "GLOSSARY.md"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("LICENSE-MIT", "LICENSE-MIT"),
];

pub fn run() -> Result<ExitCode, String> {
    let cargo = Cargo::from_environment();
    build(&cargo)?;
    println!("\nRead {}", pages(&cargo).join("index.html").display());
    Ok(ExitCode::SUCCESS)
}

/// Builds the documentation, with warnings denied.
pub fn build(cargo: &Cargo) -> Result<(), String> {
    let ours = [
        "bevy_terrane",
        "terrane_dev",
        "terrane_gizmos",
        "terrane_inspect",
        "terrane_metrics",
        "terrane_net",
        "terrane_objects",
        "terrane_overlay",
        "terrane_remote",
        "terrane_render",
        "terrane_storage",
        "terrane_world",
    ];
    let mut documentation = cargo.command(&["doc", "--no-deps", "--all-features"]);
    documentation.args(ours.map(|name| format!("--package={name}")));
    let status = documentation.env("RUSTDOCFLAGS", "-D warnings").status();
    let status = status.map_err(|error| format!("cannot start {documentation:?}: {error}"))?;
    if !status.success() {
        return Err(format!("{documentation:?} failed ({status})"));
    }
    for (from, to) in LINKED {
        copy(&root().join(from), &pages(cargo).join(to)).map_err(|error| format!("{from}: {error}"))?;
    }
    Ok(())
}

fn pages(cargo: &Cargo) -> PathBuf {
    cargo.target().join("doc/bevy_terrane")
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    fs::copy(from, to).map(drop)
}
