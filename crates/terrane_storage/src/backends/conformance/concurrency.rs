//! The rules that need several threads.

use super::{Outcome, expect};
use crate::{Durability, Family, KeyValueStore, StoreError, WriteBatch};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The number of batches written while other threads read.
const ROUNDS: u32 = 300;
/// The number of keys of each batch in the scanned family.
const KEYS: u8 = 20;
/// The number of threads that increment one counter, and the increments of each.
const COUNTERS: u32 = 4;
const COUNTS: u32 = 50;

/// A scan never sees half a batch, and neither do two reads in different families.
pub(super) fn readers_see_whole_batches<S: KeyValueStore>(store: &S) -> Outcome {
    let write = |round: u32| {
        let mut batch = WriteBatch::default();
        batch.put(Family::Meta, *b"first", round.to_be_bytes().to_vec());
        (0..KEYS).for_each(|key| batch.put(Family::Chunks, [key], round.to_be_bytes().to_vec()));
        // Every second round has one more key.
        match round % 2 {
            0 => batch.put(Family::Chunks, [KEYS], round.to_be_bytes().to_vec()),
            _ => batch.delete(Family::Chunks, [KEYS]),
        }
        batch.put(Family::Entities, *b"last", round.to_be_bytes().to_vec());
        store.write(batch, Durability::Process)
    };
    write(0)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers = [0, 1].map(|number| {
            let is_over = &is_over;
            scope.spawn(move || -> Outcome {
                while !is_over.load(Ordering::Acquire) {
                    scan_whole(store)?;
                    let keys = [(Family::Meta, b"first".as_slice()), (Family::Entities, b"last".as_slice())];
                    let [earlier, later] = if number == 0 { keys } else { [keys[1], keys[0]] };
                    // A later read must be at least as new.
                    let (before, after) = (store.get(earlier.0, earlier.1)?, store.get(later.0, later.1)?);
                    if before > after {
                        let (first, second) = (earlier.0, later.0);
                        return Err(format!("a batch was in {first} but not in {second}").into());
                    }
                }
                Ok(())
            })
        });
        let written = (1..ROUNDS).try_for_each(write);
        is_over.store(true, Ordering::Release);
        for reader in readers {
            reader.join().map_err(|_| "a read panicked")??;
        }
        Ok(written?)
    })
}

fn scan_whole<S: KeyValueStore>(store: &S) -> Outcome {
    let entries = store.scan(Family::Chunks, &[]..&[0xff], usize::MAX)?;
    let round = entries.first().and_then(|(_, value)| Some(u32::from_be_bytes(value.as_slice().try_into().ok()?)));
    let Some(round) = round else { return Err(format!("a scan gave {entries:?}").into()) };
    let count = KEYS + u8::from(round.is_multiple_of(2));
    let expected = (0..count).map(|key| (vec![key], round.to_be_bytes().to_vec())).collect();
    expect("a scan beside a writer", entries, expected)
}

/// Increments that are each written only if the counter is unchanged add up.
pub(super) fn no_write_in_between<S: KeyValueStore>(store: &S) -> Outcome {
    let count = || -> Outcome {
        let mut counted = 0;
        while counted < COUNTS {
            let before = store.get(Family::Meta, b"count")?;
            let value = before.as_deref().map_or(Ok([0; 4]), <[u8; 4]>::try_from);
            let value = value.map_err(|_| format!("the count is {before:?}"))?;
            let mut batch = WriteBatch::default();
            batch.require(Family::Meta, *b"count", before);
            batch.put(Family::Meta, *b"count", (u32::from_be_bytes(value) + 1).to_be_bytes().to_vec());
            match store.write(batch, Durability::Process) {
                Ok(()) => counted += 1,
                Err(StoreError::PreconditionFailed { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let counters = [(); COUNTERS as usize].map(|()| scope.spawn(count));
        counters.into_iter().try_for_each(|counter| counter.join().map_err(|_| "a write panicked")?)
    })?;
    let expected = (COUNTERS * COUNTS).to_be_bytes().to_vec();
    expect("counting with several threads", store.get(Family::Meta, b"count")?, Some(expected))
}
