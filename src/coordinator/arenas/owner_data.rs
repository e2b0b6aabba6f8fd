//! The data of an arena that is stored beside its snapshot, as texts by name.

use crate::coordinator::messages::arenas::{Arena, ArenaSettings};
use crate::coordinator::messages::snapshots::{AfterCrash, EntityRestore};
use crate::snapshot::RestoreSequence;
use crate::space::{BlockBox, ColumnPos, DimensionId};
use std::collections::BTreeMap;
use std::time::Duration;

type OwnerData = BTreeMap<String, String>;

const ENTITIES: [(EntityRestore, &str); 3] =
    [(EntityRestore::Replace, "replace"), (EntityRestore::Add, "add"), (EntityRestore::Keep, "keep")];
const AFTER_CRASH: [(AfterCrash, &str); 3] =
    [(AfterCrash::Continue, "continue"), (AfterCrash::Undo, "undo"), (AfterCrash::Leave, "leave")];
const SEQUENCES: [(Option<RestoreSequence>, &str); 4] = [
    (None, "none"),
    (Some(RestoreSequence::BottomUp), "bottom-up"),
    (Some(RestoreSequence::TopDown), "top-down"),
    (Some(RestoreSequence::Outwards), "outwards"),
];

pub fn write(arena: &Arena) -> OwnerData {
    let ArenaSettings { sequence, entities, after_crash, cooldown, timeout } = &arena.settings;
    let sequence = match sequence {
        Some(RestoreSequence::Nearest(ColumnPos { x, z })) => format!("nearest {x} {z}"),
        other => word(&SEQUENCES, other),
    };
    let milliseconds = |duration: &Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).to_string();
    [
        ("arena", arena.name.clone()),
        ("order", sequence),
        ("entities", word(&ENTITIES, entities)),
        ("after-crash", word(&AFTER_CRASH, after_crash)),
        ("cooldown-ms", milliseconds(cooldown)),
        ("timeout-ms", milliseconds(timeout)),
    ]
    .into_iter()
    .map(|(name, text)| (name.to_owned(), text))
    .collect()
}

pub fn read(data: &OwnerData, dimension: DimensionId, area: BlockBox) -> Result<Arena, String> {
    let text = |what| data.get(what).map(String::as_str).ok_or_else(|| format!("its {what} is missing"));
    let wrong = |what, text: &str| format!("its {what} is {text:?}");
    let milliseconds = |name| {
        let text = text(name)?;
        text.parse().map(Duration::from_millis).map_err(|_| wrong(name, text))
    };
    let sequence = text("order")?;
    let settings = ArenaSettings {
        sequence: of_word(&SEQUENCES, sequence)
            .or_else(|| nearest(sequence).map(Some))
            .ok_or_else(|| wrong("order", sequence))?,
        entities: of_word(&ENTITIES, text("entities")?).ok_or_else(|| wrong("entities", &data["entities"]))?,
        after_crash: of_word(&AFTER_CRASH, text("after-crash")?)
            .ok_or_else(|| wrong("after-crash", &data["after-crash"]))?,
        cooldown: milliseconds("cooldown-ms")?,
        timeout: milliseconds("timeout-ms")?,
    };
    Ok(Arena { name: text("arena")?.to_owned(), dimension, area, settings })
}

fn word<T: PartialEq>(words: &[(T, &str)], value: &T) -> String {
    words.iter().find(|(of, _)| of == value).map_or_else(String::new, |(_, word)| (*word).to_owned())
}

fn of_word<T: Copy>(words: &[(T, &str)], word: &str) -> Option<T> {
    words.iter().find(|(_, of)| *of == word).map(|(value, _)| *value)
}

fn nearest(text: &str) -> Option<RestoreSequence> {
    let (x, z) = text.strip_prefix("nearest ")?.split_once(' ')?;
    Some(RestoreSequence::Nearest(ColumnPos::new(x.parse().ok()?, z.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::BlockPos;

    /// Promise, snapshot files: The index of a stored snapshot keeps its owner's data in `owner` lines, with escapes.
    #[test]
    fn settings_survive_storing_and_unreadable_ones_are_reported() {
        let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(9, 9, 9));
        let sequences = SEQUENCES.map(|(sequence, _)| sequence).into_iter();
        let sequences = sequences.chain([Some(RestoreSequence::Nearest(ColumnPos::new(i64::MIN, 7)))]);
        for (number, sequence) in sequences.enumerate() {
            let settings = ArenaSettings {
                sequence,
                entities: ENTITIES[number % 3].0,
                after_crash: AFTER_CRASH[(number + 1) % 3].0,
                cooldown: Duration::from_millis(number as u64),
                timeout: Duration::from_secs(1 << number),
            };
            let arena = Arena { settings, ..Arena::new("Spleef", DimensionId(3), area) };
            let data = write(&arena);
            assert_eq!(read(&data, arena.dimension, area), Ok(arena));
            for name in data.keys() {
                let mut damaged = data.clone();
                damaged.remove(name);
                assert!(read(&damaged, DimensionId(3), area).unwrap_err().to_string().contains(&name[..]), "{name}");
                damaged.insert(name.clone(), "nearest 1 x".into());
                let read = read(&damaged, DimensionId(3), area);
                assert!(name == "arena" || read.unwrap_err().to_string().contains("nearest 1 x"), "{name}");
            }
        }
    }
}
