//! Dependencies between the rooms (the top-level modules of `bevy_terrane` and of `terrane_world`) point down only. The source
//! text is checked, so that a wrong `use` fails a test instead of waiting for a reviewer. Cargo checks those between crates.

use std::fs;
use std::path::{Path, PathBuf};

/// The rooms from top to bottom. A room may name only rooms of the levels below its own. The list includes the rooms of lower
/// crates, which `bevy_terrane` re-exports.
const LEVELS: &[&[&str]] = &[
    &["dev", "guide", "testing"],
    &["plugin"],
    &["overlay", "render"],
    &["view"],
    &["coordinator"],
    &["simulation"],
    &["storage"],
    &["snapshot"],
    &["chunk_sync", "generation"],
    &["region", "chunk", "object_store"],
    &["block", "entity"],
    &["space", "work"],
    &["bytes"],
];

#[test]
fn arrows_point_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut findings = Vec::new();
    for source in [root.join("src"), root.join("crates/terrane_world/src")] {
        let mut files = Vec::new();
        collect_rust_files(&source, &mut files);
        files.sort();
        assert!(files.iter().any(|file| file.ends_with("lib.rs")), "no sources found in {}", source.display());
        for file in &files {
            let module = module_path(file.strip_prefix(&source).unwrap());
            let text = fs::read_to_string(file).unwrap();
            findings.extend(check(&module, &text).into_iter().map(|finding| format!("{}:{finding}", file.display())));
        }
    }
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

/// Promise, crate: `region`, `chunk`, `object_store`, `snapshot::schematic` and the distance graph are plain data structures.
#[test]
fn plain_crates_know_no_engine_no_threads_and_no_database() {
    for name in ["terrane_objects", "terrane_world"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(name);
        let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
        let foreign = |line: &&str| ["bevy", "rocksdb", "crossbeam"].iter().any(|foreign| line.starts_with(foreign));
        // An optional dependency of Bevy's, which does not bring Bevy.
        let reflection = |line: &&str| line.starts_with("bevy_reflect =") && line.contains("optional = true");
        assert_eq!(manifest.lines().filter(foreign).find(|line| !reflection(line)), None, "{name} depends on it");
        let mut files = Vec::new();
        collect_rust_files(&root.join("src"), &mut files);
        for file in files.iter().filter(|file| !file.to_string_lossy().contains("tests")) {
            let text = fs::read_to_string(file).unwrap();
            let tokens = tokens(&text);
            let of_std = (0..tokens.len()).filter(|index| tokens[*index].1 == "std");
            let threads = of_std.flat_map(|index| heads(&tokens, index)).find(|(_, name)| *name == "thread");
            assert_eq!(threads, None, "{} uses threads", file.display());
        }
    }
}

pub fn collect_rust_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn module_path(file: &Path) -> Vec<String> {
    file.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect()
}

/// The errors in one file, as `line: message`. `lib.rs` assembles the rooms and may name them all.
fn check(module: &[String], text: &str) -> Vec<String> {
    let room = module[0].as_str();
    if room == "lib" {
        return Vec::new();
    }
    let Some(level) = level_of(room) else {
        return vec![format!("1: the room `{room}` has no level; give it one in LEVELS of tests/it/architecture.rs")];
    };
    let tokens = tokens(text);
    let mut findings = Vec::new();
    for (line, name) in named_rooms(&tokens, module.len()) {
        if name == room {
            continue;
        }
        let problem = match level_of(name) {
            None => "which is no room: name the room that defines it, or give a new room a level in LEVELS",
            Some(other) if other < level => "which is above it: arrows point down only",
            Some(other) if other == level => "which is beside it: arrows point down only",
            Some(_) => continue,
        };
        findings.push(format!("{line}: `{room}` names `crate::{name}`, {problem}"));
    }
    findings
}

fn level_of(room: &str) -> Option<usize> {
    LEVELS.iter().position(|level| level.contains(&room))
}

