//! Rules of the project's structure. Arrows between rooms (the top-level modules of a crate, and those of the coordinator)
//! point down only. The source text is checked, so that a wrong `use` fails a test instead of waiting for a reviewer. Cargo checks
//! those between crates.

use crate::source::imports::Imports;
use crate::source::{LIBRARIES, Source, read};
use crate::test::root;
use std::fs;

/// The rooms of a module, from top to bottom. A room may import only rooms of the levels below its own.
struct House {
    folder: &'static str,
    /// The module whose children are the rooms; empty for a whole crate.
    within: &'static [&'static str],
    levels: &'static [&'static [&'static str]],
    /// Rooms of one level may import each other: they are parts of one type.
    is_level_shared: bool,
}

const HOUSES: [House; 6] = [
    House {
        folder: "src",
        within: &[],
        levels: &[&["guide", "testing"], &["plugin"], &["view"], &["coordinator"], &["simulation"]],
        is_level_shared: false,
    },
    House {
        folder: "src",
        within: &["coordinator"],
        levels: &[
            &["handle"],
            &["arenas", "closing"],
            &["jobs"],
            &["answers", "far_view", "passes", "snapshots"],
            &["collect", "servers"],
            &["surroundings"],
            &["stream", "tiers"],
            &["schedule"],
            &["dimension"],
            &["threads"],
            // The parts: none knows another.
            &["columns", "demand", "mail", "plots", "publish", "regions", "saves"],
            &["clock", "figures"],
            &["messages"],
        ],
        is_level_shared: false,
    },
    House {
        folder: "src",
        within: &["simulation"],
        levels: &[
            &["tick"],
            &["template", "travel"],
            &["work"],
            &["world"],
            &["bodies", "inbox_outbox"],
            &["components"],
            &["paths", "template_error"],
            &["ground", "letters"],
            &["columns", "profile"],
            &["info", "player"],
            &["actions"],
            &["position"],
            &["entities", "schedules"],
            &["block_types", "random", "task_progress", "time_of_day"],
        ],
        is_level_shared: false,
    },
    House {
        folder: "crates/terrane_world/src",
        within: &[],
        levels: &[
            &["snapshot"],
            &["entity_sync"],
            &["chunk_sync", "generation"],
            &["light", "body", "path"],
            &["liquid"],
            &["region", "chunk"],
            &["block", "entity"],
            &["space"],
        ],
        is_level_shared: false,
    },
    // All rooms above the backends add methods to `WorldStore`.
    House {
        folder: "crates/terrane_storage/src",
        within: &[],
        levels: &[
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
        ],
        is_level_shared: true,
    },
    House {
        folder: "crates/terrane_objects/src",
        within: &[],
        levels: &[
            &["compact"],
            &["disk", "error", "file", "recovery", "store"],
            &["batch", "free_list", "index", "payload"],
            &["block"],
            &["work"],
            &["bytes"],
        ],
        is_level_shared: true,
    },
];

/// Files to which many rooms add methods, and words that all of storage uses.
const COMMON: [&str; 4] = ["world", "store", "tiers/chunk_group", "tiers/tier"];

impl House {
    /// The room of a file, and its level. `None` for a file outside of the house, and for the one that assembles the rooms.
    fn level(&self, file: &Source) -> Option<Result<usize, String>> {
        let room =
            file.module.strip_prefix(&self.within.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()[..])?;
        let room = room.first()?;
        let level = self.levels.iter().position(|level| level.contains(&room.as_str()));
        Some(level.ok_or_else(|| format!("`{room}` has no level: give it one in xtask/src/architecture.rs")))
    }

    /// The imports that do not point down.
    fn findings(&self, imports: &Imports) -> Vec<String> {
        let mut findings = Vec::new();
        for file in &imports.files {
            if let Some(Err(unknown)) = self.level(file) {
                findings.push(format!("{}/{}: {unknown}", self.folder, file.path.display()));
            }
        }
        for ((from, to), line) in &imports.arrows {
            let (from, to) = (&imports.files[*from], &imports.files[*to]);
            let (Some(Ok(own)), Some(Ok(other))) = (self.level(from), self.level(to)) else { continue };
            let is_same_room = from.module.get(self.within.len()) == to.module.get(self.within.len());
            let is_common = self.is_level_shared && COMMON.contains(&to.module.join("/").as_str());
            if is_same_room || is_common || other > own || (other == own && self.is_level_shared) {
                continue;
            }
            let where_ = if other < own { "above" } else { "beside" };
            findings.push(format!(
                "{}/{}:{line}: imports {}, which is {where_} it: arrows point down only",
                self.folder,
                from.path.display(),
                to.module.join("::")
            ));
        }
        findings
    }
}

fn imports(folder: &str) -> Imports {
    Imports::new(read(&root().join(folder)).unwrap())
}

/// Promise, crate: Arrows between the modules of each crate point down.
#[test]
fn arrows_point_down() {
    for house in HOUSES {
        let findings = house.findings(&imports(house.folder));
        assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
    }
}

