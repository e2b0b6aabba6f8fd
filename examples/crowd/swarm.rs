//! The bots: clients without Bevy, which walk, look and dig. One of them measures how long it takes until it sees that.

use crate::arguments::{Options, Place, Swarm};
use crate::game::{Home, Walk};
use bevy::app::AppExit;
use bevy_terrane::block::BlockId;
use bevy_terrane::chunk::format;
use bevy_terrane::chunk_sync::{EditAnswer, SyncArea, SyncNews};
use bevy_terrane::entity_sync::EntityNews;
use bevy_terrane::generation::Hills;
use bevy_terrane::simulation::SplitMix64;
use bevy_terrane::space::BlockPos;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};
use terrane_net::Trust;
use uuid::Uuid;

/// The seed of the land, on the server and here.
pub const SEED: u64 = 12;
/// The time from one step to the next: 20 a second, as in Minecraft.
const STEP: Duration = Duration::from_millis(50);
/// How often the bot that measures looks for news.
const GLANCE: Duration = Duration::from_millis(5);
/// The speed of a walking player, in blocks a second.
const SPEED: f64 = 4.3;
/// A bot turns once in this many steps, and a player digs as often.
const DIGS_EVERY: u32 = 40;
/// One of so many bots digs for all of them, and sees what changes: a core has no room for a thousand that do.
const DIGGERS: u32 = 10;
/// The distance between bots on the land, in blocks, and the radius of the town and of a bot's own area.
const APART: i64 = 16 * 48;
const TOWN: f64 = 64.0;
/// The distance within which deeds are measured, in blocks. Steps further away are sent less often.
const NEAR: u64 = 16;

/// The times from a deed of a bot until another one sees it, in milliseconds: median and 99th percentile, and how many.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Latencies {
    pub edits_ms: (f64, f64, usize),
    pub steps_ms: (f64, f64, usize),
}

/// The deeds of bots near the one that measures, until that one has seen them.
#[derive(Default)]
struct Deeds {
    /// Where the bot that measures is.
    watcher: Option<BlockPos>,
    edits: HashMap<BlockPos, Instant>,
    steps: HashMap<(Uuid, BlockPos), Instant>,
    /// The blocks that are dug out: those who dig there again change nothing.
    dug: HashSet<BlockPos>,
    seen_edits: Vec<Duration>,
    seen_steps: Vec<Duration>,
}

impl Deeds {
    fn are_near(&self, place: BlockPos) -> bool {
        self.watcher.is_some_and(|own| own.x.abs_diff(place.x) < NEAR && own.z.abs_diff(place.z) < NEAR)
    }

    /// What nobody has seen for so long is out of sight.
    fn forget(&mut self) {
        let is_new = |at: &Instant| at.elapsed() < Duration::from_secs(5);
        self.edits.retain(|_, at| is_new(at));
        self.steps.retain(|_, at| is_new(at));
    }

    fn latencies(mut self) -> Latencies {
        let of = |times: &mut Vec<Duration>| {
            times.sort_unstable();
            let at = |share: usize| times.get(times.len() * share / 100).map_or(0.0, |time| time.as_secs_f64() * 1e3);
            (at(50), at(99), times.len())
        };
        Latencies { edits_ms: of(&mut self.seen_edits), steps_ms: of(&mut self.seen_steps) }
    }
}

struct Walker {
    net: terrane_net::Bot,
    random: SplitMix64,
    home: (i64, i64),
    /// Its place relative to its home, in blocks, and its direction.
    place: (f64, f64),
    heading: f64,
    walked: Option<BlockPos>,
    /// Its edits that the server has not answered.
    edits: HashMap<u64, BlockPos>,
    digs: u64,
}

/// The middle of a bot's area.
fn home(number: usize, bots: usize, place: Place) -> (i64, i64) {
    let side = (bots as f64).sqrt().ceil() as usize;
    match place {
        Place::Land => ((number % side) as i64 * APART, (number / side) as i64 * APART),
        Place::Town => (0, 0),
    }
}

impl Walker {
    fn connect(swarm: &Swarm, number: usize, options: &Options, land: &Hills) -> Result<Self, Box<dyn Error>> {
        let mut random = SplitMix64::new(number as u64);
        let home = home(number, options.bots, options.place.unwrap_or(Place::Land));
        let start = |random: &mut SplitMix64| f64::from(random.unit()) * TOWN - TOWN / 2.0;
        let place = (start(&mut random), start(&mut random));
        let (x, z) = (home.0 + place.0.floor() as i64, home.1 + place.1.floor() as i64);
        let secret = Home(BlockPos::new(x, land.height_at(x, z) + 1, z)).encode();
        let trust = Trust::Pinned(swarm.fingerprint);
        let mut net = terrane_net::Bot::connect(&swarm.server, format!("bot {number}"), secret, trust)?;
        net.takes_changes = number.is_multiple_of(DIGGERS as usize);
        let heading = f64::from(random.unit()) * std::f64::consts::TAU;
        Ok(Self { net, random, home, place, heading, walked: None, edits: HashMap::new(), digs: 0 })
    }

