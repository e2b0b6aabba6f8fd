//! What the server and the bots agree on.

use bevy_terrane::prelude::*;
use serde::{Deserialize, Serialize};

/// Where a bot begins: its secret when it logs in.
#[derive(Serialize, Deserialize)]
pub struct Home(pub BlockPos);

impl Home {
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, Vec::new()).unwrap_or_default()
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

/// A bot has walked to this block: a message to the server, and from there to the bot's entity.
#[derive(Serialize, Deserialize, TypePath, Clone, Debug)]
pub struct Walk(pub BlockPos);
