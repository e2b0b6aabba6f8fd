//! The rules that one thread can check.

use super::{Outcome, contents, expect, noise, put};
use crate::{Durability, Family, KeyValueStore, Read, StoreError, WriteBatch};

pub(super) fn an_empty_store_has_nothing_in_it<S: KeyValueStore>(store: &S) -> Outcome {
    for family in Family::ALL {
        expect("reading a key", store.get(family, b"key")?, None)?;
        expect("a scan", contents(store, family)?, Vec::new())?;
    }
    store.write(WriteBatch::default(), Durability::Sync)?;
    Ok(store.sync()?)
}

pub(super) fn families_are_apart<S: KeyValueStore>(store: &S) -> Outcome {
    for (number, family) in Family::ALL.into_iter().enumerate() {
        put(store, &[(family, b"key", &[number as u8])])?;
        for (other_number, other) in Family::ALL.into_iter().enumerate() {
            let expected = (other_number <= number).then(|| vec![other_number as u8]);
            expect(&format!("reading in {other}"), store.get(other, b"key")?, expected.clone())?;
            let expected: Vec<_> = expected.into_iter().map(|value| (b"key".to_vec(), value)).collect();
            expect(&format!("a scan of {other}"), contents(store, other)?, expected)?;
        }
    }
    let mut batch = WriteBatch::default();
    batch.delete(Family::ALL[0], *b"key");
    store.write(batch, Durability::Process)?;
    expect("reading what was deleted", store.get(Family::ALL[0], b"key")?, None)?;
    expect("reading what was not deleted", store.get(Family::ALL[1], b"key")?, Some(vec![1]))
}

pub(super) fn any_bytes_are_keys_and_values<S: KeyValueStore>(store: &S) -> Outcome {
    let long = vec![0xa5; 3_000];
    let samples: [&[u8]; 9] =
        [&[], &[0], &[0, 0], &[0xff], &[0xff, 0xfe, 0xff], b"'; drop table", "ä".as_bytes(), &[0xc3, 0x28], &long];
    let entries: Vec<_> = samples.iter().map(|bytes| (Family::Meta, *bytes, *bytes)).collect();
    put(store, &entries)?;
    for bytes in samples {
        expect("reading a key", store.get(Family::Meta, bytes)?, Some(bytes.to_vec()))?;
    }
    expect("reading a longer key", store.get(Family::Meta, &[0; 3])?, None)?;
    expect("a scan", contents(store, Family::Meta)?.len(), samples.len())
}

pub(super) fn large_values_come_back<S: KeyValueStore>(store: &S) -> Outcome {
    // Like a player's library: four megabytes that do not compress.
    let mut state = 1_u64;
    let large: Vec<u8> = (0..4 << 20).map(|_| noise(&mut state) as u8).collect();
    put(store, &[(Family::Chunks, b"large", &large), (Family::Chunks, b"small", b"value")])?;
    let is_whole = |found: Option<&[u8]>| found == Some(&large);
    expect("comparing it", is_whole(store.get(Family::Chunks, b"large")?.as_deref()), true)?;
    let scanned = contents(store, Family::Chunks)?;
    expect("comparing it in a scan", is_whole(scanned.first().map(|(_, value)| &value[..])), true)?;
    Ok(())
}

pub(super) fn several_keys_are_read_in_their_order<S: KeyValueStore>(store: &S) -> Outcome {
    put(store, &[(Family::Chunks, b"b", b"2"), (Family::Chunks, b"a", b"1"), (Family::Chunks, b"", b"0")])?;
    put(store, &[(Family::Meta, b"c", b"elsewhere")])?;
    let found = store.multi_get(Family::Chunks, &[b"b", b"c", b"", b"a", b"b", b"c"])?;
    let expected = [Some("2"), None, Some("0"), Some("1"), Some("2"), None];
    expect("reading six", found, expected.map(|value| value.map(|value| value.into())).to_vec())?;
    expect("reading none", store.multi_get(Family::Chunks, &[])?, Vec::new())
}

