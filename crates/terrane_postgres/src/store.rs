//! The store: settings, opening, and the operations of [`KeyValueStore`].

use crate::address::Address;
use crate::batch::Batch;
use crate::connection::{Connection, Database, Pool, Role};
use crate::failure::{Failure, Kind};
use crate::reads::{self, number};
use crate::schema;
use crate::writer::Writer;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use terrane_storage::{
    Durability, Entry, Family, FamilySize, KeyValue, KeyValueStore, OpenWait, Read, StoreError, WriteBatch,
};

/// The largest value, in bytes. PostgreSQL's limit is 1 GB for a value and for the message that carries it.
const LARGEST_VALUE: usize = 512 << 20;
/// A larger batch is uploaded in slices.
const LARGEST_MESSAGE: usize = 32 << 20;
/// Years: more would overflow a clock.
const LONGEST_PATIENCE: Duration = Duration::from_secs(1 << 30);
/// The pages of the table that an estimate reads.
const SAMPLED_PAGES: i64 = 300;

/// The entries and bytes of family `$1`, from a sample of about `$2` pages. The table has `part` times as many pages.
const ESTIMATE: &str = "
    SELECT (count(*) * part)::bigint, (sum(octet_length(key) + octet_length(value)) * part)::bigint
        FROM (
            SELECT greatest(1, pg_relation_size('entries')::float8 / current_setting('block_size')::integer / $2::bigint)
                AS part
        ) pages
        CROSS JOIN LATERAL (SELECT key, value FROM entries TABLESAMPLE SYSTEM (100 / part) WHERE family = $1) sample
        GROUP BY part";

/// How a [`PostgresStore`] is opened and how it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresConfig {
    /// The operations that the store allows. The default is [`PostgresAccess::Create`].
    pub access: PostgresAccess,
    /// How long each operation waits for a database that cannot be reached, before it fails. The default is 30 s.
    pub patience: Duration,
    /// The most connections for reads. There is one more for writes. The default is 4.
    pub read_connections: usize,
    /// The size of a batch, in bytes, above which it is uploaded in several statements. The default is 32 MiB.
    #[doc(hidden)]
    pub largest_message: usize,
}

impl Default for PostgresConfig {
    fn default() -> Self {
        Self {
            access: PostgresAccess::Create,
            patience: Duration::from_secs(30),
            read_connections: 4,
            largest_message: LARGEST_MESSAGE,
        }
    }
}

/// The operations that a [`PostgresStore`] allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostgresAccess {
    /// Read and write. The world is created if it does not exist.
    Create,
    /// Read and write an existing world while nobody else has it open for writing; [`StoreError::InUse`] otherwise. No game
    /// can open it meanwhile.
    Write,
    /// Only read an existing world, also on a standby or while a game has it open. All reads see the state of the world
    /// at its opening, and fail once the connection is lost. All writes fail with [`StoreError::NotWritable`].
    Read,
}

/// A [`KeyValueStore`] in a PostgreSQL database.
///
/// The address is a URL as libpq takes it, with the name of the world behind `#`:
/// `postgres://user:password@host:port/database?options#world`. A world is a schema of its own, so several worlds and
/// other tables can share a database. Several hosts, separated by commas, name a primary and its standbys; the store finds
/// the one that can be written, also after a failover.
///
/// Every write is durable when it returns, whatever its [`Durability`] is. When the database cannot be reached, each operation
/// tries again for some time, its *patience*, and then fails with a [`StoreError::Backend`]. A batch is written exactly
/// once even if the connection breaks. Only if the patience ends while the answer to a batch is missing, its outcome is
/// unknown and the error says so: the batch may have been written, or may be written until the next
/// [`write`](KeyValueStore::write) or [`sync`](KeyValueStore::sync) returns without such an error, and never after that.
///
/// Reads and writes block. A store must not be used or dropped on a thread of a Tokio runtime.
pub struct PostgresStore {
    database: Database,
    /// The database for reads, if it is not the same as that for writes.
    reading: Option<Database>,
    access: PostgresAccess,
    largest_message: usize,
    readers: Pool,
    writer: Mutex<Writer>,
}

