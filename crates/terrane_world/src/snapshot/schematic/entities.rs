//! Block entities and entities of a schematic.

use super::SchematicError;
use super::nbt::{Compound, Nbt, NbtKind, Writer};
use rustc_hash::FxHashSet;

/// The data of a block that programs store beside the blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockEntity {
    /// The block, relative to the minimum corner. Some programs store block entities outside of the box.
    pub position: [i32; 3],
    /// The id, such as `minecraft:chest`.
    pub id: String,
    /// The data, without position and id.
    pub data: Compound,
}

/// An entity of a schematic.
#[derive(Clone, Debug, PartialEq)]
pub struct SchematicEntity {
    /// The position in blocks, relative to the minimum corner.
    pub position: [f64; 3],
    /// The id, such as `minecraft:armor_stand`.
    pub id: String,
    /// The data, without position and id.
    pub data: Compound,
}

impl BlockEntity {
    /// Id and data as a value of the block component [`BLOCK_ENTITY`](crate::block::BLOCK_ENTITY): an unnamed compound
    /// of `Id` and `Data`.
    ///
    /// # Errors
    /// If the format cannot represent the data, such as text of more than 65,535 bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, SchematicError> {
        let mut writer = Writer::new(Vec::new());
        writer.name(NbtKind::Compound, "")?;
        writer.text_entry("Id", &self.id)?;
        writer.name(NbtKind::Compound, "Data")?;
        writer.entries(&self.data)?;
        writer.end()?;
        writer.end()?;
        writer.finish()
    }

    /// Reads the bytes of [`to_bytes`](Self::to_bytes), with a position.
    pub fn from_bytes(position: [i32; 3], bytes: &[u8]) -> Result<Self, SchematicError> {
        let mut compound = Compound::from_bytes(bytes)?;
        let id = id(&mut compound)?;
        Ok(Self { position, id, data: nested(compound) })
    }
}

/// The error, within the compound, for a value that is missing or of the wrong kind.
fn wrong(name: &str, expected: &str, found: Option<NbtKind>) -> SchematicError {
    let what = match found {
        None => "it is missing".to_owned(),
        Some(found) => format!("expected {expected}, found {found}"),
    };
    SchematicError::malformed(name, what)
}

/// Splits a block entity into position, id and all other values as its data. The flag is `true` if the position was in `x`,
/// `y` and `z`, as in the game's chunks. Some programs write it like that, relative to the corner or to the world's origin.
pub(super) fn block_entity(mut compound: Compound) -> Result<(BlockEntity, bool), SchematicError> {
    const AXES: [&str; 3] = ["x", "y", "z"];
    let pos = compound.take("Pos");
    let is_old = pos.is_none();
    let position = match &pos {
        Some(pos) => pos.as_position(),
        None => {
            let [x, y, z] = AXES.map(|name| i32::try_from(compound.get(name)?.as_integer()?).ok());
            x.zip(y).zip(z).map(|((x, y), z)| [x, y, z])
        }
    };
    let found = pos.as_ref().map(Nbt::kind);
    let position = position.ok_or_else(|| wrong("Pos", "three integers", found))?;
    let id = id(&mut compound)?;
    if is_old {
        AXES.iter().for_each(|name| drop(compound.take(name)));
    }
    exact(&mut compound);
    Ok((BlockEntity { position, id, data: compound }, is_old))
}

/// Splits an entity into its position as in the file, its id and all other values as its data.
pub(super) fn entity(mut compound: Compound) -> Result<SchematicEntity, SchematicError> {
    let pos = compound.take("Pos");
    let found = pos.as_ref().map(Nbt::kind);
    let position = pos.and_then(|pos| pos.as_numbers());
    let position = position.ok_or_else(|| wrong("Pos", "three numbers", found))?;
    let id = id(&mut compound)?;
    exact(&mut compound);
    Ok(SchematicEntity { position, id, data: compound })
}

/// Frees the spare capacity of a compound. A short compound is moved to an allocation of its exact size: shrinking in place
/// would free a piece that is too small for the next entity, and millions of such gaps would be a sixth of all memory.
fn exact(compound: &mut Compound) {
    const FEW: usize = 64;
    if compound.0.len() > FEW {
        compound.0.shrink_to_fit();
        return;
    }
    let mut entries = Vec::with_capacity(compound.0.len());
    entries.append(&mut compound.0);
    compound.0 = entries;
}

fn id(compound: &mut Compound) -> Result<String, SchematicError> {
    let name = if compound.get("Id").is_some() { "Id" } else { "id" };
    match compound.take(name) {
        Some(Nbt::String(id)) => Ok(id),
        other => Err(wrong("Id", "a string", other.as_ref().map(Nbt::kind))),
    }
}

/// The data of version 3, and all values beside it.
pub(super) fn nested(mut compound: Compound) -> Compound {
    match compound.take("Data") {
        Some(Nbt::Compound(mut data)) => {
            let names: FxHashSet<&str> = data.0.iter().map(|(name, _)| name.as_str()).collect();
            compound.0.retain(|(name, _)| !names.contains(name.as_str()));
            data.0.reserve_exact(compound.0.len());
            data.0.append(&mut compound.0);
            data
        }
        Some(other) => {
            compound.0.push(("Data".to_owned(), other));
            compound
        }
        None => compound,
    }
}
