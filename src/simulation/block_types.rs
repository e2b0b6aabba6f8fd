//! [`BlockTypes`]: the block registry as a resource.

use crate::block::{BlockId, BlockRegistry, BlockSet};
use bevy::prelude::*;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The block registry as a resource, in the main world and in regions.
#[derive(Resource, Clone, Deref, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(opaque)]
#[reflect(Resource, Clone)]
pub struct BlockTypes(pub Arc<BlockRegistry>);

impl BlockTypes {
    /// The id of the type with this name, as [`BlockRegistry::id`] returns it. In debug builds an unknown name is logged once,
    /// with the closest known name.
    pub fn id(&self, name: &str) -> Option<BlockId> {
        let found = self.0.id(name);
        if cfg!(debug_assertions) && found.is_none() {
            self.tell_unknown(name);
        }
        found
    }

    /// The state with these properties, as [`BlockRegistry::state`] returns it. In debug builds an unknown state is logged like
    /// an unknown name.
    pub fn state(&self, base: &str, properties: &[(&str, &str)]) -> Option<BlockId> {
        let found = self.0.state(base, properties);
        if cfg!(debug_assertions) && found.is_none() {
            let properties: Vec<_> = properties.iter().map(|(name, value)| format!("{name}={value}")).collect();
            self.tell_unknown(&format!("{base}[{}]", properties.join(",")));
        }
        found
    }

    /// The blocks with the tag, as [`BlockRegistry::tag`] returns them. In debug builds an unknown tag is logged once.
    pub fn tag(&self, tag: &str) -> Option<&BlockSet> {
        let found = self.0.tag(tag);
        if cfg!(debug_assertions) && found.is_none() && is_news(tag) {
            warn!("no block type has the tag {tag:?}");
        }
        found
    }

    fn tell_unknown(&self, name: &str) {
        if is_news(name) {
            let nearest = self.nearest_name(name).map(|nearest| format!("; is {nearest:?} meant?"));
            warn!("there is no block type {name:?}{}", nearest.unwrap_or_default());
        }
    }
}

/// Returns `true` if the unknown name was not logged yet.
fn is_news(name: &str) -> bool {
    // The number of unknown names that are logged. The limit matters for games that look up generated names.
    const MOST: usize = 32;
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    told.len() < MOST && told.insert(name.to_owned())
}
