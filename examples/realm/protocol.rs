//! Lines between the processes of the scenario.

use crate::game::Wish;
use bevy::prelude::*;
use bevy_terrane::space::BlockPos;
use serde::{Deserialize, Serialize};
use std::io::{Write, stdin, stdout};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use uuid::Uuid;

/// A player as clients see it.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Body {
    pub name: String,
    pub block: BlockPos,
    pub gems: Vec<String>,
}

/// What the scenario tells a client or a server, as a line of JSON.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub enum Order {
    Wish(Wish),
    Picture { name: String },
    Leave,
}

/// What a client or a server reports, as a line of JSON.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub enum Event {
    /// The server listens here.
    Listening(SocketAddr),
    /// The player is in the world on this server. `seconds` is the time since it was last in the world.
    Playing { server: SocketAddr, id: Uuid, seconds: f64 },
    /// The player was sent to another server.
    Sent { to: SocketAddr },
    /// The connection is lost, for this reason.
    Lost(String),
    /// The server refuses the client, for this reason.
    Refused(String),
    /// The player's place, and what it has. Sent twice a second.
    Own(Body),
    /// The picture is saved.
    Picture(PathBuf),
    /// What the client was sent of the world, and what its chunks saved.
    Chunks { sent: u64, bytes: u64, saved: u64 },
}

impl Event {
    pub fn print(&self) {
        let line = serde_json::to_string(self).unwrap_or_default();
        // Without a reader there is nobody to tell.
        let _ = writeln!(stdout().lock(), "{line}");
    }
}

/// The orders of the scenario, one a line of the standard input.
#[derive(Resource)]
pub struct Orders(Mutex<Receiver<Order>>);

impl Orders {
    pub fn read() -> Self {
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let lines = stdin().lines().map_while(Result::ok);
            lines.filter_map(|line| serde_json::from_str(&line).ok()).for_each(|order| drop(sender.send(order)));
        });
        Self(Mutex::new(receiver))
    }

    /// The next order, if there is one.
    pub fn next(&mut self) -> Option<Order> {
        self.0.get_mut().ok()?.try_recv().ok()
    }
}
