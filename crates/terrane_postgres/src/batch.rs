//! A batch as the database takes it: sorted, with one change for each key.

use crate::reads::number;
use terrane_storage::{Entry, WriteBatch};

/// The preconditions and changes of a batch, in ascending order of families and keys. All writers lock in this order.
#[derive(Default)]
pub(crate) struct Batch<'a> {
    required: Vec<&'a Entry>,
    changes: Vec<&'a Entry>,
}

impl<'a> Batch<'a> {
    /// Sorts a batch. Returns a precondition that cannot hold because another one requires a different value.
    pub fn new(batch: &'a WriteBatch) -> Result<Self, &'a Entry> {
        let mut required = sorted(batch.preconditions());
        required.dedup();
        if let Some(pair) = required.windows(2).find(|pair| place(pair[0]) == place(pair[1])) {
            return Err(pair[1]);
        }
        let mut changes = sorted(batch.changes());
        changes.dedup_by(|later, earlier| {
            let is_same = place(later) == place(earlier);
            if is_same {
                *earlier = *later;
            }
            is_same
        });
        Ok(Self { required, changes })
    }

    pub fn required(&self) -> &[&'a Entry] {
        &self.required
    }

    pub fn changes(&self) -> &[&'a Entry] {
        &self.changes
    }

    /// The size of the changes in bytes.
    pub fn bytes(&self) -> usize {
        self.changes.iter().map(|change| bytes(change)).sum()
    }
}

/// Splits changes into slices of at most `most_bytes` bytes, or of one change.
pub(crate) fn slices<'s, 'a>(changes: &'s [&'a Entry], most_bytes: usize) -> impl Iterator<Item = &'s [&'a Entry]> {
    let mut sum = 0;
    changes.chunk_by(move |before, next| {
        sum += bytes(before);
        let fits = sum + bytes(next) <= most_bytes;
        if !fits {
            sum = 0;
        }
        fits
    })
}

/// Entries as the arrays that statements take.
#[derive(Default)]
pub(crate) struct Columns<'a> {
    pub families: Vec<i16>,
    pub keys: Vec<&'a [u8]>,
    pub values: Vec<Option<&'a [u8]>>,
}

impl<'a> Columns<'a> {
    pub fn new(entries: &[&'a Entry]) -> Self {
        Self {
            families: entries.iter().map(|entry| number(entry.family)).collect(),
            keys: entries.iter().map(|entry| &entry.key[..]).collect(),
            values: entries.iter().map(|entry| entry.value.as_deref()).collect(),
        }
    }
}

fn sorted(entries: &[Entry]) -> Vec<&Entry> {
    let mut sorted: Vec<_> = entries.iter().collect();
    // Stable, so the later of two changes stays the later one.
    sorted.sort_by(|one, other| place(one).cmp(&place(other)));
    sorted
}

fn place(entry: &Entry) -> (i16, &[u8]) {
    (number(entry.family), &entry.key)
}

fn bytes(entry: &Entry) -> usize {
    entry.key.len() + entry.value.as_ref().map_or(0, Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrane_storage::Family::{Chunks, Meta};

    #[test]
    fn a_batch_is_sorted_and_the_later_change_stays() {
        let mut batch = WriteBatch::default();
        batch.put(Meta, *b"a", vec![1]);
        batch.put(Chunks, *b"b", vec![2]);
        batch.delete(Meta, *b"a");
        batch.put(Chunks, *b"a", vec![3]);
        batch.put(Chunks, *b"b", vec![4]);
        let sorted = Batch::new(&batch).unwrap();
        let Columns { families, keys, values } = Columns::new(sorted.changes());
        assert_eq!(families, [0, 0, 3]);
        assert_eq!(keys, [b"a", b"b", b"a"]);
        assert_eq!(values, [Some(&[3][..]), Some(&[4]), None]);
    }

    #[test]
    fn contradictory_preconditions_are_found() {
        let mut batch = WriteBatch::default();
        batch.require(Meta, *b"a", Some(vec![1]));
        batch.require(Meta, *b"b", None);
        batch.require(Meta, *b"a", Some(vec![1]));
        assert_eq!(Batch::new(&batch).unwrap().required().len(), 2);
        batch.require(Meta, *b"b", Some(vec![]));
        assert_eq!(Batch::new(&batch).err().map(|entry| &entry.key[..]), Some(&b"b"[..]));
    }

    #[test]
    fn slices_hold_everything_in_order() {
        let mut batch = WriteBatch::default();
        for (key, size) in [10, 10, 10, 50, 1, 30, 9].into_iter().enumerate() {
            batch.put(Meta, [key as u8], vec![0; size - 1]);
        }
        let sorted = Batch::new(&batch).unwrap();
        let keys = slices(sorted.changes(), 30).map(|slice| slice.iter().map(|entry| entry.key[0]).collect());
        assert_eq!(keys.collect::<Vec<Vec<_>>>(), [vec![0, 1, 2], vec![3], vec![4], vec![5], vec![6]]);
    }
}
