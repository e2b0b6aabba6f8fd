//! A simulated database, simulated clocks, and servers that use them.
//!
//! Each server runs on a thread of its own, but only one runs at a time: each statement waits for the simulation, which
//! chooses the next server at random and decides what becomes of its statement. So the same seed gives the same run.

use super::*;
use crate::{KeyValue, keys};
use std::ops::Range;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;

/// The term after which a silent server may be ended.
const TERM: Duration = Duration::from_secs(16);
const DIMENSION: DimensionId = DimensionId(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    None,
    /// The database does not answer for two terms.
    Outage,
    /// Pauses, deaths, lost statements, lost answers, and statements that are executed late.
    All,
}

/// The fate of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Done,
    /// The server gets an error, and the statement is never executed.
    Lost,
    /// The server gets an error, and the statement is executed.
    Unanswered,
    /// The server gets an error, and a write is executed at some time before the next one of its connection, or never.
    Late,
    /// The server dies before the statement is executed.
    Dies,
    /// The server dies after the statement was executed.
    DiesAfter,
}

/// The observations of a run.
#[derive(Debug, Default)]
pub struct Simulation {
    /// The number of commits that their servers know of.
    pub acknowledged: usize,
    /// The number of servers that others ended.
    pub ended: usize,
    /// The number of territories that were handed over.
    pub handed_over: usize,
    /// The acknowledged values of plots.
    saved: BTreeMap<Plot, u64>,
    /// The first broken rule.
    broken: Option<String>,
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % end
    }
}

struct State {
    random: Random,
    now: Duration,
    /// The servers whose next statement waits.
    waiting: BTreeSet<usize>,
    servers: usize,
    /// The server whose statement is next.
    next: Option<(usize, Fate)>,
    paused_until: BTreeMap<usize, Duration>,
    /// The time that a message to or from the database takes, give or take a half.
    delay: Duration,
    /// When the messages of the waiting servers arrive.
    arrivals: BTreeMap<usize, Duration>,
    /// The waiting servers whose statement was executed, and whose answer is on its way.
    answering: BTreeSet<usize>,
    /// Writes that may still be executed, with the connection and the incarnation.
    late: Vec<(u64, u64, WriteBatch)>,
    connections: u64,
    /// The leases of incarnations, with their servers.
    leases: BTreeMap<u64, (Lease, usize)>,
    is_over: bool,
    seen: Simulation,
}

struct Database {
    memory: MemoryStore,
    state: Mutex<State>,
    /// Wakes the simulation once a server waits.
    waits: Condvar,
    /// Wakes a server for its turn.
    turns: Vec<Condvar>,
}

/// The connection of one life of a server.
struct Connection {
    database: Arc<Database>,
    server: usize,
    number: u64,
    incarnation: AtomicU64,
}

impl State {
    /// Sends a message for each waiting server that has none on its way. Returns the servers whose message has arrived; if
    /// there is none, advances the clock to the next one.
    fn arrived(&mut self) -> Vec<usize> {
        for server in &self.waiting {
            let delay = self.delay.as_micros() as u64;
            self.arrivals
                .entry(*server)
                .or_insert_with(|| self.now + Duration::from_micros(delay / 2 + self.random.below(delay + 1)));
        }
        let arrival =
            |server: &usize| self.arrivals[server].max(self.paused_until.get(server).copied().unwrap_or_default());
        let arrived: Vec<usize> = self.waiting.iter().copied().filter(|server| arrival(server) <= self.now).collect();
        if arrived.is_empty() {
            self.now = self.waiting.iter().map(arrival).min().unwrap_or(self.now);
        }
        arrived
    }
}

impl Database {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The time by a server's own clock. Clocks differ in speed by up to a half.
    fn clock(state: &State, server: usize) -> Duration {
        state.now * (8 + server as u32 % 5) / 8 + Duration::from_secs(100 * server as u64)
    }

    fn owners(&self) -> BTreeMap<Plot, u64> {
        let range = keys::dimension_range(keys::PLOT, DIMENSION);
        let rows = self.memory.scan(Family::Meta, &range.start..&range.end, usize::MAX).unwrap();
        let row = |(key, value): (Vec<u8>, Vec<u8>)| {
            let owner = record::decode::<plots::Owned>(&value).unwrap().owner;
            let is_alive = self.memory.get(Family::Meta, &keys::server_key(owner)).unwrap().is_some();
            is_alive.then(|| (keys::parse_plot_key(&key).unwrap(), owner))
        };
        rows.into_iter().filter_map(row).collect()
    }

