use super::SchematicError;
use super::nbt::{Compound, Nbt};

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

/// Takes a block entity apart: position, id, data. Version 3 has the data in a compound of its own.
pub(super) fn block_entity(mut compound: Compound, is_nested: bool) -> Result<BlockEntity, SchematicError> {
    let position = compound.take("Pos").and_then(|pos| pos.as_position());
    let position = position.ok_or(SchematicError::Missing { field: "Pos of a block entity" })?;
    let id = id(&mut compound).ok_or(SchematicError::Missing { field: "Id of a block entity" })?;
    Ok(BlockEntity { position, id, data: if is_nested { data(compound) } else { compound } })
}

/// Takes an entity apart: position as in the file, id, data.
pub(super) fn entity(mut compound: Compound, is_nested: bool) -> Result<SchematicEntity, SchematicError> {
    let position = compound.take("Pos").and_then(|pos| numbers(&pos));
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

fn numbers(value: &Nbt) -> Option<[f64; 3]> {
    match value {
        Nbt::List(_, items) => items.iter().map(Nbt::as_number).collect::<Option<Vec<f64>>>()?.try_into().ok(),
        _ => None,
    }
}
