//! The translation of content that a registry does not know.

use super::*;

/// Promise, snapshots: A schematic keeps block entities, entities and water, and unknown blocks are written back unchanged.
/// Promise, snapshot files: An unknown block in a schematic is written as the state that it stands for.
#[test]
fn an_unknown_state_becomes_a_placeholder_and_is_written_unchanged() {
    let registry = registry(&["a:stone"]);
    let mut schematic = row(&["a:stone", "b:lamp[lit=true]", AIR, "b:Not A Name", "b:lamp[lit=true]"]);
    let data = compound(&[("Text", Nbt::String("hello".into()))]);
    let entity = BlockEntity { position: [4, 0, 0], id: "b:lamp".into(), data };
    schematic.block_entities.push(entity);
    let (snapshot, report) = read(schematic.clone(), &registry);
    assert_eq!(report, TranslationReport { placeholders: 3, ..TranslationReport::default() });
    let placeholder = registry.id(PLACEHOLDER).unwrap();
    let blocks: Vec<_> = (0..5).map(|x| snapshot.block(at(x)).unwrap()).collect();
    let stone = registry.id("a:stone").unwrap();
    assert_eq!(blocks, [stone, placeholder, BlockId::AIR, placeholder, placeholder]);
    let chunk = snapshot.chunk(Default::default()).unwrap();
    let state = |x| chunk.component([x, 0, 0], 0, registry.component(STATE).unwrap());
    assert_eq!((state(1), state(3)), (Some(&b"b:lamp[lit=true]"[..]), Some(&b"b:Not A Name"[..])));

    let again = written(&snapshot, &registry);
    for x in 0..5 {
        assert_eq!(again.state([x, 0, 0]), schematic.state([x, 0, 0]));
    }
    assert_eq!(again.block_entities, schematic.block_entities);
    assert_eq!(again.components, [], "other programs can say all of it");
    assert_eq!(read(through_file(&again, 3), &registry).0.columns, snapshot.columns);
}

#[test]
fn a_state_that_is_not_known_turns_with_the_rest() {
    let mut registry = registry(&[]);
    let sides = ["north", "east", "south", "west"];
    let torch = crate::block::BlockStates::new(BlockType::new("a:torch")).with_property("facing", sides);
    registry.register_states(torch).unwrap();
    let schematic = row(&["a:torch[facing=north]", "b:lamp[facing=north]", "b:Not A Name[facing=north]"]);
    let turn = Turn::quarters(1);
    let options = TranslationOptions { turn, ..TranslationOptions::default() };
    let (snapshot, _) = Snapshot::from_schematic(schematic, HERE, &registry, &options).unwrap();
    let turns = BlockTurns::new(&registry, turn);
    let turned = snapshot.placed(&Relocation { turn, ..Relocation::default() }, &turns).unwrap();
    let again = written(&turned, &registry);
    let found: Vec<_> = (0..3).map(|z| again.state([0, 0, z]).unwrap()).collect();
    assert_eq!(found, ["a:torch[facing=east]", "b:lamp[facing=east]", "b:Not A Name[facing=north]"]);
}

#[test]
fn without_the_placeholder_an_unknown_state_is_an_error() {
    let known = BlockRegistry::from_names(["terrane:air", "a:stone"]).unwrap();
    let read = |states: &[&str]| Snapshot::from_schematic(row(states), HERE, &known, &TranslationOptions::default());
    assert_eq!(read(&["a:stone", AIR]).unwrap().1, TranslationReport::default());
    assert_eq!(read(&["a:stone", "b:c"]).unwrap_err(), TranslationError::NoPlaceholder { state: "b:c".into() });
}

/// Promise, snapshots: A schematic keeps block entities, entities and water, and unknown blocks are written back unchanged.
#[test]
fn a_waterlogged_state_becomes_the_dry_one_with_water_in_it() {
    let registry = registry(&["a:fence[waterlogged=false]", "terrane:water", "c:slab[waterlogged=true]"]);
    let states = ["a:fence[waterlogged=true]", "a:fence[waterlogged=false]", "b:fence[waterlogged=true]"];
    let states = [&states[..], &["c:slab[waterlogged=true]"]].concat();
    let schematic = row(&states);
    let (snapshot, report) = read(schematic.clone(), &registry);
    assert_eq!(report.placeholders, 1);
    let chunk = snapshot.chunk(Default::default()).unwrap();
    let id = |name| registry.id(name);
    let found: Vec<_> = (0..4).map(|x| (chunk.block_at([x, 0, 0], 0), chunk.block_at([x, 0, 0], 1))).collect();
    let dry = id("a:fence[waterlogged=false]");
    let placeholder = id(PLACEHOLDER);
    let wet = id("c:slab[waterlogged=true]");
    assert_eq!(found, [(dry, id("terrane:water")), (dry, None), (placeholder, None), (wet, None)]);

    let file = through_file(&written(&snapshot, &registry), 3);
    assert_eq!(read(file.clone(), &registry).0.columns, snapshot.columns);
    // A program that ignores this crate's part of the file reads the state.
    let mut bytes = Vec::new();
    written(&snapshot, &registry).write(&mut bytes, &WriteOptions { version: 3, level: 0 }).unwrap();
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut plain).unwrap();
    let name = plain.windows(12).rposition(|window| window == b"bevy_terrane").unwrap();
    plain[name] = b'B';
    let (elsewhere, _) = Schematic::read(&plain[..], &ReadOptions::default()).unwrap();
    let seen: Vec<_> = (0..4).map(|x| elsewhere.state([x, 0, 0]).unwrap()).collect();
    assert_eq!(seen, states);
}