    fn value(&self, key: &[u8]) -> u64 {
        let value = self.memory.get(Family::Chunks, key).unwrap();
        value.map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()))
    }

    /// Executes a write, and checks the rules.
    fn execute(&self, state: &mut State, incarnation: u64, batch: WriteBatch) -> Result<(), StoreError> {
        let (owners, changes) = (self.owners(), batch.changes().to_vec());
        let stored: BTreeMap<Vec<u8>, u64> =
            changes.iter().map(|change| (change.key.clone(), self.value_of_ground(change))).collect();
        self.memory.write(batch, Durability::Sync)?;
        let mut broken = |what: String| _ = state.seen.broken.get_or_insert(what);
        for change in &changes {
            if change.family == Family::Chunks {
                let plot = keys::parse_plot_key(&change.key).unwrap();
                if owners.get(&plot) != Some(&incarnation) {
                    broken(format!("{incarnation} wrote to {plot:?}, owned by {:?}", owners.get(&plot)));
                }
                if self.value(&change.key) < stored[&change.key] {
                    broken(format!("{incarnation} undid an edit of {plot:?}"));
                }
            }
        }
        let now = self.owners();
        for (plot, owner) in &now {
            if let Some(near) = plots::square(*plot).find(|near| now.get(near).is_some_and(|other| other != owner)) {
                broken(format!("{plot:?} of {owner} is beside {near:?} of {}", now[&near]));
            }
        }
        let ended = changes.iter().filter(|change| change.value.is_none() && change.key.starts_with(keys::SERVER));
        for ended in ended.map(|change| keys::parse_server_key(&change.key).unwrap()).filter(|it| *it != incarnation) {
            state.seen.ended += 1;
            if state.leases.get(&ended).is_some_and(|(lease, server)| lease.holds(Self::clock(state, *server))) {
                state.seen.broken.get_or_insert(format!("{ended} was ended during its lease"));
            }
        }
        Ok(())
    }

    fn value_of_ground(&self, change: &crate::Entry) -> u64 {
        if change.family == Family::Chunks { self.value(&change.key) } else { 0 }
    }

    /// Lets the servers run for this many statements.
    fn run(&self, faults: Faults, statements: usize) {
        let mut step = 0;
        while step < statements {
            let mut state = self.lock();
            while state.next.is_some() || state.waiting.len() < state.servers {
                state = self.waits.wait(state).unwrap();
            }
            let state = &mut *state;
            if state.seen.broken.is_some() {
                break;
            }
            state.now += Duration::from_millis(state.random.below(40) + 1);
            if faults == Faults::All && !state.late.is_empty() && state.random.below(8) == 0 {
                let index = state.random.below(state.late.len() as u64) as usize;
                let (_, incarnation, batch) = state.late.remove(index);
                _ = self.execute(state, incarnation, batch);
            }
            let (now, arrived) = (state.now, state.arrived());
            if arrived.is_empty() {
                continue;
            }
            let server = arrived[state.random.below(arrived.len() as u64) as usize];
            state.arrivals.remove(&server);
            if state.answering.remove(&server) {
                state.next = Some((server, Fate::Done));
                self.turns[server].notify_one();
                continue;
            }
            step += 1;
            let is_out = faults == Faults::Outage && (statements / 3..statements / 2).contains(&step);
            if is_out {
                state.now += TERM * 2 / (statements / 6) as u32;
            }
            let fate = match (faults, state.random.below(400)) {
                (Faults::Outage, _) if is_out => Fate::Lost,
                (Faults::All, 0..12) => Fate::Lost,
                (Faults::All, 12..24) => Fate::Unanswered,
                (Faults::All, 24..40) => Fate::Late,
                (Faults::All, 40) => Fate::Dies,
                (Faults::All, 41) => Fate::DiesAfter,
                _ => Fate::Done,
            };
            if faults == Faults::All && state.random.below(200) == 0 {
                // The statement of a paused server is executed when it was sent; its answer waits.
                let pause = Duration::from_secs(state.random.below(3 * TERM.as_secs()));
                state.paused_until.insert(server, now + pause);
            }
            state.next = Some((server, fate));
            self.turns[server].notify_one();
        }
        let mut state = self.lock();
        while state.next.is_some() || state.waiting.len() < state.servers {
            state = self.waits.wait(state).unwrap();
        }
        state.is_over = true;
        self.turns.iter().for_each(Condvar::notify_one);
    }
}

