//! The index as text: one line per entry, with words separated by spaces, and a checksum of the whole text at the end.

use super::{INDEX, Result, StoredSnapshot, StoredSnapshotError, damaged, wrong_checksum};
use crate::snapshot::SnapshotParts;
use crate::snapshot::schematic::shortened;
use crate::space::{BlockBox, BlockPos, CHUNK_SIZE, ColumnPos, DimensionId, HeightSet};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::str::FromStr;
use uuid::Uuid;

const SIGNATURE: &str = "bevy_terrane snapshot ";
const VERSION: u64 = 1;
const CHECKSUM: &str = "checksum ";

/// The entry of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct IndexedColumn {
    pub tick: u64,
    /// The captured chunk heights; `None` for all.
    pub heights: Option<HeightSet>,
    /// In ascending order. More than one if the column is too high for one file.
    pub files: Vec<IndexedFile>,
}

/// The entry of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexedFile {
    /// The chunk height of its lowest chunk.
    pub base: i64,
    /// The number of chunk heights.
    pub chunks: u32,
    pub bytes: u64,
    /// CRC-32 of the compressed file.
    pub checksum: u32,
}

/// The maximum number of chunk heights in a file, given by the format.
pub(super) const MAX_CHUNKS: u32 = u16::MAX as u32 / CHUNK_SIZE as u32;

impl IndexedFile {
    pub fn name(&self, column: ColumnPos) -> String {
        format!("{}_{}_{}.schem", column.x, column.z, i128::from(self.base) * CHUNK_SIZE as i128)
    }
}