#[test]
fn water_of_another_name_counts_if_the_options_say_so() {
    let registry = registry(&["a:fence[waterlogged=false]", "a:sea"]);
    let options = TranslationOptions { water: "a:sea".into(), ..TranslationOptions::default() };
    let wet = row(&["a:fence[waterlogged=true]"]);
    let (snapshot, _) = Snapshot::from_schematic(wet, HERE, &registry, &options).unwrap();
    let chunk = snapshot.chunk(Default::default()).unwrap();
    assert_eq!(chunk.block_at([0; 3], 1), registry.id("a:sea"));
    let schematic = snapshot.to_schematic(&registry, &options).unwrap();
    assert_eq!(read(through_file(&schematic, 2), &registry).0.columns, snapshot.columns);
}

#[test]
fn block_entities_are_taken_by_blocks_that_have_room_for_them_or_counted() {
    let mut registry = registry(&["a:stone"]);
    registry.register(BlockType::new("a:sign").with_component(BLOCK_ENTITY)).unwrap();
    let mut schematic = row(&["a:sign", "a:stone", AIR, "c:d"]);
    let entity = |x, id: &str| BlockEntity { position: [x, 0, 0], id: id.to_owned(), data: Compound::new() };
    schematic.block_entities = [0, 0, 1, 2, 40, -1, 3].map(|x| entity(x, "b:e")).to_vec();
    let (snapshot, report) = read(schematic, &registry);
    assert_eq!(report, TranslationReport { placeholders: 1, block_entities: 5, ..TranslationReport::default() });
    let again = written(&snapshot, &registry);
    assert_eq!(again.block_entities, [entity(0, "b:e"), entity(3, "b:e")]);
}

#[test]
fn ids_of_one_name_differ_by_their_components() {
    let mut old = BlockRegistry::new();
    old.register_component(BlockComponent::fixed::<u8>("a:lock")).unwrap();
    old.register(BlockType::new("a:chest").with_component("a:lock")).unwrap();
    let mut names = old.block_records().collect::<Vec<_>>();
    names.push(crate::block::BlockRecord { name: "a:chest".into(), components: Vec::new() });
    let closed = BlockRegistry::from_records(names.clone(), old.component_records().cloned().collect()).unwrap();
    let [locked, bare] = [1, 2].map(BlockId::new);
    let lock = closed.components(locked)[0].id;
    let mut column = Column::new(ColumnPos::new(0, 0));
    let chunk = column.chunk_mut(0);
    chunk.place_block(&closed, [0; 3], 0, locked).unwrap();
    chunk.set_component(&closed, [0; 3], 0, lock, &[7]).unwrap();
    chunk.set_block([1, 0, 0], bare);
    let mut snapshot = Snapshot::new(BlockBox::new(at(0), at(15)));
    snapshot.add_column(&column, 0, Vec::new());
    let schematic = written(&snapshot, &closed);
    assert_eq!(schematic.palette, [AIR, "a:chest"]);
    let again = read(through_file(&schematic, 3), &closed).0;
    assert_eq!(cells(&again), cells(&snapshot));

    // A game that registers the type has one id for both, and the values.
    let mut game = BlockRegistry::from_records(names, old.component_records().cloned().collect()).unwrap();
    game.register_component(BlockComponent::fixed::<u8>("a:lock")).unwrap();
    let chest = game.register(BlockType::new("a:chest").with_component("a:lock")).unwrap();
    let known = read(schematic, &game).0;
    assert_eq!([0, 1].map(|x| known.block(at(x))), [Some(chest); 2]);
    let chunk = known.chunk(Default::default()).unwrap();
    assert_eq!([0, 1].map(|x| chunk.component([x, 0, 0], 0, lock)), [Some(&[7][..]), Some(&[0][..])]);
}