impl Connection {
    fn open(database: &Arc<Database>, server: usize) -> Arc<Self> {
        let mut state = database.lock();
        state.connections += 1;
        let (number, incarnation) = (state.connections, AtomicU64::new(0));
        Arc::new(Self { database: Arc::clone(database), server, number, incarnation })
    }

    /// Waits for the turn of this server.
    fn turn(&self) -> Result<(MutexGuard<'_, State>, Fate), StoreError> {
        let mut state = self.database.lock();
        state.waiting.insert(self.server);
        self.database.waits.notify_one();
        while state.next.is_none_or(|(server, _)| server != self.server) {
            if state.is_over {
                return Err(self.died());
            }
            state = self.database.turns[self.server].wait(state).unwrap();
        }
        state.waiting.remove(&self.server);
        let fate = state.next.take().map_or(Fate::Lost, |(_, fate)| fate);
        Ok((state, fate))
    }

    /// Waits until the answer has arrived.
    fn answer(&self, mut state: MutexGuard<'_, State>) -> Result<(), StoreError> {
        if state.delay.is_zero() {
            return Ok(());
        }
        state.answering.insert(self.server);
        drop(state);
        self.turn().map(drop)
    }

    fn died(&self) -> StoreError {
        StoreError::NotWritable { path: self.path().to_path_buf() }
    }

    fn unreachable(&self) -> StoreError {
        StoreError::backend("write", None, self.path(), "the connection is lost")
    }

    fn read_in_turn<T>(&self, read: impl FnOnce(&MemoryStore) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let (state, fate) = self.turn()?;
        let found = read(&self.database.memory);
        if matches!(fate, Fate::Dies | Fate::DiesAfter) {
            return Err(self.died());
        }
        self.answer(state)?;
        match fate {
            Fate::Done => found,
            Fate::Dies | Fate::DiesAfter | Fate::Lost | Fate::Unanswered | Fate::Late => Err(self.unreachable()),
        }
    }

    fn clock(&self) -> Duration {
        Database::clock(&self.database.lock(), self.server)
    }
}

impl KeyValueStore for Connection {
    fn path(&self) -> &Path {
        Path::new("simulated")
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.read_in_turn(|memory| memory.get(family, key))
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.read_in_turn(|memory| memory.multi_get(family, keys))
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        self.read_in_turn(|memory| memory.scan(family, range, limit))
    }

    fn write(&self, batch: WriteBatch, _: Durability) -> Result<(), StoreError> {
        let (mut state, fate) = self.turn()?;
        let incarnation = self.incarnation.load(Ordering::SeqCst);
        // A write settles the earlier ones of its connection.
        while let Some(index) = state.late.iter().position(|(connection, ..)| *connection == self.number) {
            let (_, incarnation, late) = state.late.remove(index);
            if state.random.below(2) == 0 {
                _ = self.database.execute(&mut state, incarnation, late);
            }
        }
        let mut execute = |batch| self.database.execute(&mut state, incarnation, batch);
        let done = match fate {
            Fate::Done => execute(batch),
            Fate::Unanswered => execute(batch).and(Err(self.unreachable())),
            Fate::DiesAfter => return execute(batch).and(Err(self.died())),
            Fate::Lost => Err(self.unreachable()),
            Fate::Late => {
                state.late.push((self.number, incarnation, batch));
                Err(self.unreachable())
            }
            Fate::Dies => {
                // The database may still read the statement.
                state.late.push((self.number, incarnation, batch));
                return Err(self.died());
            }
        };
        self.answer(state)?;
        done
    }

    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// The result of an operation; `None` if the database could not be reached. An error ends the life of the server.
fn reached<T>(result: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match result {
        Err(error) if error.is_outage() => Ok(None),
        result => result.map(Some),
    }
}

/// One life of a server.
struct Life {
    connection: Arc<Connection>,
    incarnation: Incarnation,
    lease: Lease,
    watch: Watch,
    random: Random,
    /// The values of the loaded plots, which count their edits.
    ground: BTreeMap<Plot, u64>,
    unsaved: BTreeSet<Plot>,
}

impl Life {
    fn begin(database: &Arc<Database>, server: usize, seed: u64) -> Result<Self, StoreError> {
        let connection = Connection::open(database, server);
        let joined = connection.clock();
        let incarnation = Incarnation::join(connection.clone(), &[server as u8])?;
        connection.incarnation.store(incarnation.number(), Ordering::SeqCst);
        let random = Random((seed + 1) * 7_919 + connection.number * 104_729);
        let (ground, unsaved) = Default::default();
        let mut life = Self {
            connection,
            incarnation,
            lease: Lease::new(TERM, joined),
            watch: Watch::new(TERM),
            random,
            ground,
            unsaved,
        };
        life.publish();
        Ok(life)
    }

