//! Translates snapshots to schematics and back: numbers of a world's registry to names, and names to numbers.
//!
//! | in the world | in the schematic |
//! |---|---|
//! | air | `minecraft:air` |
//! | a block | its name with its properties; its layers and components are in this crate's part of the file |
//! | ids of one name with different components | one name; the stored components determine the id |
//! | [`PLACEHOLDER`](crate::block::PLACEHOLDER) | the state that it stands for, and its block entity |
//! | a block that has the component [`BLOCK_ENTITY`](crate::block::BLOCK_ENTITY) | its name, and the block entity |
//! | an entity | an entity `terrane:entity`, its record in the data |
//! | an entity with the component [`SCHEMATIC_ENTITY`] | the original entity |
//! | content that was not captured | air; [`Snapshot::missing_chunks`] counts it |
//!
//! In the other direction, an unknown state becomes a placeholder. A waterlogged state that the registry only has in a dry
//! form becomes the dry block with water in layer 1. A [`TranslationReport`] lists content that has no place in the world.
//!
//! ```
//! use std::error::Error;
//! use std::fs::File;
//! use terrane_world::block::BlockRegistry;
//! use terrane_world::snapshot::schematic::{ReadOptions, Schematic};
//! use terrane_world::snapshot::translation::TranslationOptions;
//! use terrane_world::snapshot::{BlockTurns, Relocation, Snapshot, Turn};
//! use terrane_world::space::{BlockPos, DimensionId};
//!
//! /// The house as it is to stand in the world, turned by a quarter.
//! fn house(blocks: &BlockRegistry, dimension: DimensionId) -> Result<Snapshot, Box<dyn Error>> {
//!     let (schematic, _) = Schematic::read(File::open("house.schem")?, &ReadOptions::default())?;
//!     let turn = Turn::quarters(1);
//!     let options = TranslationOptions { turn, ..TranslationOptions::default() };
//!     let (house, report) = Snapshot::from_schematic(schematic, dimension, blocks, &options)?;
//!     println!("{} blocks are not known", report.placeholders);
//!     let place = Relocation { turn, to: BlockPos::new(100, 64, 100), ..Relocation::default() };
//!     Ok(house.placed(&place, &BlockTurns::new(blocks, turn))?)
//! }
//! ```

mod entities;
mod inward;
mod outward;
#[cfg(test)]
mod tests;

pub use entities::SCHEMATIC_ENTITY;
pub use inward::TranslationError;

use super::schematic::Schematic;
use super::{BlockTurns, ColumnSnapshot, Relocation, Snapshot, Turn};
use crate::block::BlockRegistry;
use crate::space::{BlockBox, BlockPos, ColumnPos, DimensionId};
use inward::Inward;
pub(super) use outward::Outward;

/// The maximum side length in the format.
const LONGEST: u64 = u16::MAX as u64;
/// The maximum memory of a column of a snapshot, besides its chunks and entities.
const COLUMN_BYTES: u64 = 160;
/// The maximum memory of an entity, besides its values.
const ENTITY_BYTES: u64 = 320;

/// Options for translating between snapshots and schematics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslationOptions {
    /// The block, named without properties, in layer 1 of blocks that other programs call waterlogged.
    pub water: String,
    /// `true` to write entities of other programs with their stable ids, in a compound `bevy_terrane` of their data.
    /// Otherwise they are written unchanged, and get new ids when they are read again.
    pub keeps_ids: bool,
    /// The seed of the stable ids for entities of other programs. The same schematic and seed give the same ids.
    pub seed: u64,
    /// The maximum memory in bytes that the snapshot may take beyond that of its schematic.
    pub memory: u64,
    /// The turn that will be applied to the snapshot. [`Snapshot::placed`] turns the blocks that the registry knows.
    /// States that become placeholders are turned here, by [`turned_state`](super::turned_state).
    pub turn: Turn,
}

impl Default for TranslationOptions {
    /// `terrane:water`, no ids, a seed of 0, 1 GiB, no turn.
    fn default() -> Self {
        Self { water: "terrane:water".to_owned(), keeps_ids: false, seed: 0, memory: 1 << 30, turn: Turn::NONE }
    }
}

/// The content of a schematic that has no place in a world and was changed or left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranslationReport {
    /// The number of blocks that became placeholders.
    pub placeholders: u64,
    /// The number of block entities that were left out: those of known blocks without a component for them, of air, in
    /// addition to another one, or outside of the box.
    pub block_entities: u64,
    /// The number of entities more than two blocks outside of the box.
    pub entities: u64,
    /// The number of block component values that the registry does not know, or that blocks of that name do not have.
    pub components: u64,
    /// `true` if the schematic had biomes.
    pub has_biomes: bool,
}