/// The names after `crate::`, or after enough `super::` to reach the crate's root from a module at `depth`.
fn named_rooms<'a>(tokens: &[Token<'a>], depth: usize) -> Vec<Token<'a>> {
    let mut rooms = Vec::new();
    let mut supers = 0;
    let mut braces = 0;
    // The number of open braces where each enclosing inline module began.
    let mut inline_modules = Vec::new();
    for (index, &(_, token)) in tokens.iter().enumerate() {
        match token {
            "{" => {
                if index >= 2 && tokens[index - 2].1 == "mod" {
                    inline_modules.push(braces);
                }
                braces += 1;
            }
            "}" => {
                braces -= 1;
                inline_modules.pop_if(|start| *start == braces);
            }
            _ => {}
        }
        match token {
            "super" => supers += 1,
            "::" => {}
            _ => supers = 0,
        }
        if token == "crate" || token == "super" && supers == depth + inline_modules.len() {
            rooms.extend(heads(tokens, index));
        }
    }
    rooms
}

/// The first names below the path that ends at `root`: one for `root::a::b`, several for `root::{a, b::{c, d}}`.
fn heads<'a>(tokens: &[Token<'a>], root: usize) -> Vec<Token<'a>> {
    let text = |index: usize| tokens.get(index).map_or("", |token| token.1);
    if text(root + 1) != "::" {
        return Vec::new();
    }
    if text(root + 2) != "{" {
        return tokens.get(root + 2).copied().into_iter().filter(|token| token.1 != "super").collect();
    }
    let mut heads = Vec::new();
    let mut open = 0;
    for (index, &token) in tokens.iter().enumerate().skip(root + 2) {
        match token.1 {
            "{" => open += 1,
            "}" => open -= 1,
            _ if open == 1 && matches!(text(index - 1), "{" | ",") => heads.push(token),
            _ => {}
        }
        if open == 0 {
            break;
        }
    }
    heads
}

/// A line number, from 1, and the text of a word, of `::` or of one other character.
type Token<'a> = (usize, &'a str);

/// Splits Rust source text into tokens, without comments, strings and characters.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = skipped(rest);
        let taken = if length > 0 {
            length
        } else {
            let length = match first {
                _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                ':' if rest.starts_with("::") => 2,
                _ => first.len_utf8(),
            };
            tokens.push((line, &rest[..length]));
            length
        };
        line += rest[..taken].matches('\n').count();
        rest = &rest[taken..];
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of the whitespace, comment, string, character or lifetime at the start of `text`, or 0.
fn skipped(text: &str) -> usize {
    let until = |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return block_comment(text);
    }
    if let Some(quoted) = text.strip_prefix('\'') {
        let mut characters = quoted.char_indices();
        return match (characters.next(), characters.next()) {
            (Some((_, '\\')), Some((at, escaped))) => until("'", 1 + at + escaped.len_utf8()),
            (Some(_), Some((at, '\''))) => at + 2,
            _ => 1 + quoted.find(|c| !is_word(c)).unwrap_or(quoted.len()),
        };
    }
    let prefix = ["br", "cr", "r", "b", "c", ""]
        .into_iter()
        .find(|prefix| text.strip_prefix(prefix).is_some_and(|rest| rest.trim_start_matches('#').starts_with('"')));
    if let Some(prefix) = prefix {
        let after = &text[prefix.len()..];
        let hashes = after.len() - after.trim_start_matches('#').len();
        if prefix.ends_with('r') {
            return until(&format!("\"{}", "#".repeat(hashes)), prefix.len() + hashes + 1);
        }
        if hashes == 0 {
            return prefix.len() + string(after);
        }
    }
    text.find(|c: char| !c.is_whitespace()).unwrap_or(text.len())
}

/// The length of a block comment, which may be nested.
fn block_comment(text: &str) -> usize {
    let mut open = 0;
    let mut at = 0;
    while at < text.len() {
        let (change, length) = match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => (1, 2),
            [b'*', b'/', ..] => (-1, 2),
            _ => (0, 1),
        };
        open += change;
        at += length;
        if open == 0 {
            break;
        }
    }
    at
}