    fn publish(&mut self) {
        let lease = (self.lease.clone(), self.connection.server);
        self.connection.database.lock().leases.insert(self.incarnation.number(), lease);
    }

    fn play(&mut self) -> Result<(), StoreError> {
        let (mut beaten, mut watched) = (Duration::ZERO, Duration::ZERO);
        let mut place = (self.random.below(6) as i64, self.random.below(4) as i64);
        loop {
            let now = self.connection.clock();
            let holds = self.lease.holds(now);
            if now - beaten >= TERM / 8 || !holds {
                beaten = now;
                if reached(self.incarnation.beat())?.is_some() {
                    self.lease.beaten(now);
                    self.publish();
                }
            }
            if now - watched >= TERM / 8 {
                watched = now;
                self.look_for_silent_servers(now)?;
            }
            if !holds {
                continue;
            }
            let step = |random: &mut Random, at: i64, end: i64| (at + random.below(3) as i64 - 1).clamp(0, end);
            match self.random.below(12) {
                0..4 => {
                    place = (step(&mut self.random, place.0, 5), step(&mut self.random, place.1, 3));
                    self.want(plot(place.0, place.1))?;
                }
                4..8 => {
                    let index = self.random.below(self.ground.len() as u64 + 1) as usize;
                    if let Some((plot, value)) = self.ground.iter_mut().nth(index) {
                        *value += 1;
                        self.unsaved.insert(*plot);
                    }
                }
                8 | 9 => drop(self.save()?),
                10 => self.release()?,
                _ => drop(self.hand_over()?),
            }
        }
    }

    fn look_for_silent_servers(&mut self, asked: Duration) -> Result<(), StoreError> {
        let Some(signs) = reached(self.incarnation.signs())? else {
            self.watch.failed();
            return Ok(());
        };
        for silent in self.watch.read(asked, self.connection.clock(), &signs) {
            if silent.incarnation != self.incarnation.number() {
                reached(self.incarnation.end(&silent))?;
            }
        }
        Ok(())
    }

    /// Acquires and loads a plot, or asks for a join. Returns `true` if the plot is loaded.
    fn want(&mut self, plot: Plot) -> Result<bool, StoreError> {
        if self.ground.contains_key(&plot) {
            return Ok(true);
        }
        match reached(self.incarnation.acquire(&[plot].into()))? {
            Some(taken) if taken.is_empty() => {
                let key = keys::plot_key(plot.0, plot.1);
                let Some(value) = reached(self.connection.get(Family::Chunks, &key))? else { return Ok(false) };
                self.ground.insert(plot, value.map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap())));
                Ok(true)
            }
            Some(_) => reached(self.incarnation.ask_to_join(plot)).map(|_| false),
            None => Ok(false),
        }
    }

    /// Saves all edits. Returns `false` if that failed.
    fn save(&mut self) -> Result<bool, StoreError> {
        if self.unsaved.is_empty() {
            return Ok(true);
        }
        let mut batch = WriteBatch::default();
        for plot in &self.unsaved {
            batch.put(Family::Chunks, keys::plot_key(plot.0, plot.1), self.ground[plot].to_le_bytes().to_vec());
        }
        if reached(self.incarnation.write(batch))?.is_none() {
            return Ok(false);
        }
        let seen = &mut self.connection.database.lock().seen;
        seen.acknowledged += 1;
        seen.saved.extend(self.unsaved.iter().map(|plot| (*plot, self.ground[plot])));
        self.unsaved.clear();
        Ok(true)
    }

    fn release(&mut self) -> Result<(), StoreError> {
        let index = self.random.below(self.ground.len() as u64 + 1) as usize;
        let Some(plot) = self.ground.keys().nth(index).copied() else { return Ok(()) };
        if self.save()? {
            self.ground.remove(&plot);
            reached(self.incarnation.release(&[plot].into()))?;
        }
        Ok(())
    }

    /// Hands all territories over that belong to another server.
    fn hand_over(&mut self) -> Result<(), StoreError> {
        for (territory, root) in reached(self.incarnation.leaving_territories(DIMENSION))?.unwrap_or_default() {
            if self.save()? {
                self.ground.retain(|plot, _| !territory.contains(plot));
                if reached(self.incarnation.hand_over(&territory, root))? == Some(true) {
                    self.connection.database.lock().seen.handed_over += 1;
                }
            }
        }
        Ok(())
    }
}

