//! Keys of looks that fit no block.

use super::BlockLooks;
use bevy_terrane::block::{BlockName, BlockRegistry, BlockType};
use rustc_hash::FxHashMap;

/// The number of keys that a message names.
const MOST: usize = 8;

/// The states of all blocks, by the name without properties.
pub(super) struct KnownStates<'a> {
    blocks: &'a BlockRegistry,
    states: FxHashMap<&'a str, Vec<&'a BlockType>>,
}

fn base(name: &str) -> &str {
    name.split_once('[').map_or(name, |(base, _)| base)
}

impl<'a> KnownStates<'a> {
    pub fn new(blocks: &'a BlockRegistry) -> Self {
        let mut states = FxHashMap::<_, Vec<_>>::default();
        for name in blocks.names() {
            // Several ids can have one name; their properties are the same.
            let block = blocks.id(name).map(|id| blocks.block(id));
            states.entry(base(name)).or_default().extend(block);
        }
        Self { blocks, states }
    }

    /// What is wrong with the keys of a file of looks, in one line; `None` if each of them fits a block.
    pub fn misfits(&self, looks: &BlockLooks) -> Option<String> {
        let mut misfits: Vec<String> = looks.blocks.keys().filter_map(|key| self.misfit(key)).collect();
        let more = misfits.len().saturating_sub(MOST);
        misfits.truncate(MOST);
        misfits.extend((more > 0).then(|| format!("and {more} more")));
        (!misfits.is_empty()).then(|| misfits.join("; "))
    }

    /// Why a key fits no block.
    fn misfit(&self, key: &str) -> Option<String> {
        let name = match BlockName::parse(key.to_owned()) {
            Ok(name) => name,
            Err(error) => return Some(format!("{key:?} is no name of a block: {error}")),
        };
        let Some(states) = self.states.get(name.base()) else {
            let renamed = self.blocks.id(name.base()).map(|id| self.blocks.block(id).name());
            let near = renamed.or_else(|| self.blocks.nearest_name(name.base()));
            let near = near.map(|near| format!(" (is {:?} meant?)", base(near))).unwrap_or_default();
            return Some(format!("{key:?}: there is no block {:?}{near}", name.base()));
        };
        for (property, value) in name.properties() {
            let mut values: Vec<_> = states.iter().filter_map(|state| state.property(property)).collect();
            values.sort_unstable();
            values.dedup();
            if values.is_empty() {
                return Some(format!("{key:?}: the block has {} and no {property:?}", properties(states)));
            } else if !values.contains(&value) {
                let values = values.join(", ");
                return Some(format!("{key:?}: {property:?} is one of {values}, and never {value:?}"));
            }
        }
        let fits = |state: &&BlockType| name.properties().all(|(name, value)| state.property(name) == Some(value));
        (!states.iter().any(fits)).then(|| format!("{key:?}: no state has all of these properties"))
    }
}

/// The names of the properties of these states.
fn properties(states: &[&BlockType]) -> String {
    let of_states = states.iter().flat_map(|state| state.properties());
    let mut names: Vec<String> = of_states.map(|(property, _)| format!("{property:?}")).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() { "no properties".to_owned() } else { format!("only {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::looks::BlockLook;
    use bevy_terrane::block::BlockStates;

    fn misfits(keys: &[&str]) -> Option<String> {
        let mut blocks = BlockRegistry::new();
        blocks.register(BlockType::new("ore:slate").formerly("ore:shale")).unwrap();
        let water = BlockStates::new(BlockType::new("game:water"));
        blocks.register_states(water.with_property("level", ["8", "7", "6"])).unwrap();
        let looks = keys.iter().map(|key| ((*key).to_owned(), BlockLook::all("x.png"))).collect();
        KnownStates::new(&blocks).misfits(&BlockLooks { blocks: looks })
    }

    #[test]
    fn keys_of_known_blocks_and_states_fit() {
        assert_eq!(misfits(&["ore:slate", "game:water", "game:water[level=7]", "terrane:air"]), None);
    }

    /// Promise, looks: A look for a block or a state that does not exist gives a warning with file, key, and the nearest names.
    #[test]
    fn a_key_that_fits_no_block_is_explained() {
        for (key, expected) in [
            ("ore:slat", "\"ore:slat\": there is no block \"ore:slat\" (is \"ore:slate\" meant?)"),
            ("ore:shale", "\"ore:shale\": there is no block \"ore:shale\" (is \"ore:slate\" meant?)"),
            ("game:diamond", "\"game:diamond\": there is no block \"game:diamond\""),
            ("game:water[level=99]", "\"game:water[level=99]\": \"level\" is one of 6, 7, 8, and never \"99\""),
            ("game:water[levl=8]", "\"game:water[levl=8]\": the block has only \"level\" and no \"levl\""),
            ("ore:slate[wet=true]", "\"ore:slate[wet=true]\": the block has no properties and no \"wet\""),
            ("game:water[level=8", "\"game:water[level=8\" is no name of a block: the properties do not end with `]`"),
        ] {
            assert_eq!(misfits(&[key]).as_deref(), Some(expected));
        }
    }

    #[test]
    fn many_misfits_are_counted() {
        let keys: Vec<_> = (0..20).map(|number| format!("pack:block_{number}")).collect();
        let text = misfits(&keys.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        assert!(text.ends_with("; and 12 more") && text.contains("pack:block_0"), "{text}");
    }
}
