//! Writes: each batch is executed exactly once, even if its answer is lost.
//!
//! Every batch has a number, and the database keeps the number of this writer's last one. `write_batch` writes a batch
//! only if the last one is the one that this writer knows of, and tells which one is the last now:
//! * the same batch: it is written, maybe by an earlier attempt;
//! * an earlier batch of this writer, whose outcome was unknown: it was written after all, and this one follows it.
//!
//! Once a later batch is written, an attempt of an earlier one that is still on its way does nothing when it arrives.

use crate::batch::{self, Batch, Columns};
use crate::connection::{Connection, Database, Parameters};
use crate::failure::{Failure, Kind};
use std::mem;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Rows of writers that never said goodbye are forgotten after this time without a write.
const REGISTER: &str = "
    WITH forgotten AS (DELETE FROM writers WHERE touched < now() - interval '30 days')
    INSERT INTO writers DEFAULT VALUES RETURNING writer";
const WRITE: &str = "SELECT write_batch($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const STAGE: &str = "
    INSERT INTO staged SELECT $1::uuid, $2::bigint, c.*
        FROM unnest($3::integer[], $4::smallint[], $5::bytea[], $6::bytea[]) AS c
    ON CONFLICT DO NOTHING";
const GOODBYE: &str = "DELETE FROM writers WHERE writer = $1";
const LONGEST_GOODBYE: Duration = Duration::from_secs(1);

/// The one writer of an open store.
#[derive(Default)]
pub(crate) struct Writer {
    slot: Option<Connection>,
    id: Option<Uuid>,
    /// The number of the last batch of which it is known that it was written.
    last: i64,
    /// The number that was given to the newest batch.
    newest: i64,
    /// Whether a batch after `last` may have been written, or may be written later.
    is_unresolved: bool,
}

impl Writer {
    /// A writer that begins with this connection.
    pub fn on(slot: Option<Connection>) -> Self {
        Self { slot, ..Self::default() }
    }

    /// Writes a batch. Above `most_bytes`, it is uploaded in several statements first.
    pub fn write(&mut self, database: &Database, batch: &Batch<'_>, most_bytes: usize) -> Result<(), Failure> {
        match self.execute(database, batch, most_bytes) {
            // An earlier attempt may still be on its way, and might succeed later than this one failed.
            Err(failure) if !failure.may_pass() && self.is_unresolved => {
                let failed = self.newest;
                match self.execute(database, &Batch::default(), most_bytes)? {
                    written if written == failed => Ok(()),
                    _ => Err(failure),
                }
            }
            done => done.map(|_| ()),
        }
    }

    /// Makes sure that no earlier batch is written from now on.
    pub fn resolve(&mut self, database: &Database) -> Result<(), Failure> {
        match self.is_unresolved {
            true => self.execute(database, &Batch::default(), usize::MAX).map(|_| ()),
            false => Ok(()),
        }
    }

    /// Returns `true` if a batch that was reported as failed may have been written, or may be written later.
    pub fn is_unresolved(&self) -> bool {
        self.is_unresolved
    }

    /// Writes a batch under a new number. Returns the number of the batch before it.
    fn execute(&mut self, database: &Database, batch: &Batch<'_>, most_bytes: usize) -> Result<i64, Failure> {
        let deadline = || Instant::now() + database.patience;
        let id = self.register(database, deadline())?;
        self.newest += 1;
        let number = self.newest;
        let (sent, staged) =
            if batch.bytes() <= most_bytes { (batch.changes(), &[][..]) } else { (&[][..], batch.changes()) };
        let mut part = 0..0;
        for slice in batch::slices(staged, most_bytes) {
            part = part.end..part.end + slice.len() as i32;
            let (parts, changes) = (part.clone().collect::<Vec<_>>(), Columns::new(slice));
            // Sending a slice again changes nothing.
            database.persist(&mut self.slot, deadline(), |connection, wait| {
                let Columns { families, keys, values } = &changes;
                connection.query(STAGE, &[&id, &number, &parts, families, keys, values], wait, |_| Ok(()))
            })?;
        }
        let (required, changes) = (Columns::new(batch.required()), Columns::new(sent));
        let (last, is_unresolved) = (&mut self.last, &mut self.is_unresolved);
        database.persist(&mut self.slot, deadline(), |connection, wait| {
            loop {
                let mut answer = 0;
                let parameters: Parameters<'_> = &[
                    &id, &*last, &number, &required.families, &required.keys, &required.values, &changes.families,
                    &changes.keys, &changes.values,
                ];
                let executed = connection.query(WRITE, parameters, wait, |row| {
                    answer = row.try_get(0)?;
                    Ok(())
                });
                *is_unresolved |= executed.as_ref().is_err_and(|failure| !failure.is_definite());
                executed?;
                if answer == number {
                    *is_unresolved = false;
                    return Ok(mem::replace(last, number));
                }
                if !(*last < answer && answer < number) {
                    let reason = "the database has lost batches of this session, for instance because it was restored from a \
                                  backup; open the world again";
                    return Err(Failure::new(Kind::Refused, reason));
                }
                *last = answer;
            }
        })
    }

    fn register(&mut self, database: &Database, deadline: Instant) -> Result<Uuid, Failure> {
        if let Some(id) = self.id {
            return Ok(id);
        }
        let id = database.persist(&mut self.slot, deadline, |connection, wait| {
            let mut id = Uuid::nil();
            connection.query(REGISTER, &[], wait, |row| {
                id = row.try_get(0)?;
                Ok(())
            })?;
            Ok(id)
        })?;
        Ok(*self.id.insert(id))
    }

    /// Removes the writer from the database, if the connection still works.
    pub fn say_goodbye(&mut self) {
        if let (Some(id), Some(connection)) = (self.id.take(), &mut self.slot) {
            // Otherwise the row is removed after some time.
            let _ = connection.query(GOODBYE, &[&id], LONGEST_GOODBYE, |_| Ok(()));
        }
    }
}