impl Simulation {
    /// Runs servers that acquire, edit, save, release and join ground in a small place.
    ///
    /// # Panics
    /// If a rule is broken.
    pub fn run(servers: usize, seed: u64, delay: Duration, faults: Faults, statements: usize) -> Self {
        let (seen, database) = simulate(servers, seed, delay, faults, statements * servers, |database, server| {
            while !database.lock().is_over {
                // A life ends with an error: the server died or was ended.
                _ = Life::begin(database, server, seed).and_then(|mut life| life.play());
            }
        });
        for (plot, saved) in &seen.saved {
            let stored = database.value(&keys::plot_key(plot.0, plot.1));
            assert!(stored >= *saved, "seed {seed}: {plot:?} has {stored}, and {saved} was acknowledged");
        }
        seen
    }

    /// Runs servers on a ring whose territories all want the ground between them, and returns the number of owners at the
    /// end.
    pub fn join_in_a_ring(servers: usize, seed: u64, delay: Duration) -> usize {
        let (own, between): (&[_], &[_]) = match servers {
            2 => (&[(0, 0), (2, 0)], &[(1, 0), (1, 0)]),
            3 => (&[(0, 0), (2, 0), (1, 2)], &[(1, 0), (2, 1), (0, 1)]),
            _ => (
                &[(0, 0), (2, 0), (4, 0), (4, 2), (4, 4), (2, 4), (0, 4), (0, 2)],
                &[(1, 0), (3, 0), (4, 1), (4, 3), (3, 4), (1, 4), (0, 3), (0, 1)],
            ),
        };
        let play = |database: &Arc<Database>, server: usize| -> Result<(), StoreError> {
            let mut life = Life::begin(database, server, seed)?;
            life.want(plot(own[server].0, own[server].1))?;
            while database.owners().len() < servers {
                life.incarnation.beat()?;
            }
            loop {
                life.want(plot(between[server].0, between[server].1))?;
                life.hand_over()?;
            }
        };
        let (_, database) = simulate(servers, seed, delay, Faults::None, 150 * servers, |database, server| {
            _ = play(database, server);
        });
        let owners = database.owners();
        assert!(own.iter().all(|(x, z)| owners.contains_key(&plot(*x, *z))), "seed {seed}: ground was lost");
        owners.into_values().collect::<BTreeSet<u64>>().len()
    }
}

/// Runs `play` on a thread for each server, until the simulation is over.
fn simulate(
    servers: usize,
    seed: u64,
    delay: Duration,
    faults: Faults,
    statements: usize,
    play: impl Fn(&Arc<Database>, usize) + Sync,
) -> (Simulation, Arc<Database>) {
    let state = State {
        random: Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        now: Duration::from_secs(1_000),
        waiting: BTreeSet::new(),
        servers,
        next: None,
        paused_until: BTreeMap::new(),
        delay,
        arrivals: BTreeMap::new(),
        answering: BTreeSet::new(),
        late: Vec::new(),
        connections: 0,
        leases: BTreeMap::new(),
        is_over: false,
        seen: Simulation::default(),
    };
    let turns = (0..servers).map(|_| Condvar::new()).collect();
    let (memory, state) = (MemoryStore::new(), Mutex::new(state));
    let database = Arc::new(Database { memory, state, waits: Condvar::new(), turns });
    thread::scope(|scope| {
        for server in 0..servers {
            let (database, play) = (&database, &play);
            scope.spawn(move || play(database, server));
        }
        database.run(faults, statements);
    });
    let seen = std::mem::take(&mut database.lock().seen);
    assert_eq!(seen.broken, None, "{servers} servers, seed {seed}, {delay:?} to the database");
    (seen, database)
}
