//! Parts of a world as things of their own: files that other programs read and write.

pub mod schematic;
