//! The command line.

use crate::tell::Run;
use bevy::prelude::Resource;
use clap::{Args, Parser, Subcommand, ValueEnum};
use terrane_net::Fingerprint;

/// How many players a server carries.
///
/// Bots in a process of their own connect to a server; they walk, look and dig. Without a command, both rounds are
/// played: all bots spread over the land, and all in one town. --seconds is the time that is measured in each, once all bots have
/// their ground; by default 20.
#[derive(Parser, Debug)]
#[command(name = "crowd", verbatim_doc_comment)]
pub struct Arguments {
    #[command(subcommand)]
    pub role: Option<Role>,

    #[command(flatten)]
    pub options: Options,

    #[command(flatten)]
    pub run: Run,
}

/// The role of this process.
#[derive(Subcommand, Clone, Debug)]
pub enum Role {
    /// Run the server until its figures are taken
    Serve,
    /// Run the bots
    Swarm(Swarm),
}

/// Options that all processes of a round share.
#[derive(Args, Resource, Clone, Debug)]
pub struct Options {
    /// The number of bots
    #[arg(long, global = true, default_value_t = 200)]
    pub bots: usize,

    /// Where they are; by default first on the land and then in a town
    #[arg(long, global = true)]
    pub place: Option<Place>,

    /// The radius in columns that each bot sees
    #[arg(long, global = true, default_value_t = 4)]
    pub radius: u32,
}

/// Where the bots are.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Place {
    /// Each far away from all others
    Land,
    /// All within 64 blocks
    Town,
}

#[derive(Args, Clone, Debug)]
pub struct Swarm {
    /// The address of the server
    #[arg(long)]
    pub server: String,

    /// The fingerprint of the server's certificate
    #[arg(long)]
    pub fingerprint: Fingerprint,
}

impl Options {
    /// These options on the command line.
    pub fn arguments(&self) -> Vec<String> {
        let Self { bots, place, radius } = self;
        let mut arguments = vec![format!("--bots={bots}"), format!("--radius={radius}")];
        arguments.extend(place.map(|place| format!("--place={}", format!("{place:?}").to_lowercase())));
        arguments
    }
}