pub(super) fn a_batch_of_reads_answers_each<S: KeyValueStore>(store: &S) -> Outcome {
    put(store, &[(Family::Chunks, b"a", b"1"), (Family::Chunks, b"b", b"2"), (Family::Chunks, b"c", b"3")])?;
    put(store, &[(Family::Meta, b"b", b"elsewhere"), (Family::Registry, b"", b"")])?;
    let keys = |family, keys: &[&str]| Read::Keys(family, keys.iter().map(|key| key.as_bytes().to_vec()).collect());
    let range = |family, start: &str, end: &str, limit| Read::Range(family, start.into()..end.into(), limit);
    let cases: [(Read, &[(&str, &str)]); 11] = [
        (keys(Family::Chunks, &["c", "x", "a", "", "c"]), &[("c", "3"), ("a", "1"), ("c", "3")]),
        (range(Family::Chunks, "b", "d", 9), &[("b", "2"), ("c", "3")]),
        (keys(Family::Meta, &["b"]), &[("b", "elsewhere")]),
        (keys(Family::Meta, &["a"]), &[]),
        (keys(Family::Registry, &[""]), &[("", "")]),
        (keys(Family::Registry, &[]), &[]),
        (range(Family::Chunks, "", "z", 2), &[("a", "1"), ("b", "2")]),
        (range(Family::Chunks, "", "z", usize::MAX), &[("a", "1"), ("b", "2"), ("c", "3")]),
        (range(Family::Chunks, "", "z", 0), &[]),
        (range(Family::Chunks, "c", "a", 9), &[]),
        (range(Family::Meta, "a", "b", 9), &[]),
    ];
    let (reads, expected): (Vec<Read>, Vec<_>) = cases.into_iter().unzip();
    let owned = |(key, value): &(&str, &str)| (key.as_bytes().to_vec(), value.as_bytes().to_vec());
    let expected: Vec<Vec<_>> = expected.into_iter().map(|found| found.iter().map(owned).collect()).collect();
    expect("reading all of it at once", store.read(&reads)?, expected)?;
    expect("a batch of no reads", store.read(&[])?, Vec::new())
}

const ORDER: [&[u8]; 9] = [&[], &[0], &[0, 1], &[1], &[1, 0], &[0x7f], &[0x80], &[0xff], &[0xff, 0xff]];

pub(super) fn scans_are_ascending_half_open_and_limited<S: KeyValueStore>(store: &S) -> Outcome {
    for index in [8, 2, 5, 0, 7, 1, 3, 6, 4] {
        put(store, &[(Family::Entities, ORDER[index], ORDER[index])])?;
    }
    let scan = |start: &[u8], end: &[u8], limit: usize, expected: &[&[u8]]| {
        let found = store.scan(Family::Entities, start..end, limit)?;
        let expected: Vec<_> = expected.iter().map(|key| (key.to_vec(), key.to_vec())).collect();
        expect(&format!("a scan from {start:02x?} to {end:02x?}, at most {limit},"), found, expected)
    };
    scan(&[], &[0xff; 3], usize::MAX, &ORDER)?;
    scan(&[], &[0xff; 3], ORDER.len(), &ORDER)?;
    scan(&[0, 1], &[0xff], 10, &ORDER[2..7])?;
    // Between existing keys.
    scan(&[0, 0], &[1, 0, 0], 10, &ORDER[2..5])?;
    scan(&[], &[0xff], 2, &ORDER[..2])?;
    scan(&[1], &[1, 0], 1, &ORDER[3..4])?;
    scan(&[], &[0xff], 0, &[])?;
    // These ranges are empty, and the last one is inverted.
    scan(&[1], &[1], 10, &[])?;
    scan(&[], &[], 10, &[])?;
    scan(&[2], &[0x7f], 10, &[])?;
    scan(&[2], &[1], 10, &[])
}

pub(super) fn a_page_ends_after_so_many_entries_or_bytes<S: KeyValueStore>(store: &S) -> Outcome {
    let keys: Vec<[u8; 1]> = (0..200).map(|key| [key]).collect();
    let value = [7; 999];
    let entries: Vec<_> = keys.iter().map(|key| (Family::Chunks, &key[..], &value[..])).collect();
    put(store, &entries)?;
    // The last entry may exceed the bytes, and a few more may follow if the store does not know the sizes of values in
    // advance.
    for (entries, bytes, least, most) in
        [(7, usize::MAX, 7, 7), (1, 1, 1, 1), (150, 50_000, 50, 65), (500, usize::MAX, 199, 199)]
    {
        let page = store.scan_page(Family::Chunks, &[1]..&[0xff], entries, bytes)?;
        let is_right =
            (least..=most).contains(&page.len()) && page.iter().map(|(key, _)| key[0]).eq((1..200).take(page.len()));
        expect(
            &format!("a page of {entries} entries or {bytes} bytes is right, with {} entries,", page.len()),
            is_right,
            true,
        )?;
    }
    let empty = store.scan_page(Family::Chunks, &[200]..&[0xff], 9, 9)?;
    expect("a page behind the last key", empty, Vec::new())
}

pub(super) fn a_scan_goes_on_behind_its_last_key<S: KeyValueStore>(store: &S) -> Outcome {
    let keys: Vec<[u8; 2]> = (0..300_u16).map(|key| (key * 7).to_be_bytes()).collect();
    let entries: Vec<_> = keys.iter().map(|key| (Family::Opacity, &key[..], &key[..])).collect();
    put(store, &entries)?;
    let expected: Vec<_> = keys.iter().map(|key| (key.to_vec(), key.to_vec())).collect();
    for page in [1, 7, 100, 300] {
        let (mut start, mut found) = (Vec::new(), Vec::new());
        // One more than possible, in case a store never ends.
        for _ in 0..=expected.len() {
            let entries = store.scan(Family::Opacity, &start..&[0xff; 3], page)?;
            let Some((last, _)) = entries.last() else { break };
            start = [&last[..], &[0]].concat();
            found.extend(entries);
        }
        expect(&format!("a scan in pages of {page}"), &found, &expected)?;
    }
    Ok(())
}

