//! Merging the contents of two regions, and splitting the contents of one.

use super::arrival::arrive_all;
use super::departure::depart_all;
use crate::region::RegionPart;
use crate::simulation::RegionInfo;
use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::components::followers::roots;
use crate::simulation::components::resources::{settle_resources, take_resources};
use crate::simulation::entities::{EntityIndex, MoveCause};
use crate::simulation::inbox_outbox::Inbox;
use crate::simulation::letters::letter::Letter;
use crate::simulation::letters::post::Post;
use crate::simulation::work::unsaved::collect_chunks;
use crate::simulation::world::{RegionContents, RegionWorld};
use crate::storage::SaveBatch;
use bevy::prelude::*;
use std::mem;

/// Moves everything from `other` into `world`.
pub fn absorb(world: &mut World, contents: &mut RegionContents, mut other: RegionWorld) {
    let (source, theirs) = (other.app.world_mut(), &mut other.contents);
    // Before the entities, whose hooks may panic: everything already in `contents` is salvaged then.
    contents.unfinished.absorbing = source.resource::<RegionColumns>().columns().to_vec();
    // Both have the same clock.
    contents.letters.append(&mut theirs.letters);
    contents.actions.unsaved.append(&mut theirs.actions.unsaved);
    contents.viewers.expected.extend(mem::take(&mut theirs.viewers.expected));
    let roots = roots(source, &theirs.components, |_| true);
    let travellers = depart_all(source, theirs, roots, MoveCause::Merge);
    // After the entities: observers of a departure may still change the ground that it leaves.
    let columns = mem::take(&mut *source.resource_mut::<RegionColumns>());
    world.resource_mut::<RegionColumns>().append(columns);
    contents.unfinished.absorbing.clear();
    let despawned = mem::take(&mut source.resource_mut::<EntityIndex>().despawned);
    let resources = take_resources(source, &theirs.components.resources, theirs.number, None);
    world.resource_mut::<EntityIndex>().despawned.extend(despawned);
    let arrived = arrive_all(world, contents, travellers);
    settle_resources(world, resources, &arrived);
    let sent = source.resource_mut::<Post>().take();
    world.resource_mut::<Post>().append(sent);
}

/// Hands over the contents of the parts' sections. Everything unsaved was handed out before.
pub fn split(world: &mut World, contents: &mut RegionContents, parts: &[RegionPart]) {
    for part in parts {
        let taken = split_off(world, contents, part);
        // A complete part stays complete if a hook of the game panics during the next one.
        contents.outbox.parts.push((part.id, taken));
    }
}

fn split_off(world: &mut World, contents: &mut RegionContents, part: &RegionPart) -> Inbox {
    let dimension = world.resource::<RegionInfo>().dimension;
    let resources = take_resources(world, &contents.components.resources, contents.number, Some(part));
    let leaving = roots(world, &contents.components, |position| part.contains(position.column()));
    let travellers = depart_all(world, contents, leaving, MoveCause::Split);
    let mut owned = world.resource_mut::<RegionColumns>();
    for section in &part.sections {
        owned.sections.remove(section);
    }
    // Hooks and observers of leaving entities may have changed blocks after everything unsaved was handed out.
    let mut save = SaveBatch::default();
    collect_chunks(&mut owned, dimension, |column| part.contains(column), &mut save);
    let (columns, light) = owned.split_off(|column| part.contains(column));
    let leaves = |letter: &Letter| letter.column().is_some_and(|(_, column)| part.contains(column));
    let letters = contents.letters.take(leaves);
    let outbox = &mut contents.outbox;
    outbox.changed.extend(save.chunks.iter().map(|((_, chunk), blocks)| (*chunk, blocks.clone())));
    outbox.save.merge(save);
    Inbox { travellers, columns, light, letters, resources, ..Inbox::default() }
}