/// The length of a string, from its opening quote to its closing one.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

mod scanner {
    use super::*;

    fn findings(file: &str, text: &str) -> Vec<String> {
        check(&module_path(Path::new(file)), text)
    }

    /// The lines with errors.
    fn lines(file: &str, text: &str) -> Vec<usize> {
        findings(file, text).iter().map(|finding| finding.split(':').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn an_arrow_down_is_fine() {
        assert_eq!(findings("region/state.rs", "use crate::space::SectionPos;\nuse crate::region::Region;"), [""; 0]);
        assert_eq!(findings("plugin.rs", "use crate::{overlay::Overlay, space::BlockPos};"), [""; 0]);
        assert_eq!(findings("storage/keys.rs", "pub(crate) fn key(chunk: crate::chunk::Chunk) {}"), [""; 0]);
    }

    #[test]
    fn an_arrow_up_is_found_with_its_line() {
        let found = findings("region/state.rs", "use crate::space::SectionPos;\n\nuse crate::storage::Store;");
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("3: `region` names `crate::storage`, which is above it"), "{found:?}");
    }

    #[test]
    fn an_arrow_sideways_is_found() {
        assert_eq!(lines("chunk_sync.rs", "use crate::generation::Generator;"), [1]);
        assert_eq!(lines("chunk.rs", "fn f(_: &crate::region::Region) {}"), [1]);
    }

    #[test]
    fn grouped_uses_are_found() {
        let text = "use crate::{\n    space::{BlockPos, ChunkPos},\n    storage::{self, Store},\n    view,\n};";
        assert_eq!(lines("chunk/format.rs", text), [3, 4]);
        // Names below the first level of a group are not rooms.
        assert_eq!(lines("view.rs", "use crate::{space::{plugin, render::x}, coordinator};"), [0; 0]);
    }

    #[test]
    fn super_is_followed_to_the_root() {
        assert_eq!(lines("chunk.rs", "use super::storage::Store;"), [1]);
        assert_eq!(lines("chunk/format.rs", "use super::super::{space, view};\nuse super::view::View;"), [1]);
        let inline = "mod tests {\n    use super::*;\n    use super::super::view::View;\n}\nuse super::view::View;";
        assert_eq!(lines("chunk.rs", inline), [3, 5]);
        assert_eq!(lines("chunk.rs", "mod a { mod b {} }\nuse super::view;"), [2]);
    }

    #[test]
    fn paths_in_code_and_macros_are_found() {
        assert_eq!(lines("block.rs", "fn f() {\n    crate::view::show();\n}"), [2]);
        assert_eq!(lines("block.rs", "macro_rules! m { () => { $crate::plugin::TerranePlugin } }"), [1]);
        assert_eq!(lines("block.rs", "use ::std::fmt;\n\n#[cfg(test)] mod tests { use crate :: view; }"), [3]);
    }

    #[test]
    fn comments_strings_and_characters_name_nothing() {
        let text = r####"
            //! [`crate::plugin`]
            /* crate::plugin /* crate::plugin */ crate::plugin */
            const A: &str = "crate::plugin \" crate::plugin";
            const B: &[u8] = br##"crate::plugin "# crate::plugin"##;
            const C: [char; 4] = ['"', '\'', '\\', '\u{22}'];
            fn f<'a>(x: &'a str) -> &'a str { x }
            use crate::plugin;
        "####;
        assert_eq!(lines("block.rs", text), [8]);
    }

    #[test]
    fn unknown_rooms_are_refused_with_a_hint() {
        assert!(findings("kitchen/sink.rs", "")[0].contains("LEVELS"));
        assert!(findings("view.rs", "use crate::prelude::*;")[0].contains("`crate::prelude`, which is no room"));
        assert_eq!(lines("view.rs", "use crate::*;"), [1]);
    }

    #[test]
    fn the_crates_root_may_name_every_room() {
        assert_eq!(findings("lib.rs", "pub use crate::plugin::TerranePlugin;"), [""; 0]);
    }
}
