//! Dependencies between the rooms (the top-level modules of each crate) point down only. The source text is checked, so that a wrong
//! `use` fails a test instead of waiting for a reviewer. Cargo checks those between crates.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms of some crates, and what they may name.
struct Rooms<'a> {
    /// From top to bottom. A room may name only rooms of the levels below its own.
    levels: &'a [&'a [&'a str]],
    /// Rooms of one level may name each other: they are parts of one type.
    is_level_shared: bool,
    /// The rooms of the names that the crate's root re-exports.
    exports: BTreeMap<&'a str, &'a str>,
}

/// The list includes the rooms of lower crates, which `bevy_terrane` re-exports.
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
    &["light", "body", "path"],
    &["liquid"],
    &["region", "chunk", "object_store"],
    &["block", "entity"],
    &["space", "work"],
    &["bytes"],
];

/// All rooms above the backends add methods to `WorldStore`.
const STORAGE_LEVELS: &[&[&str]] = &[
    &["thread", "upkeep", "world"],
    &[
        "commit",
        "damage",
        "dimensions",
        "folder",
        "load",
        "opacity",
        "remove_dimension",
        "save_batch",
        "tiers",
        "values",
    ],
    &["open_wait", "servers", "walk"],
    &["backends", "envelope", "error", "keys"],
    &["snapshot"],
    &["chunk"],
    &["block", "entity"],
    &["space", "work"],
    &["bytes"],
];

const OBJECTS_LEVELS: &[&[&str]] = &[
    &["compact"],
    &["disk", "error", "file", "recovery", "store"],
    &["batch", "free_list", "index", "payload"],
    &["block"],
    &["work"],
    &["bytes"],
];

/// Promise, crate: Arrows between the modules of each crate point down.
#[test]
fn arrows_point_down() {
    for (source, levels, is_level_shared) in [
        ("src", LEVELS, false),
        ("crates/terrane_world/src", LEVELS, false),
        ("crates/terrane_storage/src", STORAGE_LEVELS, true),
        ("crates/terrane_objects/src", OBJECTS_LEVELS, true),
    ] {
        let source = root().join(source);
        let root_file = fs::read_to_string(source.join("lib.rs")).unwrap();
        let exports = if is_level_shared { exports(&root_file) } else { BTreeMap::new() };
        let rooms = Rooms { levels, is_level_shared, exports };
        let mut findings = Vec::new();
        for file in rust_files(&source) {
            // Unit tests of the lower crates set up whole worlds and files.
            if is_level_shared && file.to_string_lossy().contains("test") {
                continue;
            }
            let module = module_path(file.strip_prefix(&source).unwrap());
            let text = fs::read_to_string(&file).unwrap();
            findings
                .extend(rooms.check(&module, &text).into_iter().map(|finding| format!("{}:{finding}", file.display())));
        }
        assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
    }
}

/// Promise, crate: `region`, `chunk`, `object_store`, `snapshot::schematic` and the distance graph are plain data structures.
#[test]
fn plain_crates_have_no_engine_no_threads_and_no_database() {
    for name in ["terrane_objects", "terrane_world"] {
        let root = root().join("crates").join(name);
        let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
        assert_eq!(foreign_dependency(&manifest, &["bevy", "rocksdb", "crossbeam"]), None, "{name} depends on it");
        for file in rust_files(&root.join("src")).iter().filter(|file| !file.to_string_lossy().contains("tests")) {
            let text = fs::read_to_string(file).unwrap();
            let tokens = tokens(&text);
            let of_std = (0..tokens.len()).filter(|index| tokens[*index].1 == "std");
            let threads = of_std.flat_map(|index| heads(&tokens, index)).find(|(_, name)| *name == "thread");
            assert_eq!(threads, None, "{} uses threads", file.display());
        }
    }
}

/// Promise, crate: Storage and the program `terrane` build without Bevy, and only storage depends on RocksDB.
#[test]
fn storage_and_tools_do_not_depend_on_bevy() {
    let manifest = |folder: &str| fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
    assert_eq!(foreign_dependency(&manifest("crates/terrane_storage"), &["bevy"]), None);
    assert_eq!(foreign_dependency(&manifest("tools"), &["bevy", "rocksdb"]), None);
    assert_eq!(foreign_dependency(&manifest(""), &["rocksdb"]), None);
}

/// Promise, crate: The prelude has at most 80 names.
#[test]
fn the_prelude_is_small() {
    let text = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let prelude = &text[text.find("pub mod prelude {").unwrap()..];
    let tokens = tokens(prelude);
    let words = tokens.iter().map(|(_, token)| *token).filter(|token| *token != "pub");
    // `use crate::room::{A, B};` and `use crate::room::A;`: the names that no `::` follows.
    let uses: Vec<&str> = words.collect();
    let names = uses.split(|token| *token == ";").filter(|path| path.contains(&"crate")).flat_map(|path| {
        path.iter()
            .zip(path.iter().skip(1).chain(["}"].iter()))
            .filter(|(name, after)| name.starts_with(char::is_uppercase) && **after != "::")
    });
    let count = names.count();
    assert!((20..=80).contains(&count), "{count} names");
}

