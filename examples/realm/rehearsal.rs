//! The scenario: a database, three servers and four clients, each in its own process.

use crate::game::{Gems, Wish, town};
use crate::protocol::{Body, Event, Order};
use crate::tell::{Run, say};
use bevy::app::AppExit;
use serde::Serialize;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use terrane_postgres::server::{PostgresServer, Syncing};
use uuid::Uuid;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The players, and the server where each begins.
const PLAYERS: [(&str, usize); 4] = [("Ada", 0), ("Bob", 1), ("Cid", 2), ("Dora", 1)];
/// The server that shows the overlay.
const WATCHING: usize = 0;
/// The time limit of a step.
const PATIENCE: Duration = Duration::from_secs(120);
/// A wish that was not granted in this time is repeated.
const REPEAT: Duration = Duration::from_secs(10);
/// All players must play again this long after a server has died.
const RECOVERY: Duration = Duration::from_secs(15);
/// The period of saves is a second. What is older than this is stored.
const STORED: Duration = Duration::from_secs(3);

/// A process with this program. It ends with the scenario.
struct Process {
    child: Child,
    input: ChildStdin,
    events: Receiver<Event>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    fn start(arguments: &[&str], pictures: &Path) -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).arg("--headless").arg("--pictures").arg(pictures);
        // It also ends if this process is killed.
        command.args(["--seconds", "900"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().ok_or("a process has no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("a process has no output")?);
        let (sender, events) = channel();
        thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            lines.filter_map(|line| serde_json::from_str(&line).ok()).for_each(|event| drop(sender.send(event)));
        });
        Ok(Self { child, input, events })
    }

    fn tell(&mut self, order: &Order) -> Outcome<()> {
        Ok(writeln!(self.input, "{}", serde_json::to_string(order)?)?)
    }
}

/// A client, and what it has reported.
struct Player {
    name: &'static str,
    process: Process,
    /// Where it plays.
    server: Option<SocketAddr>,
    id: Option<Uuid>,
    own: Option<Body>,
    heard: Instant,
    pictures: usize,
    refused: Option<String>,
    chunks: Option<(u64, u64, u64)>,
}

impl Player {
    fn is_near(&self, other: &Self) -> bool {
        self.own.as_ref().zip(other.own.as_ref()).is_some_and(|(own, other)| {
            own.block.x.abs_diff(other.block.x) <= 4 && own.block.z.abs_diff(other.block.z) <= 4
        })
    }

    fn gems(&self) -> usize {
        self.own.as_ref().map_or(0, |own| own.gems.len())
    }
}

struct Scenario {
    servers: Vec<(SocketAddr, Option<Process>)>,
    players: Vec<Player>,
    sent: usize,
    /// The times from the last moment on one server to the first on another, in seconds.
    moves: Vec<f64>,
    pictures: usize,
}

impl Scenario {
    fn number(&self, address: SocketAddr) -> Option<usize> {
        self.servers.iter().position(|(other, _)| *other == address)
    }

    /// Takes in what the processes report.
    fn hear(&mut self) {
        let servers: Vec<SocketAddr> = self.servers.iter().map(|(address, _)| *address).collect();
        let number = |address| servers.iter().position(|other| *other == address).map_or(0, |number| number + 1);
        for (_, server) in &mut self.servers {
            let events = server.iter().flat_map(|server| server.events.try_iter());
            self.pictures += events.filter(|event| matches!(event, Event::Picture(_))).count();
        }
        for player in &mut self.players {
            for event in player.process.events.try_iter() {
                match event {
                    Event::Playing { server, id, seconds } => {
                        say(format_args!("{} plays on server {} after {seconds:.1} s", player.name, number(server)));
                        if player.id.is_some() {
                            self.moves.push(seconds);
                        }
                        (player.server, player.id) = (Some(server), Some(id));
                    }
                    Event::Sent { to } => {
                        say(format_args!("{} is sent to server {}", player.name, number(to)));
                        self.sent += 1;
                        player.server = None;
                    }
                    Event::Lost(reason) => {
                        say(format_args!("{}: {reason}", player.name));
                        player.server = None;
                    }
                    Event::Refused(reason) => player.refused = Some(reason),
                    Event::Own(own) => (player.own, player.heard) = (Some(own), Instant::now()),
                    Event::Picture(_) => player.pictures += 1,
                    Event::Chunks { sent, bytes, saved } => player.chunks = Some((sent, bytes, saved)),
                    Event::Listening(_) => {}
                }
            }
        }
    }

