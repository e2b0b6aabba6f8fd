//! The block types that a schematic adds to a world.

use super::Result;
use crate::RegistryLists;
use crate::block::{
    BLOCK_ENTITY, BlockComponentId, BlockComponentRecord, BlockName, BlockRecord, BlockRegistry, PLACEHOLDER, STATE,
};
use std::collections::BTreeSet;
use terrane_world::snapshot::schematic::{AIR, Schematic, dry};
use terrane_world::snapshot::translation::TranslationOptions;
use terrane_world::snapshot::{Turn, turned_state};

/// The lists with a type for each unknown block state of the schematic and for the state that it becomes by the turn;
/// and the registry of these lists.
pub(super) fn with_states(
    mut lists: RegistryLists,
    schematic: &Schematic,
    turn: Turn,
    options: &TranslationOptions,
) -> Result<(RegistryLists, BlockRegistry)> {
    if lists.blocks.is_empty() {
        lists.blocks = BlockRegistry::new().block_records().collect();
    }
    let known = BlockRegistry::from_records(lists.blocks.clone(), lists.components.clone())?;
    let holders = holders(schematic);
    let is_known = |state: &str| known.id(state).is_some();
    let is_wet = |state: &str| is_known(&options.water) && dry(state).is_some_and(|dry| is_known(&dry));
    let mut new = BTreeSet::new();
    let mut needs_placeholder = false;
    for number in used_states(schematic) {
        let Some(state) = schematic.palette.get(number as usize).filter(|state| *state != AIR) else { continue };
        let holds = holders.contains(&number);
        let name = BlockName::parse(state.clone()).ok().filter(|name| name.as_str() == *state);
        match name {
            Some(name) if holds || !is_known(state) && !is_wet(state) => {
                new.insert((turned_state(&name, turn).to_string(), holds));
                new.insert((name.to_string(), holds));
            }
            Some(_) => {}
            None => needs_placeholder = true,
        }
    }
    for (name, holds) in new {
        let components = if holds { vec![variable(&mut lists, BLOCK_ENTITY)] } else { Vec::new() };
        // A type that already has components keeps them.
        let of_name: Vec<&BlockRecord> = lists.blocks.iter().filter(|record| record.name == name).collect();
        let is_there =
            if holds { of_name.iter().any(|record| !record.components.is_empty()) } else { !of_name.is_empty() };
        if !is_there {
            lists.blocks.push(BlockRecord { name, components });
        }
    }
    if needs_placeholder && known.id(PLACEHOLDER).is_none() {
        let mut components = vec![variable(&mut lists, STATE), variable(&mut lists, BLOCK_ENTITY)];
        components.sort_unstable();
        lists.blocks.push(BlockRecord { name: PLACEHOLDER.to_owned(), components });
    }
    let registry = BlockRegistry::from_records(lists.blocks.clone(), lists.components.clone())?;
    Ok((lists, registry))
}

/// The numbers of all states that occur.
fn used_states(schematic: &Schematic) -> BTreeSet<u32> {
    let mut used = BTreeSet::new();
    for (_, chunk) in schematic.blocks.chunks() {
        used.extend(chunk.palette().iter().map(|block| block.index()));
        used.extend(chunk.layered_blocks().map(|(_, _, block)| block.index()));
    }
    used
}

/// The numbers of all states that occur with a block entity.
fn holders(schematic: &Schematic) -> BTreeSet<u32> {
    let places = schematic.block_entities.iter().filter_map(|entity| match entity.position.map(u32::try_from) {
        [Ok(x), Ok(y), Ok(z)] => Some([x, y, z]),
        _ => None,
    });
    places.map(|place| schematic.blocks.block(place).index()).collect()
}

/// The number of a component without a fixed size. The component is added if it does not exist.
fn variable(lists: &mut RegistryLists, name: &str) -> u64 {
    let record = BlockComponentRecord { name: name.to_owned(), version: 0, size: None };
    let place = lists.components.iter().position(|known| *known == record).unwrap_or_else(|| {
        lists.components.push(record);
        lists.components.len() - 1
    });
    BlockComponentId::at(place, None).number()
}
