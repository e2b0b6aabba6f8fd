//! Each rule finds the store that breaks it.

use super::*;
use crate::{Entry, MemoryStore, Read, StoreError};
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
enum Defect {
    /// A batch is written change by change.
    NotAtomic,
    /// A batch is written family by family, each atomically.
    NotAtomicOverFamilies,
    /// Changes are written before a failed precondition is found.
    WritesBeforeItChecks,
    IgnoresPreconditions,
    /// Another write may come between a precondition and its batch.
    ChecksTooEarly,
    /// Only the last of several preconditions is checked.
    LastPreconditionCounts,
    /// An empty value satisfies a precondition on an absent key.
    EmptyIsAbsent,
    FirstChangeCounts,
    IgnoresDeletes,
    PutsBeforeDeletes,
    OneFamily,
    ScanIncludesEnd,
    ScanExcludesStart,
    ScanForgetsTheLimit,
    ScanStopsOneEarly,
    ScanDescends,
    ScanSortsBytesAsSigned,
    ReadsSorted,
    AnswersReadsBackwards,
    LeavesOutAbsent,
    CutsLargeValues,
    CutsLongKeys,
    ForgetsEmptyKeys,
    HasSomethingInIt,
}

struct Broken {
    memory: MemoryStore,
    defect: Defect,
    writing: Mutex<()>,
}

impl Broken {
    fn new(defect: Defect) -> Self {
        let broken = Self { memory: MemoryStore::new(), defect, writing: Mutex::default() };
        if matches!(defect, Defect::HasSomethingInIt) {
            put(&broken.memory, &[(Family::Registry, b"left", b"over")]).ok().unwrap();
        }
        broken
    }

    fn family(&self, family: Family) -> Family {
        if matches!(self.defect, Defect::OneFamily) { Family::Meta } else { family }
    }

    fn key<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        if matches!(self.defect, Defect::CutsLongKeys) { &key[..key.len().min(2)] } else { key }
    }

    /// Writes these changes one after the other, and lets other threads read in between.
    fn write_in_parts(&self, parts: Vec<Vec<Entry>>) -> Result<(), StoreError> {
        for part in parts {
            let mut batch = WriteBatch::default();
            part.into_iter().for_each(|change| push(&mut batch, change));
            self.memory.write(batch, Durability::Process)?;
            std::thread::yield_now();
        }
        Ok(())
    }
}

fn push(batch: &mut WriteBatch, Entry { family, key, value }: Entry) {
    match value {
        Some(value) => batch.put(family, key, value),
        None => batch.delete(family, key),
    }
}

impl KeyValueStore for Broken {
    fn path(&self) -> &Path {
        self.memory.path()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.memory.get(self.family(family), self.key(key))
    }

    fn multi_get(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let mut keys = keys.to_vec();
        if matches!(self.defect, Defect::ReadsSorted) {
            keys.sort_unstable();
        }
        let mut values = keys.iter().map(|key| self.get(family, key)).collect::<Result<Vec<_>, _>>()?;
        if matches!(self.defect, Defect::LeavesOutAbsent) {
            values.retain(Option::is_some);
        }
        Ok(values)
    }

    fn scan(&self, family: Family, range: Range<&[u8]>, limit: usize) -> Result<Vec<KeyValue>, StoreError> {
        let family = self.family(family);
        let mut end = range.end.to_vec();
        if matches!(self.defect, Defect::ScanIncludesEnd) {
            end.push(0);
        }
        let mut found = self.memory.scan(family, range.start..&end, usize::MAX)?;
        match self.defect {
            Defect::ScanExcludesStart => found.retain(|(key, _)| key != range.start),
            Defect::ScanDescends => found.reverse(),
            Defect::ScanSortsBytesAsSigned => {
                found.sort_by_key(|(key, _)| key.iter().map(|byte| *byte as i8).collect::<Vec<_>>());
            }
            Defect::ScanStopsOneEarly => found.truncate(limit.saturating_sub(1)),
            _ => {}
        }
        if !matches!(self.defect, Defect::ScanForgetsTheLimit) {
            found.truncate(limit);
        }
        Ok(found)
    }

    fn read(&self, reads: &[Read]) -> Result<Vec<Vec<KeyValue>>, StoreError> {
        let mut found = MemoryStore::read(&self.memory, reads)?;
        if matches!(self.defect, Defect::AnswersReadsBackwards) {
            found.reverse();
        }
        Ok(found)
    }

