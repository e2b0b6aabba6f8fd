//! A game made from `template/` under another name, as `cargo generate` makes it, built in the workspace's build directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name in the template.
pub const PLACEHOLDER: &str = "my_game";
/// Files for `cargo generate` alone.
const RECIPE: [&str; 2] = ["cargo-generate.toml", "rename.rhai"];

/// Makes a game of this name in `target`, and returns its folder.
pub fn make_game(root: &Path, name: &str) -> Result<PathBuf, String> {
    let game = root.join("target").join(name);
    let make = || -> io::Result<()> {
        // Only what an earlier run left is removed: the game's world and pictures too.
        if game.exists() {
            fs::remove_dir_all(&game)?;
        }
        fill_in(&root.join("template"), &game, name)?;
        let manifest = fs::read_to_string(game.join("Cargo.toml"))?;
        // The game is inside of the workspace's folder, and not a part of it.
        let patch = ["", "crates/terrane_dev", "crates/terrane_overlay", "crates/terrane_render"].map(|folder| {
            let name = folder.split_once('/').map_or("bevy_terrane", |(_, name)| name);
            format!("{name} = {{ path = {:?} }}", root.join(folder).display().to_string())
        });
        let patch = patch.join("\n");
        fs::write(game.join("Cargo.toml"), format!("{manifest}\n[workspace]\n\n[patch.crates-io]\n{patch}\n"))
    };
    make().map_err(|error| format!("{}: {error}", game.display()))?;
    Ok(game)
}

/// Writes the template's `Cargo.lock` and fails, if it has other versions than the workspace. `tree` makes a cargo command that reads the lock
/// file of the game in a folder, and corrects it.
pub fn check_lock_file(root: &Path, tree: impl FnOnce(&Path) -> Result<Command, String>) -> Result<(), String> {
    let game = make_game(root, PLACEHOLDER)?;
    let (template, needed) = (root.join("template/Cargo.lock"), game.join("Cargo.lock"));
    let read = |path: &Path| fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    // Cargo removes what the game does not need.
    fs::copy(root.join("Cargo.lock"), &needed).map_err(|error| format!("{}: {error}", needed.display()))?;
    let mut tree = tree(&game)?;
    let output = tree.output().map_err(|error| format!("cannot start {tree:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{tree:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let needed = read(&needed)?;
    if read(&template).is_ok_and(|versions| versions == needed) {
        return Ok(());
    }
    fs::write(&template, needed).map_err(|error| format!("{}: {error}", template.display()))?;
    Err(format!("{} was not up to date, and is written: commit it", template.display()))
}

/// Copies the template, with the name of the game in place of the placeholder.
fn fill_in(from: &Path, to: &Path, name: &str) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => fill_in(&path, &copy, name)?,
            false if RECIPE.iter().any(|file| path.ends_with(file)) => {}
            false => fs::write(copy, fs::read_to_string(&path)?.replace(PLACEHOLDER, name))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }

    /// Promise, examples: `cargo generate` gives the template another name everywhere.
    #[test]
    fn the_recipe_renames_exactly_the_files_that_have_the_name() {
        let template = root().join("template");
        let recipe = fs::read_to_string(template.join("rename.rhai")).unwrap();
        for file in files(&template) {
            let name = file.strip_prefix(&template).unwrap().to_str().unwrap();
            let has_name = fs::read_to_string(&file).unwrap().contains(PLACEHOLDER);
            assert!(
                RECIPE.contains(&name) || recipe.contains(&format!("{name:?}")) == has_name,
                "rename.rhai and {name}"
            );
        }
    }

    /// The levels of the workspace, with which the game can share its build directory.
    #[test]
    fn the_template_compiles_dependencies_as_the_workspace_does() {
        let [game, workspace] =
            ["template/.cargo/config.toml", "Cargo.toml"].map(|path| fs::read_to_string(root().join(path)).unwrap());
        let all = "[profile.dev.package.\"*\"]\nopt-level = 1\ndebug = false\ndebug-assertions = false\noverflow-checks = false\n";
        assert!(game.contains(all) && workspace.contains(all));
        let faster =
            workspace.split("[profile.dev.package.").skip(1).filter_map(|part| part.split_once("]\nopt-level = "));
        let faster: Vec<_> = faster.filter(|(name, _)| *name != "\"*\"").collect();
        assert!(faster.len() >= 6);
        for (name, rest) in faster {
            let line = format!("{name} = {{ opt-level = {} }}", rest.trim().split('\n').next().unwrap());
            assert!(game.contains(&line), "{line}");
        }
    }
}
