//! A game made from `template/` under another name, as `cargo generate` makes it, built in the workspace's build directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The name in the template.
const PLACEHOLDER: &str = "my_game";
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
        fs::copy(root.join("Cargo.lock"), game.join("Cargo.lock"))?;
        let manifest = fs::read_to_string(game.join("Cargo.toml"))?;
        let manifest = in_workspace(&manifest, root, &fs::read_to_string(root.join("Cargo.toml"))?);
        fs::write(game.join("Cargo.toml"), manifest)
    };
    make().map_err(|error| format!("{}: {error}", game.display()))?;
    Ok(game)
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

/// The game's manifest with the workspace's crate and profiles. It also depends on those crates of the workspace that switch on
/// features of Bevy and others, so that the game shares the workspace's build.
fn in_workspace(game: &str, root: &Path, workspace: &str) -> String {
    let rest = workspace.split_once("\n[profile.dev]").map_or("", |(_, rest)| rest);
    let profiles = rest.split_once("\n[package.metadata").map_or(rest, |(profiles, _)| profiles);
    let path = |of: &str| root.join(of).display().to_string();
    let unify = format!(
        "[dependencies]\nbarrels = {{ path = {:?} }}\nterrane_postgres = {{ path = {:?}, features = [\"server\"] }}\n",
        path("examples/barrels"),
        path("crates/terrane_postgres")
    );
    let game = game.replacen("[dependencies]\n", &unify, 1);
    format!(
        "{game}\n[workspace]\n\n[patch.crates-io]\nbevy_terrane = {{ path = {:?} }}\n\n[profile.dev]{profiles}",
        path("")
    )
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

    #[test]
    fn a_game_in_the_workspace_has_its_profiles_and_its_features() {
        let [game, workspace] =
            ["template/Cargo.toml", "Cargo.toml"].map(|path| fs::read_to_string(root().join(path)).unwrap());
        let manifest = in_workspace(&game, Path::new("/here"), &workspace);
        for line in [
            "name = \"my_game\"",
            "[workspace]",
            "bevy_terrane = { path = \"/here/\" }",
            "debug = \"line-tables-only\"",
            "[profile.dev.package.zstd-sys]",
            "barrels = { path = \"/here/examples/barrels\" }",
        ] {
            assert!(manifest.contains(line), "{line}: {manifest}");
        }
    }
}
