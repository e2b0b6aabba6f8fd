//! Snapshots as schematics, and schematics as snapshots: the numbers of a world's registry become names, and names numbers.
//!
//! | in the world | in the schematic |
//! |---|---|
//! | air | `minecraft:air` |
//! | a block | its name with its properties; its layers and components in the crate's own part of the file |
//! | ids of one name with different components | one name; which one it is follows from the components that are there |
//! | [`PLACEHOLDER`](crate::block::PLACEHOLDER) | the state that it stands for, and its block entity |
//! | a block that has the component [`BLOCK_ENTITY`](crate::block::BLOCK_ENTITY) | its name, and the block entity |
//! | an entity | an entity `terrane:entity`, its record in the data |
//! | an entity with the component [`SCHEMATIC_ENTITY`] | the entity that it was |
//! | what was not captured | air, and [`Snapshot::missing_chunks`] counts it |
//!
//! Back again, a state that the registry does not know becomes a placeholder, a waterlogged one that it knows only dry
//! becomes that with water in layer 1, and what has no place in a world is told of in a [`TranslationReport`].
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
mod error;
mod inward;
mod outward;
mod placeholder;
#[cfg(test)]
mod tests;

pub use entities::SCHEMATIC_ENTITY;
pub use error::TranslationError;

use super::schematic::Schematic;
use super::{BlockTurns, ColumnSnapshot, Relocation, Snapshot, Turn};
use crate::block::BlockRegistry;
use crate::space::{BlockBox, BlockPos, ColumnPos, DimensionId};
use inward::Inward;
pub(super) use outward::Outward;

/// The format has no room for longer sides.
const LONGEST: u64 = u16::MAX as u64;
/// What a column of a snapshot takes at the most, besides chunks and entities.
const COLUMN_BYTES: u64 = 160;
/// Bytes that an entity takes at most, besides its values.
const ENTITY_BYTES: u64 = 320;

/// How snapshots and schematics become each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslationOptions {
    /// The block, named without properties, that stands in layer 1 of what other programs call waterlogged.
    pub water: String,
    /// Whether entities that came from other programs are written with their stable ids, in a compound `bevy_terrane` of their
    /// data. Without, they are written as they came, and have new ids when they are read again.
    pub keeps_ids: bool,
    /// What the stable ids of entities of other programs are made from: the same again from the same schematic.
    pub seed: u64,
    /// Bytes that a snapshot may take beyond what the schematic took that it is made of.
    pub memory: u64,
    /// How the snapshot of a schematic is to be turned. [`Snapshot::placed`] turns the blocks that the registry knows; the states
    /// that become placeholders are turned here, by [`turned_state`](super::turned_state).
    pub turn: Turn,
}

impl Default for TranslationOptions {
    /// `terrane:water`, no ids, a seed of 0, 1 GiB, not turned.
    fn default() -> Self {
        Self { water: "terrane:water".to_owned(), keeps_ids: false, seed: 0, memory: 1 << 30, turn: Turn::NONE }
    }
}

/// What of a schematic has no place in a world, and was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranslationReport {
    /// Blocks that became placeholders.
    pub placeholders: u64,
    /// Block entities that nobody took: those of blocks that the registry knows and that have no room for them, of air, beside
    /// another one, or outside of the box.
    pub block_entities: u64,
    /// Entities more than two blocks outside of the box.
    pub entities: u64,
    /// Values of block components that the registry does not know, or that blocks of that name do not have.
    pub components: u64,
    /// Whether it had biomes.
    pub has_biomes: bool,
}

impl TranslationReport {
    /// Counts in what another part of the same had.
    pub(super) fn add(&mut self, other: &Self) {
        self.placeholders += other.placeholders;
        self.block_entities += other.block_entities;
        self.entities += other.entities;
        self.components += other.components;
        self.has_biomes |= other.has_biomes;
    }
}

impl Snapshot {
    /// The snapshot as a schematic, whose minimum corner is that of the box. What was not captured is air in it:
    /// [`missing_chunks`](Self::missing_chunks) counts that.
    ///
    /// # Errors
    /// A side of more than 65,535 blocks; and blocks or components that the registry has never heard of.
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

    /// Chunks of the box that were not captured.
    pub fn missing_chunks(&self) -> u64 {
        let all = self.area().height_set();
        let of_column =
            |column: &ColumnSnapshot| column.heights().map_or(all.len(), |held| held.intersection(&all).len());
        let held = self.columns().map(|(_, column)| of_column(column)).fold(0, u64::saturating_add);
        let columns = u64::try_from(self.area().column_area().columns()).unwrap_or(u64::MAX);
        columns.saturating_mul(all.len()).saturating_sub(held)
    }

    /// The same snapshot with air for what is missing beside what is there: what is moved off the grid is then not missing for
    /// that.
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

    /// The schematic as a snapshot whose box has its minimum corner at the block 0, 0, 0: [`placed`](Self::placed) moves it to
    /// where it is to be.
    ///
    /// # Errors
    /// A state that the registry does not know, if it has no [`PLACEHOLDER`](crate::block::PLACEHOLDER) either; more memory
    /// than the options allow; values of block components that a migration refuses.
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