    fn write(&self, batch: WriteBatch, durability: Durability) -> Result<(), StoreError> {
        let mut required = batch.preconditions().to_vec();
        let mut changes = batch.into_changes();
        for change in &mut changes {
            change.family = self.family(change.family);
            change.key = self.key(&change.key).to_vec();
            if let (Defect::CutsLargeValues, Some(value)) = (self.defect, &mut change.value) {
                value.truncate(1 << 20);
            }
        }
        match self.defect {
            Defect::IgnoresPreconditions => required.clear(),
            Defect::LastPreconditionCounts => drop(required.drain(..required.len().saturating_sub(1))),
            Defect::EmptyIsAbsent => {
                let is_empty = |value: Option<Vec<u8>>| value.is_none_or(|value| value.is_empty());
                for one in &required {
                    let stored = self.memory.get(one.family, &one.key)?;
                    if !(is_empty(stored.clone()) && is_empty(one.value.clone())) {
                        one.require(stored.as_deref(), self.path())?;
                    }
                }
                required.clear();
            }
            Defect::IgnoresDeletes => changes.retain(|change| change.value.is_some()),
            Defect::ForgetsEmptyKeys => changes.retain(|change| !change.key.is_empty()),
            Defect::FirstChangeCounts => changes.reverse(),
            Defect::PutsBeforeDeletes => changes.sort_by_key(|change| change.value.is_none()),
            _ => {}
        }
        let _writing = match self.defect {
            Defect::ChecksTooEarly => None,
            _ => Some(self.writing.lock().unwrap()),
        };
        if matches!(self.defect, Defect::WritesBeforeItChecks) {
            self.write_in_parts(vec![changes.clone()])?;
        }
        for one in &required {
            one.require(self.get(one.family, &one.key)?.as_deref(), self.path())?;
        }
        match self.defect {
            // Long enough for the other thread to write in between, on any number of cores.
            Defect::ChecksTooEarly if !required.is_empty() => std::thread::sleep(Duration::from_micros(100)),
            _ => std::thread::yield_now(),
        }
        match self.defect {
            Defect::NotAtomic => self.write_in_parts(changes.into_iter().map(|change| vec![change]).collect()),
            Defect::NotAtomicOverFamilies => {
                let of = |family| changes.iter().filter(|change| change.family == family).cloned().collect();
                self.write_in_parts(Family::ALL.map(of).into())
            }
            _ => {
                let mut batch = WriteBatch::default();
                changes.into_iter().for_each(|change| push(&mut batch, change));
                self.memory.write(batch, durability)
            }
        }
    }

    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Promise, crashes: `storage::conformance` checks a `KeyValueStore` of the game's own.
#[test]
fn every_defect_is_found_by_the_rule_that_it_breaks() {
    use Defect::*;
    let expected = [
        (NotAtomic, "readers see whole batches"),
        (NotAtomicOverFamilies, "readers see whole batches"),
        (WritesBeforeItChecks, "a batch whose precondition fails changes nothing"),
        (IgnoresPreconditions, "a batch whose precondition fails changes nothing"),
        (ChecksTooEarly, "no write happens between a precondition and its batch"),
        (LastPreconditionCounts, "a batch whose precondition fails changes nothing"),
        (EmptyIsAbsent, "a batch whose precondition fails changes nothing"),
        (FirstChangeCounts, "the later change of a key counts"),
        (IgnoresDeletes, "families are apart"),
        (PutsBeforeDeletes, "the later change of a key counts"),
        (OneFamily, "families are apart"),
        (ScanIncludesEnd, "scans are ascending, half-open and limited"),
        (ScanExcludesStart, "any bytes are keys and values"),
        (ScanForgetsTheLimit, "scans are ascending, half-open and limited"),
        (ScanStopsOneEarly, "scans are ascending, half-open and limited"),
        (ScanDescends, "values of megabytes come back"),
        (ScanSortsBytesAsSigned, "scans are ascending, half-open and limited"),
        (ReadsSorted, "several keys are read in their order"),
        (AnswersReadsBackwards, "a batch of reads answers each of them"),
        (LeavesOutAbsent, "several keys are read in their order"),
        (CutsLargeValues, "values of megabytes come back"),
        (CutsLongKeys, "families are apart"),
        (ForgetsEmptyKeys, "any bytes are keys and values"),
        (HasSomethingInIt, "an empty store has nothing in it"),
    ];
    for (defect, rule) in expected {
        // A check may miss a race.
        let found = (0..20).find_map(|_| check(|| Broken::new(defect)).err());
        let found = found.unwrap_or_else(|| panic!("{defect:?} was not found"));
        assert_eq!(found.rule, rule, "{defect:?}: {}", found.what);
        assert!(!found.what.is_empty() && found.to_string().contains(rule));
    }
}

#[test]
fn a_store_that_forgets_when_it_is_closed_is_found() {
    let kept = crate::backends::test_store::TestStore::default();
    check_reopening(|| kept.clone()).unwrap();
    let found = check_reopening(MemoryStore::new).unwrap_err();
    assert!(found.what.contains("round 1"), "{found}");
}

#[test]
fn an_error_of_the_store_breaks_the_rule() {
    let store = crate::backends::test_store::TestStore::default();
    store.fail_writes(true);
    let found = check(|| store.clone()).unwrap_err();
    assert!(found.to_string().contains("the disk is full"), "{found}");
}