/// Promise, crate: Few items are public only for the next crate.
#[test]
fn hidden_items_are_few() {
    let sources = ["src", "crates/terrane_world/src", "crates/terrane_storage/src", "crates/terrane_objects/src"];
    let files = sources.iter().flat_map(|source| rust_files(&root().join(source)));
    let hidden: usize = files.map(|file| fs::read_to_string(file).unwrap().matches("#[doc(hidden)]").count()).sum();
    assert!(
        hidden <= 45,
        "{hidden} items are `#[doc(hidden)]`: make one of them private, or part of the documented interface"
    );
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The first dependency of a manifest whose name starts with one of `names`, as `name = ..` or in a table of its own. Not
/// `bevy_reflect` as an optional dependency, which does not bring Bevy.
fn foreign_dependency<'a>(manifest: &'a str, names: &[&str]) -> Option<&'a str> {
    let is_foreign = |name: &str| names.iter().any(|foreign| name.trim_matches('"').starts_with(foreign));
    let mut is_in_dependencies = false;
    manifest.lines().find(|line| match line.strip_prefix('[').map(|table| table.trim_end_matches(']')) {
        Some(table) => {
            is_in_dependencies = table.ends_with("dependencies");
            table.split_once("dependencies.").is_some_and(|(_, name)| is_foreign(name))
        }
        None => {
            let is_reflection = line.starts_with("bevy_reflect =") && line.contains("optional = true");
            is_in_dependencies && is_foreign(line) && !is_reflection
        }
    })
}

#[test]
fn dependencies_are_found_in_each_form() {
    let foreign = |manifest| foreign_dependency(manifest, &["bevy"]);
    assert_eq!(foreign("[dependencies]\nbevy = \"0.19\""), Some("bevy = \"0.19\""));
    assert_eq!(foreign("[dependencies.bevy_ecs]\nversion = \"0.19\""), Some("[dependencies.bevy_ecs]"));
    assert_eq!(foreign("[target.'cfg(unix)'.dependencies.bevy]"), Some("[target.'cfg(unix)'.dependencies.bevy]"));
    assert_eq!(foreign("[dev-dependencies]\nbevy_reflect = \"0.19\""), Some("bevy_reflect = \"0.19\""));
    let without = "[features]\nbevy = []\n[dependencies]\nbevy_reflect = { version = \"0.19\", optional = true }\n# bevy\nserde = \"1\"";
    assert_eq!(foreign(without), None);
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect_rust_files(directory, &mut files);
    files.sort();
    assert!(!files.is_empty(), "no sources found in {}", directory.display());
    files
}

/// The rooms of the names that a crate's root re-exports, by its `use room::..::{A, B};`.
fn exports(root_file: &str) -> BTreeMap<&str, &str> {
    let tokens = tokens(root_file);
    let words: Vec<&str> = tokens.iter().map(|(_, token)| *token).collect();
    let mut exports = BTreeMap::new();
    for item in words.split(|token| *token == ";") {
        let Some(at) = item.iter().rposition(|token| *token == "use") else { continue };
        let path = &item[at + 1..];
        let names = path.iter().skip(1).filter(|name| name.starts_with(char::is_alphabetic));
        exports.extend(names.map(|name| (*name, path[0])));
    }
    exports
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

impl Rooms<'_> {
    /// The errors in one file, as `line: message`. `lib.rs` assembles the rooms and may name them all.
    fn check(&self, module: &[String], text: &str) -> Vec<String> {
        let room = module[0].as_str();
        if room == "lib" {
            return Vec::new();
        }
        let Some(level) = self.level_of(room) else {
            return vec![format!(
                "1: the room `{room}` has no level; give it one in the LEVELS of tests/it/architecture.rs"
            )];
        };
        let tokens = tokens(text);
        let mut findings = Vec::new();
        for (line, name) in named_rooms(&tokens, module.len()) {
            // Types to which many rooms add methods, and two words that all of storage uses.
            if self.is_level_shared && ["WorldStore", "ObjectStore", "ChunkGroup", "Tier"].contains(&name) {
                continue;
            }
            let named = match self.exports.get(name) {
                Some(&lower) if lower.starts_with("terrane_") && self.level_of(name).is_none() => continue,
                Some(&room) if !room.starts_with("terrane_") => room,
                _ => name,
            };
            if named == room {
                continue;
            }
            let problem = match self.level_of(named) {
                None => "which is no room: name the room that defines it, or give a new room a level in LEVELS",
                Some(other) if other < level => "which is above it: arrows point down only",
                Some(other) if other == level && !self.is_level_shared => "which is beside it: arrows point down only",
                Some(_) => continue,
            };
            findings.push(format!("{line}: `{room}` names `crate::{name}`, {problem}"));
        }
        findings
    }

    fn level_of(&self, room: &str) -> Option<usize> {
        self.levels.iter().position(|level| level.contains(&room))
    }
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
        let rooms = Rooms { levels: LEVELS, is_level_shared: false, exports: BTreeMap::new() };
        rooms.check(&module_path(Path::new(file)), text)
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
    fn names_of_the_root_belong_to_the_room_that_defines_them() {
        let root = "pub use b::inner::{C, D};\npub use a::E;\nuse terrane_world::{space, region};";
        let rooms = Rooms { levels: &[&["a"], &["b", "c"], &["space"]], is_level_shared: true, exports: exports(root) };
        let check = |file: &str, text: &str| rooms.check(&module_path(Path::new(file)), text).len();
        assert_eq!(check("a.rs", "use crate::{C, E};\nuse super::D;\nuse crate::space::BlockPos;"), 0);
        assert_eq!(check("b.rs", "use crate::{C, E};"), 1);
        assert_eq!(check("c.rs", "use super::D;\nuse super::a::inner;"), 1);
    }

    #[test]
    fn the_crates_root_may_name_every_room() {
        assert_eq!(findings("lib.rs", "pub use crate::plugin::TerranePlugin;"), [""; 0]);
    }
}