impl TranslationReport {
    /// Adds the counts of another part of the same schematic.
    pub(super) fn add(&mut self, other: &Self) {
        self.placeholders += other.placeholders;
        self.block_entities += other.block_entities;
        self.entities += other.entities;
        self.components += other.components;
        self.has_biomes |= other.has_biomes;
    }
}

impl Snapshot {
    /// Translates the snapshot to a schematic with the minimum corner of the box. Content that was not captured
    /// becomes air; [`missing_chunks`](Self::missing_chunks) counts it.
    ///
    /// # Errors
    /// Fails if a side is longer than 65,535 blocks, or if the registry does not know a block or a component.
    pub fn to_schematic(
        &self,
        registry: &BlockRegistry,
        options: &TranslationOptions,
    ) -> Result<Schematic, TranslationError> {
        let size = self.area().size();
        if let Some(found) = size.into_iter().find(|side| *side > LONGEST.into()) {
            let found = u64::try_from(found).unwrap_or(u64::MAX);
            return Err(TranslationError::TooLarge { what: "blocks along an axis", limit: LONGEST, found });
        }
        let from = self.area().min;
        let to_corner = Relocation { from, ..Relocation::default() };
        let placed = self.with_air_around().placed(&to_corner, &BlockTurns::default())?;
        let mut outward = Outward::new(registry, options, size.map(|side| side as u32));
        for (pos, column) in placed.columns() {
            for (y, chunk) in column.chunks() {
                if let Some(part) = placed.area().part(pos.chunk(y)) {
                    outward.add_chunk(pos.chunk(y), chunk, &part)?;
                }
            }
            column.entities().iter().for_each(|entity| outward.add_entity(entity));
        }
        Ok(outward.finish(from))
    }

    /// The number of chunks of the box that were not captured.
    pub fn missing_chunks(&self) -> u64 {
        let all = self.area().height_set();
        let of_column =
            |column: &ColumnSnapshot| column.heights().map_or(all.len(), |held| held.intersection(&all).len());
        let held = self.columns().map(|(_, column)| of_column(column)).fold(0, u64::saturating_add);
        let columns = u64::try_from(self.area().column_area().columns()).unwrap_or(u64::MAX);
        columns.saturating_mul(all.len()).saturating_sub(held)
    }

    /// The same snapshot with air in place of missing chunks next to captured ones, so that moving off the grid does
    /// not turn captured chunks into missing ones.
    fn with_air_around(&self) -> Self {
        let mut whole = self.clone();
        for (pos, _) in self.columns() {
            let near =
                [-1, 0, 1].into_iter().flat_map(|x| [-1, 0, 1].map(|z| (pos.x.checked_add(x), pos.z.checked_add(z))));
            for column in near.filter_map(|(x, z)| Some(ColumnPos::new(x?, z?))) {
                if self.area().reaches(column) {
                    whole.columns.entry(column).or_default().heights = None;
                }
            }
        }
        whole
    }

    /// Translates a schematic to a snapshot whose box has its minimum corner at the block 0, 0, 0.
    /// [`placed`](Self::placed) moves it to its place.
    ///
    /// # Errors
    /// Fails if the registry has neither a state nor a [`PLACEHOLDER`](crate::block::PLACEHOLDER), if the memory limit
    /// of the options is exceeded, or if a migration rejects a value of a block component.
    pub fn from_schematic(
        schematic: Schematic,
        dimension: DimensionId,
        registry: &BlockRegistry,
        options: &TranslationOptions,
    ) -> Result<(Self, TranslationReport), TranslationError> {
        let [width, height, length] = schematic.size().map(i64::from);
        let area = BlockBox { min: BlockPos::default(), max: BlockPos::new(width - 1, height - 1, length - 1) };
        let mut snapshot = Self::new(area);
        let mut inward = Inward::new(&schematic, registry, options);
        let columns = u64::try_from(area.column_area().columns()).unwrap_or(u64::MAX);
        inward.take_memory(columns.saturating_mul(COLUMN_BYTES))?;
        snapshot.columns.extend(area.columns().map(|pos| (pos, ColumnSnapshot::default())));
        for (number, entity) in (0..).zip(&schematic.entities) {
            match entities::from_schematic(entity, dimension, &area, [options.seed, number]) {
                Some(entity) => {
                    let values = entity.components.iter().map(|(name, value)| name.len() + value.len());
                    inward.take_memory(ENTITY_BYTES + values.sum::<usize>() as u64)?;
                    snapshot.add_entity(entity.column(), entity);
                }
                None => inward.report.entities += 1,
            }
        }
        inward.report.has_biomes = schematic.biomes.is_some();
        inward.add_block_entities(schematic.block_entities)?;
        for (pos, chunk) in schematic.blocks.into_chunks() {
            if let Some(chunk) = inward.chunk(pos, chunk)? {
                snapshot.columns.entry(pos.column()).or_default().chunks.push((pos.y, chunk));
            }
        }
        Ok((snapshot, inward.finish()))
    }
}