#[test]
fn values_of_another_world_are_migrated_or_counted() {
    let mut theirs = registry(&[]);
    theirs.register_component(BlockComponent::fixed::<u8>("a:lock")).unwrap();
    theirs.register_component(BlockComponent::variable("a:label")).unwrap();
    let chest = BlockType::new("a:chest").with_component("a:lock").with_component("a:label");
    let chest = theirs.register(chest).unwrap();
    let mut column = Column::new(ColumnPos::new(0, 0));
    column.chunk_mut(0).place_block(&theirs, [0; 3], 0, chest).unwrap();
    let mut snapshot = Snapshot::new(BlockBox::new(at(0), at(0)));
    snapshot.add_column(&column, 0, Vec::new());
    let schematic = written(&snapshot, &theirs);

    let mut ours = registry(&[]);
    let schema = crate::block::Schema::new(1).with_migration(0, |lock| Ok([lock, &[9]].concat()));
    ours.register_component(BlockComponent::fixed::<u16>("a:lock").with_schema(schema)).unwrap();
    ours.register(BlockType::new("a:chest").with_component("a:lock")).unwrap();
    let (found, report) = read(schematic, &ours);
    assert_eq!(report, TranslationReport { components: 1, ..TranslationReport::default() });
    let lock = ours.component("a:lock").unwrap();
    assert_eq!(found.chunk(Default::default()).unwrap().component([0; 3], 0, lock), Some(&[0, 9][..]));
}

#[test]
fn a_small_file_cannot_exceed_the_memory_limit() {
    let registry = registry(&[]);
    let mut schematic = Schematic::new([160, 160, 160]);
    schematic.palette.push("b:c".into());
    let chunk = std::sync::Arc::new(Chunk::uniform(BlockId::new(1)));
    for place in 0..1000 {
        let pos = crate::space::ChunkPos::new(place % 10, place / 10 % 10, place / 100);
        schematic.blocks.set_chunk(pos, chunk.clone());
    }
    let options = |memory| TranslationOptions { memory, ..TranslationOptions::default() };
    let read = |schematic: &Schematic, memory| {
        Snapshot::from_schematic(schematic.clone(), HERE, &registry, &options(memory)).map(|_| ())
    };
    let error = read(&schematic, 1 << 20).unwrap_err();
    assert!(matches!(error, TranslationError::TooLarge { what: "bytes of memory", limit: 1_048_576, .. }), "{error}");
    let mut furnished = self::registry(&["a:fence[waterlogged=false]", "terrane:water"]);
    furnished.register(BlockType::new("a:sign").with_component(BLOCK_ENTITY)).unwrap();
    for state in ["a:fence[waterlogged=true]", "a:sign"] {
        schematic.palette[1] = state.to_owned();
        let read =
            |memory| Snapshot::from_schematic(schematic.clone(), HERE, &furnished, &options(memory)).map(|(_, it)| it);
        assert!(matches!(read(1 << 20).unwrap_err(), TranslationError::TooLarge { .. }), "{state}");
    }
    let wide = Schematic::new([65_535, 1, 65_535]);
    assert!(matches!(read(&wide, 1 << 20).unwrap_err(), TranslationError::TooLarge { what: "bytes of memory", .. }));
}

#[test]
fn a_schematic_that_names_not_all_of_its_blocks_is_refused() {
    let registry = registry(&["a:stone"]);
    let mut schematic = row(&["a:stone"]);
    schematic.palette.pop();
    let read = Snapshot::from_schematic(schematic, HERE, &registry, &TranslationOptions::default());
    assert_eq!(
        read.unwrap_err(),
        TranslationError::Unlisted { what: "block", number: 1, list: "palette of the schematic" }
    );
}