/// Promise, crate: No more than two files import each other in a circle.
#[test]
fn imports_make_no_circles() {
    for folder in LIBRARIES {
        let imports = imports(folder);
        let name = |file: &usize| imports.files[*file].module.join("/");
        let circles: Vec<Vec<String>> =
            imports.circles().iter().map(|circle| circle.iter().map(name).collect()).collect();
        assert!(circles.is_empty(), "{folder}: {circles:#?}");
    }
}

/// Records, which are written and read as a whole.
const RECORDS: [&str; 3] = ["Outbox", "RegionStatistics", "WorldStatistics"];

/// Promise, crate: A struct of the coordinator or the simulation has at most 16 public fields, records aside.
#[test]
fn structs_are_narrow() {
    let mut wide = Vec::new();
    for file in read(&root().join("src")).unwrap() {
        let is_inside = file.module.first().is_some_and(|room| room == "coordinator" || room == "simulation");
        let structs = file.structs().into_iter().filter(|item| is_inside && item.size > 16);
        wide.extend(structs.map(|item| item.name).filter(|name| !RECORDS.contains(&name.as_str())));
    }
    assert_eq!(wide, [""; 0], "structs with more than 16 public fields");
}

#[test]
fn arrows_up_and_sideways_are_found() {
    let house = House {
        folder: "src",
        within: &["house"],
        levels: &[&["roof"], &["wall", "door"], &["ground"]],
        is_level_shared: false,
    };
    let findings = |file: &str, text: &str| {
        let rooms = ["roof", "wall", "door", "ground"].map(|room| format!("house/{room}.rs"));
        let mut sources: Vec<Source> = rooms.iter().map(|room| Source::new(room.as_ref(), "")).collect();
        sources.retain(|source| source.path.to_str() != Some(file));
        sources.extend([Source::new("house.rs".as_ref(), ""), Source::new(file.as_ref(), text)]);
        house.findings(&Imports::new(sources))
    };
    assert_eq!(findings("house/wall.rs", "use crate::house::ground::Stone;\nuse super::ground::Sand;"), [""; 0]);
    let up = findings("house/wall.rs", "struct Brick;\nuse super::roof::Tile;");
    assert_eq!(up, ["src/house/wall.rs:2: imports house::roof, which is above it: arrows point down only"]);
    assert!(findings("house/wall/brick.rs", "use crate::house::door::Hinge;")[0].contains("beside it"));
    assert!(findings("house/garden.rs", "")[0].contains("`garden` has no level"));
    assert_eq!(findings("street.rs", "use crate::house::roof::Tile;"), [""; 0]);
}

/// Promise, crate: `region`, `chunk`, `object_store`, `snapshot::schematic` and the distance graph are plain data structures.
#[test]
fn plain_crates_have_no_engine_no_threads_and_no_database() {
    for name in ["terrane_objects", "terrane_world"] {
        let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        assert_eq!(foreign_dependency(&manifest, &["bevy", "rocksdb", "crossbeam"]), None, "{name} depends on it");
        for file in read(&root().join("crates").join(name).join("src")).unwrap() {
            let starts =
                (0..file.tokens.len()).filter(|index| file.text(*index) == "std" && file.text(index + 1) == "::");
            for start in starts {
                let end = (start..file.tokens.len()).find(|index| file.text(*index) == ";").unwrap_or(start);
                let is_thread = |index: usize| file.text(index) == "thread" && index <= start + 2;
                let in_group = |index: usize| file.text(index) == "thread" && file.text(start + 2) == "{";
                let found = (start..end).any(|index| is_thread(index) || in_group(index));
                assert!(!found, "{} uses threads", file.path.display());
            }
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
    let prelude = Source::new("lib.rs".as_ref(), &text[text.find("pub mod prelude {").unwrap()..]);
    let words: Vec<&str> = prelude.tokens.iter().map(|token| &*token.text).filter(|word| *word != "pub").collect();
    // `use crate::room::{A, B};` and `use crate::room::A;`: the names that no `::` follows.
    let uses = words.split(|word| *word == ";").filter(|path| path.contains(&"crate"));
    let names = uses.flat_map(|path| {
        let after = path.iter().skip(1).chain(["}"].iter());
        path.iter().zip(after).filter(|(name, after)| name.starts_with(char::is_uppercase) && **after != "::")
    });
    let count = names.count();
    assert!((20..=80).contains(&count), "{count} names");
}

/// Promise, crate: Few items are public only for the next crate.
#[test]
fn hidden_items_are_few() {
    let mut hidden = 0;
    for folder in LIBRARIES.into_iter().filter(|folder| *folder != "crates/terrane_postgres/src") {
        for file in read(&root().join(folder)).unwrap() {
            let text = fs::read_to_string(root().join(folder).join(&file.path)).unwrap();
            hidden += text.matches("#[doc(hidden)]").count();
        }
    }
    assert!(
        hidden <= 45,
        "{hidden} items are `#[doc(hidden)]`: make one of them private, or part of the documented interface"
    );
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