    fn until(&mut self, what: &str, limit: Duration, done: impl Fn(&Self) -> bool) -> Outcome<Duration> {
        let begin = Instant::now();
        loop {
            self.hear();
            if done(self) {
                return Ok(begin.elapsed());
            }
            if begin.elapsed() > limit {
                return Err(format!("waited in vain until {what}").into());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn player(&mut self, name: &str) -> Outcome<&mut Player> {
        Ok(self.players.iter_mut().find(|player| player.name == name).ok_or("no such player")?)
    }

    /// All gems of all players, as they report them.
    fn check_gems(&self) -> Outcome<()> {
        let mut gems: Vec<&String> =
            self.players.iter().flat_map(|player| &player.own).flat_map(|own| &own.gems).collect();
        gems.sort();
        let all = PLAYERS.iter().flat_map(|(name, _)| Gems::of(name).0);
        let mut all: Vec<String> = all.collect();
        all.sort();
        match gems.iter().copied().eq(&all) {
            true => Ok(()),
            false => Err(format!("the players have {gems:?}").into()),
        }
    }

    fn join(&self, place: usize, name: &'static str, first: usize, folder: &Path, caches: &str) -> Outcome<Player> {
        let mut servers: Vec<String> = self.servers.iter().map(|(address, _)| address.to_string()).collect();
        servers.rotate_left(first);
        let (servers, town) = (servers.join(","), place.to_string());
        let caches = folder.join(caches).display().to_string();
        let arguments = ["join", "--servers", &servers, "--name", name, "--town", &town, "--caches", &caches];
        Ok(Player {
            name,
            process: Process::start(&arguments, folder)?,
            server: None,
            id: None,
            own: None,
            heard: Instant::now(),
            pictures: 0,
            refused: None,
            chunks: None,
        })
    }
}

/// Plays the scenario. It succeeds if everybody plays in the end and no gem was lost or doubled.
pub fn play(folder: &Path, run: &Run) -> Outcome<AppExit> {
    for caches in ["caches", "other-caches"].map(|caches| folder.join(caches)) {
        match std::fs::remove_dir_all(&caches) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("cannot remove {}: {error}", caches.display()).into());
            }
            _ => {}
        }
    }
    let database = PostgresServer::start(Syncing::On)?;
    let world = format!("{}#realm", database.address());
    let mut scenario = Scenario { servers: Vec::new(), players: Vec::new(), sent: 0, moves: Vec::new(), pictures: 0 };
    for number in 0..3 {
        let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--world", &world];
        arguments.extend((number == WATCHING).then_some("--watch"));
        let server = Process::start(&arguments, folder)?;
        let Event::Listening(address) = server.events.recv_timeout(PATIENCE)? else {
            return Err("the server does not listen".into());
        };
        say(format_args!("server {} listens at {address}", number + 1));
        scenario.servers.push((address, Some(server)));
    }
    for (place, (name, server)) in PLAYERS.into_iter().enumerate() {
        let player = scenario.join(place, name, server, folder, "caches")?;
        scenario.players.push(player);
    }
    let has_all =
        |scenario: &Scenario| scenario.players.iter().all(|player| player.server.is_some() && player.gems() > 0);
    scenario.until("everybody plays", PATIENCE, has_all)?;
    scenario.check_gems()?;

    // Two players ride to the others, and all four end on fewer servers.
    for (place, (traveller, friend)) in [("Ada", "Bob"), ("Cid", "Dora")].into_iter().enumerate() {
        let to = town([1, 3][place]);
        let order = Order::Wish(Wish::Go { x: to.x + 2, z: to.z + 1 });
        scenario.player(traveller)?.process.tell(&order)?;
        say(format_args!("{traveller} rides to {friend}"));
    }
    let have_met = |scenario: &Scenario| {
        let [ada, bob, cid, dora] = &scenario.players[..] else { return false };
        ada.is_near(bob) && cid.is_near(dora) && has_all(scenario)
    };
    scenario.until("they have met", PATIENCE, have_met)?;
    let has_given = |scenario: &Scenario| scenario.players.iter().map(Player::gems).eq([2, 4, 2, 4]);
    let begin = Instant::now();
    // Clients see each other before their players are in one region, where a wish is granted.
    while !has_given(&scenario) {
        for (from, to) in [("Ada", "Bob"), ("Cid", "Dora")] {
            let player = scenario.player(from)?;
            if player.gems() == 3 {
                player.process.tell(&Order::Wish(Wish::Give { to: to.to_owned() }))?;
                say(format_args!("{from} gives {to} a gem"));
            }
        }
        match scenario.until("two gems are given", REPEAT, has_given) {
            Err(error) if begin.elapsed() > PATIENCE => return Err(error),
            _ => {}
        }
    }
    scenario.check_gems()?;
    let given = Instant::now();

