//! Bots of one process: clients without Bevy, which walk, look and dig.

use crate::arguments::{Options, Place, Swarm};
use crate::network::{self, CHUNKS, Unsent, WALKS};
use bevy::app::AppExit;
use bevy_renet::RenetClient;
use bevy_renet::netcode::NetcodeClientTransport;
use bevy_terrane::block::BlockId;
use bevy_terrane::chunk_sync::{SyncArea, SyncClient};
use bevy_terrane::generation::Hills;
use bevy_terrane::simulation::SplitMix64;
use bevy_terrane::space::BlockPos;
use std::error::Error;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// The seed of the land, on the server and here.
pub const SEED: u64 = 12;
/// The time from one step to the next: 20 a second, as in Minecraft.
const STEP: Duration = Duration::from_millis(50);
/// The speed of a walking player, in blocks a second.
const SPEED: f64 = 4.3;
/// A bot digs once in this many steps, and turns about as often.
const DIGS_EVERY: u64 = 40;
/// The distance between bots on the land, in blocks, and the radius of the town and of a bot's own area.
const APART: i64 = 16 * 48;
const TOWN: f64 = 64.0;

/// A connected bot.
struct Bot {
    client: RenetClient,
    transport: NetcodeClientTransport,
    sync: SyncClient,
    unsent: Unsent,
    random: SplitMix64,
    home: (i64, i64),
    /// Its place relative to its home, in blocks, and its direction.
    place: (f64, f64),
    heading: f64,
    walked: Option<BlockPos>,
    digs: u64,
    number: usize,
    was_connected: bool,
    has_left: bool,
}

/// The middle of a bot's area.
fn home(number: usize, bots: usize, place: Place) -> (i64, i64) {
    let side = (bots as f64).sqrt().ceil() as usize;
    match place {
        Place::Land => ((number % side) as i64 * APART, (number / side) as i64 * APART),
        Place::Town => (0, 0),
    }
}

impl Bot {
    fn connect(server: SocketAddr, number: usize, options: &Options) -> Result<Self, Box<dyn Error>> {
        let (client, transport) = network::connect(server, &format!("bot {number}"))?;
        let mut random = SplitMix64::new(number as u64);
        let place = options.place.unwrap_or(Place::Land);
        let start = |random: &mut SplitMix64| f64::from(random.unit()) * TOWN - TOWN / 2.0;
        Ok(Self {
            client,
            transport,
            sync: SyncClient::new(None),
            unsent: Unsent::default(),
            home: home(number, options.bots, place),
            place: (start(&mut random), start(&mut random)),
            heading: f64::from(random.unit()) * std::f64::consts::TAU,
            walked: None,
            digs: 0,
            number,
            was_connected: false,
            has_left: false,
            random,
        })
    }

    fn step(&mut self, land: &Hills, radius: u32, now: Duration) -> Result<(), Box<dyn Error>> {
        self.client.update(STEP);
        self.transport.update(STEP, &mut self.client)?;
        if !self.client.is_connected() {
            return Ok(());
        }
        self.was_connected = true;
        while let Some(message) = self.client.receive_message(CHUNKS) {
            self.sync.receive(&message)?;
        }
        // A player's program would draw these.
        while self.sync.next_news().is_some() {}
        self.sync.expire(now);
        self.walk(land, radius);
        self.dig(land, now);
        while self.unsent.is_empty()
            && let Some(message) = self.sync.next_message()
        {
            self.unsent.add(vec![message]);
            self.send();
        }
        self.send();
        self.transport.send_packets(&mut self.client)?;
        Ok(())
    }

    fn send(&mut self) {
        while let Some(message) = self.unsent.next(|length| self.client.can_send_message(CHUNKS, length)) {
            self.client.send_message(CHUNKS, message);
        }
    }

    fn walk(&mut self, land: &Hills, radius: u32) {
        if u64::from(self.random.below(DIGS_EVERY as u32)) == 0 {
            self.heading += f64::from(self.random.unit()) - 0.5;
        }
        let far = self.place.0.hypot(self.place.1) > TOWN;
        if far {
            // It turns home.
            self.heading = (-self.place.1).atan2(-self.place.0);
        }
        let distance = SPEED * STEP.as_secs_f64();
        self.place.0 += self.heading.cos() * distance;
        self.place.1 += self.heading.sin() * distance;
        let (x, z) = (self.home.0 + self.place.0.floor() as i64, self.home.1 + self.place.1.floor() as i64);
        let at = BlockPos::new(x, land.height_at(x, z) + 1, z);
        if self.walked != Some(at) {
            self.walked = Some(at);
            self.client.send_message(WALKS, network::encode(&at));
            self.sync.look(SyncArea { center: at.chunk(), radius, vertical: 16 });
        }
    }

    /// Digs out the ground under its feet. Others may have done so before.
    fn dig(&mut self, land: &Hills, now: Duration) {
        let Some(at) = self.walked.filter(|_| self.sync.takes_edits()) else { return };
        if u64::from(self.random.below(DIGS_EVERY as u32)) == 0 {
            self.digs += 1;
            let below = BlockPos::new(at.x, land.height_at(at.x, at.z) - (self.digs % 2) as i64, at.z);
            self.sync.edit(now, self.digs, below, BlockId::AIR);
        }
    }
}

/// Runs the bots of one connection until the server is gone.
pub fn run(swarm: &Swarm, options: &Options) -> Result<AppExit, Box<dyn Error>> {
    let land = Hills::seeded(SEED);
    let mut numbers = options.bots_of(swarm.number);
    let mut bots = Vec::new();
    let began = Instant::now();
    let mut next = began;
    loop {
        // A server does not get a thousand players in one moment.
        for number in numbers.by_ref().take(2) {
            bots.push(Bot::connect(swarm.server, number, options)?);
        }
        let mut is_anyone_there = false;
        for bot in &mut bots {
            match bot.step(&land, options.radius, began.elapsed()) {
                Ok(()) => is_anyone_there = true,
                // The server had no time for it.
                Err(_) if !bot.was_connected => *bot = Bot::connect(swarm.server, bot.number, options)?,
                // The server reports those who leave.
                Err(_) => bot.has_left = true,
            }
        }
        if !is_anyone_there && bots.iter().all(|bot| bot.has_left) {
            return Ok(AppExit::Success);
        }
        next += STEP;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        // Bots that are late do not hurry.
        next = next.max(Instant::now() - STEP);
    }
}
