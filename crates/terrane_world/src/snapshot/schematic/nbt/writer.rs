//! Writing NBT as a stream.

use super::{Compound, DEEPEST, Nbt, NbtKind, text};
use crate::snapshot::schematic::SchematicError;
use crate::snapshot::schematic::error::shortened;
use rustc_hash::FxHashSet;
use std::io::Write;

/// The number of bytes that are collected before they are passed on.
const BUFFER: usize = 1 << 16;

type Result<T> = std::result::Result<T, SchematicError>;

pub(in crate::snapshot::schematic) struct Writer<W> {
    sink: W,
    buffer: Vec<u8>,
}

impl<W: Write> Writer<W> {
    pub fn new(sink: W) -> Self {
        Self { sink, buffer: Vec::with_capacity(BUFFER + 64) }
    }

    /// Flushes the buffer and returns the sink.
    pub fn finish(mut self) -> Result<W> {
        self.sink.write_all(&self.buffer)?;
        Ok(self.sink)
    }

    /// Writes bytes unchanged.
    pub fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() >= BUFFER {
            self.sink.write_all(&self.buffer)?;
            self.buffer.clear();
            return Ok(self.sink.write_all(bytes)?);
        }
        self.buffer.extend_from_slice(bytes);
        self.pass_on()
    }

    fn pass_on(&mut self) -> Result<()> {
        if self.buffer.len() >= BUFFER {
            self.sink.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    pub fn end(&mut self) -> Result<()> {
        self.raw(&[NbtKind::End.tag()])
    }

    fn text(&mut self, value: &str) -> Result<()> {
        let at = self.buffer.len();
        self.buffer.extend([0; 2]);
        text::encode(value, &mut self.buffer);
        let found = self.buffer.len() - at - 2;
        let Ok(length) = u16::try_from(found) else {
            self.buffer.truncate(at);
            return Err(too_large(value, "bytes of text", u16::MAX.into(), found));
        };
        self.buffer[at..at + 2].copy_from_slice(&length.to_be_bytes());
        self.pass_on()
    }

    /// Writes the start of a named value.
    pub fn name(&mut self, kind: NbtKind, name: &str) -> Result<()> {
        self.raw(&[kind.tag()])?;
        self.text(name)
    }

    /// Writes the number of items at the start of an array or a list.
    pub fn length(&mut self, name: &str, what: &'static str, length: usize) -> Result<()> {
        let limit = i32::MAX;
        let number = i32::try_from(length).map_err(|_| too_large(name, what, limit as u64, length))?;
        self.raw(&number.to_be_bytes())
    }

    /// Writes the start of a list of compounds. Their payloads must follow.
    pub fn compounds(&mut self, name: &str, length: usize) -> Result<()> {
        self.name(NbtKind::List, name)?;
        self.raw(&[NbtKind::Compound.tag()])?;
        self.length(name, "items", length)
    }

    /// Writes a named value.
    pub fn named(&mut self, name: &str, value: &Nbt) -> Result<()> {
        self.name(value.kind(), name)?;
        self.payload(name, value, 1)
    }

    /// Writes a named string.
    pub fn text_entry(&mut self, name: &str, text: &str) -> Result<()> {
        self.name(NbtKind::String, name)?;
        self.text(text)
    }

    /// Writes all values of a compound, without its end.
    pub fn entries(&mut self, compound: &Compound) -> Result<()> {
        self.entries_beside(&[], compound)
    }

    /// Like [`entries`](Self::entries), into a compound that already has values of these names, which are skipped.
    /// Repeated names are skipped too: a name must not occur twice in a compound.
    pub fn entries_beside(&mut self, names: &[&str], compound: &Compound) -> Result<()> {
        self.distinct_entries(names, compound, 1)
    }

    fn distinct_entries(&mut self, names: &[&str], compound: &Compound, depth: usize) -> Result<()> {
        let mut written: FxHashSet<&str> = names.iter().copied().collect();
        for (name, value) in &compound.0 {
            if written.insert(name) {
                self.name(value.kind(), name)?;
                self.payload(name, value, depth)?;
            }
        }
        Ok(())
    }

    fn payload(&mut self, name: &str, value: &Nbt, depth: usize) -> Result<()> {
        if depth > DEEPEST - 8 {
            return Err(too_large(name, "levels", DEEPEST as u64 - 8, depth));
        }
        match value {
            Nbt::Byte(number) => self.raw(&number.to_be_bytes()),
            Nbt::Short(number) => self.raw(&number.to_be_bytes()),
            Nbt::Int(number) => self.raw(&number.to_be_bytes()),
            Nbt::Long(number) => self.raw(&number.to_be_bytes()),
            Nbt::Float(number) => self.raw(&number.to_be_bytes()),
            Nbt::Double(number) => self.raw(&number.to_be_bytes()),
            Nbt::String(text) => self.text(text),
            Nbt::ByteArray(bytes) => {
                self.length(name, "bytes", bytes.len())?;
                self.raw(bytes)
            }
            Nbt::IntArray(numbers) => {
                self.length(name, "numbers", numbers.len())?;
                numbers.iter().try_for_each(|number| self.raw(&number.to_be_bytes()))
            }
            Nbt::LongArray(numbers) => {
                self.length(name, "numbers", numbers.len())?;
                numbers.iter().try_for_each(|number| self.raw(&number.to_be_bytes()))
            }
            Nbt::List(kind, items) => self.list(name, *kind, items, depth),
            Nbt::Compound(compound) => {
                self.distinct_entries(&[], compound, depth + 1)?;
                self.end()
            }
        }
    }

    fn list(&mut self, name: &str, kind: NbtKind, items: &[Nbt], depth: usize) -> Result<()> {
        self.raw(&[kind.tag()])?;
        self.length(name, "items", items.len())?;
        for item in items {
            if item.kind() != kind {
                let what = format!("a list of {kind} holds {}", item.kind());
                return Err(SchematicError::malformed(shortened(name), what));
            }
            self.payload(name, item, depth + 1)?;
        }
        Ok(())
    }
}

fn too_large(field: &str, what: &'static str, limit: u64, found: usize) -> SchematicError {
    SchematicError::too_large(shortened(field), what, limit, found as u64)
}

impl Compound {
    /// The bytes of the unnamed, uncompressed compound.
    ///
    /// # Errors
    /// If the format cannot represent a value, such as text of more than 65,535 bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new(Vec::new());
        writer.name(NbtKind::Compound, "")?;
        writer.entries(self)?;
        writer.end()?;
        writer.finish()
    }
}
