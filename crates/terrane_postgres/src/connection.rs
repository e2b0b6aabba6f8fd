//! Connections: a single one, attempts to have one, encryption, and the pool for reads.

use crate::address::Address;
use crate::failure::{Failure, IN_USE, Kind};
use futures_util::TryStreamExt;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{self, Runtime};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The longest time for connecting to one host.
const CONNECTING: Duration = Duration::from_secs(10);
/// The pause before the second attempt of an operation; later pauses double.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The time between two warnings about one operation.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(10);

/// The database of one world, and how to reach it.
pub(crate) struct Database {
    pub address: Address,
    /// How long an operation waits for the database.
    pub patience: Duration,
    role: Role,
    /// `true` after the world was opened. Connections from then on replace lost ones.
    pub is_open: bool,
    tls: MakeRustlsConnect,
}

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Reads of a store that also writes.
    Read,
    /// Reads that all see the state of the world at the first of them.
    Snapshot,
    /// Writes beside other stores.
    Share,
    /// Writes while no other store can write.
    Alone,
}

impl Role {
    /// Statements at the beginning of a session. The locks last as long as the session, and no commit waits for them.
    fn begin(self, world: &str, is_open: bool) -> String {
        // The lost session of an open store may hold the lock for some seconds.
        let code = if is_open { "55P03" } else { IN_USE };
        let lock = |function, message| {
            format!(
                "DO $$ BEGIN
                    IF NOT {function}(hashtextextended('bevy_terrane is open: {world}', 0)) THEN
                        RAISE EXCEPTION '{message}' USING ERRCODE = '{code}';
                    END IF;
                END $$"
            )
        };
        match self {
            Self::Read => String::new(),
            Self::Snapshot => "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY".into(),
            Self::Share => lock("pg_try_advisory_lock_shared", "a tool is changing the world; try again later"),
            Self::Alone => {
                lock("pg_try_advisory_lock", "the world is open in a game or another tool; close it there first")
            }
        }
    }
}

/// The values of a statement's parameters.
pub(crate) type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Database {
    pub fn new(address: Address, patience: Duration, role: Role) -> Result<Self, String> {
        let tls = connector(&address)?;
        Ok(Self { address, patience, role, is_open: false, tls })
    }

    /// The same database for another purpose.
    pub fn with_role(&self, role: Role) -> Self {
        Self {
            address: self.address.clone(),
            patience: self.patience,
            role,
            is_open: self.is_open,
            tls: self.tls.clone(),
        }
    }

    /// Runs `act` on the connection in `slot`, or on a new one if the slot is empty. Repeats this until the deadline if
    /// the failure may pass, and warns of it. `act` also gets the time that it may wait for an answer. A broken connection is
    /// dropped.
    pub fn persist<T>(
        &self,
        slot: &mut Option<Connection>,
        deadline: Instant,
        mut act: impl FnMut(&mut Connection, Duration) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (mut pause, mut earlier, mut warned) = (FIRST_PAUSE, None, None::<Instant>);
        let world = self.address.path.display();
        loop {
            let wait = deadline.saturating_duration_since(Instant::now());
            let done = match slot {
                Some(connection) => act(connection, wait),
                // Another connection would see another state of the world.
                None if self.is_snapshot() => Err(Failure::new(
                    Kind::Refused,
                    "the connection was lost, and with it the state of the world that was read",
                )),
                None => self.connect(wait).and_then(|connection| act(slot.insert(connection), wait)),
            };
            // After an error, a transaction answers nothing more.
            slot.take_if(|connection| connection.is_broken || done.is_err() && self.is_snapshot());
            match done {
                Err(failure) if failure.may_pass() && !self.is_snapshot() && Instant::now() < deadline => {
                    let failure = failure.after(earlier);
                    let left = deadline.saturating_duration_since(Instant::now());
                    if warned.is_none_or(|warned| warned.elapsed() >= BETWEEN_WARNINGS) {
                        warned = Some(Instant::now());
                        tracing::warn!("{world}: {failure}; trying again for up to {left:.0?}");
                    }
                    thread::sleep(pause.min(left));
                    pause = (2 * pause).min(LONGEST_PAUSE);
                    earlier = Some(failure);
                }
                done => {
                    if warned.is_some() && done.is_ok() {
                        tracing::info!("{world}: the database answers again");
                    }
                    return done.map_err(|failure| failure.after(earlier));
                }
            }
        }
    }

    /// Returns `true` if the open world is read in one transaction.
    fn is_snapshot(&self) -> bool {
        self.is_open && self.role == Role::Snapshot
    }

    /// Connects to the first host that is willing.
    fn connect(&self, wait: Duration) -> Result<Connection, Failure> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::new(Kind::Refused, error.to_string()))?;
        let mut failed = None;
        for host in &self.address.hosts {
            let connected = runtime.block_on(within(wait.min(CONNECTING), async {
                let connected = host.connect(self.tls.clone()).await;
                let (client, driver) = connected.map_err(|error| Failure::of_connecting(&error))?;
                tokio::spawn(driver);
                client.batch_execute(&self.session()).await?;
                client.batch_execute(&self.role.begin(&self.address.world, self.is_open)).await?;
                Ok(client)
            }));
            match connected {
                Ok(client) => return Ok(Connection { client, runtime, prepared: HashMap::new(), is_broken: false }),
                // A wrong password counts more than a host that cannot be reached.
                Err(failure) => {
                    failed = failed.filter(|earlier: &Failure| !earlier.may_pass()).or(Some(failure));
                }
            }
        }
        // Otherwise this would wait for the end of a look-up of a host's name.
        runtime.shutdown_background();
        Err(failed.unwrap_or_else(Failure::silence))
    }

    /// The settings of a session. A plan for any parameters uses the primary key, so statistics need not be up to date.
    /// With keepalives, the locks of a machine that lost its power end soon.
    fn session(&self) -> String {
        format!(
            "SET search_path TO \"{}\", pg_temp;
            SELECT set_config('synchronous_commit', 'on', false)
                WHERE current_setting('synchronous_commit') <> 'remote_apply';
            SET default_transaction_isolation TO 'read committed';
            SET client_min_messages TO warning;
            SET plan_cache_mode TO force_generic_plan;
            SET jit TO off;
            SET enable_seqscan TO off;
            SET enable_bitmapscan TO off;
            SET enable_hashjoin TO off;
            SET enable_mergejoin TO off;
            SET statement_timeout TO 0;
            SET idle_in_transaction_session_timeout TO 0;
            SET tcp_keepalives_idle TO 10;
            SET tcp_keepalives_interval TO 2;
            SET tcp_keepalives_count TO 5;",
            self.address.world
        )
    }
}

