//! Written schematics are read again.

use super::building::compound;
use super::*;
use crate::block::{BlockComponentId, BlockComponentLayout, BlockComponentRecord, BlockLayout};
use crate::space::CHUNK_SIZE;
use crate::work::Progress;
use proptest::prelude::*;
use std::ops::ControlFlow;

/// Block numbers that all palettes here have.
const DRY: u32 = 1;
const WATER: u32 = 2;
const FIXED: BlockComponentId = BlockComponentId::new(0);
const VARIABLE: BlockComponentId = BlockComponentId::new(1 | BlockComponentId::VARIABLE);

/// Every block has both components.
struct Both;

impl BlockLayout for Both {
    fn components(&self, _: BlockId) -> &[BlockComponentLayout] {
        &[BlockComponentLayout { id: FIXED, size: Some(3) }, BlockComponentLayout { id: VARIABLE, size: None }]
    }
}

fn number(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below.max(1)
}

/// Blocks of this many kinds; some chunks have only one kind, and others only air.
fn grid(size: [u32; 3], kinds: u32, state: &mut u64) -> ChunkGrid {
    let mut grid = ChunkGrid::new(size);
    let [along_x, along_y, along_z] = grid.chunks_along();
    for (y, z, x) in (0..along_y).flat_map(|y| (0..along_z).flat_map(move |z| (0..along_x).map(move |x| (y, z, x)))) {
        let reach = grid.reach([x, y, z]).map(usize::from);
        let (few, first) = ([1, 2, u64::from(kinds)][number(state, 3) as usize], number(state, kinds.into()));
        let chunk = Chunk::from_fn(|at| {
            let is_inside = at.iter().zip(reach).all(|(at, reach)| *at < reach);
            let block = (first + number(state, few)) % u64::from(kinds);
            if is_inside { BlockId::new(block as u32) } else { BlockId::AIR }
        });
        grid.set_chunk(ChunkPos::new(x.into(), y.into(), z.into()), chunk.into());
    }
    grid
}

fn state_names(kinds: u32) -> Vec<String> {
    let own = [AIR, "a:fence[east=true,waterlogged=false]", "minecraft:water[level=0]"].map(str::to_owned);
    own.into_iter().chain((3..kinds).map(|kind| format!("b:c/d[e={kind}]"))).collect()
}

/// Adds layers and components to some cells.
fn furnish(grid: &mut ChunkGrid, kinds: u32, count: usize, state: &mut u64) {
    let size = grid.size().map(u64::from);
    for _ in 0..count {
        let at = size.map(|side| number(state, side) as usize);
        let [x, y, z] = at.map(|at| at % CHUNK_SIZE);
        let position = [x, y, z];
        let chunk = grid.chunk_mut(at.map(|at| (at / CHUNK_SIZE) as u32));
        if number(state, 2) == 0 {
            chunk.set_block(position, BlockId::new(DRY));
        }
        for layer in 1..=number(state, 4) {
            let block = if number(state, 2) == 0 { WATER.into() } else { number(state, kinds.into()) };
            chunk.set_block_at(position, layer as u8, BlockId::new(block as u32)).unwrap();
        }
        let layer = number(state, chunk.layer_count(position) as u64) as u8;
        if number(state, 2) == 0 {
            chunk.set_component(&Both, position, layer, FIXED, &[1, 2, number(state, 256) as u8]).unwrap();
        }
        let value = vec![7; number(state, 300) as usize];
        chunk.set_component(&Both, position, layer, VARIABLE, &value).unwrap();
    }
}

