//! A long random use, compared with a slow and obvious model.

use super::{Outcome, contents, expect, noise};
use crate::{Durability, Family, KeyValueStore, StoreError, WriteBatch};
use std::collections::BTreeMap;

type Model = BTreeMap<(Family, Vec<u8>), Vec<u8>>;

/// The number of steps of the random use, each with one batch and some reads.
const STEPS: usize = 400;

struct Choices(u64);

impl Choices {
    fn below(&mut self, end: usize) -> usize {
        noise(&mut self.0) as usize % end
    }

    fn family(&mut self) -> Family {
        Family::ALL[self.below(Family::ALL.len())]
    }

    /// Few enough keys that they occur repeatedly, many with common prefixes.
    fn key(&mut self) -> Vec<u8> {
        let bytes = [0, 1, 0x7f, 0x80, 0xff];
        (0..self.below(4)).map(|_| bytes[self.below(bytes.len())]).collect()
    }

    fn value(&mut self) -> Vec<u8> {
        let length = if self.below(20) == 0 { 5_000 } else { self.below(40) };
        (0..length).map(|_| noise(&mut self.0) as u8).collect()
    }
}

pub(super) fn agrees_with_a_plain_map<S: KeyValueStore>(store: &S) -> Outcome {
    let (mut choices, mut model) = (Choices(0x7e77), Model::new());
    for step in 0..STEPS {
        write_some(store, &mut model, &mut choices)?;
        let (family, start, end) = (choices.family(), choices.key(), choices.key());
        let (limit, step) = (choices.below(30), format!("step {step}:"));
        let stored = |key: &[u8]| model.get(&(family, key.to_vec())).cloned();
        let keys: Vec<_> = (0..choices.below(6)).map(|_| choices.key()).collect();
        let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
        let expected = keys.iter().map(|key| stored(key)).collect();
        expect(&format!("{step} reading {keys:02x?}"), store.multi_get(family, &keys)?, expected)?;
        expect(&format!("{step} reading {start:02x?}"), store.get(family, &start)?, stored(&start))?;
        let expected = model.iter().filter(|((of, key), _)| *of == family && *key >= start && *key < end);
        let expected = expected.map(|((_, key), value)| (key.clone(), value.clone())).take(limit).collect();
        let what = format!("{step} a scan from {start:02x?} to {end:02x?}, at most {limit},");
        expect(&what, store.scan(family, &start..&end, limit)?, expected)?;
    }
    for family in Family::ALL {
        let expected = model.iter().filter(|((of, key), _)| *of == family && key[..] < [0xff; 3][..]);
        let expected = expected.map(|((_, key), value)| (key.clone(), value.clone())).collect();
        expect(&format!("at the end, a scan of {family}"), contents(store, family)?, expected)?;
    }
    Ok(())
}

/// Writes a random batch to both. Most batches with preconditions have only ones that hold.
fn write_some<S: KeyValueStore>(store: &S, model: &mut Model, choices: &mut Choices) -> Outcome {
    let (mut batch, mut changed, mut fails) = (WriteBatch::default(), model.clone(), false);
    for _ in 0..choices.below(4) {
        let (family, key) = (choices.family(), choices.key());
        let stored = model.get(&(family, key.clone())).cloned();
        let expected = if choices.below(8) == 0 { Some(choices.value()) } else { stored.clone() };
        fails |= stored != expected;
        batch.require(family, key, expected);
    }
    for _ in 0..choices.below(20) {
        let (family, key) = (choices.family(), choices.key());
        if choices.below(3) == 0 {
            batch.delete(family, key.clone());
            changed.remove(&(family, key));
        } else {
            let value = choices.value();
            batch.put(family, key.clone(), value.clone());
            changed.insert((family, key), value);
        }
    }
    let durability = if choices.below(10) == 0 { Durability::Sync } else { Durability::Process };
    match store.write(batch, durability) {
        Err(StoreError::PreconditionFailed { .. }) if fails => Ok(()),
        written => {
            written?;
            expect("a write, of which a precondition fails,", fails, false)?;
            *model = changed;
            Ok(())
        }
    }
}