pub(super) fn the_later_change_of_a_key_counts<S: KeyValueStore>(store: &S) -> Outcome {
    put(store, &[(Family::Meta, b"replaced", b"old"), (Family::Meta, b"deleted", b"old")])?;
    let mut batch = WriteBatch::default();
    batch.put(Family::Meta, *b"kept", b"old".to_vec());
    batch.delete(Family::Meta, *b"kept");
    batch.put(Family::Meta, *b"kept", b"new".to_vec());
    batch.put(Family::Meta, *b"gone", b"old".to_vec());
    batch.delete(Family::Meta, *b"gone");
    batch.put(Family::Meta, *b"replaced", b"newer".to_vec());
    batch.put(Family::Meta, *b"replaced", b"new".to_vec());
    batch.delete(Family::Meta, *b"deleted");
    batch.delete(Family::Meta, *b"never there");
    store.write(batch, Durability::Process)?;
    let expected: [(&[u8], &[u8]); 2] = [(b"kept", b"new"), (b"replaced", b"new")];
    let expected: Vec<_> = expected.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    expect("a scan", contents(store, Family::Meta)?, expected)?;
    expect("reading what is gone", store.multi_get(Family::Meta, &[b"gone", b"deleted"])?, vec![None, None])
}

pub(super) fn a_failed_precondition_changes_nothing<S: KeyValueStore>(store: &S) -> Outcome {
    put(store, &[(Family::Meta, b"epoch", b"7"), (Family::Entities, b"empty", b"")])?;
    // Correct preconditions beside a wrong one must not help.
    let wrong: [(Family, &[u8], Option<&[u8]>); 6] = [
        (Family::Meta, b"epoch", Some(b"8")),
        (Family::Meta, b"epoch", None),
        (Family::Meta, b"epoch", Some(b"")),
        (Family::Chunks, b"epoch", Some(b"7")),
        (Family::Entities, b"absent", Some(b"")),
        (Family::Entities, b"empty", None),
    ];
    for (family, key, expected) in wrong {
        let mut batch = WriteBatch::default();
        batch.require(Family::Meta, *b"epoch", Some(b"7".to_vec()));
        batch.require(family, key, expected.map(<[u8]>::to_vec));
        batch.require(Family::Entities, *b"empty", Some(Vec::new()));
        batch.put(Family::Chunks, *b"new", b"value".to_vec());
        // The batch's own writes do not satisfy its preconditions.
        match expected {
            Some(expected) => batch.put(family, key, expected.to_vec()),
            None => batch.delete(family, key),
        }
        match store.write(batch, Durability::Process) {
            Err(StoreError::PreconditionFailed { family: named, key: named_key, .. }) => {
                expect("the error", (named, &named_key[..]), (family, key))?;
            }
            other => {
                return Err(format!("{key:?} of {family} is not {expected:?}, but a write gave {other:?}").into());
            }
        }
        expect("reading what was put", store.get(Family::Chunks, b"new")?, None)?;
        expect("reading the required key", store.get(Family::Meta, b"epoch")?, Some(b"7".to_vec()))?;
        expect("reading an empty value", store.get(Family::Entities, b"empty")?, Some(Vec::new()))?;
    }
    let mut batch = WriteBatch::default();
    batch.require(Family::Meta, *b"epoch", Some(b"7".to_vec()));
    batch.require(Family::Chunks, *b"epoch", None);
    batch.require(Family::Entities, *b"empty", Some(Vec::new()));
    batch.put(Family::Meta, *b"epoch", b"8".to_vec());
    batch.put(Family::Chunks, *b"new", b"value".to_vec());
    store.write(batch, Durability::Process)?;
    expect("reading what was put", store.get(Family::Chunks, b"new")?, Some(b"value".to_vec()))?;
    expect("reading the required key", store.get(Family::Meta, b"epoch")?, Some(b"8".to_vec()))
}

/// One round of opening a store: checks the data of earlier rounds, and writes more.
pub(super) fn what_was_written_is_there<S: KeyValueStore>(store: &S, round: u8) -> Outcome {
    for family in Family::ALL {
        let expected: Vec<_> = (0..round).map(|earlier| (vec![earlier], vec![earlier; 100])).collect();
        expect(&format!("round {round}: a scan of {family}"), contents(store, family)?, expected)?;
    }
    let mut batch = WriteBatch::default();
    for family in Family::ALL {
        batch.put(family, [round], vec![round; 100]);
        batch.put(family, [99], vec![99]);
    }
    // Data that need only survive the process also survives an orderly close.
    store.write(batch, if round.is_multiple_of(2) { Durability::Sync } else { Durability::Process })?;
    let mut batch = WriteBatch::default();
    Family::ALL.into_iter().for_each(|family| batch.delete(family, [99]));
    Ok(store.write(batch, Durability::Process)?)
}
