//! A compound by itself as bytes, and back.

use super::{Budget, Compound, NbtKind, Reader, Writer};
use crate::snapshot::schematic::{SchematicError, SchematicLimits, SchematicWriteError};

impl Compound {
    /// The compound by itself: without a name, uncompressed.
    ///
    /// # Errors
    /// If it has what the format has no room for, such as text of more than 65,535 bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, SchematicWriteError> {
        let mut writer = Writer::new(Vec::new());
        writer.name(NbtKind::Compound, "")?;
        writer.entries(self)?;
        writer.end()?;
        writer.finish()
    }

    /// What [`to_bytes`](Self::to_bytes) gave, within the [default limits](SchematicLimits).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SchematicError> {
        let limits = SchematicLimits::default();
        let budget = Budget::new(limits.memory);
        let mut reader = Reader::new(bytes, &limits, &budget);
        let kind = reader.tag()?;
        reader.expect(NbtKind::Compound, kind)?;
        reader.text()?;
        let compound = reader.compound(1)?;
        match reader.is_at_end()? {
            true => Ok(compound),
            false => Err(SchematicError::Length {
                offset: reader.offset(),
                field: reader.field(),
                found: bytes.len() as i64,
            }),
        }
    }
}
