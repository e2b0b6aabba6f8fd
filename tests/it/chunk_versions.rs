//! Every chunk has a version: 0 as generated, incremented by each saved change.

use crate::support::*;
use bevy_terrane::prelude::*;
use bevy_terrane::storage::MemoryStore;
use bevy_terrane::view::{AskChunks, AskError, ChunkState, ChunksAnswer};
use std::sync::Arc;
use std::time::Duration;

const GROUND: ChunkPos = ChunkPos::new(0, -1, 0);
const SKY: ChunkPos = ChunkPos::new(0, 3, 0);

/// A game that saves only on demand.
fn world(disk: &Arc<MemoryStore>) -> (App, DimensionId) {
    let mut app =
        game(TerranePlugin { saving: SaveSettings::every(Duration::from_secs(1_000_000)), ..lockstep_on(disk) });
    listen::<ChunksAnswer>(&mut app);
    let dimension = flat(&mut app);
    (app, dimension)
}

fn states(app: &mut App, dimension: DimensionId, chunks: &[ChunkPos]) -> Vec<Result<Option<ChunkState>, AskError>> {
    let request = heard::<ChunksAnswer>(app).len() as u64;
    app.world_mut().write_message(AskChunks { request, dimension, chunks: chunks.to_vec() });
    update(app, 4);
    let answer = heard::<ChunksAnswer>(app).iter().find(|answer| answer.request == request).expect("an answer");
    assert!(answer.chunks.iter().map(|(chunk, _)| chunk).eq(chunks));
    answer.chunks.iter().map(|(_, state)| state.clone()).collect()
}

/// The version of a chunk, and whether it is saved.
fn version(app: &mut App, dimension: DimensionId, chunk: ChunkPos) -> (u64, bool) {
    let state = states(app, dimension, &[chunk]).remove(0).unwrap().expect("a chunk");
    (state.version, state.saved)
}

fn build(app: &mut App, dimension: DimensionId, chunk: ChunkPos, block: &str) {
    let (position, block) = (chunk.min_block(), id_of(app.world(), block));
    app.world_mut().write_message(SetBlock { dimension, position, block });
    update(app, 4);
}

/// Promise, multiplayer: A generated chunk has version 0, and each saved change adds one.
/// Promise, chunk sync: A chunk with unsaved changes is sent with the version of its next save.
#[test]
fn a_version_counts_saved_changes() {
    let disk = Arc::<MemoryStore>::default();
    let (mut app, dimension) = world(&disk);
    viewer(&mut app, dimension, 0.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    // Both the ground and the air above it are as generated.
    assert_eq!(version(&mut app, dimension, GROUND).0, 0);
    assert_eq!(version(&mut app, dimension, SKY).0, 0);
    save(&mut app);
    assert_eq!(version(&mut app, dimension, GROUND), (0, true));
    assert_eq!(version(&mut app, dimension, SKY), (0, true));
    for (round, block) in (1..).zip(["terrane:dirt", "terrane:grass", "terrane:stone"]) {
        for chunk in [GROUND, SKY] {
            build(&mut app, dimension, chunk, block);
            assert_eq!(version(&mut app, dimension, chunk), (round, false), "{chunk} is changed and not saved");
        }
        save(&mut app);
        for chunk in [GROUND, SKY] {
            assert_eq!(version(&mut app, dimension, chunk), (round, true), "{chunk}");
        }
    }
    // A save without a change.
    save(&mut app);
    assert_eq!(version(&mut app, dimension, GROUND), (3, true));
    drop(app);

    // Versions in the next session, and of chunks that are not loaded.
    let (mut app, dimension) = world(&disk);
    viewer(&mut app, dimension, 10_000.0, 0.0, 1);
    start(&mut app);
    update(&mut app, 20);
    assert_eq!(version(&mut app, dimension, GROUND), (3, true));
    assert_eq!(version(&mut app, dimension, SKY), (3, true));
    assert_eq!(version(&mut app, dimension, ChunkPos::new(0, 4, 0)), (0, true));
    // This chunk was never generated.
    assert_eq!(states(&mut app, dimension, &[ChunkPos::new(50, 0, 50)]), [Ok(None)]);
    assert_eq!(states(&mut app, DimensionId(99), &[GROUND]), [Err(AskError::NotOpen)]);
}
