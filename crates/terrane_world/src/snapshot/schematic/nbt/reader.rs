//! Reading NBT as a stream.

use super::{Budget, Compound, DEEPEST, FILE, Nbt, NbtKind, on_heap, text};
use crate::snapshot::schematic::error::{REST, push_shortened, shortened};
use crate::snapshot::schematic::{ReadOptions, SchematicError};
use std::fmt::Write;
use std::io::{self, Read};

/// The number of bytes that are read at once.
const BUFFER: usize = 1 << 16;
/// Compounds with at least this many entries are not copied to get an exact size.
const MANY: usize = 1 << 14;
/// The maximum number of items of a list or an array.
const MOST_ITEMS: u64 = 1 << 24;
/// The path is not extended beyond this many bytes.
const LONGEST_PATH: usize = 512;
/// The approximate number of bytes of each name in a path.
const LONGEST_NAME: usize = 128;

type Result<T> = std::result::Result<T, SchematicError>;

/// Reads values one after the other through a buffer of fixed size. Allocates memory for data that was read, never for
/// a declared length.
pub(in crate::snapshot::schematic) struct Reader<'a, R> {
    source: R,
    buffer: Box<[u8]>,
    /// The unread part of the buffer.
    start: usize,
    end: usize,
    /// The number of bytes that were read from the source.
    read: u64,
    /// The maximum number of bytes to read.
    limit: u64,
    budget: &'a Budget,
    /// The names and indices that lead to the current value; after an error, to the value that failed. Short enough
    /// for a message.
    path: String,
    /// The values of all compounds that are being read, the innermost last. A compound's length is known only at its
    /// end, and it should not take more memory than it needs.
    entries: Vec<(String, Nbt)>,
}

impl<'a, R: Read> Reader<'a, R> {
    pub fn new(source: R, options: &ReadOptions, budget: &'a Budget) -> Self {
        Self::resumed(source, options, budget, 0, String::new())
    }

    /// Reads cells that were set aside, with their offset and path in the file.
    pub fn resumed(source: R, options: &ReadOptions, budget: &'a Budget, offset: u64, path: String) -> Self {
        let (buffer, limit) = (vec![0; BUFFER].into(), options.inflated_bytes);
        Self { source, buffer, start: 0, end: 0, read: offset, limit, budget, path, entries: Vec::new() }
    }