impl PostgresStore {
    /// Opens the world at `address`, and creates it if it does not exist.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the address is not valid, the database cannot be reached within 30 s or refuses the
    /// user, the schema holds something else than a world, or a newer version of this crate has created it.
    /// [`StoreError::InUse`] if a tool is changing the world for longer than 5 s.
    pub fn open(address: &str) -> Result<Self, StoreError> {
        Self::open_with(address, &PostgresConfig::default())
    }

    /// Opens the world at `address`.
    ///
    /// # Errors
    /// The same as those of [`open`](Self::open). Unless the access is [`PostgresAccess::Create`], also
    /// [`StoreError::Backend`] if there is no world.
    pub fn open_with(address: &str, config: &PostgresConfig) -> Result<Self, StoreError> {
        Self::open_waiting(address, config, &mut OpenWait::default())
    }

    /// Like [`open_with`](Self::open_with), with a wait of the caller's own for sessions that have the world open.
    ///
    /// # Errors
    /// The same as those of [`open_with`](Self::open_with).
    pub fn open_waiting(address: &str, config: &PostgresConfig, wait: &mut OpenWait<'_>) -> Result<Self, StoreError> {
        let error = |path: &Path, reason| Failure::new(Kind::Refused, reason).into_error("open", None, path);
        let is_read_only = config.access == PostgresAccess::Read;
        let address =
            Address::parse(address, is_read_only).map_err(|reason| error(Path::new("in PostgreSQL"), reason))?;
        let (path, role) = match config.access {
            PostgresAccess::Create => (address.path.clone(), Role::Share),
            PostgresAccess::Write => (address.path.clone(), Role::Alone),
            PostgresAccess::Read => (address.path.clone(), Role::Snapshot),
        };
        let mut database = Database::new(address, config.patience.min(LONGEST_PATIENCE), role)
            .map_err(|reason| error(&path, reason))?;
        let (mut slot, creates) = (None, config.access == PostgresAccess::Create);
        // The session of a client that has just ended ends a moment later.
        wait.retry(
            |error| matches!(error, StoreError::InUse { .. }),
            || {
                let prepared = schema::prepare(&database, creates, &mut slot);
                prepared.map_err(|failure| failure.into_error("open", None, &path))
            },
        )?;
        database.is_open = true;
        let (reading, readers, writer) = if is_read_only {
            (None, Pool::of(slot), Writer::default())
        } else {
            (Some(database.with_role(Role::Read)), Pool::new(config.read_connections), Writer::on(slot))
        };
        let writer = Mutex::new(writer);
        Ok(Self { database, reading, access: config.access, largest_message: config.largest_message, readers, writer })
    }

    fn with_reader<T>(
        &self,
        operation: &'static str,
        family: Option<Family>,
        read: impl FnMut(&mut Connection, Duration) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let done = self.readers.with(self.reading.as_ref().unwrap_or(&self.database), read);
        done.map_err(|failure| failure.into_error(operation, family, self.path()))
    }

