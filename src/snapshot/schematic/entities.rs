//! Block entities and entities of a schematic.

use super::nbt::{Compound, Nbt, NbtKind, Writer};
use super::{SchematicError, SchematicWriteError};

/// What a block holds for programs that keep it beside the blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockEntity {
    /// The block, from the minimum corner. Some programs keep those of blocks outside of the box.
    pub position: [i32; 3],
    /// What it is: `minecraft:chest`.
    pub id: String,
    /// What it holds, without position and id.
    pub data: Compound,
}

/// Something that is no block.
#[derive(Clone, Debug, PartialEq)]
pub struct SchematicEntity {
    /// Where it is, in blocks from the minimum corner.
    pub position: [f64; 3],
    /// What it is: `minecraft:armor_stand`.
    pub id: String,
    /// What it is like, without position and id.
    pub data: Compound,
}

impl BlockEntity {
    /// Id and data as a value of the block component [`BLOCK_ENTITY`](crate::block::BLOCK_ENTITY): a compound without a name,
    /// of `Id` and `Data`.
    ///
    /// # Errors
    /// If the data has what the format has no room for, such as text of more than 65,535 bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, SchematicWriteError> {
        let mut writer = Writer::new(Vec::new());
        writer.name(NbtKind::Compound, "")?;
        writer.text_entry("Id", &self.id)?;
        writer.name(NbtKind::Compound, "Data")?;
        writer.entries(&self.data)?;
        writer.end()?;
        writer.end()?;
        writer.finish()
    }

    /// What [`to_bytes`](Self::to_bytes) gave, at a position.
    pub fn from_bytes(position: [i32; 3], bytes: &[u8]) -> Result<Self, SchematicError> {
        let mut compound = Compound::from_bytes(bytes)?;
        let id = id(&mut compound).ok_or(SchematicError::Missing { field: "Id of a block entity" })?;
        Ok(Self { position, id, data: data(compound) })
    }
}

/// Takes a block entity apart: position, id, data. Version 3 has the data in a compound of its own.
pub(super) fn block_entity(mut compound: Compound, is_nested: bool) -> Result<BlockEntity, SchematicError> {
    let position = compound.take("Pos").and_then(|pos| pos.as_position());
    let position = position.ok_or(SchematicError::Missing { field: "Pos of a block entity" })?;
    let id = id(&mut compound).ok_or(SchematicError::Missing { field: "Id of a block entity" })?;
    Ok(BlockEntity { position, id, data: if is_nested { data(compound) } else { compound } })
}

/// Takes an entity apart: position as in the file, id, data.
pub(super) fn entity(mut compound: Compound, is_nested: bool) -> Result<SchematicEntity, SchematicError> {
    let position = compound.take("Pos").and_then(|pos| pos.as_numbers());
    let position = position.ok_or(SchematicError::Missing { field: "Pos of an entity" })?;
    let id = id(&mut compound).ok_or(SchematicError::Missing { field: "Id of an entity" })?;
    Ok(SchematicEntity { position, id, data: if is_nested { data(compound) } else { compound } })
}

fn id(compound: &mut Compound) -> Option<String> {
    let name = if compound.get("Id").is_some() { "Id" } else { "id" };
    match compound.take(name)? {
        Nbt::String(id) => Some(id),
        _ => None,
    }
}

/// The data of version 3, and whatever is beside it.
fn data(mut compound: Compound) -> Compound {
    match compound.take("Data") {
        Some(Nbt::Compound(mut data)) => {
            data.0.append(&mut compound.0);
            data
        }
        _ => compound,
    }
}
