//! A dimension is exported to files and imported into another game's world, even if the process is killed meanwhile.

use crate::support::*;
use bevy_terrane::object_store::ObjectStore;
use bevy_terrane::prelude::*;
use bevy_terrane::space::{GeneratorIdentity, TilePos};
use bevy_terrane::storage::upkeep::{EXPORT_SIGNATURE, ExportOptions, ImportOptions, export_file};
use bevy_terrane::storage::{MemoryStore, StorageConfig, WorldStore};
use bevy_terrane::work::Progress;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const CHEST: BlockPos = BlockPos::new(3, 10, -5);
const STATUE: BlockPos = BlockPos::new(4, 10, -5);
const FENCE: BlockPos = BlockPos::new(5, 10, -5);

fn go_on(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A game that registers these blocks first, and then chests with items.
fn with_chests(disk: &Arc<MemoryStore>, before: &[&'static str]) -> (App, DimensionId) {
    let mut app = game(lockstep_on(disk));
    for name in before {
        app.register_block(BlockType::new(*name)).unwrap();
    }
    app.register_block_component(BlockComponent::variable("game:items")).unwrap();
    app.register_block(BlockType::new("game:chest").with_component("game:items")).unwrap();
    let dimension = flat(&mut app);
    (app, dimension)
}

/// The names of three blocks and of the one above the second, and the chest's items.
fn look(app: &mut App, dimension: DimensionId) -> (Vec<String>, Vec<u8>) {
    ask_region(app, dimension, CHEST, |blocks: RegionBlocks, types: Res<BlockTypes>| {
        let name = |block| types.block(block).name().to_owned();
        let mut names = [CHEST, STATUE, FENCE].map(|place| name(blocks.block(place).unwrap())).to_vec();
        names.extend(blocks.block_at(FENCE, 1).unwrap().map(name));
        (names, blocks.component(CHEST, 0, types.component("game:items").unwrap()).unwrap().unwrap().to_vec())
    })
}

/// Promise, upkeep: An import finds blocks by their names, and keeps unknown keys for later exports.
#[test]
fn an_export_keeps_its_blocks_in_a_game_with_other_ids() {
    let (one, other) = (Arc::<MemoryStore>::default(), Arc::<MemoryStore>::default());
    let (mut app, dimension) = with_chests(&one, &["game:statue", "game:fence"]);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 20);
    ask_region(&mut app, dimension, CHEST, |mut blocks: RegionBlocks, types: Res<BlockTypes>| {
        for (place, name) in [(CHEST, "game:chest"), (STATUE, "game:statue"), (FENCE, "game:fence")] {
            blocks.set_block(place, types.id(name).unwrap()).unwrap();
        }
        blocks.set_block_at(FENCE, 1, types.id("terrane:water").unwrap()).unwrap();
        blocks.set_component(CHEST, 0, types.component("game:items").unwrap(), b"a map and a spade").unwrap();
    });
    spawn_in_region(&mut app, dimension, STATUE, walker("Ada", 0.0));
    update(&mut app, 5);
    let built = look(&mut app, dimension);
    assert_eq!(built.0, ["game:chest", "game:statue", "game:fence", "terrane:water"]);
    let id = id_of(app.world(), "game:chest");
    drop(app);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    let world = WorldStore::from_store(one).unwrap();
    let exported = world.export_dimension("overworld", &path, &ExportOptions::default(), go_on).unwrap();
    assert!(exported.finished && exported.entities == 1 && exported.columns > 10, "{exported:?}");

    // The other game has been played, elsewhere, and does not know statues.
    let names = ["game:door", "game:lamp", "game:fence"];
    let (mut app, dimension) = with_chests(&other, &names);
    viewer(&mut app, dimension, 1_600.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    drop(app);
    let world = WorldStore::from_store(other.clone()).unwrap();
    let imported = world.import_dimension(&path, &ImportOptions::default(), go_on).unwrap();
    assert!(imported.finished && imported.entities == 1 && imported.columns == exported.columns, "{imported:?}");
    assert_eq!(imported.new_types, 1);
    assert_eq!(world.verify(go_on).unwrap().damage.count(), 0);
    drop(world);
    let (mut app, dimension) = with_chests(&other, &names);
    viewer(&mut app, dimension, 0.0, 0.0, 2);
    start(&mut app);
    update(&mut app, 20);
    assert!(app.world().get_resource::<WorldFailure>().is_none());
    assert_eq!(look(&mut app, dimension), built);
    assert_ne!(id_of(app.world(), "game:chest"), id);
    assert_eq!(walkers(app.world_mut()).iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["Ada"]);
}

/// All objects of an export's files, except those that differ between worlds.
fn objects(path: &Path) -> BTreeMap<String, (u64, Vec<u8>)> {
    let store = ObjectStore::open_to_read(path, EXPORT_SIGNATURE).unwrap();
    let keys = store.with_prefix("").map(|(key, _)| key.to_owned()).filter(|key| key != "export");
    let object = |key: String| {
        let object = store.read(&key).unwrap().unwrap();
        (key, (object.version, object.data))
    };
    keys.map(object).collect()
}

#[test]
fn all_keys_of_one_ending_get_another_in_all_files_and_the_rest_stays() {
    let disk = Arc::<MemoryStore>::default();
    let (mut app, dimension) = with_chests(&disk, &[]);
    viewer(&mut app, dimension, 0.0, 0.0, 3);
    start(&mut app);
    update(&mut app, 20);
    drop(app);
    let world = WorldStore::from_store(disk).unwrap();
    let id = world.dimensions().unwrap()[0].id;
    for x in 0..300 {
        world.keep_object(id, &format!("chunk/{x},4,0/game:owner"), 3, b"Ada").unwrap();
    }
    world.keep_object(id, "game:weather", 1, b"rain").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.objects");
    let options = ExportOptions { objects_per_file: 120, ..ExportOptions::default() };
    let files = world.export_dimension("overworld", &path, &options, go_on).unwrap().files;
    assert!(files > 3, "{files}");
    let all = || (1..=files).flat_map(|number| objects(&export_file(&path, number))).collect::<BTreeMap<_, _>>();
    let upgraded = |(key, (version, data)): (String, (u64, Vec<u8>))| match key.strip_suffix("/game:owner") {
        Some(place) => (format!("{place}/game:claim"), (version, [&[0; 4][..], &data].concat())),
        None => (key, (version, data)),
    };
    let expected: BTreeMap<_, _> = all().into_iter().map(upgraded).collect();
    assert_eq!(crate::upgrade::run(&path, &[]).unwrap().upgraded, 300);
    assert!(all() == expected);
    assert_eq!(crate::upgrade::run(&path, &[]).unwrap().upgraded, 0, "it is done");
    let new = WorldStore::open(&StorageConfig::Memory).unwrap();
    assert_eq!(new.import_dimension(&path, &ImportOptions::default(), go_on).unwrap().objects, 301);
    let claim = new.kept_object(new.dimensions().unwrap()[0].id, "chunk/7,4,0/game:claim").unwrap().unwrap();
    assert_eq!((claim.version, &claim.data[..]), (3, &b"\0\0\0\0Ada"[..]));
}

#[cfg(feature = "rocksdb")]
mod killed {
    use super::*;
    use crate::support::process::{here, kill, process};
    use bevy_terrane::block::BlockRecord;
    use bevy_terrane::storage::{Access, Durability, RegistryLists, SaveBatch};

    /// Columns with one chunk of noise each, some megabytes in all.
    fn make_world(path: &Path) {
        let world = WorldStore::open(&StorageConfig::Path(path.into())).unwrap();
        let record = |number| BlockRecord { name: format!("noise:block_{number}"), components: Vec::new() };
        let air = BlockRecord { name: "terrane:air".into(), components: Vec::new() };
        let blocks = [air].into_iter().chain((1..256).map(record)).collect();
        world.save_registry_lists(&RegistryLists { blocks, ..RegistryLists::default() }).unwrap();
        let origin = GeneratorIdentity { name: "noise".into(), version: 1, seed: 3 };
        let dimension = world.open_dimension("overworld", &origin).unwrap();
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            BlockId::new((state >> 33) as u32 % 256)
        };
        for x in 0..32 {
            let mut save = SaveBatch::default();
            for z in 0..96 {
                save.chunks.insert((dimension, ChunkPos::new(x, 0, z)), Arc::new(Chunk::from_fn(|_| next())));
            }
            if x == 31 {
                save.tiles = (0..3).map(|z| ((dimension, TilePos::new(0, z)), [u16::MAX; 64])).collect();
            }
            world.commit(&save, Durability::Process).unwrap();
        }
    }

    /// A path below the folder.
    fn at(folder: &Path, name: &str) -> PathBuf {
        folder.join(name)
    }

    fn export(folder: &Path, from: &str, file: &str, progress: impl FnMut(&Progress) -> ControlFlow<()>) {
        let config = StorageConfig::Path(at(folder, from));
        let world = WorldStore::open_existing(&config, Access::Read).unwrap();
        let options = ExportOptions::default();
        assert!(world.export_dimension("overworld", &at(folder, file), &options, progress).unwrap().finished);
    }

    fn import(folder: &Path, file: &str, into: &str, progress: impl FnMut(&Progress) -> ControlFlow<()>) {
        let world = WorldStore::open(&StorageConfig::Path(at(folder, into))).unwrap();
        let report = world.import_dimension(&at(folder, file), &ImportOptions::default(), progress).unwrap();
        assert!(report.finished);
    }

    /// Runs only in the processes that the test below starts and kills. On its own it does nothing.
    #[test]
    fn process_that_is_killed() {
        let Some(folder) = here() else { return };
        let step = |_: &Progress| {
            println!("step");
            ControlFlow::Continue(())
        };
        if !at(&folder, "exported").exists() {
            export(&folder, "world", "killed.objects", step);
            std::fs::write(at(&folder, "exported"), "").unwrap();
        }
        import(&folder, "killed.objects", "killed", step);
        std::fs::write(at(&folder, "imported"), "").unwrap();
    }

    /// Promise, upkeep: A stopped or killed export or import resumes, with the same result as without a stop.
    #[test]
    fn a_killed_export_and_a_killed_import_can_be_completed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        make_world(&at(folder, "world"));
        let mut kills = 0;
        while !at(folder, "imported").exists() {
            let (mut process, lines) = process("exports::killed::process_that_is_killed", folder);
            // An export is not saved at each step, so each process must get a little further than the one before.
            let steps = lines.filter(|line| line.ends_with("step")).take(40 + 10 * kills).count();
            kill(&mut process);
            kills += 1;
            assert!(kills < 30 && steps > 0, "it does not come further: {steps} steps");
        }
        assert!(kills > 3, "{kills}");
        export(folder, "world", "whole.objects", go_on);
        assert!(objects(&at(folder, "killed.objects")) == objects(&at(folder, "whole.objects")));
        import(folder, "whole.objects", "whole", go_on);
        export(folder, "whole", "of whole.objects", go_on);
        export(folder, "killed", "of killed.objects", go_on);
        assert!(objects(&at(folder, "of killed.objects")) == objects(&at(folder, "of whole.objects")));
    }
}