    fn writer(&self) -> Result<MutexGuard<'_, Writer>, StoreError> {
        match self.access {
            PostgresAccess::Read => Err(StoreError::NotWritable { path: self.path().to_path_buf() }),
            PostgresAccess::Create | PostgresAccess::Write => {
                Ok(self.writer.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }

    fn write_error(&self, operation: &'static str, writer: &Writer, mut failure: Failure) -> StoreError {
        if writer.is_unresolved() {
            failure.reason = format!("whether the last batch was written is unknown until the next write: {failure}");
        }
        failure.into_error(operation, None, self.path())
    }
}

impl KeyValueStore for PostgresStore {
    fn path(&self) -> &Path {
        &self.database.address.path
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.multi_get(family, &[key])?.pop().flatten())
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let found = self.read(&[Read::Keys(family, keys.iter().map(|key| key.to_vec()).collect())])?;
        let mut found = found.into_iter().flatten().peekable();
        Ok(keys.iter().map(|key| Some(found.next_if(|(next, _)| next == key)?.1)).collect())
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        let range = range.start.to_vec()..range.end.to_vec();
        Ok(self.read(&[Read::Range(family, range, limit)])?.pop().unwrap_or_default())
    }

    /// Answers all reads with one statement, so all of them see the same batches.
    fn read(&self, reads: &[Read]) -> Result<Vec<Vec<KeyValue>>, StoreError> {
        let family = |read: &Read| match read {
            Read::Keys(family, _) | Read::Range(family, ..) => *family,
        };
        // A load asks for no keys if it has found no clusters and no entities.
        if reads.iter().all(|read| matches!(read, Read::Keys(_, keys) if keys.is_empty())) {
            return Ok(vec![Vec::new(); reads.len()]);
        }
        // An error names the first family, and is repeated for each read alone if data is damaged.
        self.with_reader("read", reads.first().map(family), |connection, wait| reads::read(connection, reads, wait))
    }

    fn scan_page(
        &self,
        family: Family,
        range: Range<&[u8]>,
        most_entries: usize,
        most_bytes: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let limits = (most_entries, most_bytes);
        self.with_reader("scan", Some(family), |connection, wait| {
            reads::read_page(connection, family, range.clone(), limits, wait)
        })
    }

    /// Writes the whole batch atomically and durably, whatever `durability` is.
    ///
    /// # Errors
    /// The same as those of [`KeyValueStore::write`]. See [`PostgresStore`] for batches whose outcome is unknown.
    fn write(&self, batch: WriteBatch, _durability: Durability) -> Result<(), StoreError> {
        let failed = |required: &Entry| StoreError::PreconditionFailed {
            family: required.family,
            key: required.key.clone(),
            path: self.path().to_path_buf(),
        };
        let mut writer = self.writer()?;
        let sorted = Batch::new(&batch).map_err(failed)?;
        let is_too_large = |change: &&&Entry| change.value.as_ref().is_some_and(|value| value.len() > LARGEST_VALUE);
        if let Some(large) = sorted.changes().iter().find(is_too_large) {
            let reason = format!("the value of key {:02x?} has more than {} MiB", large.key, LARGEST_VALUE >> 20);
            return Err(Failure::new(Kind::Refused, reason).into_error("write", Some(large.family), self.path()));
        }
        writer.write(&self.database, &sorted, self.largest_message).map_err(|failure| match failure.kind {
            Kind::Precondition(index) if index < sorted.required().len() => failed(sorted.required()[index]),
            _ => self.write_error("write", &writer, failure),
        })
    }

    /// Does nothing unless the outcome of a batch is unknown. Then the batch is not written after this returns.
    fn sync(&self) -> Result<(), StoreError> {
        let mut writer = self.writer()?;
        writer.resolve(&self.database).map_err(|failure| self.write_error("sync", &writer, failure))
    }

    /// The size of a family, estimated from a sample of the table's pages.
    fn approximate_family(&self, family: Family) -> Result<Option<FamilySize>, StoreError> {
        let mut size = FamilySize::default();
        self.with_reader("measure", Some(family), |connection, wait| {
            connection.query(ESTIMATE, &[&number(family), &SAMPLED_PAGES], wait, |row| {
                let (entries, bytes): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
                size = FamilySize { entries: entries.unsigned_abs(), bytes: bytes.unsigned_abs() };
                Ok(())
            })
        })?;
        Ok(Some(size))
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("path", &self.path())
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.writer.get_mut().unwrap_or_else(PoisonError::into_inner).say_goodbye();
    }
}
