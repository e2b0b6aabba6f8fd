//! What a file may ask for.

/// What a file may ask for at the most. All are checked before anything is done with a number that a file declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchematicLimits {
    /// Bytes after decompression.
    pub inflated_bytes: u64,
    /// Bytes of memory that the schematic takes in all, with the allocator's overhead for each value.
    pub memory: u64,
    /// Blocks in the volume that the size declares. The format itself has no room for more than 2^31 - 1.
    pub volume: u64,
    /// Values within values, at most 512.
    pub depth: usize,
    /// Items in a list or an array, other than the cells.
    pub list_length: u64,
    /// Entries of a palette, at most 65,535.
    pub palette_length: usize,
}

impl Default for SchematicLimits {
    /// Room for the largest volume, 4 GiB of data, 1 GiB of memory, 512 levels, 2^24 items in a list and 65,535 palette
    /// entries.
    fn default() -> Self {
        Self {
            inflated_bytes: 4 << 30,
            memory: 1 << 30,
            volume: (1 << 31) - 1,
            depth: 512,
            list_length: 1 << 24,
            palette_length: 65_535,
        }
    }
}

/// How a schematic is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// What the file may ask for.
    pub limits: SchematicLimits,
    /// Whether to keep what could be read of a damaged file. The rest is air, and [`ReadReport::damage`](super::ReadReport::damage) says what is wrong.
    pub salvage: bool,
}
