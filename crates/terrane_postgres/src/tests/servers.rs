//! Several servers on one world, as processes that are stopped and killed.

use super::proxy::{Fault, Proxy};
use super::{SERVER, delay, new_name, rounds};
use crate::server::{Distance, PostgresServer, Stop, Syncing};
use crate::{PostgresConfig, PostgresStore};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use terrane_storage::servers::{Incarnation, Lease, Plot, Watch};
use terrane_storage::{Family, KeyValueStore, StoreError, WriteBatch};
use terrane_world::space::{DimensionId, TilePos};

/// The variables that make the test [`one_server`] a server: the address, and the term in milliseconds.
const ADDRESS: &str = "TERRANE_TEST_SERVER";
const TERM: &str = "TERRANE_TEST_TERM";

fn open(address: &str) -> Arc<PostgresStore> {
    let config = PostgresConfig { patience: Duration::from_secs(100), ..PostgresConfig::default() };
    Arc::new(PostgresStore::open_with(address, &config).unwrap())
}

/// The key of an edit. Each edit of a plot has the next number.
fn edit_key((_, plot): Plot, number: u64) -> Vec<u8> {
    [plot.x.to_be_bytes(), plot.z.to_be_bytes(), number.to_be_bytes()].concat()
}

/// What all edits contain.
const MARKER: &[u8] = b"edit by ";

/// The value of an edit.
fn edit_by(incarnation: u64) -> Vec<u8> {
    [MARKER, &incarnation.to_be_bytes()].concat()
}

/// The number of edits of a plot. Each of them must be there.
fn edits(store: &PostgresStore, plot: Plot) -> u64 {
    let found = store.scan(Family::Chunks, &edit_key(plot, 0)..&edit_key(plot, u64::MAX), usize::MAX).unwrap();
    let numbers = (0..).map(|number| edit_key(plot, number));
    assert!(found.iter().zip(numbers).all(|((key, _), expected)| *key == expected), "an edit of {plot:?} is missing");
    found.len() as u64
}

/// Not a test of its own: a server that runs until it is killed. It prints what it saved.
#[test]
fn one_server() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let term = Duration::from_millis(std::env::var(TERM).unwrap().parse().unwrap());
    let store = open(&address);
    loop {
        let incarnation = Incarnation::join(store.clone(), b"here").unwrap();
        println!("\njoined {}", incarnation.number());
        match live(&store, &incarnation, term) {
            Err(StoreError::Superseded { .. }) => {}
            end => panic!("{end:?}"),
        }
    }
}

fn live(store: &PostgresStore, incarnation: &Incarnation, term: Duration) -> Result<(), StoreError> {
    let (start, mut random) = (Instant::now(), incarnation.number() * 7_919 + 1);
    let mut below = |end: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % end
    };
    let (mut lease, mut watch) = (Lease::new(term, Duration::ZERO), Watch::new(term));
    let dimension = DimensionId(0);
    let mut ground: BTreeMap<Plot, u64> = BTreeMap::new();
    loop {
        let sent = start.elapsed();
        incarnation.beat()?;
        lease.beaten(sent);
        let (asked, signs) = (start.elapsed(), incarnation.signs()?);
        for silent in watch.read(asked, start.elapsed(), &signs) {
            incarnation.end(&silent)?;
        }
        if !lease.holds(start.elapsed()) {
            continue;
        }
        let tile = TilePos::new(below(7) as i64, below(4) as i64);
        let plot = (dimension, tile);
        if let Entry::Vacant(unknown) = ground.entry(plot) {
            if incarnation.acquire(&[plot].into())?.is_empty() {
                unknown.insert(edits(store, plot));
            } else {
                incarnation.ask_to_join(plot)?;
            }
        }
        thread::sleep(Duration::from_millis(10));
        let mut batch = WriteBatch::default();
        for (plot, next) in &ground {
            // Fails if another server has edited the plot meanwhile.
            batch.require(Family::Chunks, edit_key(*plot, *next), None);
            batch.put(Family::Chunks, edit_key(*plot, *next), edit_by(incarnation.number()));
        }
        incarnation.write(batch)?;
        for ((_, plot), next) in &mut ground {
            *next += 1;
            println!("\nsaved {} {} {next}", plot.x, plot.z);
        }
        for (territory, root) in incarnation.leaving_territories(dimension)? {
            ground.retain(|plot, _| !territory.contains(plot));
            incarnation.hand_over(&territory, root)?;
        }
        if ground.len() > 4 {
            let released: BTreeSet<Plot> = ground.pop_first().map(|(plot, _)| plot).into_iter().collect();
            incarnation.release(&released)?;
        }
    }
}

