#![doc = include_str!("../README.md")]

mod client;
mod game_messages;
mod identity;
mod server;
mod socket;
#[cfg(test)]
mod tests;
mod wire;

pub use client::{Bot, BotError, ClientPlugin, ConnectionNews, ServerConnection};
pub use game_messages::{FromAClient, FromTheServer, NetAppExt, NetMessage, ToClients, ToTheServer};
pub use identity::{Fingerprint, FingerprintError, Identity, IdentityError, Trust};
pub use server::connected::ConnectedClient;
pub use server::{LogInAttempt, NetServer, SecondLogIn, ServerError, ServerFailed, ServerPlugin};
