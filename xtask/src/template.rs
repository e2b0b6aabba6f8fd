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
        let read = |path: &str| fs::read_to_string(root.join(path));
        let manifest = fs::read_to_string(game.join("Cargo.toml"))?;
        let manifest = in_workspace(&manifest, root, &read("Cargo.toml")?, &read("examples/Cargo.toml")?);
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

/// The game's manifest with the workspace's crate, profiles and features of dependencies, so that it shares the workspace's build.
fn in_workspace(game: &str, root: &Path, workspace: &str, examples: &str) -> String {
    let section = |text: &str, from: &str, to: &str| -> String {
        let rest = text.split_once(from).map_or("", |(_, rest)| rest);
        rest.split_once(to).map_or(rest, |(section, _)| section).to_owned()
    };
    let unify = section(examples, "# Not used.", "\n\n");
    let unify = unify.split_once('\n').map_or("", |(_, lines)| lines);
    let profiles = section(workspace, "\n[profile.dev]", "\n[package.metadata");
    let game = game.replacen("[dependencies]\n", &format!("[dependencies]\n{unify}\n"), 1);
    format!(
        "{game}\n[workspace]\n\n[patch.crates-io]\nbevy_terrane = {{ path = {:?} }}\n\n[profile.dev]{profiles}",
        root.display().to_string()
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
        let [game, workspace, examples] = ["template/Cargo.toml", "Cargo.toml", "examples/Cargo.toml"]
            .map(|path| fs::read_to_string(root().join(path)).unwrap());
        let manifest = in_workspace(&game, Path::new("/here"), &workspace, &examples);
        for line in [
            "name = \"my_game\"",
            "[workspace]",
            "bevy_terrane = { path = \"/here\" }",
            "debug = \"line-tables-only\"",
            "[profile.dev.package.zstd-sys]",
            "\nrustix = \"1\"\n",
        ] {
            assert!(manifest.contains(line), "{line}: {manifest}");
        }
    }
}
