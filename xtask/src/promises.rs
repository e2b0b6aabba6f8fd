//! `cargo xtask promises` writes a page of the promises of the documentation, with the tests that keep them.
//!
//! A promise is a line of its own in the doc comment of its test: `/// Promise, topic: A sentence.` All tests that keep the same
//! promise repeat the sentence.

use crate::cargo::Cargo;
use crate::test::root;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

const PAGE: &str = "promises.md";

/// Folders with tests, each with the path prefix of its tests.
const SOURCES: [(&str, &str); 10] = [
    ("crates/terrane_objects/src", "terrane_objects::"),
    ("crates/terrane_storage/src", "terrane_storage::"),
    ("crates/terrane_world/src", "terrane_world::"),
    ("examples/barrels/tests", "barrels::"),
    ("examples/far_server/tests", "far_server::"),
    ("examples/tests", "examples::"),
    ("src", ""),
    ("tests/it", "it::"),
    ("tools/src", "tools::"),
    ("xtask/src", "xtask::"),
];

const HEAD: &str = "\
# Promises and their tests

Each promise of the documentation is a doc comment of the tests that fail if it is broken: `/// Promise, topic: A sentence.`
`cargo xtask promises` has written this page from them. The path of a test begins with `it::` for `tests/it`, with `xtask::` for `xtask/src`, with `examples::` for `examples/tests`, and with the name of a crate for `crates`; all
others are in `src`.
";

const NO_TEST: &str = "
## Promises without a test

* **Figures** are those of benches and examples on one machine: see docs/performance.md.
* **Worlds live in memory without the feature `rocksdb`**: tests are built with all features. `cargo xtask test` lints the crate without
  it.
* **CI runs what `cargo xtask test` runs**: `.ci/run` is that command.
* **The programs of the README and of the docs compile and run**: they are doc tests.
* **Pictures**: people look at the pictures of the README, the guide and the examples.
* **The tools exit with 1 after an error**: their `main` returns `ExitCode::FAILURE`; the errors are tested.
";

/// Promises by topic, each with the tests that keep it.
type Promises = BTreeMap<String, Vec<(String, Vec<String>)>>;

/// Writes the page.
pub fn run() -> Result<ExitCode, String> {
    let target = Cargo::from_environment().target().to_owned();
    let path = target.join(PAGE);
    let write = |page: String| fs::create_dir_all(&target).and_then(|()| fs::write(&path, page));
    write(page(&root())?).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    println!("Read {}", path.display());
    Ok(ExitCode::SUCCESS)
}

fn page(root: &Path) -> Result<String, String> {
    let mut promises = Promises::new();
    for (folder, prefix) in SOURCES {
        collect(&root.join(folder), prefix, &mut promises)?;
    }
    let mut page = HEAD.to_owned();
    for (topic, promises) in promises {
        let (first, rest) = topic.split_at(1);
        page += &format!("\n## {}{rest}\n\n| promise | tests |\n|---|---|\n", first.to_uppercase());
        for (sentence, tests) in promises {
            let tests: Vec<_> = tests.iter().map(|test| format!("`{test}`")).collect();
            page += &format!("| {} | {} |\n", sentence.replace('|', "\\|"), tests.join("<br>"));
        }
    }
    Ok(page + NO_TEST)
}