fn any_value() -> impl Strategy<Value = Nbt> {
    let leaf = prop_oneof![
        any::<i8>().prop_map(Nbt::Byte),
        any::<i16>().prop_map(Nbt::Short),
        any::<i32>().prop_map(Nbt::Int),
        any::<i64>().prop_map(Nbt::Long),
        (-1e9_f32..1e9).prop_map(Nbt::Float),
        (-1e9_f64..1e9).prop_map(Nbt::Double),
        prop::collection::vec(any::<u8>(), 0..9).prop_map(Nbt::ByteArray),
        any::<String>().prop_map(Nbt::String),
        prop::collection::vec(any::<i32>(), 0..9).prop_map(Nbt::IntArray),
        prop::collection::vec(any::<i64>(), 0..9).prop_map(Nbt::LongArray),
    ];
    leaf.prop_recursive(4, 24, 4, |value| {
        prop_oneof![
            (value.clone(), 0..4_usize).prop_map(|(value, count)| Nbt::List(value.kind(), vec![value; count])),
            prop::collection::btree_map("[A-Z]{0,2}é?𝄞?", value, 0..4)
                .prop_map(|entries| Nbt::Compound(Compound(entries.into_iter().collect()))),
        ]
    })
}

fn any_compound() -> impl Strategy<Value = Compound> {
    prop::collection::btree_map("x[a-z]{0,3}", any_value(), 0..4)
        .prop_map(|entries| Compound(entries.into_iter().collect()))
}

prop_compose! {
    fn any_schematic()(
        // A single column of chunks is read in a different way.
        size in prop_oneof![4 => prop::array::uniform3(1..40_u32), 1 => (1..40_u32).prop_map(|height| [16, height, 16])],
        kinds in prop_oneof![3..9_u32, 3..400_u32],
        seed: u64,
        furniture in prop_oneof![Just(0_usize), 0..20_usize],
        offset in prop::option::of(prop::array::uniform3(any::<i32>())),
        origin in prop::option::of(prop::array::uniform3(-1000..1000)),
        (metadata, other) in (any_compound(), any_compound()),
        block_entities in prop::collection::vec((any_compound(), any::<u64>()), 0..3),
        entities in prop::collection::vec((any_compound(), any::<u64>()), 0..3),
        biomes in 0..20_u32,
    ) -> Schematic {
        let mut state = seed;
        let mut schematic = Schematic::new(size);
        schematic.data_version = Some(seed as i32);
        // Valid corners: an origin requires an offset.
        schematic.offset = offset.map(|offset| offset.map(|at| at % 1000));
        schematic.origin = origin.filter(|_| offset.is_some());
        (schematic.metadata, schematic.other) = (metadata, other);
        schematic.palette = state_names(kinds);
        schematic.blocks = grid(size, kinds, &mut state);
        if furniture > 0 {
            schematic.components = vec![
                BlockComponentRecord { name: "a:fixed".into(), version: 3, size: Some(3) },
                BlockComponentRecord { name: "a:variable".into(), version: u32::MAX, size: None },
            ];
            furnish(&mut schematic.blocks, kinds, furniture, &mut state);
        }
        let place = |at: u64| size.map(|side| (at % u64::from(side)) as u32);
        let block_entity = |(data, at)| BlockEntity { position: place(at).map(|at| at as i32), id: "a:chest".into(), data };
        schematic.block_entities = block_entities.into_iter().map(block_entity).collect();
        let position = |at: u64| place(at).map(|side| f64::from(side) + 0.25);
        let entity = |(data, at)| SchematicEntity { position: position(at), id: "a:cow".into(), data };
        schematic.entities = entities.into_iter().map(entity).collect();
        if biomes > 0 {
            let palette = (0..biomes).map(|biome| format!("a:biome_{biome}")).collect();
            schematic.biomes = Some(Biomes { palette, cells: grid(size, biomes, &mut state) });
        }
        schematic
    }
}