    // A second client of the same name, which begins at a server where Ada is not.
    let elsewhere =
        scenario.players[0].server.and_then(|server| scenario.number(server)).map_or(0, |number| number + 1);
    let again = scenario.join(0, "Ada", elsewhere % 3, folder, "other-caches")?;
    let first = std::mem::replace(&mut scenario.players[0], again);
    scenario.players.push(first);
    let is_one = |scenario: &Scenario| {
        let [second, .., first] = &scenario.players[..] else { return false };
        first.refused.as_deref() == Some("you have logged in elsewhere") && second.server.is_some() && second.gems() > 0
    };
    scenario.until("the second log-in has replaced the first", PATIENCE, is_one)?;
    let first = scenario.players.pop().ok_or("no first Ada")?;
    if first.id != scenario.players[0].id {
        return Err("two log-ins of one name are two players".into());
    }
    say("a second client plays as Ada, and the first has left");

    let picture = |name: &str| Order::Picture { name: name.to_owned() };
    // One client only: without a graphics card it draws for seconds, in which it may lose its server.
    scenario.players[0].process.tell(&picture("ada"))?;
    scenario.until("a picture is taken", PATIENCE, |scenario| scenario.players[0].pictures == 1)?;
    if let Some(server) = &mut scenario.servers[WATCHING].1 {
        server.tell(&picture("servers"))?;
    }
    scenario.until("the servers are drawn", PATIENCE, |scenario| scenario.pictures == 1 && has_all(scenario))?;
    thread::sleep(STORED.saturating_sub(given.elapsed()));

    // The server with the most players dies.
    let mut crowds = BTreeMap::<usize, usize>::new();
    let playing = scenario.players.iter().filter_map(|player| scenario.number(player.server?));
    playing.filter(|number| *number != WATCHING).for_each(|number| *crowds.entry(number).or_default() += 1);
    let (dead, _) = crowds.into_iter().max_by_key(|(_, players)| *players).ok_or("no server can be killed")?;
    scenario.hear();
    let (address, server) = &mut scenario.servers[dead];
    let address = *address;
    // `kill -9`.
    drop(server.take());
    let killed = Instant::now();
    say(format_args!("server {} is killed", dead + 1));
    let play_again = |scenario: &Scenario| {
        let plays = |player: &Player| player.server.is_some_and(|server| server != address) && player.heard > killed;
        scenario.players.iter().all(plays)
    };
    let recovery = scenario.until("everybody plays again", RECOVERY, play_again)?;
    scenario.check_gems()?;
    if !has_given(&scenario) {
        return Err("a gem that was given came back".into());
    }
    if let Some(server) = &mut scenario.servers[WATCHING].1 {
        server.tell(&picture("after-the-death"))?;
    }
    scenario.until("the last picture is taken", PATIENCE, |scenario| scenario.pictures == 2)?;

    scenario.players.iter_mut().try_for_each(|player| player.process.tell(&Order::Leave))?;
    scenario
        .until("all have left", PATIENCE, |scenario| scenario.players.iter().all(|player| player.chunks.is_some()))?;
    for (_, server) in &mut scenario.servers {
        if let Some(server) = server {
            server.tell(&Order::Leave)?;
            if !server.child.wait()?.success() {
                return Err("a server ended with an error".into());
            }
        }
    }
    let chunks: Vec<_> = scenario.players.iter().filter_map(|player| player.chunks).collect();
    run.print(&Figures {
        redirections: scenario.sent,
        slowest_redirection: scenario.moves.iter().copied().fold(0.0, f64::max),
        recovery: recovery.as_secs_f64(),
        gems: scenario.players.iter().map(Player::gems).sum(),
        chunks_sent: chunks.iter().map(|(sent, ..)| sent).sum(),
        bytes_sent: chunks.iter().map(|(_, bytes, _)| bytes).sum(),
        chunks_saved: chunks.iter().map(|(.., saved)| saved).sum(),
    });
    Ok(AppExit::Success)
}

#[derive(Serialize)]
struct Figures {
    redirections: usize,
    /// In seconds, with the time until clients noticed that a server was dead.
    slowest_redirection: f64,
    /// The seconds from the death of a server until all play again.
    recovery: f64,
    gems: usize,
    chunks_sent: u64,
    bytes_sent: u64,
    /// Chunks that a server did not have to send, because the client had them.
    chunks_saved: u64,
}

impl Display for Figures {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { redirections, slowest_redirection, recovery, gems, chunks_sent, bytes_sent, chunks_saved } = self;
        write!(
            f,
            "{redirections} redirections, the slowest {slowest_redirection:.1} s; {recovery:.1} s after the death of a server all \
             play again, with {gems} gems; servers sent {chunks_sent} chunks in {} KiB, and {chunks_saved} were still current",
            bytes_sent.div_ceil(1 << 10)
        )
    }
}