/// Adds the promises of a folder and its subfolders, sorted by name.
fn collect(folder: &Path, module: &str, promises: &mut Promises) -> Result<(), String> {
    let fail = |error| format!("cannot read {}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(fail)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = entries.collect::<Result<Vec<_>, _>>().map_err(fail)?;
    paths.sort();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            collect(&path, &format!("{module}{name}::"), promises)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            let module = if name == "main" || name == "lib" { module } else { &format!("{module}{name}::") };
            read(&text, module, promises).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

/// Adds the promises of a file.
fn read(text: &str, module: &str, promises: &mut Promises) -> Result<(), String> {
    // The open modules within the file, each with its indentation.
    let mut modules: Vec<(usize, &str)> = Vec::new();
    let mut found: Vec<(String, String)> = Vec::new();
    let mut is_open = false;
    for (number, line) in text.lines().enumerate() {
        let code = line.trim_start();
        let indentation = line.len() - code.len();
        let wrong = |what: &str| Err(format!("line {}: {what}", number + 1));
        if let Some(promise) = code.strip_prefix("/// Promise, ") {
            let Some((topic, sentence)) = promise.split_once(": ") else { return wrong("a promise without a topic") };
            found.push((topic.to_owned(), sentence.to_owned()));
            is_open = true;
        } else if let (true, Some(more), Some((_, sentence))) = (is_open, code.strip_prefix("/// "), found.last_mut()) {
            *sentence = format!("{sentence} {more}");
        } else if code.starts_with("//") || code.starts_with("#[") {
            is_open = false;
        } else if let Some((_, name)) = code.split_once("fn ").filter(|_| !found.is_empty()) {
            let name = name.split('(').next().unwrap_or_default();
            let inner: String = modules.iter().map(|(_, module)| format!("{module}::")).collect();
            found.drain(..).for_each(|promise| add(promise, format!("{module}{inner}{name}"), promises));
            is_open = false;
        } else if !found.is_empty() {
            return wrong("a promise without a test below it");
        } else if let Some((_, name)) = code.strip_suffix(" {").and_then(|code| code.split_once("mod ")) {
            modules.push((indentation, name));
        } else if code == "}" && modules.last().is_some_and(|(of, _)| *of == indentation) {
            modules.pop();
        }
    }
    if found.is_empty() { Ok(()) } else { Err("a promise at the end, without a test".to_owned()) }
}

fn add((topic, sentence): (String, String), test: String, promises: &mut Promises) {
    let sentence = sentence.strip_suffix('.').unwrap_or(&sentence).to_owned();
    let of_topic = promises.entry(topic).or_default();
    match of_topic.iter_mut().find(|(known, _)| *known == sentence) {
        Some((_, tests)) => tests.push(test),
        None => of_topic.push((sentence, vec![test])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise, commands: Each promise in a doc comment stands above a test that keeps it.
    #[test]
    fn each_promise_has_its_tests() {
        let page = page(&root()).unwrap();
        let promises = page.lines().filter(|line| line.starts_with("| ") && line.contains("::")).count();
        assert!(promises > 300, "{promises} promises");
    }

    #[test]
    fn a_promise_is_read_with_its_tests() {
        let text = [
            "/// Shown before.",
            "///",
            "/// Promise, ground: The ground",
            "/// bears | all.",
            "/// Promise, air: It flows.",
            "#[test]",
            "fn first() {",
            "}",
            "mod tests {",
            "    mod inner {",
            "        /// Promise, ground: The ground bears | all.",
            "        #[cfg(unix)]",
            "        #[test]",
            "        fn second(place: u8) {}",
            "    }",
            "    /// Promise, air: It is blue.",
            "    fn third() {}",
            "}",
        ]
        .join("\n");
        let mut promises = Promises::new();
        read(&text, "it::world::", &mut promises).unwrap();
        let of = |topic: &str| -> Vec<(&str, String)> {
            promises[topic].iter().map(|(sentence, tests)| (sentence.as_str(), tests.join(" "))).collect()
        };
        let both = "it::world::first it::world::tests::inner::second".to_owned();
        assert_eq!(of("ground"), [("The ground bears | all", both)]);
        let third = ("It is blue", "it::world::tests::third".to_owned());
        assert_eq!(of("air"), [("It flows", "it::world::first".to_owned()), third]);
    }

    #[test]
    fn a_promise_that_no_test_keeps_is_an_error() {
        for (text, line) in [
            ("/// Promise, ground: It bears.\nstruct Ground;\n", "line 2: a promise without a test below it"),
            ("/// Promise: It bears.\n/// Promise, of nothing\nfn first() {}\n", "line 2: a promise without a topic"),
            ("/// Promise, ground: It bears.\n", "a promise at the end, without a test"),
        ] {
            assert_eq!(read(text, "", &mut Promises::new()).unwrap_err(), line);
        }
    }
}
