//! Merge and split: what two regions hold becomes one, and what one holds becomes several.

use super::arrival::arrive_all;
use super::departure::{depart_all, roots};
use super::entities::{EntityIndex, MoveCause};
use super::resources::{RegionShare, report_unregistered, split_resources, take_resources};
use crate::chunk::Column;
use crate::region::RegionPart;
use crate::simulation::columns::block_ticks::BlockTicks;
use crate::simulation::columns::blocks::RegionColumns;
use crate::simulation::columns::unsaved::collect_chunks;
use crate::simulation::post::Post;
use crate::simulation::world::RegionContents;
use crate::simulation::{Inbox, Letter, LoadedColumn, RegionComponents, RegionInfo, RegionWorld};
use crate::storage::SaveBatch;
use bevy::prelude::*;
use std::mem;

/// Moves everything from `other` into `world`.
pub(in crate::simulation) fn absorb(world: &mut World, mut other: RegionWorld) {
    let source = other.app.world_mut();
    let contents = source.resource::<RegionContents>();
    let (components, origin) = (contents.components.clone(), contents.number);
    // Before the entities, whose hooks may panic: what is in `world` by then is salvaged.
    let columns = mem::take(&mut *source.resource_mut::<RegionColumns>());
    world.resource_mut::<RegionColumns>().append(columns);
    let RegionContents { waiting, viewers, .. } = source.resource_mut::<RegionContents>().into_inner();
    // The clock is the same for both.
    let (waiting, viewers) = (mem::take(waiting), mem::take(viewers));
    let contents = world.resource_mut::<RegionContents>().into_inner();
    contents.waiting.append(waiting);
    contents.viewers.extend(viewers);
    let roots = roots(source, &components, |_| true);
    let travellers = depart_all(source, roots, MoveCause::Merge);
    let despawned = mem::take(&mut source.resource_mut::<EntityIndex>().despawned);
    let resources = take_resources(source, &components, origin);
    report_unregistered(source, &components);
    world.resource_mut::<EntityIndex>().despawned.extend(despawned);
    let ticks = mem::take(&mut *source.resource_mut::<BlockTicks>());
    world.resource_mut::<BlockTicks>().append(ticks);
    let arrived = arrive_all(world, travellers);
    resources.into_iter().for_each(|resource| resource.settle(world, &arrived));
    let sent = source.resource_mut::<Post>().take();
    world.resource_mut::<Post>().append(sent);
}

/// Hands over what lies in the parts' sections. Everything unsaved was handed out before.
pub(in crate::simulation) fn split(world: &mut World, parts: &[RegionPart]) {
    let components = world.resource::<RegionContents>().components.clone();
    for part in parts {
        let part = (part.id, split_off(world, &components, part));
        // A part that is whole stays so if a hook of the game panics with the next one.
        world.resource_mut::<RegionContents>().outbox.get().parts.push(part);
    }
    report_unregistered(world, &components);
}

fn split_off(world: &mut World, components: &RegionComponents, part: &RegionPart) -> Inbox {
    let origin = world.resource::<RegionContents>().number;
    let RegionInfo { dimension, section_shift, .. } = *world.resource::<RegionInfo>();
    let share = RegionShare::new(part, section_shift);
    let resources = split_resources(world, components, &share, origin);
    let leaving = roots(world, components, |position| share.contains(position.column()));
    let travellers = depart_all(world, leaving, MoveCause::Split);
    let mut owned = world.resource_mut::<RegionColumns>();
    for section in &part.sections {
        owned.sections.remove(section);
    }
    // Hooks and observers of those who left may have built something, after everything unsaved was handed out.
    let mut save = SaveBatch::default();
    collect_chunks(&mut owned, dimension, |column| share.contains(column), &mut save);
    let columns: Vec<_> = owned.split_off(|column| share.contains(column)).collect();
    let mut ticks = world.resource_mut::<BlockTicks>();
    let loaded = |column: Column| LoadedColumn { block_ticks: ticks.take_column(column.pos()), ..column.into() };
    let columns = columns.into_iter().map(loaded).collect();
    let mut contents = world.resource_mut::<RegionContents>();
    let leaves = |letter: &Letter| letter.column().is_some_and(|(_, column)| share.contains(column));
    let letters = contents.take_waiting(leaves);
    let outbox = contents.outbox.get();
    outbox.changed.extend(save.chunks.iter().map(|((_, chunk), blocks)| (*chunk, blocks.clone())));
    outbox.save.merge(save);
    Inbox { travellers, columns, letters, resources, ..Inbox::default() }
}