fn cases() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn version_3_keeps_everything(schematic in any_schematic()) {
        let again = read(&written(&schematic, 3));
        prop_assert_eq!(&again.palette, &schematic.palette);
        prop_assert!(again.blocks == schematic.blocks);
        prop_assert_eq!(again, schematic);
    }

    /// Promise, snapshots: `.schem` files of versions 1 to 3 are read, and those of versions 2 and 3 are written.
    #[test]
    fn version_2_keeps_everything_but_all_biomes_of_a_column(schematic in any_schematic()) {
        let again = read(&written(&schematic, 2));
        let mut expected = Schematic { version: 2, ..schematic };
        if let Some(biomes) = &mut expected.biomes {
            let [width, height, length] = biomes.cells.size();
            let read = &again.biomes.as_ref().unwrap().cells;
            prop_assert_eq!(read.size(), [width, 1, length]);
            for at in (0..length).flat_map(|z| (0..width).map(move |x| [x, 0, z])) {
                prop_assert_eq!(read.block(at), biomes.cells.block(at));
            }
            prop_assert!(height > 0);
            biomes.cells = read.clone();
        }
        prop_assert_eq!(again, expected);
    }

    #[test]
    fn a_value_is_the_same_after_it_was_written_and_read(value in any_value()) {
        let options = ReadOptions::default();
        let budget = nbt::Budget::new(options.memory);
        let mut writer = nbt::Writer::new(Vec::new());
        writer.named("name", &value).unwrap();
        let bytes = writer.finish().unwrap();
        let mut reader = nbt::Reader::new(&bytes[..], &options, &budget);
        let kind = reader.tag().unwrap();
        prop_assert_eq!(reader.text().unwrap(), "name");
        prop_assert_eq!(reader.value(kind, 1).unwrap(), value);
        prop_assert!(reader.is_at_end().unwrap());
    }
}

/// A schematic with all kinds of content.
pub(super) fn full(size: [u32; 3], kinds: u32) -> Schematic {
    let mut state = 42;
    let mut schematic = Schematic::new(size);
    schematic.data_version = Some(3955);
    (schematic.offset, schematic.origin) = (Some([-1, -2, -3]), Some([10, 20, 30]));
    schematic.metadata = compound(&[("Name", Nbt::String("house".into()))]);
    schematic.palette = state_names(kinds);
    schematic.blocks = grid(size, kinds, &mut state);
    schematic.components = vec![
        BlockComponentRecord { name: "a:fixed".into(), version: 3, size: Some(3) },
        BlockComponentRecord { name: "a:variable".into(), version: 1, size: None },
    ];
    furnish(&mut schematic.blocks, kinds, 5, &mut state);
    let data = compound(&[("Items", Nbt::List(NbtKind::Int, vec![Nbt::Int(1), Nbt::Int(2)]))]);
    schematic.block_entities = vec![BlockEntity { position: [0, 0, 0], id: "a:chest".into(), data: data.clone() }];
    schematic.entities = vec![SchematicEntity { position: [0.5, 1.0, 0.5], id: "a:cow".into(), data }];
    schematic.biomes = Some(Biomes { palette: vec!["a:plains".into()], cells: ChunkGrid::new(size) });
    schematic
}

/// Promise, snapshots: `.schem` files of versions 1 to 3 are read, and those of versions 2 and 3 are written.
#[test]
fn another_decoder_reads_written_files() {
    use fastnbt::Value;
    let schematic = full([20, 17, 5], 200);
    for version in [2, 3] {
        let mut plain = Vec::new();
        let bytes = written(&schematic, version);
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut plain).unwrap();
        let root: Value = fastnbt::from_bytes(&plain).unwrap();
        let Value::Compound(mut root) = root else { panic!("no compound") };
        if version == 3 {
            let Some(Value::Compound(inner)) = root.remove("Schematic") else { panic!("no schematic") };
            root = inner;
        }
        let blocks = match root.get("Blocks") {
            Some(Value::Compound(blocks)) => blocks,
            _ => &root,
        };
        assert_eq!(root["Width"], Value::Short(20));
        let Value::Compound(palette) = &blocks["Palette"] else { panic!("no palette") };
        let name = if version == 3 { "Data" } else { "BlockData" };
        let Value::ByteArray(data) = &blocks[name] else { panic!("no data") };
        let mut bytes = data.iter().map(|byte| *byte as u8);
        for at in (0..17).flat_map(|y| (0..5).flat_map(move |z| (0..20).map(move |x| [x, y, z]))) {
            let mut number = 0;
            for shift in (0..).step_by(7) {
                let byte = bytes.next().unwrap();
                number |= i32::from(byte & 0x7F) << shift;
                if byte < 0x80 {
                    break;
                }
            }
            let state = schematic.state(at).unwrap();
            let chunk = schematic.blocks.chunk(ChunkPos::new(at[0] as i64 / 16, at[1] as i64 / 16, at[2] as i64 / 16));
            let above = chunk.and_then(|chunk| chunk.block_at(at.map(|at| at as usize % 16), 1));
            let is_wet = above == Some(BlockId::new(WATER)) && state.contains("waterlogged");
            let expected =
                if is_wet { state.replace("waterlogged=false", "waterlogged=true") } else { state.to_owned() };
            assert_eq!(palette[&expected], Value::Int(number), "{at:?}");
        }
        assert_eq!(bytes.next(), None);
        assert!(matches!(&blocks["BlockEntities"], Value::List(items) if items.len() == 1));
    }
}

