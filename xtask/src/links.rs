//! Checks that every relative link and picture of the documentation leads somewhere.

use crate::test::root;
use std::fs;
use std::path::{Path, PathBuf};

fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let all = entries.flat_map(|path| if path.is_dir() { pages(&path) } else { vec![path] });
    all.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The page without its blocks of code.
fn text(page: &Path) -> String {
    let page = fs::read_to_string(page).unwrap();
    page.split("```").step_by(2).collect()
}

/// The targets of links and pictures in the usual form, `[text](target)`.
fn targets(text: &str) -> Vec<&str> {
    text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next()).collect()
}

/// The anchors of a page's headings, as GitHub and rustdoc make them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let letters = heading.trim_start_matches('#').trim().chars();
        letters.filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter)).collect::<String>()
    };
    headings.map(|heading| anchor(heading).to_lowercase().replace(' ', "-")).collect()
}

/// Promise, crate: Every relative link and picture of the README and of the pages in `docs` leads somewhere.
#[test]
fn every_link_and_picture_is_there() {
    let mut all = pages(&root().join("docs"));
    all.extend(["README.md", "CONTRIBUTING.md", "GLOSSARY.md", "CHANGELOG.md"].map(|page| root().join(page)));
    let mut broken = Vec::new();
    for page in &all {
        for target in targets(&text(page)).into_iter().filter(|target| !target.contains("://")) {
            let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
            let file = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            let has_anchor = |anchor: &str| anchors(&text(&file)).iter().any(|heading| heading == anchor);
            if !file.exists() || anchor.is_some_and(|anchor| !has_anchor(anchor)) {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(all.len() > 20);
}
