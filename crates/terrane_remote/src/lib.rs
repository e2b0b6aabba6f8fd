#![doc = include_str!("../README.md")]

mod error;
mod http;
mod json;
mod methods;
mod requests;
mod rpc;

use bevy::ecs::reflect::AppTypeRegistry;
use bevy::prelude::*;
use bevy_terrane::view::Dimensions;
use methods::{Asker, Poll, Rights};
use requests::{Job, Permit, Shared};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use uuid::Uuid;

/// Serves the methods of this [crate](self) at `http://ADDRESS/`.
///
/// If the address cannot be bound, that is logged as an error, and the game runs without the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionRemotePlugin {
    /// The address to listen at, 127.0.0.1:15703 by default. With port 0 the system chooses one: see [`RemoteServer::address`].
    pub address: SocketAddr,
    /// Lets clients change entities and blocks. Off by default: then they only read.
    pub allow_writes: bool,
}

impl Default for RegionRemotePlugin {
    fn default() -> Self {
        Self { address: (Ipv4Addr::LOCALHOST, 15703).into(), allow_writes: false }
    }
}

impl Plugin for RegionRemotePlugin {
    fn build(&self, app: &mut App) {
        let types = app.init_resource::<AppTypeRegistry>().world().resource::<AppTypeRegistry>().clone();
        match RemoteServer::start(*self, types) {
            Ok(server) => {
                let RemoteServer { address, token, .. } = &server;
                info!(
                    "regions are shown at http://{address}/ to clients with the header `Authorization: Bearer {token}`"
                );
                app.insert_resource(server)
                    .register_type::<RemoteServer>()
                    // Without a world, requests are answered with an error in the end.
                    .add_systems(
                        Update,
                        serve.run_if(resource_exists::<RemoteServer>).run_if(resource_exists::<Dimensions>),
                    );
            }
            Err(error) => error!("regions are not shown at {}: {error}", self.address),
        }
    }
}

/// The endpoint of [`RegionRemotePlugin`]. Removing the resource closes it.
#[derive(Resource, Reflect)]
#[type_path = "terrane_remote"]
#[reflect(from_reflect = false)]
#[reflect(Component)]
pub struct RemoteServer {
    #[reflect(ignore)]
    address: SocketAddr,
    #[reflect(ignore)]
    token: String,
    #[reflect(ignore)]
    jobs: Mutex<Receiver<Job>>,
    #[reflect(ignore)]
    shared: Arc<Shared>,
}

impl RemoteServer {
    fn start(plugin: RegionRemotePlugin, types: AppTypeRegistry) -> io::Result<Self> {
        let listener = TcpListener::bind(plugin.address)?;
        let address = listener.local_addr()?;
        let token = Uuid::new_v4().simple().to_string();
        let (shared, jobs) = Shared::new(token.clone(), Rights { allow_writes: plugin.allow_writes, types });
        http::listen(listener, shared.clone())?;
        Ok(Self { address, token, jobs: Mutex::new(jobs), shared })
    }

    /// The address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The token that each request needs. It is random, and another one after each start.
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl Drop for RemoteServer {
    fn drop(&mut self) {
        http::close(&self.shared, self.address);
    }
}

/// A request that waits for its region.
struct Waiting {
    poll: Poll,
    reply: SyncSender<methods::Reply>,
    until: Instant,
    _permit: Permit,
}

/// Asks what clients want to know, and hands out the answers of regions.
fn serve(server: Res<RemoteServer>, mut waiting: Local<Vec<Waiting>>, mut asker: Asker) {
    let jobs = server.jobs.lock().unwrap_or_else(PoisonError::into_inner);
    for Job { question, reply, until, permit } in jobs.try_iter() {
        match question.ask(&mut asker) {
            Ok(poll) => waiting.push(Waiting { poll, reply, until, _permit: permit }),
            // The place for the reply is empty.
            Err(error) => drop(reply.try_send(Err(error))),
        }
    }
    let now = Instant::now();
    waiting.retain_mut(|waiting| match (waiting.poll)() {
        Some(answer) => {
            let _ = waiting.reply.try_send(answer);
            false
        }
        None if now < waiting.until => true,
        None => {
            let _ = waiting.reply.try_send(Err(error::no_answer()));
            false
        }
    });
}