impl StoredSnapshot {
    pub(super) fn to_text(&self) -> String {
        let BlockBox { min, max } = self.area;
        let mut text = format!("{SIGNATURE}{VERSION}\ndimension {}\n", self.dimension.0);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "box {} {} {} {} {} {}", min.x, min.y, min.z, max.x, max.y, max.z);
        if self.parts != SnapshotParts::ALL {
            let _ = writeln!(text, "parts {}", parts_text(self.parts));
        }
        if let Some(concerned) = &self.concerned {
            let _ = writeln!(text, "about {}", about_text(concerned));
        }
        for (key, value) in &self.owner_data {
            let _ = writeln!(text, "owner {} {}", escaped(key), escaped(value));
        }
        let _ = writeln!(text, "columns {}", self.columns.len());
        for (pos, column) in &self.columns {
            let heights = column.heights.as_ref().map_or("all".to_owned(), heights_text);
            let _ = writeln!(text, "column {} {} {} {heights}", pos.x, pos.z, column.tick);
            for IndexedFile { base, chunks, bytes, checksum } in &column.files {
                let _ = writeln!(text, "file {base} {chunks} {bytes} {checksum:08x}");
            }
        }
        let _ = writeln!(text, "{CHECKSUM}{:08x}", crc32fast::hash(text.as_bytes()));
        text
    }

    /// Parses the index of a folder. Memory is allocated for its lines, never for a declared number.
    pub(super) fn parse(bytes: &[u8], folder: &Path) -> Result<Self> {
        let path = &folder.join(INDEX);
        let wrong = |line: usize, expected: &str| damaged(path, format!("line {line}: expected {expected}"));
        let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let version = str::from_utf8(first).ok().and_then(|line| line.strip_prefix(SIGNATURE)?.parse().ok());
        match version {
            Some(VERSION) => {}
            Some(found) => return Err(StoredSnapshotError::Version { path: path.clone(), found }),
            None => return Err(wrong(1, "`bevy_terrane snapshot` and a version")),
        }
        let text = str::from_utf8(bytes).map_err(|_| wrong(1, "text in UTF-8"))?;
        let last = text.trim_end_matches('\n').rfind('\n').map_or(0, |end| end + 1);
        let (content, end) = text.split_at(last);
        let stored = end.strip_suffix('\n').and_then(|line| checksum(line.strip_prefix(CHECKSUM)?));
        let stored = stored.ok_or_else(|| wrong(text.lines().count(), "`checksum` and eight hexadecimal digits"))?;
        let found = crc32fast::hash(content.as_bytes());
        if stored != found {
            return Err(damaged(path, wrong_checksum(stored, found)));
        }
        let mut lines = Lines { lines: content.split_terminator('\n').collect(), next: 1, at: 1 };
        let index = Self::read_lines(folder, &mut lines).map_err(|expected| wrong(lines.at + 1, expected))?;
        // Each index has exactly one valid text.
        let again = index.to_text();
        match (1..).zip(again.split('\n').zip(text.split('\n'))).find(|(_, (expected, found))| expected != found) {
            Some((line, (expected, _))) => Err(wrong(line, &format!("`{}`", shortened(expected)))),
            None => Ok(index),
        }
    }

    /// Reads all entries. An error is the expected content of the next line.
    fn read_lines(folder: &Path, lines: &mut Lines<'_>) -> std::result::Result<Self, &'static str> {
        let [dimension] = lines.take("dimension").and_then(numbers).ok_or("`dimension` and its number")?;
        let area = lines.take("box").and_then(numbers).ok_or("`box` and its lowest and highest block")?;
        let [x, y, z, to_x, to_y, to_z]: [i64; 6] = area;
        let area = BlockBox { min: BlockPos::new(x, y, z), max: BlockPos::new(to_x, to_y, to_z) };
        let parts = lines.take("parts").map_or(SnapshotParts::ALL, as_parts);
        let concerned = lines.take("about").map(|words| as_about(words).ok_or("`about` and UUIDs, or `none`"));
        let concerned = concerned.transpose()?;
        let mut owner_data = BTreeMap::new();
        while let Some(words) = lines.take("owner") {
            let entry = words.split_once(' ').and_then(|(key, value)| Some((unescaped(key)?, unescaped(value)?)));
            let (key, value) = entry.ok_or("`owner`, a key and a value")?;
            owner_data.insert(key, value);
        }
        lines.take("columns").ok_or("`owner` and data, or `columns` and their number")?;
        let mut columns = BTreeMap::new();
        while let Some(words) = lines.take("column") {
            let (pos, column) = column(words, lines, &area)?;
            columns.insert(pos, column);
        }
        if lines.next < lines.lines.len() {
            return Err("`column`, its place, tick and heights");
        }
        let (folder, dimension) = (folder.to_path_buf(), DimensionId(dimension));
        Ok(Self { folder, dimension, area, parts, concerned, owner_data, columns })
    }
}

/// Reads the rest of a column's line, and the lines of its files.
fn column(
    words: &str,
    lines: &mut Lines<'_>,
    area: &BlockBox,
) -> std::result::Result<(ColumnPos, IndexedColumn), &'static str> {
    let parts: Vec<&str> = words.split(' ').collect();
    let parsed = || {
        let [x, z, tick, heights] = parts.as_slice().try_into().ok()?;
        Some((ColumnPos::new(x.parse().ok()?, z.parse().ok()?), tick.parse().ok()?, as_heights(heights)?))
    };
    let Some((pos, tick, heights)) = parsed().filter(|(pos, ..)| area.reaches(*pos)) else {
        return Err("the place of a column that the box reaches, a tick, and heights");
    };
    let holds = |y: i64| area.chunk_heights().is_some_and(|all| all.contains(&y));
    let mut files: Vec<IndexedFile> = Vec::new();
    while let Some(words) = lines.take("file") {
        let parts: Vec<&str> = words.split(' ').collect();
        let parsed = || {
            let [base, chunks, bytes, sum] = parts.as_slice().try_into().ok()?;
            let (base, chunks): (i64, u32) = (base.parse().ok()?, chunks.parse().ok()?);
            let file = IndexedFile { base, chunks, bytes: bytes.parse().ok()?, checksum: checksum(sum)? };
            let is_inside = holds(base) && base.checked_add(i64::from(chunks) - 1).is_some_and(holds);
            let is_above = files.last().is_none_or(|below| below.base.saturating_add(below.chunks.into()) <= base);
            (is_inside && is_above && (1..=MAX_CHUNKS).contains(&chunks)).then_some(file)
        };
        let Some(file) = parsed() else {
            return Err("a file above the one before, within the box: height, chunks, bytes and checksum");
        };
        files.push(file);
    }
    Ok((pos, IndexedColumn { tick, heights, files }))
}