    /// Takes in news. One that `measures` notes how old those of other bots are.
    fn look(&mut self, now: Duration, deeds: &mut Deeds, measures: bool) -> Result<(), Box<dyn Error>> {
        self.net.update()?;
        self.net.chunks.expire(now);
        // A player's program would draw these.
        while let Some(news) = self.net.chunks.next_news() {
            match news {
                SyncNews::Edit(EditAnswer { id, is_accepted }) => {
                    let edit = self.edits.remove(&id);
                    if let Some(refused) = edit.filter(|_| !is_accepted) {
                        deeds.edits.remove(&refused);
                    }
                }
                SyncNews::Chunk { chunk, bytes, .. }
                    if measures && deeds.edits.keys().any(|edit| edit.chunk() == chunk) =>
                {
                    let (blocks, _) = format::decode(&Vec::new(), &bytes)?;
                    let is_seen =
                        |edit: &BlockPos| edit.chunk() == chunk && blocks.block(edit.in_chunk()) == BlockId::AIR;
                    let seen = deeds.edits.extract_if(|edit, _| is_seen(edit)).map(|(_, at)| at.elapsed());
                    deeds.seen_edits.extend(seen);
                }
                _ => {}
            }
        }
        while let Some(news) = self.net.entities.next_news() {
            if let (EntityNews::Moved { id, place, .. }, true) = (news, measures)
                && let Some(at) = deeds.steps.remove(&(id, place.block))
            {
                deeds.seen_steps.push(at.elapsed());
            }
        }
        if measures {
            deeds.watcher = self.walked;
        }
        Ok(())
    }

    fn act(&mut self, land: &Hills, radius: u32, now: Duration, deeds: &mut Deeds, measures: bool) {
        let Some(id) = self.net.player() else { return };
        if self.random.below(DIGS_EVERY) == 0 {
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
            self.net.tell(&Walk(at));
            if !measures && deeds.are_near(at) {
                deeds.steps.insert((id, at), Instant::now());
            }
            self.net.chunks.look(SyncArea { center: at.chunk(), radius, vertical: 16 });
        }
        let digs = self.net.takes_changes && self.random.below(DIGS_EVERY / DIGGERS) == 0;
        if digs && self.net.chunks.takes_edits() {
            // It digs out the ground under its feet. Others may have done so before.
            self.digs += 1;
            let below = BlockPos::new(at.x, land.height_at(at.x, at.z) - (self.digs % 2) as i64, at.z);
            self.net.chunks.edit(now, self.digs, below, BlockId::AIR);
            self.edits.insert(self.digs, below);
            if deeds.dug.insert(below) && !measures && deeds.are_near(below) {
                deeds.edits.insert(below, Instant::now());
            }
        }
        // If its connection has ended, its next look finds that.
        let _ = self.net.update();
    }
}

/// Runs the bots until the server is gone. Returns what one of them has measured.
pub fn run(swarm: &Swarm, options: &Options) -> Result<AppExit, Box<dyn Error>> {
    let land = Hills::seeded(SEED);
    let mut numbers = 0..options.bots;
    let mut bots: Vec<Walker> = Vec::new();
    let mut deeds = Deeds::default();
    let began = Instant::now();
    let mut next = began;
    let mut first_lost: Option<(Instant, String)> = None;
    loop {
        // A server does not get a thousand players in one moment.
        for number in numbers.by_ref().take(2) {
            bots.push(Walker::connect(swarm, number, options, &land)?);
        }
        let now = began.elapsed();
        let mut number = 0;
        bots.retain_mut(|bot| {
            let measures = number == 0;
            number += 1;
            let result = bot.look(now, &mut deeds, measures);
            if let Err(error) = &result {
                first_lost.get_or_insert_with(|| (Instant::now(), error.to_string()));
            }
            bot.act(&land, options.radius, now, &mut deeds, measures);
            result.is_ok()
        });
        if bots.is_empty() {
            break;
        }
        deeds.forget();
        next += STEP;
        while Instant::now() < next {
            thread::sleep(GLANCE.min(next.saturating_duration_since(Instant::now())));
            if let Some(bot) = bots.first_mut() {
                // If its connection has ended, its next look finds that.
                let _ = bot.look(now, &mut deeds, true);
            }
        }
        // Bots that are late do not hurry.
        next = next.max(Instant::now() - STEP);
    }
    // At the end of the server all are lost at once.
    if let Some((_, reason)) = first_lost.filter(|(at, _)| at.elapsed() > Duration::from_secs(5)) {
        crate::tell::say(format_args!("bots were lost before the end: {reason}"));
    }
    println!("{}", serde_json::to_string(&deeds.latencies())?);
    Ok(AppExit::Success)
}
