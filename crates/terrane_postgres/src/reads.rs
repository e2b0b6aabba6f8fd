//! Reads: many of them in one statement, so that all take one round trip and see the same batches.

use crate::connection::{Connection, Parameters};
use crate::failure::Failure;
use std::ops::Range;
use std::time::Duration;
use terrane_storage::{Family, KeyValue, Read};

/// Rows for keys have a positive number, that of the key; rows for ranges have a negative one, that of the range.
const READ: &str = "
    SELECT k.number, NULL::bytea, e.value
        FROM unnest($1::smallint[], $2::bytea[]) WITH ORDINALITY AS k (family, key, number)
        JOIN entries e ON e.family = k.family AND e.key = k.key
    UNION ALL
    SELECT -r.number, page.key, page.value
        FROM unnest($3::smallint[], $4::bytea[], $5::bytea[], $6::bigint[]) WITH ORDINALITY
            AS r (family, first, stop, most, number)
        CROSS JOIN LATERAL (
            SELECT key, value FROM entries
                WHERE family = r.family AND key >= r.first AND key < r.stop ORDER BY key LIMIT r.most
        ) page";

/// The first entries of a range, until their keys and values have `$5` bytes. The sum ends before the entry itself, so
/// that the first one always belongs to the page. Values that are not part of the page are measured but not read.
const PAGE: &str = "
    SELECT key, value FROM (
        SELECT key, value, sum(octet_length(key) + octet_length(value))
            OVER (ORDER BY key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
        FROM (
            SELECT key, value FROM entries
                WHERE family = $1::smallint AND key >= $2::bytea AND key < $3::bytea ORDER BY key LIMIT $4::bigint
        ) entry
    ) measured
    WHERE coalesce(before, 0) < $5::bigint";

/// The most entries of one [`PAGE`], which measures all of them even if few fit into the page.
const ENTRIES_AT_ONCE: usize = 1_000;

/// The entries that each of `reads` asks for.
pub(crate) fn read(connection: &mut Connection, reads: &[Read], wait: Duration) -> Result<Vec<Vec<KeyValue>>, Failure> {
    let (mut key_families, mut keys) = (Vec::new(), Vec::<&[u8]>::new());
    let (mut range_families, mut starts, mut ends, mut limits) =
        (Vec::new(), Vec::<&[u8]>::new(), Vec::<&[u8]>::new(), Vec::new());
    for read in reads {
        match read {
            Read::Keys(family, of) => {
                key_families.resize(key_families.len() + of.len(), number(*family));
                keys.extend(of.iter().map(Vec::as_slice));
            }
            Read::Range(family, range, limit) => {
                range_families.push(number(*family));
                starts.push(&range.start);
                ends.push(&range.end);
                limits.push(to_bigint(*limit));
            }
        }
    }
    let (mut values, mut entries) = (vec![None; keys.len()], vec![Vec::new(); limits.len()]);
    connection.query(READ, &[&key_families, &keys, &range_families, &starts, &ends, &limits], wait, |row| {
        let (number, value): (i64, &[u8]) = (row.try_get(0)?, row.try_get(2)?);
        let index = number.unsigned_abs() as usize - 1;
        match number > 0 {
            true => values[index] = Some(value.to_vec()),
            false => entries[index].push((row.try_get::<_, &[u8]>(1)?.to_vec(), value.to_vec())),
        }
        Ok(())
    })?;
    let (mut values, mut entries) = (values.into_iter(), entries.into_iter());
    let results = reads.iter().map(|read| match read {
        Read::Keys(_, keys) => {
            let pairs = keys.iter().zip(values.by_ref());
            pairs.filter_map(|(key, value)| Some((key.clone(), value?))).collect()
        }
        Read::Range(..) => in_order(entries.next().unwrap_or_default()),
    });
    Ok(results.collect())
}

/// The first entries of a range: at most `most_entries`, and none after the one that reaches `most_bytes`.
pub(crate) fn read_page(
    connection: &mut Connection,
    family: Family,
    range: Range<&[u8]>,
    (most_entries, most_bytes): (usize, usize),
    wait: Duration,
) -> Result<Vec<KeyValue>, Failure> {
    let (mut page, mut bytes, mut start) = (Vec::new(), 0, range.start.to_vec());
    while page.len() < most_entries && bytes < most_bytes {
        let limit = ENTRIES_AT_ONCE.min(most_entries - page.len());
        let parameters: Parameters<'_> =
            &[&number(family), &start, &range.end, &to_bigint(limit), &to_bigint(most_bytes - bytes)];
        let mut next = Vec::new();
        connection.query(PAGE, parameters, wait, |row| {
            next.push((row.try_get::<_, &[u8]>(0)?.to_vec(), row.try_get::<_, &[u8]>(1)?.to_vec()));
            Ok(())
        })?;
        let next = in_order(next);
        bytes += next.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        let is_all = next.len() < limit;
        if let Some((last, _)) = next.last() {
            // The smallest key behind the last one.
            start = [last, &[0][..]].concat();
        }
        page.extend(next);
        if is_all {
            break;
        }
    }
    Ok(page)
}

/// The index yields entries in order, but SQL does not promise it for these statements. Sorting sorted entries is cheap.
fn in_order(mut entries: Vec<KeyValue>) -> Vec<KeyValue> {
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    entries
}

fn to_bigint(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The number of a family in the database.
pub(crate) const fn number(family: Family) -> i16 {
    match family {
        Family::Chunks => 0,
        Family::Entities => 1,
        Family::Registry => 2,
        Family::Meta => 3,
        Family::Opacity => 4,
        Family::WarmChunks => 5,
        Family::ColdChunks => 6,
    }
}