/// Promise, snapshots: A schematic keeps block entities, entities and water, and unknown blocks are written back unchanged.
#[test]
fn foreign_entities_are_stored_and_exported_unchanged() {
    let registry = registry(&["a:stone"]);
    let mut schematic = row(&["a:stone"; 8]);
    let data = compound(&[("Health", Nbt::Float(3.5)), ("UUID", Nbt::IntArray(vec![1, 2, 3, 4]))]);
    let entity = |x: f64, y: f64| SchematicEntity { position: [x, y, 0.1], id: "b:cow".into(), data: data.clone() };
    schematic.entities =
        vec![entity(0.3, 0.7), entity(0.3, 0.7), entity(8.0, 1.5), entity(-0.03125, 0.0), entity(900.0, 0.0)];
    schematic.entities.push(SchematicEntity { position: [f64::NAN; 3], ..entity(0.0, 0.0) });
    let (snapshot, report) = read(schematic.clone(), &registry);
    assert_eq!(report.entities, 2);
    let mut found: Vec<_> = snapshot.entities().map(|entity| (entity.block, entity.offset[0])).collect();
    found.sort_by_key(|(block, _)| *block);
    let edge = 1.0_f32.next_down();
    assert_eq!(found, [(at(0), 0.3), (at(0), 0.3), (at(0), 0.0), (at(7), edge)]);
    assert!(snapshot.entities().all(|entity| entity.dimension == HERE && entity.components[0].0 == SCHEMATIC_ENTITY));
    let by_place = |mut entities: Vec<SchematicEntity>| {
        entities.sort_by(|a, b| a.position[0].total_cmp(&b.position[0]));
        entities
    };
    let again = through_file(&written(&snapshot, &registry), 3);
    schematic.entities.truncate(4);
    assert_eq!(by_place(again.entities), by_place(schematic.entities.clone()));

    // Reading again gives the same ids, and another seed gives others.
    let ids = |seed| {
        let options = TranslationOptions { seed, ..TranslationOptions::default() };
        let read = Snapshot::from_schematic(schematic.clone(), HERE, &registry, &options).unwrap().0;
        read.entities().map(|entity| entity.id).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!((ids(0).len(), ids(0)), (4, snapshot.entities().map(|entity| entity.id).collect()));
    assert!(ids(1).is_disjoint(&ids(0)));
}

/// Promise, snapshot files: When another program changed an entity's `Pos` in a schematic, the new place counts.
#[test]
fn an_entity_that_moved_in_another_program_is_where_that_put_it() {
    let registry = registry(&["a:stone"]);
    let mut snapshot = read(row(&["a:stone"; 8]), &registry).0;
    let mut rider = crate::snapshot::tests::entity(5, at(2));
    rider.children = vec![crate::snapshot::tests::child(6, None)];
    rider.children[0].place = Some((HERE, at(3), [0.5; 3]));
    snapshot.add_entity(rider.column(), rider.clone());
    let mut schematic = written(&snapshot, &registry);
    assert_eq!(schematic.entities[0].position, [2.5, 0.5, 0.5]);
    assert_eq!(read(schematic.clone(), &registry).0.entities().collect::<Vec<_>>(), [&rider]);
    schematic.entities[0].position = [4.25, 0.5, 0.5];
    let moved = read(schematic, &registry).0.entities().next().cloned().unwrap();
    assert_eq!((moved.block, moved.offset), (at(4), [0.25, 0.5, 0.5]));
    assert_eq!(moved.children[0].place, Some((HERE, at(5), [0.5; 3])));
}

#[test]
fn uncaptured_blocks_become_air_and_are_counted() {
    let registry = registry(&["a:stone"]);
    let mut snapshot = Snapshot::new(BlockBox::new(BlockPos::new(-1, 0, 0), BlockPos::new(40, 40, 15)));
    let mut column = Column::partial(ColumnPos::new(1, 0), (0..2).into());
    column.chunk_mut(1).set_block([3, 0, 0], BlockId::new(1));
    snapshot.add_column(&column, 4, Vec::new());
    let schematized = snapshot.to_schematic(&registry, &TranslationOptions::default()).unwrap();
    // The grid of the file cuts through captured chunks.
    assert_eq!(schematized.state([20, 16, 0]), Some("a:stone"));
    assert_eq!(schematized.corner(), Some([-1, 0, 0]));
    assert_eq!(snapshot.missing_chunks(), 4 * 3 - 2);

    let mut aligned = Snapshot::new(BlockBox::new(BlockPos::new(16, 0, 0), BlockPos::new(47, 47, 15)));
    aligned.add_column(&column, 4, Vec::new());
    let schematized = aligned.to_schematic(&registry, &TranslationOptions::default()).unwrap();
    assert_eq!((aligned.missing_chunks(), schematized.state([3, 16, 0])), (4, Some("a:stone")));
    let huge = Snapshot::new(BlockBox::ALL);
    let error = huge.to_schematic(&registry, &TranslationOptions::default()).unwrap_err();
    assert!(matches!(error, TranslationError::TooLarge { limit: 65_535, .. }));
}

#[test]
fn blocks_and_components_of_another_registry_are_errors() {
    let mut column = Column::new(ColumnPos::new(0, 0));
    column.set_block(at(0), BlockId::new(77));
    let mut snapshot = Snapshot::new(BlockBox::new(at(0), at(0)));
    snapshot.add_column(&column, 0, Vec::new());
    let error = snapshot.to_schematic(&registry(&[]), &TranslationOptions::default()).unwrap_err();
    assert_eq!(error, TranslationError::Unlisted { what: "block", number: 77, list: "registry" });
}