/// The remaining lines.
struct Lines<'a> {
    lines: Vec<&'a str>,
    next: usize,
    /// The number of the current line.
    at: usize,
}

impl<'a> Lines<'a> {
    /// Takes the next line if it begins with `word`, and returns the rest of the line.
    fn take(&mut self, word: &str) -> Option<&'a str> {
        self.at = self.next;
        let rest = self.lines.get(self.next)?.strip_prefix(word)?.strip_prefix(' ')?;
        self.next += 1;
        Some(rest)
    }
}

fn numbers<N: FromStr, const COUNT: usize>(words: &str) -> Option<[N; COUNT]> {
    words.split(' ').map(|word| word.parse().ok()).collect::<Option<Vec<N>>>()?.try_into().ok()
}

fn checksum(word: &str) -> Option<u32> {
    u32::from_str_radix(word, 16).ok()
}

fn heights_text(heights: &HeightSet) -> String {
    let ranges: Vec<String> = heights.ranges().map(|range| format!("{}..{}", range.start, range.end)).collect();
    if ranges.is_empty() { "none".to_owned() } else { ranges.join(",") }
}

fn as_heights(word: &str) -> Option<Option<HeightSet>> {
    match word {
        "all" => Some(None),
        "none" => Some(Some(HeightSet::new())),
        _ => {
            let mut heights = HeightSet::new();
            for range in word.split(',') {
                let (start, end) = range.split_once("..")?;
                let (start, end): (i64, i64) = (start.parse().ok()?, end.parse().ok()?);
                // Ascending and with gaps, so each insertion takes constant time.
                let is_above = heights.ranges().next_back().is_none_or(|below| below.end < start);
                (start < end && is_above).then(|| heights.insert(start..end))?;
            }
            Some(Some(heights))
        }
    }
}

fn parts_text(parts: SnapshotParts) -> String {
    let SnapshotParts { blocks, layers, components, entities } = parts;
    let words = [(blocks, "blocks"), (layers, "layers"), (components, "components"), (entities, "entities")];
    let held: Vec<&str> = words.into_iter().filter(|(is_held, _)| *is_held).map(|(_, word)| word).collect();
    if held.is_empty() { "none".to_owned() } else { held.join(" ") }
}

fn as_parts(words: &str) -> SnapshotParts {
    let has = |part: &str| words.split(' ').any(|word| word == part);
    SnapshotParts {
        blocks: has("blocks"),
        layers: has("layers"),
        components: has("components"),
        entities: has("entities"),
    }
}

fn about_text(concerned: &BTreeSet<Uuid>) -> String {
    let ids: Vec<String> = concerned.iter().map(Uuid::to_string).collect();
    if ids.is_empty() { "none".to_owned() } else { ids.join(" ") }
}

fn as_about(words: &str) -> Option<BTreeSet<Uuid>> {
    words.split(' ').filter(|_| words != "none").map(|word| word.parse().ok()).collect()
}

/// The text with spaces and line breaks escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace(' ', "\\s").replace('\n', "\\n")
}

fn unescaped(word: &str) -> Option<String> {
    let mut text = String::with_capacity(word.len());
    let mut characters = word.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next()? {
                '\\' => '\\',
                's' => ' ',
                'n' => '\n',
                _ => return None,
            },
            ' ' => return None,
            _ => character,
        });
    }
    Some(text)
}