/// Promise, snapshot files: Other programs ignore the layers and components in a schematic.
#[test]
fn other_programs_ignore_layers_except_waterlogging() {
    let mut schematic = Schematic::new([2, 1, 1]);
    schematic.palette = state_names(3);
    let chunk = schematic.blocks.chunk_mut([0, 0, 0]);
    chunk.set_block([0, 0, 0], BlockId::new(DRY));
    chunk.set_block([1, 0, 0], BlockId::new(DRY));
    chunk.set_block_at([0, 0, 0], 1, BlockId::new(WATER)).unwrap();
    let bytes = written(&schematic, 3);
    let again = read(&bytes);
    assert_eq!((&again.blocks, &again.palette), (&schematic.blocks, &schematic.palette));
    assert_eq!(read(&written(&again, 3)), again, "what was read can be written");
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut plain).unwrap();
    let at = plain.windows(12).rposition(|window| window == b"bevy_terrane").unwrap();
    plain[at] = b'B';
    let elsewhere = read(&plain);
    assert_eq!(elsewhere.state([0, 0, 0]), Some("a:fence[east=true,waterlogged=true]"));
    assert_eq!(elsewhere.state([1, 0, 0]), Some("a:fence[east=true,waterlogged=false]"));
    assert_eq!(elsewhere.blocks.chunk(ChunkPos::new(0, 0, 0)).unwrap().layer_count([0, 0, 0]), 1);
}

#[test]
fn reading_and_writing_report_progress_and_can_be_cancelled() {
    let schematic = full([100, 40, 30], 5);
    let (bytes, volume) = (written(&schematic, 3), schematic.blocks.volume());
    let mut last = 0;
    let mut grows = |progress: &Progress| {
        assert!(progress.done >= last && *progress == Progress::of(progress.done, volume));
        last = progress.done;
        ControlFlow::Continue(())
    };
    let mut blocks_only = schematic.clone();
    blocks_only.biomes = None;
    blocks_only.write_with(std::io::sink(), &WriteOptions::default(), &mut grows).unwrap();
    assert_eq!(last, volume);
    let many = Schematic { biomes: None, ..full([100, 40, 30], 200) };
    let mut told = Vec::new();
    let mut keep = |progress: &Progress| {
        told.push(progress.done);
        ControlFlow::Continue(())
    };
    many.write_with(std::io::sink(), &WriteOptions::default(), &mut keep).unwrap();
    assert!(told[0] == 0 && told.is_sorted() && told.last() == Some(&volume), "it is measured first: {told:?}");
    let cancelled =
        Schematic::read_with(&bytes[..], &ReadOptions { salvage: true, ..ReadOptions::default() }, &mut |_| {
            ControlFlow::Break(())
        });
    assert_eq!(cancelled.unwrap_err(), SchematicError::Cancelled);
    let cancelled = schematic.write_with(std::io::sink(), &WriteOptions::default(), &mut |_| ControlFlow::Break(()));
    assert_eq!(cancelled.unwrap_err(), SchematicError::Cancelled);
}