    /// The offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.read - (self.end - self.start) as u64
    }

    /// The path to the current value.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The place of the next byte.
    pub fn place(&self) -> String {
        self.place_of(self.offset())
    }

    /// The place of a byte of the current value.
    pub fn place_of(&self, offset: u64) -> String {
        let path = if self.path.is_empty() { FILE } else { &self.path };
        format!("byte {offset}: {path}")
    }

    pub fn into_source(self) -> R {
        self.source
    }

    /// Counts memory.
    pub fn take(&self, bytes: usize) -> Result<()> {
        self.budget.take(bytes).map_err(|error| error.within(&self.place()))
    }

    /// Reserves room for more items in a vector that will have at most `most`, and counts the memory.
    pub fn make_room<T>(&self, items: &mut Vec<T>, more: usize, most: u64) -> Result<()> {
        self.budget.make_room(items, more, most).map_err(|error| error.within(&self.place()))
    }

    pub fn too_large(&self, what: &'static str, limit: u64, found: u64) -> SchematicError {
        SchematicError::too_large(self.place(), what, limit, found)
    }

    pub fn malformed(&self, what: impl Into<String>) -> SchematicError {
        SchematicError::malformed(self.place(), what)
    }

    pub fn wrong_type(&self, expected: &str, found: NbtKind) -> SchematicError {
        self.malformed(format!("expected {expected}, found {found}"))
    }

    /// Checks the kind of a value.
    pub fn expect(&self, expected: NbtKind, found: NbtKind) -> Result<()> {
        if expected == found { Ok(()) } else { Err(self.wrong_type(expected.name(), found)) }
    }

    /// Returns `true` if there are no more bytes.
    pub fn is_at_end(&mut self) -> Result<bool> {
        if self.start < self.end {
            return Ok(false);
        }
        self.fill()
    }

    /// Fills the empty buffer. Returns `true` at the end of the source.
    fn fill(&mut self) -> Result<bool> {
        (self.start, self.end) = (0, 0);
        let count = loop {
            match self.source.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other.map_err(|error| self.failed(error))?,
            }
        };
        self.end = count;
        self.read += count as u64;
        if self.read > self.limit {
            return Err(self.too_large("uncompressed bytes", self.limit, self.read));
        }
        Ok(count == 0)
    }

    fn failed(&self, error: io::Error) -> SchematicError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.truncated(),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                self.malformed(format!("the compressed data is damaged: {}", shortened(&error.to_string())))
            }
            _ => SchematicError::io(self.place(), &error),
        }
    }

    fn truncated(&self) -> SchematicError {
        SchematicError::Truncated { at: self.place() }
    }

    /// Returns at least one byte, and at most `most`.
    pub fn part(&mut self, most: u64) -> Result<&[u8]> {
        if self.is_at_end()? {
            return Err(self.truncated());
        }
        let length = (self.end - self.start).min(usize::try_from(most).unwrap_or(usize::MAX));
        let start = self.start;
        self.start += length;
        Ok(&self.buffer[start..start + length])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        if let Some(bytes) = self.buffer[self.start..self.end].first_chunk() {
            self.start += N;
            return Ok(*bytes);
        }
        let mut bytes = [0; N];
        let mut filled = 0;
        while filled < N {
            let part = self.part((N - filled) as u64)?;
            bytes[filled..filled + part.len()].copy_from_slice(part);
            filled += part.len();
        }
        Ok(bytes)
    }

    pub fn byte(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    pub fn int(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub fn tag(&mut self) -> Result<NbtKind> {
        let at = self.offset();
        let found = self.byte()?;
        let wrong = || format!("expected a tag of 12 or less, found {found}");
        NbtKind::from_tag(found).ok_or_else(|| SchematicError::malformed(self.place_of(at), wrong()))
    }

    pub fn text(&mut self) -> Result<String> {
        let at = self.offset();
        let length = u16::from_be_bytes(self.array()?);
        let bytes = self.bytes(length.into())?;
        let wrong = || SchematicError::malformed(self.place_of(at), "expected text in modified UTF-8");
        text::decode(&bytes).ok_or_else(wrong)
    }

    /// Reads a count, which must not be negative.
    pub fn length(&mut self) -> Result<u64> {
        let at = self.offset();
        let found = self.int()?;
        u64::try_from(found).map_err(|_| self.impossible_length(at, found.into()))
    }

    pub fn impossible_length(&self, offset: u64, found: i64) -> SchematicError {
        SchematicError::malformed(self.place_of(offset), format!("{found} is not a valid length"))
    }

    fn list_length(&mut self) -> Result<u64> {
        let length = self.length()?;
        if length <= MOST_ITEMS { Ok(length) } else { Err(self.too_large("items", MOST_ITEMS, length)) }
    }

    fn bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < length {
            let part = self.part(length - bytes.len() as u64)?;
            bytes.extend_from_slice(part);
        }
        Ok(bytes)
    }

    /// Reads an array of numbers of `N` bytes.
    fn numbers<T, const N: usize>(&mut self, number: impl Fn([u8; N]) -> T) -> Result<Vec<T>> {
        let length = self.list_length()?;
        let mut numbers = Vec::new();
        for _ in 0..length {
            self.make_room(&mut numbers, 1, length)?;
            numbers.push(number(self.array()?));
        }
        Ok(numbers)
    }

    /// Calls a closure with the kind and the name of each value of a compound. The closure must read the value.
    /// `depth` is the depth of the values.
    pub fn entries(
        &mut self,
        depth: usize,
        mut entry: impl FnMut(&mut Self, NbtKind, &str) -> Result<()>,
    ) -> Result<()> {
        self.check_depth(depth)?;
        while let Some((kind, name, path)) = self.open_entry()? {
            entry(self, kind, &name)?;
            self.path.truncate(path);
        }
        Ok(())
    }

    /// Calls `item` for each item of a list of compounds, with the number of items left; `item` must read it. An empty
    /// list may be of any kind, and some programs write an empty compound instead.
    pub fn compounds(&mut self, kind: NbtKind, mut item: impl FnMut(&mut Self, u64) -> Result<()>) -> Result<()> {
        let error = self.wrong_type("a list", kind);
        if kind == NbtKind::Compound && self.tag()? == NbtKind::End {
            return Ok(());
        }
        if kind != NbtKind::List {
            return Err(error);
        }
        let kind = self.tag()?;
        let length = self.list_length()?;
        if length > 0 && kind != NbtKind::Compound {
            return Err(self.wrong_type("a list of compounds", kind));
        }
        for index in 0..length {
            let path = self.open_item(kind, index);
            item(self, length - index)?;
            self.path.truncate(path);
        }
        Ok(())
    }

    fn check_depth(&self, depth: usize) -> Result<()> {
        if depth <= DEEPEST { Ok(()) } else { Err(self.too_large("levels", DEEPEST as u64, depth as u64)) }
    }

    /// Reads a value of this kind. `depth` counts the enclosing compounds and lists.
    ///
    /// A deep file only recurses through this method and [`list`](Self::list) or [`compound`](Self::compound), whose
    /// frames are small even without optimisation.
    pub fn value(&mut self, kind: NbtKind, depth: usize) -> Result<Nbt> {
        match kind {
            NbtKind::List => self.list(depth),
            NbtKind::Compound => self.compound(depth).map(Nbt::Compound),
            _ => self.leaf(kind),
        }
    }

    /// Reads a value without nested values.
    fn leaf(&mut self, kind: NbtKind) -> Result<Nbt> {
        Ok(match kind {
            NbtKind::Byte => Nbt::Byte(self.array().map(i8::from_be_bytes)?),
            NbtKind::Short => Nbt::Short(self.array().map(i16::from_be_bytes)?),
            NbtKind::Int => Nbt::Int(self.int()?),
            NbtKind::Long => Nbt::Long(self.array().map(i64::from_be_bytes)?),
            NbtKind::Float => Nbt::Float(self.array().map(f32::from_be_bytes)?),
            NbtKind::Double => Nbt::Double(self.array().map(f64::from_be_bytes)?),
            NbtKind::ByteArray => Nbt::ByteArray(self.byte_array()?),
            NbtKind::String => {
                let text = self.text()?;
                self.take(on_heap(text.len()))?;
                Nbt::String(text)
            }
            NbtKind::IntArray => Nbt::IntArray(self.numbers(i32::from_be_bytes)?),
            NbtKind::LongArray => Nbt::LongArray(self.numbers(i64::from_be_bytes)?),
            NbtKind::End | NbtKind::List | NbtKind::Compound => return Err(self.wrong_type("a value", kind)),
        })
    }

    fn byte_array(&mut self) -> Result<Vec<u8>> {
        let length = self.length()?;
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < length {
            let left = length - bytes.len() as u64;
            if self.is_at_end()? {
                return Err(self.truncated());
            }
            let more = usize::try_from(left).unwrap_or(usize::MAX).min(self.end - self.start);
            self.make_room(&mut bytes, more, length)?;
            bytes.extend_from_slice(self.part(left)?);
        }
        Ok(bytes)
    }

    fn list(&mut self, depth: usize) -> Result<Nbt> {
        let (kind, length) = self.list_head(depth)?;
        let mut items = Vec::new();
        for index in 0..length {
            self.make_room(&mut items, 1, length)?;
            let path = self.open_item(kind, index);
            items.push(self.value(kind, depth + 1)?);
            self.path.truncate(path);
        }
        Ok(Nbt::List(kind, items))
    }

    /// Reads the item kind and the length of a list.
    fn list_head(&mut self, depth: usize) -> Result<(NbtKind, u64)> {
        self.check_depth(depth + 1)?;
        let kind = self.tag()?;
        let at = self.offset();
        match self.list_length()? {
            length @ 1.. if kind == NbtKind::End => Err(self.impossible_length(at, length as i64)),
            length => Ok((kind, length)),
        }
    }

    /// Appends a name to the path. Like all methods that append to it, returns the previous length of the path.
    fn open_name(&mut self, name: &str) -> usize {
        self.open(|path| {
            if !path.is_empty() {
                path.push('.');
            }
            push_shortened(path, name, LONGEST_NAME);
        })
    }

    /// Appends the index of an item to the path, if items of this kind have a path of their own.
    fn open_item(&mut self, kind: NbtKind, index: u64) -> usize {
        match kind {
            NbtKind::List | NbtKind::Compound => self.open(|path| _ = write!(path, "[{index}]")),
            _ => self.path.len(),
        }
    }

    fn open(&mut self, add: impl FnOnce(&mut String)) -> usize {
        let length = self.path.len();
        if length <= LONGEST_PATH {
            add(&mut self.path);
            if self.path.len() > LONGEST_PATH {
                self.path.push_str(REST);
            }
        }
        length
    }

    /// Reads a value and drops it.
    pub fn skip(&mut self, kind: NbtKind, depth: usize) -> Result<()> {
        self.budget.give_back(self.value(kind, depth)?.heap_bytes());
        Ok(())
    }

    /// Reads the values of a compound.
    pub fn compound(&mut self, depth: usize) -> Result<Compound> {
        self.check_depth(depth + 1)?;
        let first = self.entries.len();
        while let Some((kind, name, path)) = self.open_entry()? {
            self.take(on_heap(name.len()))?;
            let value = self.value(kind, depth + 1)?;
            self.add_entry(name, value)?;
            self.path.truncate(path);
        }
        self.close_entries(first)
    }

    fn add_entry(&mut self, name: String, value: Nbt) -> Result<()> {
        let room = self.budget.make_room(&mut self.entries, 1, u64::MAX);
        room.map_err(|error| error.within(&self.place()))?;
        self.entries.push((name, value));
        Ok(())
    }

    /// Builds a compound of the values from `first` on.
    fn close_entries(&mut self, first: usize) -> Result<Compound> {
        let count = self.entries.len() - first;
        if first == 0 && count >= MANY {
            let mut entries = std::mem::take(&mut self.entries);
            self.budget.shrink(&mut entries);
            return Ok(Compound(entries));
        }
        self.take(on_heap(count * size_of::<(String, Nbt)>()))?;
        Ok(Compound(self.entries.drain(first..).collect()))
    }

    /// Reads the kind and the name of the next value of a compound, and appends the name to the path. Also returns the
    /// previous length of the path; `None` at the end.
    fn open_entry(&mut self) -> Result<Option<(NbtKind, String, usize)>> {
        let kind = self.tag()?;
        if kind == NbtKind::End {
            return Ok(None);
        }
        let name = self.text()?;
        let path = self.open_name(&name);
        Ok(Some((kind, name, path)))
    }
}

impl Compound {
    /// Reads the bytes of [`to_bytes`](Self::to_bytes), within the [default limits](ReadOptions).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let options = ReadOptions::default();
        let budget = Budget::new(options.memory);
        let mut reader = Reader::new(bytes, &options, &budget);
        let kind = reader.tag()?;
        reader.expect(NbtKind::Compound, kind)?;
        reader.text()?;
        let compound = reader.compound(1)?;
        match reader.is_at_end()? {
            true => Ok(compound),
            false => Err(reader.malformed("expected the end")),
        }
    }
}