/// An open connection. Its runtime runs only while a statement waits for its answer.
pub(crate) struct Connection {
    // The connection is closed when the client and the runtime are dropped.
    client: Client,
    runtime: Runtime,
    prepared: HashMap<&'static str, Statement>,
    is_broken: bool,
}

impl Connection {
    /// Runs a prepared statement and hands each row to `take`. Fails if the server is silent for longer than `wait`.
    pub fn query(
        &mut self,
        statement: &'static str,
        parameters: Parameters<'_>,
        wait: Duration,
        mut take: impl FnMut(&Row) -> Result<(), tokio_postgres::Error>,
    ) -> Result<(), Failure> {
        let Self { client, runtime, prepared, .. } = self;
        let done = runtime.block_on(async {
            let statement = match prepared.get(statement) {
                Some(known) => known.clone(),
                None => {
                    let new = within(wait, async { Ok(client.prepare(statement).await?) }).await?;
                    prepared.entry(statement).or_insert(new).clone()
                }
            };
            let answer = async { Ok(client.query_raw(&statement, parameters.iter().copied()).await?) };
            let mut rows = pin!(within(wait, answer).await?);
            while let Some(row) = within(wait, async { Ok(rows.try_next().await?) }).await? {
                take(&row)?;
            }
            Ok(())
        });
        self.note_result(&done);
        done
    }

    /// Runs statements without parameters, as one transaction.
    pub fn execute(&mut self, statements: &str, wait: Duration) -> Result<(), Failure> {
        let executed = async { Ok(self.client.batch_execute(statements).await?) };
        let done = self.runtime.block_on(within(wait, executed));
        self.note_result(&done);
        done
    }

    fn note_result(&mut self, done: &Result<(), Failure>) {
        let is_lost = done.as_ref().is_err_and(|failure| failure.kind == Kind::Lost);
        self.is_broken |= is_lost || self.client.is_closed();
    }
}

/// The result of `work`, or a failure once it has taken too long.
async fn within<T>(wait: Duration, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    timeout(wait, work).await.unwrap_or_else(|_| Err(Failure::silence()))
}

/// Trusts the certificates of the system and of the file that the address names. Reads nothing if the address turns TLS off.
pub(crate) fn connector(address: &Address) -> Result<MakeRustlsConnect, String> {
    let mut roots = RootCertStore::empty();
    if address.uses_tls() {
        // A system without certificates is an error only once a server's certificate has to be checked.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(file) = &address.certificates {
            let unusable =
                |error: &dyn std::fmt::Display| format!("cannot use the certificates in {}: {error}", file.display());
            for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unusable(&error))? {
                roots.add(certificate.map_err(|error| unusable(&error))?).map_err(|error| unusable(&error))?;
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = versions.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// A bounded number of connections, which are opened when they are first needed.
pub(crate) struct Pool {
    /// The connections that nothing uses; a slot without a connection may open one.
    idle: Mutex<Vec<Option<Connection>>>,
    returned: Condvar,
}

impl Pool {
    pub fn new(connections: usize) -> Self {
        let slots = (0..connections.max(1)).map(|_| None).collect();
        Self { idle: Mutex::new(slots), returned: Condvar::new() }
    }

    /// A pool of this connection only.
    pub fn of(connection: Option<Connection>) -> Self {
        Self { idle: Mutex::new(vec![connection]), returned: Condvar::new() }
    }

    /// Runs `act` on a connection until it succeeds, fails for good, or the database's patience ends.
    pub fn with<T>(
        &self,
        database: &Database,
        act: impl FnMut(&mut Connection, Duration) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let deadline = Instant::now() + database.patience;
        let mut slot = self.take(database.patience)?;
        let done = database.persist(&mut slot, deadline, act);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // The last slot is taken first, so open connections stay in use and empty slots stay empty.
        let place = if slot.is_some() { idle.len() } else { 0 };
        idle.insert(place, slot);
        self.returned.notify_one();
        done
    }

    fn take(&self, patience: Duration) -> Result<Option<Connection>, Failure> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.returned.wait_timeout_while(idle, patience, |idle| idle.is_empty());
        let (mut idle, _) = waited.unwrap_or_else(PoisonError::into_inner);
        idle.pop().ok_or_else(|| Failure::new(Kind::Busy, "all connections for reads are in use"))
    }
}