/// A process that runs [`one_server`].
struct Process(Child);

/// The lines that servers printed.
type Lines = Arc<Mutex<Vec<String>>>;

impl Process {
    fn start(address: &str, term: Duration, lines: &Lines) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "tests::servers::one_server", "--nocapture", "--test-threads=1"]);
        command.env(ADDRESS, address).env(TERM, term.as_millis().to_string());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (output, errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        for reader in [Box::new(output) as Box<dyn std::io::Read + Send>, Box::new(errors)] {
            let lines = lines.clone();
            thread::spawn(move || {
                let read = BufReader::new(reader).lines().map_while(Result::ok);
                read.for_each(|line| lines.lock().unwrap().push(line));
            });
        }
        Self(child)
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.0.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The numbers of the incarnations that joined, and the acknowledged edits of plots. Fails if a server broke a rule.
fn read(lines: &Lines) -> (Vec<u64>, BTreeMap<(i64, i64), u64>) {
    let (mut joined, mut saved) = (Vec::new(), BTreeMap::new());
    for line in &*lines.lock().unwrap() {
        assert!(!line.contains("panicked") && !line.contains("Error"), "{:#?}", lines.lock().unwrap());
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["joined", number] => joined.push(number.parse().unwrap()),
            ["saved", x, z, edits] => {
                let edits = edits.parse().unwrap_or(0);
                let most = saved.entry((x.parse().unwrap(), z.parse().unwrap())).or_insert(0);
                *most = edits.max(*most);
            }
            _ => {}
        }
    }
    (joined, saved)
}

