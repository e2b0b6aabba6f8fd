//! The command line.

use super::tell::Run;
use bevy_terrane::prelude::*;
use bevy_terrane::space::ColumnArea;
use clap::{Parser, ValueEnum};
use std::ops::Range;
use std::path::PathBuf;

/// Generates an area of a world and stores it, nearest to its centre first.
///
/// Columns that are already stored are skipped. Ctrl-C and --seconds stop and save. The next run continues with the same
/// area or, if none is given, with the unfinished areas of the world.
///
/// Exit codes: 0 everything is stored, 1 an error, 2 wrong arguments, 3 some columns could not be generated, 124 stopped by
/// --seconds, 130 stopped by Ctrl-C.
#[derive(Parser, Resource, Clone, Debug)]
#[command(name = "pregenerate", verbatim_doc_comment)]
pub struct Arguments {
    /// The world's folder; created if missing
    #[arg(default_value = "target/examples/pregenerate/world")]
    pub world: PathBuf,

    /// The radius of the area around its centre, in columns of 16 blocks
    #[arg(long, short, conflicts_with_all = ["from", "to"])]
    pub radius: Option<u32>,

    /// The shape around the centre
    #[arg(long, short, value_enum, default_value_t = Shape::Disc)]
    pub shape: Shape,

    /// The column in the middle
    #[arg(long, short, value_name = "X,Z", default_value = "0,0", value_parser = column, allow_hyphen_values = true)]
    pub center: ColumnPos,

    /// Generate a box instead of a shape: its corner column with the lowest coordinates
    #[arg(long, value_name = "X,Z", value_parser = column, requires = "to", allow_hyphen_values = true)]
    pub from: Option<ColumnPos>,

    /// The corner column of the box with the highest coordinates, included
    #[arg(long, value_name = "X,Z", value_parser = column, requires = "from", allow_hyphen_values = true)]
    pub to: Option<ColumnPos>,

    /// The dimension's name
    #[arg(long, short, default_value = "overworld")]
    pub dimension: String,

    /// The generator of the ground; a world can only be continued with the same generator and seed
    #[arg(long, short, value_enum, default_value_t = Ground::Hills)]
    pub generator: Ground,

    /// The seed of hills and of a height map
    #[arg(long, default_value_t = 0)]
    pub seed: u64,

    /// The terrain of the generator `heightmap`, a 16-bit greyscale PNG
    #[arg(long, value_name = "PNG", required_if_eq("generator", "heightmap"))]
    pub heightmap: Option<PathBuf>,

    /// The dimension's range of heights in blocks, the last one excluded
    #[arg(long, value_name = "LOW..HIGH", default_value = "-64..320", value_parser = heights, allow_hyphen_values = true)]
    pub heights: HeightRange,

    /// The number of threads that generate [default: half of the cores]
    #[arg(long, short, value_parser = clap::value_parser!(u16).range(1..=1_024))]
    pub threads: Option<u16>,

    /// The arguments that all examples share.
    #[command(flatten)]
    pub run: Run,
}

/// The shapes around a centre.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Disc,
    Square,
}

/// The available generators.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    Hills,
    Flat,
    Heightmap,
    Void,
}

/// A range of heights as given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeightRange(pub Range<i64>);

impl Arguments {
    /// The area to generate; `None` to continue the unfinished areas of the world.
    pub fn area(&self) -> Option<ColumnArea> {
        if let (Some(min), Some(max)) = (self.from, self.to) {
            return Some(ColumnArea::Box { min, max });
        }
        let (center, radius) = (self.center, self.radius?);
        Some(match self.shape {
            Shape::Disc => ColumnArea::Disc { center, radius },
            Shape::Square => ColumnArea::Square { center, radius },
        })
    }
}

fn column(text: &str) -> Result<ColumnPos, String> {
    let expected = || "two whole numbers with a comma between them are expected, such as 10,-3".to_owned();
    let (x, z) = text.split_once(',').ok_or_else(expected)?;
    let number = |text: &str| text.trim().parse().map_err(|_| expected());
    let column = ColumnPos::new(number(x)?, number(z)?);
    match column.exists() {
        true => Ok(column),
        false => Err("there are no blocks so far out".to_owned()),
    }
}

fn heights(text: &str) -> Result<HeightRange, String> {
    let expected = || "two heights are expected, such as -64..320".to_owned();
    let (low, high) = text.split_once("..").ok_or_else(expected)?;
    let number = |text: &str| text.trim().parse().map_err(|_| expected());
    Ok(HeightRange(number(low)?..number(high)?))
}
