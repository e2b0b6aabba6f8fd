//! The page of promises, `docs/promises.md`, names tests that there are.

use std::fs;
use std::path::{Path, PathBuf};

/// The last cells of the page's rows.
fn cells(page: &str) -> impl Iterator<Item = &str> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.filter_map(|row| row.rsplit_once(" | ")).filter(|row| *row != ("promise", "test")).map(|(_, tests)| tests)
}

/// The tests that a cell names: paths in backticks.
fn named(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2).filter(|name| name.contains("::"))
}

/// The file that the path of a test leads to, and what is left of the path: modules in that file, and the function.
fn file<'a>(root: &Path, test: &'a str) -> Option<(PathBuf, Vec<&'a str>)> {
    let path: Vec<&str> = test.split("::").collect();
    let (folder, begin) = match path[0] {
        "it" => ("tests/it", 1),
        "xtask" => ("xtask/src", 1),
        _ => ("src", 0),
    };
    (begin + 1..path.len()).rev().find_map(|end| {
        let file = root.join(folder).join(path[begin..end].join("/")).with_extension("rs");
        file.exists().then(|| (file, path[end..].to_vec()))
    })
}

fn is_there(root: &Path, test: &str) -> bool {
    let Some((file, rest)) = file(root, test) else { return false };
    let text = fs::read_to_string(file).unwrap();
    let Some((function, modules)) = rest.split_last() else { return false };
    let has_modules = modules.iter().all(|module| text.contains(&format!("mod {module} {{")));
    has_modules && text.contains(&format!("fn {function}("))
}

#[test]
fn every_test_that_the_page_names_is_there_and_every_promise_has_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/promises.md")).unwrap();
    let missing: Vec<&str> = cells(&page).flat_map(named).filter(|test| !is_there(root, test)).collect();
    assert!(missing.is_empty(), "not there, or elsewhere by now: {missing:#?}");
    // Where the test is no function, words in italics say what it is.
    let without = cells(&page).filter(|cell| named(cell).next().is_none() && !cell.starts_with('*')).count();
    assert_eq!(without, 0, "promises without a test");
    assert!(cells(&page).flat_map(named).count() > 300, "the page is read");
}