/// Waits, and checks all the while that owners keep their distance.
fn watch_owners(observer: &Incarnation, span: Duration) {
    let end = Instant::now() + span;
    while Instant::now() < end {
        observer.beat().unwrap();
        let owners = observer.owners(DimensionId(0)).unwrap();
        for (one, owner) in &owners {
            let near = |other: &Plot| one.1.x.abs_diff(other.1.x) <= 1 && one.1.z.abs_diff(other.1.z) <= 1;
            assert!(owners.iter().all(|(other, of)| of == owner || !near(other)), "{owners:?}");
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// The term of servers that are this far from their database. [`live`] takes some ten round trips from one reading of the
/// heartbeats to the next, and these must follow each other within a quarter of the term.
fn term_at(delay: Duration) -> Duration {
    Duration::from_secs(2) + 120 * delay
}

#[test]
fn processes_that_are_stopped_and_killed_never_share_ground() {
    let (delay, world, lines) = (delay(5), new_name(), Lines::default());
    let (term, distance) = (term_at(delay), Distance::to(SERVER.port(), delay).unwrap());
    let address = format!("{}#{world}", SERVER.address());
    let far = format!("{}#{world}", SERVER.address_at(&[distance.port()]));
    let observer = Incarnation::join(open(&address), b"observer").unwrap();
    let mut processes: Vec<Process> = (0..3).map(|_| Process::start(&far, term, &lines)).collect();
    watch_owners(&observer, term);
    for round in 0..rounds(6) as usize {
        let index = round % 3;
        if round % 2 == 0 {
            // Somewhere in a statement or between two.
            processes[index].signal("-STOP");
            watch_owners(&observer, 3 * term);
            processes[index].signal("-CONT");
        } else {
            processes[index].0.kill().unwrap();
            processes[index] = Process::start(&far, term, &lines);
        }
        watch_owners(&observer, term);
    }
    drop(processes);
    thread::sleep(Duration::from_millis(200));
    let (joined, saved) = read(&lines);
    let store = open(&address);
    for ((x, z), acknowledged) in &saved {
        let plot = (DimensionId(0), TilePos::new(*x, *z));
        assert!(edits(&store, plot) >= *acknowledged, "{plot:?}");
    }
    // Each stopped server was ended and came back, and each killed one was started again.
    assert!(joined.len() >= 3 + rounds(6) as usize, "{joined:?}");
    assert!(saved.len() > 5, "{saved:?}");
}

#[test]
fn a_statement_that_arrives_after_its_process_was_ended_changes_nothing() {
    let (delay, world) = (delay(25), new_name());
    let distance = Distance::to(SERVER.port(), delay).unwrap();
    let proxy = Proxy::new(distance.port());
    let address_at = |port| format!("{}#{world}", SERVER.address_at(&[port]));
    let address = address_at(SERVER.port());
    let (term, lines, others) = (term_at(delay), Lines::default(), Lines::default());
    let observer = Incarnation::join(open(&address), b"observer").unwrap();
    let stopped = Process::start(&address_at(proxy.port), term, &lines);
    let _other = Process::start(&address_at(distance.port()), term, &others);
    watch_owners(&observer, term);
    // It is stopped while a commit of it is on its way, and the commit arrives when another server has ended it.
    proxy.break_next(MARKER, Fault::Hold(3 * term));
    let end = Instant::now() + Duration::from_secs(60);
    while !proxy.has_broken() {
        assert!(Instant::now() < end, "it commits nothing");
        thread::sleep(Duration::from_millis(1));
    }
    stopped.signal("-STOP");
    watch_owners(&observer, 5 * term / 2);
    let store = open(&address);
    let rows = |of: u64| {
        let found = store.scan(Family::Chunks, &[]..&[u8::MAX; 25], usize::MAX).unwrap();
        found.iter().filter(|(_, value)| *value == edit_by(of)).count()
    };
    let number = read(&lines).0[0];
    assert!(observer.signs().unwrap().iter().all(|sign| sign.incarnation != number), "it is ended");
    let before = rows(number);
    watch_owners(&observer, term);
    proxy.wait_for_held();
    assert_eq!(rows(number), before, "the late commit counts");
    stopped.signal("-CONT");
    while read(&lines).0.len() < 2 {
        assert!(Instant::now() < end + 10 * term, "it does not join anew");
        watch_owners(&observer, Duration::from_millis(50));
    }
    watch_owners(&observer, term);
    for ((x, z), acknowledged) in read(&lines).1 {
        let plot = (DimensionId(0), TilePos::new(x, z));
        assert!(edits(&store, plot) >= acknowledged, "{plot:?}");
    }
}

#[test]
fn no_server_loses_ground_while_the_database_is_away() {
    let server = PostgresServer::start(Syncing::Off).unwrap();
    let distance = Distance::to(server.port(), delay(50)).unwrap();
    let address = server.address_at(&[distance.port()]);
    let (term, lines) = (Duration::from_secs(8), Lines::default());
    let processes: Vec<Process> = (0..3).map(|_| Process::start(&address, term, &lines)).collect();
    let wait_for_saves = |more: usize| {
        let saves = || lines.lock().unwrap().iter().filter(|line| line.starts_with("saved")).count();
        let (before, end) = (saves(), Instant::now() + Duration::from_secs(60));
        while saves() < before + more {
            assert!(Instant::now() < end, "no server saves: {:#?}", lines.lock().unwrap());
            thread::sleep(Duration::from_millis(50));
        }
    };
    wait_for_saves(50);
    server.stop(Stop::Immediate).unwrap();
    thread::sleep(Duration::from_secs(30));
    server.restart().unwrap();
    wait_for_saves(50);
    thread::sleep(2 * term);
    drop(processes);
    assert_eq!(read(&lines).0.len(), 3, "each server is still the same");
}
