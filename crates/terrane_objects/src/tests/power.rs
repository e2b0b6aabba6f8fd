//! A disk with power failures: unsynced writes are kept, lost or kept in parts, in any order.

use crate::Disk;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

#[derive(Clone, Debug, Default)]
pub struct PowerDisk(Arc<Mutex<State>>);

#[derive(Clone, Debug, Default)]
struct State {
    /// The content for readers.
    seen: Vec<u8>,
    /// The content that survives a loss of power.
    durable: Vec<u8>,
    pending: Vec<(u64, Vec<u8>)>,
    /// The number of writes and syncs so far.
    operations: usize,
    /// The operation at which the power fails.
    fails_at: Option<usize>,
    /// The size in bytes at which the disk is full.
    capacity: Option<u64>,
}

/// The size in bytes of atomic writes.
const SECTOR: u64 = 512;

impl PowerDisk {
    pub fn with(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(State { seen: bytes.clone(), durable: bytes, ..State::default() })))
    }

    /// Makes the operation with this number fail, and all after it.
    pub fn fail_at(&self, operation: usize) {
        self.0.lock().unwrap().fails_at = Some(operation);
    }

    pub fn set_capacity(&self, capacity: Option<u64>) {
        self.0.lock().unwrap().capacity = capacity;
    }

    pub fn operations(&self) -> usize {
        self.0.lock().unwrap().operations
    }

    pub fn length(&self) -> u64 {
        self.0.lock().unwrap().seen.len() as u64
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().seen.clone()
    }

    /// The disk after a loss of power: of each unsynced write, some sectors or none were stored.
    pub fn after_power_loss(&self, mut random: impl FnMut() -> u64) -> Self {
        let state = self.0.lock().unwrap();
        let mut bytes = state.durable.clone();
        let mut writes = state.pending.clone();
        for place in (1..writes.len()).rev() {
            // Sectors that were written twice keep either state: the order of writes is arbitrary.
            writes.swap(place, random() as usize % (place + 1));
        }
        for (offset, data) in writes {
            let how = random() % 4;
            let mut at = offset;
            while at < offset + data.len() as u64 {
                let end = ((at / SECTOR + 1) * SECTOR).min(offset + data.len() as u64);
                let is_written = how == 0 || (how != 1 && random().is_multiple_of(2));
                if is_written {
                    put(&mut bytes, at, &data[(at - offset) as usize..(end - offset) as usize]);
                }
                at = end;
            }
        }
        Self::with(bytes)
    }
}

fn put(bytes: &mut Vec<u8>, offset: u64, data: &[u8]) {
    let end = offset as usize + data.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset as usize..end].copy_from_slice(data);
}

impl State {
    fn count(&mut self) -> io::Result<()> {
        self.operations += 1;
        match self.fails_at.is_some_and(|at| self.operations > at) {
            true => Err(io::Error::other("the power is off")),
            false => Ok(()),
        }
    }
}

impl Disk for PowerDisk {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let state = self.0.lock().unwrap();
        let found = state.seen.get(offset as usize..offset as usize + buffer.len());
        buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let is_last = state.fails_at == Some(state.operations);
        if state.fails_at.is_some_and(|at| state.operations > at) {
            state.count()?;
        }
        if state.capacity.is_some_and(|capacity| offset + bytes.len() as u64 > capacity.max(state.seen.len() as u64)) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        // The write in progress at the power failure may be stored.
        put(&mut state.seen, offset, bytes);
        state.pending.push((offset, bytes.to_vec()));
        state.count()?;
        debug_assert!(!is_last);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.count()?;
        state.durable = state.seen.clone();
        state.pending.clear();
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.length())
    }

    fn path(&self) -> &Path {
        Path::new("memory")
    }
}