#[test]
fn a_write_error_names_its_reason() {
    let error = |schematic: &Schematic, version| {
        schematic.write(std::io::sink(), &WriteOptions { version, level: 0 }).unwrap_err()
    };
    assert!(matches!(error(&Schematic::new([1; 3]), 1), SchematicError::Version { found: 1, .. }));
    assert!(matches!(error(&Schematic::new([65_536, 1, 1]), 3), SchematicError::TooLarge { limit: 65_535, .. }));
    assert!(matches!(error(&Schematic::new([60_000; 3]), 3), SchematicError::TooLarge { what: "bytes", .. }));
    let many = Schematic { palette: state_names(200), ..Schematic::new([60_000; 3]) };
    assert!(matches!(error(&many, 3), SchematicError::TooLarge { what: "bytes", found: 216_000_000_000_000, .. }));
    let mut unnamed = Schematic::new([1; 3]);
    unnamed.blocks.chunk_mut([0; 3]).set_block([0; 3], BlockId::new(5));
    assert_eq!(error(&unnamed, 3).to_string(), "block 5: it occurs, but has no name");
    let mut deep = Nbt::Int(0);
    for _ in 0..600 {
        deep = Nbt::List(deep.kind(), vec![deep]);
    }
    let mut schematic = Schematic::new([1; 3]);
    schematic.other.set("Deep", deep);
    assert!(matches!(error(&schematic, 3), SchematicError::TooLarge { what: "levels", .. }));
    schematic.other = compound(&[("Mixed", Nbt::List(NbtKind::Int, vec![Nbt::Byte(0)]))]);
    assert_eq!(error(&schematic, 3).to_string(), "Mixed: a list of an int holds a byte");
    schematic.other = compound(&[("Long", Nbt::String("a".repeat(65_536)))]);
    assert!(matches!(error(&schematic, 3), SchematicError::TooLarge { what: "bytes of text", .. }));
}

#[test]
fn cells_that_come_in_pieces_and_end_early_are_where_they_belong() {
    use crate::snapshot::schematic::filler::Filler;
    for size in [[16, 17, 16], [16, 17, 15], [40, 17, 16], [20, 17, 40]] {
        let grid = ChunkGrid::new(size);
        let mut state = 9;
        let cells: Vec<u16> = (0..grid.volume()).map(|_| [1, 1, 1, 2][number(&mut state, 4) as usize]).collect();
        for count in [0, 1, 300, 4_095, 4_096, 4_097, cells.len()].map(|count| count.min(cells.len())) {
            let budget = nbt::Budget::new(1 << 30);
            let mut filler = Filler::new(size, &budget);
            let mut rest = &cells[..count];
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(rest.len().min(1 + number(&mut state, 900) as usize));
                filler.push(piece).unwrap();
                rest = after;
            }
            assert_eq!(filler.filled(), count as u64);
            let (grid, kept) = filler.finish();
            assert_eq!(kept, count as u64);
            let [width, _, length] = size.map(|side| side as usize);
            for (place, cell) in cells.iter().enumerate() {
                let at = [place % width, place / width / length, place / width % length].map(|at| at as u32);
                let expected = if place < count { *cell } else { 0 };
                assert_eq!(grid.block(at), BlockId::new(expected.into()), "{size:?} {count}: {at:?}");
            }
        }
    }
}

#[test]
fn a_biome_of_a_column_becomes_that_of_each_of_its_cells() {
    let [width, height, length] = [20, 35, 3];
    let palette = (0..200).map(|biome| format!("a:biome_{biome}")).collect();
    let cells = grid([width, 1, length], 200, &mut 7);
    let mut schematic = Schematic::new([width, height, length]);
    schematic.biomes = Some(Biomes { palette, cells: cells.clone() });
    let again = read(&written(&schematic, 3)).biomes.unwrap().cells;
    assert_eq!(again.size(), schematic.size());
    for [x, y, z] in (0..width).flat_map(|x| (0..height).flat_map(move |y| (0..length).map(move |z| [x, y, z]))) {
        assert_eq!(again.block([x, y, z]), cells.block([x, 0, z]));
    }
    assert_eq!(read(&written(&schematic, 2)).biomes, schematic.biomes);
}
