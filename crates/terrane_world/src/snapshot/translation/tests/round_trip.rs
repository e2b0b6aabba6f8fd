//! A snapshot is the same after it was written to a file and read again.

use super::*;
use crate::entity::{EntityRecord, ViewerRecord};
use crate::snapshot::BlockTurns;
use crate::snapshot::tests::{BLOCKS, Cell, Columns, Edit, child, edit, edits, entity, part_of, positions, world};
use crate::space::HeightSet;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The content of a cell, including unset components.
fn completed(mut cell: Cell) -> Cell {
    for (block, values) in &mut cell {
        let unset = BLOCKS.components(*block).iter().filter(|layout| values.iter().all(|(id, _)| *id != layout.id));
        let unset: Vec<_> = unset.map(|layout| (layout.id, layout.unset())).collect();
        values.extend(unset);
        values.sort();
    }
    cell
}

/// Placeholders for states of another program with a block entity, and signs with one.
fn foreign() -> impl Strategy<Value = Vec<Edit>> {
    let data = (0..3_i32, any::<bool>()).prop_map(|(number, is_empty)| {
        let data = compound(&[("Number", Nbt::Int(number))]);
        let entity = BlockEntity { position: [0; 3], id: "b:thing".into(), data };
        if is_empty { Vec::new() } else { entity.to_bytes().unwrap() }
    });
    let state = prop_oneof![Just("b:one"), Just("b:two[a=1,b=2]"), Just("b:two[b=2,a=1]"), Just(AIR), Just("")];
    let foreign = (positions(), prop::sample::select(vec![PLACEHOLDER, "game:sign"]), state, data, 0..2_u8);
    let edit = foreign.prop_map(|(position, name, state, data, layer)| {
        let block = BLOCKS.id(name).unwrap();
        Edit::Place(position, layer, block, if name == PLACEHOLDER { state.as_bytes().to_vec() } else { data })
    });
    prop::collection::vec(edit, 0..30)
}

/// Adds block entities to placeholders too.
fn add_block_entities(columns: &mut Columns, edits: &[Edit], entity: &[u8]) {
    let id = BLOCKS.component(BLOCK_ENTITY).unwrap();
    for (number, edit) in edits.iter().enumerate() {
        let Edit::Place(position, layer, ..) = edit else { continue };
        let Some(column) = columns.get_mut(&position.column()) else { continue };
        let chunk = column.chunk_mut(position.chunk().y);
        let has = chunk.block_at(position.in_chunk(), *layer) == BLOCKS.id(PLACEHOLDER);
        if has && number % 3 > 0 {
            let value = if number % 3 == 1 { entity } else { &entity[..entity.len() - 1] };
            chunk.set_component(&*BLOCKS, position.in_chunk(), *layer, id, value).unwrap();
        }
    }
}

fn entities() -> impl Strategy<Value = Vec<EntityRecord>> {
    let offset = prop::array::uniform3(0.0..1.0_f32);
    let components = prop::collection::vec(("[a-z:]{1,9}", prop::collection::vec(any::<u8>(), 0..9)), 0..3);
    let any_entity = (positions(), offset, components, 0..4_usize, any::<bool>());
    let record = |(number, (block, offset, components, children, sees)): (usize, (_, _, _, usize, bool))| {
        let mut record = EntityRecord { offset, components, ..entity(number as u128 * 10, block) };
        record.viewer = sees.then_some(ViewerRecord { radius: u32::MAX, generation_radius: 2, vertical_radius: 3 });
        record.children = (0..children)
            .map(|at| child((number * 10 + at + 1) as u128, at.checked_sub(1).map(|at| at as u32)))
            .collect();
        if let Some(child) = record.children.first_mut() {
            child.id = None;
            child.place = Some((if sees { HERE } else { DimensionId(9) }, block, [0.25; 3]));
            child.viewer = record.viewer;
        }
        record
    };
    prop::collection::vec(any_entity, 0..6).prop_map(move |all| all.into_iter().enumerate().map(record).collect())
}

fn sorted(snapshot: &Snapshot) -> BTreeMap<uuid::Uuid, EntityRecord> {
    snapshot.entities().map(|entity| (entity.id, entity.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    /// Promise, snapshots: Schematics are imported and exported by block names.
    #[test]
    fn a_snapshot_survives_export_and_import(
        edits in edits(120),
        foreign in foreign(),
        entities in entities(),
        (from, to) in (positions(), positions()),
        version in 2..4_u8,
        (missing, low) in (0..12_i64, -3..3_i64),
    ) {
        let mut columns = world();
        edit(&mut columns, &edits);
        edit(&mut columns, &foreign);
        let thing = BlockEntity { position: [0; 3], id: "b:thing".into(), data: compound(&[("A", Nbt::Byte(1))]) };
        add_block_entities(&mut columns, &foreign, &thing.to_bytes().unwrap());
        let area = BlockBox::new(from, to);
        let mut snapshot = Snapshot::new(area);
        for (number, column) in (0..).zip(columns.values()) {
            let inside = entities.iter().filter(|entity| entity.column() == column.pos()).cloned().collect();
            match (number % 12) - missing {
                0 => {}
                1 => drop(snapshot.add_column(&part_of(column, HeightSet::from(low..3)), 7, inside)),
                _ => drop(snapshot.add_column(column, 7, inside)),
            }
        }
        let options = TranslationOptions { keeps_ids: true, ..TranslationOptions::default() };
        let schematized = snapshot.to_schematic(&BLOCKS, &options).unwrap();
        prop_assert_eq!(snapshot.missing_chunks() == 0, snapshot.is_complete());
        let read = through_file(&schematized, version);
        let corner = read.corner().unwrap();
        prop_assert_eq!(corner, [area.min.x, area.min.y, area.min.z]);
        let (again, report) = Snapshot::from_schematic(read, HERE, &BLOCKS, &options).unwrap();
        prop_assert_eq!((report.block_entities, report.entities, report.components), (0, 0, 0));
        let back = Relocation { to: area.min, ..Relocation::default() };
        let again = again.placed(&back, &BlockTurns::default()).unwrap();
        prop_assert_eq!(again.area(), &area);
        prop_assert!(again.is_complete());

        let mut found = cells(&again);
        let air = vec![(BlockId::AIR, Vec::new())];
        for (position, expected) in cells(&snapshot) {
            prop_assert_eq!(found.remove(&position), Some(completed(expected)), "{}", position);
        }
        prop_assert!(found.values().all(|cell| *cell == air));
        prop_assert_eq!(sorted(&again), sorted(&snapshot));
    }
}
