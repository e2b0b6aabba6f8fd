//! The command line.

use super::outcome::Failure;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use terrane_storage::OpenWait;
use terrane_storage::upkeep::ExistingGround;
use terrane_world::snapshot::Turn;
use terrane_world::space::{BlockBox, BlockPos, ColumnArea, ColumnPos};
use uuid::Uuid;

/// Maintains the stored worlds of games made with bevy_terrane.
///
/// A world is a folder or a database, postgres://user@host/database#world. The password may be in the address or in the
/// variable PGPASSWORD.
///
/// A folder that a running game has open is refused after some seconds, with the game's process number. For a backup the game
/// is asked instead. A database can be read meanwhile, but not changed.
///
/// Exit codes: 0 success, 1 an error, 2 wrong arguments, 3 damage was found, 130 stopped by Ctrl-C.
#[derive(Parser, Clone, Debug)]
#[command(name = "terrane", version, verbatim_doc_comment)]
pub struct Arguments {
    /// The command to run
    #[command(subcommand)]
    pub command: Command,

    /// Print one JSON object on the standard output
    #[arg(long, global = true)]
    pub json: bool,

    /// How long to wait for an existing world that something else has open, such as a game that is just ending
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = OpenWait::LONGEST.as_secs())]
    pub wait: u64,
}

/// The commands.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Shows the contents of a world: sizes, dimensions, types, history. Changes nothing
    Info {
        /// The world's folder or address
        world: PathBuf,
    },
    /// Shows one chunk or entity as text. Changes nothing
    Inspect {
        /// The world's folder or address
        world: PathBuf,
        /// A chunk or an entity
        #[command(subcommand)]
        what: Inspected,
    },
    /// Reads and checks every value of a world, and lists the damage. Changes nothing
    Verify {
        /// The world's folder or address
        world: PathBuf,
    },
    /// Makes a new world from everything that is still readable in a damaged one, which stays as it is
    Salvage {
        /// The damaged world's folder
        world: PathBuf,
        /// The new world's folder, which must be empty or missing
        new: PathBuf,
    },
    /// Makes an exact copy of a world
    Copy {
        /// The world's folder or address
        world: PathBuf,
        /// The copy's folder or address, which must be empty or missing
        new: PathBuf,
    },
    /// Adds a backup of a world to a folder of backups. Data that has not changed since the last backup takes no space
    Backup {
        /// The world's folder or address
        world: PathBuf,
        /// The folder of backups; created if missing
        folder: PathBuf,
        /// Remove all but this many of the newest backups
        #[arg(long, value_name = "NUMBER")]
        keep: Option<NonZeroU32>,
    },
    /// Makes a world from a backup
    Restore {
        /// The folder of backups
        folder: PathBuf,
        /// The world's folder, which must be empty or missing
        #[arg(required_unless_present = "list")]
        world: Option<PathBuf>,
        /// The backup's number [default: the newest]
        #[arg(long)]
        number: Option<u32>,
        /// List the backups instead
        #[arg(long, conflicts_with_all = ["world", "number"])]
        list: bool,
    },
    /// Deletes everything outside a shape, and frees its space. Deleted ground is generated again when a player comes there
    Prune(PruneArguments),
    /// Frees the space of deleted and replaced data
    Compact {
        /// The world's folder or address
        world: PathBuf,
    },
    /// Writes a dimension, or a box of it, into a portable file: ground, entities, types. Run the same command again
    /// after Ctrl-C or a crash to continue. If a game has the world open, export a backup
    Export(ExportWorldArguments),
    /// Imports an export into a world. Run the same command again after Ctrl-C or a crash to continue
    Import(ImportWorldArguments),
    /// Shows a schematic, the file of a piece of a world, or imports it into a world, or exports it from one
    Schematic {
        /// The command to run on the schematic
        #[command(subcommand)]
        what: SchematicCommand,
    },
}

/// The commands for schematic files.
#[derive(Subcommand, Clone, Debug)]
pub enum SchematicCommand {
    /// Shows the contents: size, blocks, entities. Changes nothing
    Info {
        /// The file
        file: PathBuf,
    },
    /// Writes a box of a world into a schematic. The world stays as it is
    Export(ExportArguments),
    /// Places a schematic in a world. Each square of 4 x 4 columns is written as a whole; after a crash or Ctrl-C the same
    /// command does the rest. Ground that was never generated stays as it is
    Import(ImportArguments),
}

#[derive(Args, Clone, Debug)]
pub struct ExportArguments {
    /// The world's folder or address
    pub world: PathBuf,

    /// The file, which must not exist yet
    pub file: PathBuf,

    /// The dimension's name
    #[arg(long, short)]
    pub dimension: String,

    /// A corner of the box
    #[arg(long, value_name = "X,Y,Z", value_parser = block, allow_hyphen_values = true)]
    pub from: BlockPos,

    /// The opposite corner, included
    #[arg(long, value_name = "X,Y,Z", value_parser = block, allow_hyphen_values = true)]
    pub to: BlockPos,

    /// The version of the format
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=3))]
    pub version: u8,

    /// The compression level: higher levels are slower and make smaller files
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(0..=9))]
    pub level: u32,
}

#[derive(Args, Clone, Debug)]
pub struct ImportArguments {
    /// The world's folder or address
    pub world: PathBuf,

    /// The file
    pub file: PathBuf,

    /// The dimension's name
    #[arg(long, short)]
    pub dimension: String,

    /// The place of its lowest corner, after flipping and turning [default: the original place, from the file]
    #[arg(long, value_name = "X,Y,Z", value_parser = block, allow_hyphen_values = true)]
    pub at: Option<BlockPos>,

    /// Quarter turns, clockwise seen from above
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub turn: u8,

    /// Flip along this axis, before turning
    #[arg(long, value_parser = one_of([("x", Turn::FLIP_X), ("z", Turn::FLIP_Z)]))]
    pub flip: Option<Turn>,

    /// Import the readable part of a damaged file: whole layers from the bottom up. The rest of the world stays as it is
    #[arg(long)]
    pub salvage: bool,

    /// Skip ground that was never generated, instead of refusing the whole import
    #[arg(long)]
    pub only_generated: bool,

    /// Remove the entities that are already in the box. Players stay
    #[arg(long)]
    pub replace_entities: bool,
}

/// A corner of a box: x, y and z. Without a height the box has all heights.
type Corner = (i64, Option<i64>, i64);

/// The treatment of ground that already exists.
const EXISTING: [(&str, ExistingGround); 3] =
    [("refuse", ExistingGround::Refuse), ("keep", ExistingGround::Keep), ("replace", ExistingGround::Replace)];

#[derive(Args, Clone, Debug)]
pub struct ExportWorldArguments {
    /// The world's folder or address
    pub world: PathBuf,

    /// The file. Further files are placed beside it, with .2, .3 appended to the name
    pub file: PathBuf,

    /// The dimension's name
    #[arg(long, short)]
    pub dimension: String,

    /// A corner of the box, in blocks; without Y it has all heights. Chunks are exported as a whole [default: all]
    #[arg(long, value_name = "X[,Y],Z", value_parser = corner, requires = "to", allow_hyphen_values = true)]
    pub from: Option<Corner>,

    /// The opposite corner, included
    #[arg(long, value_name = "X[,Y],Z", value_parser = corner, requires = "from", allow_hyphen_values = true)]
    pub to: Option<Corner>,

    /// The maximum number of objects in a file
    #[arg(long, value_name = "NUMBER", default_value = "100000")]
    pub objects_per_file: NonZeroUsize,

    /// Skip columns with damage
    #[arg(long)]
    pub leave_damaged: bool,
}

#[derive(Args, Clone, Debug)]
pub struct ImportWorldArguments {
    /// The first file of the export
    pub file: PathBuf,

    /// The world's folder or address
    pub world: PathBuf,

    /// The name of the dimension, created if missing [default: its name in the export]
    #[arg(long, short)]
    pub dimension: Option<String>,

    /// Create the world if it is missing
    #[arg(long)]
    pub create: bool,

    /// The distance by which it is moved, in blocks: multiples of 16
    #[arg(long, value_name = "X,Y,Z", default_value = "0,0,0", value_parser = block, allow_hyphen_values = true)]
    pub r#move: BlockPos,

    /// Ground that already exists: refuse the whole import, keep the ground, or replace it
    #[arg(long, default_value = "refuse", value_parser = one_of(EXISTING))]
    pub existing: ExistingGround,

    /// Skip columns that were never generated, if the export has only a part of their heights
    #[arg(long)]
    pub only_generated: bool,

    /// Skip columns with damage
    #[arg(long)]
    pub leave_damaged: bool,

    /// Forget a stopped import of this export: the ground that it imported then counts as ground that already exists
    #[arg(long)]
    pub anew: bool,
}

/// The things that `inspect` can show.
#[derive(Subcommand, Clone, Debug)]
pub enum Inspected {
    /// A chunk of 16 x 16 x 16 blocks
    #[command(allow_negative_numbers = true)]
    Chunk {
        /// The dimension's name
        dimension: String,
        /// The chunk's position: that of a block, divided by 16
        x: i64,
        y: i64,
        z: i64,
    },
    /// An entity
    Entity {
        /// Its stable id
        id: Uuid,
    },
}

#[derive(Args, Clone, Debug)]
pub struct PruneArguments {
    /// The world's folder or address
    pub world: PathBuf,

    /// The dimension's name
    #[arg(long, short)]
    pub dimension: String,

    /// Keep the columns of 16 blocks within this distance of the centre
    #[arg(long, short, conflicts_with_all = ["from", "to"], required_unless_present = "from")]
    pub radius: Option<u32>,

    /// The shape around the centre
    #[arg(long, short, default_value = "disc", value_parser = ["disc", "square"])]
    pub shape: String,

    /// The column in the middle
    #[arg(long, short, value_name = "X,Z", default_value = "0,0", value_parser = column, allow_hyphen_values = true)]
    pub center: ColumnPos,

    /// Keep a box instead of a shape: its corner column with the lowest coordinates
    #[arg(long, value_name = "X,Z", value_parser = column, requires = "to", allow_hyphen_values = true)]
    pub from: Option<ColumnPos>,

    /// The corner column of the box with the highest coordinates, included
    #[arg(long, value_name = "X,Z", value_parser = column, requires = "from", allow_hyphen_values = true)]
    pub to: Option<ColumnPos>,

    /// Only count the data that would be deleted
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
}

impl Command {
    /// Returns `true` if the command only reads, and only for moments.
    pub fn only_looks(&self) -> bool {
        matches!(self, Self::Info { .. } | Self::Inspect { .. } | Self::Restore { list: true, .. })
    }
}

impl ExportWorldArguments {
    pub fn area(&self) -> Result<BlockBox, Failure> {
        let (Some(from), Some(to)) = (self.from, self.to) else { return Ok(BlockBox::ALL) };
        let (low, high) = match (from.1, to.1) {
            (None, None) => (i64::MIN, i64::MAX),
            (Some(low), Some(high)) => (low, high),
            _ => return Err(Failure::arguments("give both corners a height, or none")),
        };
        Ok(BlockBox::new(BlockPos::new(from.0, low, from.2), BlockPos::new(to.0, high, to.2)))
    }
}

impl ImportWorldArguments {
    /// The distance of the move, in chunks.
    pub fn moved_by(&self) -> Result<[i64; 3], Failure> {
        let BlockPos { x, y, z } = self.r#move;
        match [x, y, z].iter().all(|blocks| blocks % 16 == 0) {
            true => Ok([x, y, z].map(|blocks| blocks / 16)),
            false => Err(Failure::arguments("--move takes multiples of 16: an export holds whole chunks")),
        }
    }
}

impl PruneArguments {
    /// The area to keep.
    pub fn area(&self) -> Result<ColumnArea, Failure> {
        if let (Some(min), Some(max)) = (self.from, self.to) {
            return match min.x <= max.x && min.z <= max.z {
                true => Ok(ColumnArea::Box { min, max }),
                false => Err(Failure::arguments(format!(
                    "there is nothing between {min} and {max}: --from must have the lower coordinates"
                ))),
            };
        }
        let (center, radius) =
            (self.center, self.radius.ok_or_else(|| Failure::arguments("give a --radius, or --from and --to"))?);
        Ok(match &*self.shape {
            "square" => ColumnArea::Square { center, radius },
            _ => ColumnArea::Disc { center, radius },
        })
    }
}

/// Parses `N` whole numbers separated by commas.
fn numbers<const N: usize>(text: &str) -> Option<[i64; N]> {
    let numbers: Option<Vec<i64>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
    numbers?.try_into().ok()
}

fn block(text: &str) -> Result<BlockPos, String> {
    let expected = || "three whole numbers with commas between them are expected, such as 10,64,-3".to_owned();
    numbers(text).map(|[x, y, z]| BlockPos::new(x, y, z)).ok_or_else(expected)
}

fn corner(text: &str) -> Result<Corner, String> {
    let expected = "two or three whole numbers with commas between them are expected, such as 10,-3 or 10,64,-3";
    let flat = || numbers(text).map(|[x, z]| (x, None, z));
    numbers(text).map(|[x, y, z]| (x, Some(y), z)).or_else(flat).ok_or_else(|| expected.to_owned())
}

fn column(text: &str) -> Result<ColumnPos, String> {
    let expected = || "two whole numbers with a comma between them are expected, such as 10,-3".to_owned();
    numbers(text).map(|[x, z]| ColumnPos::new(x, z)).ok_or_else(expected)
}

/// A parser for one of these words, each with its value.
fn one_of<T: Clone + Send + Sync + 'static, const N: usize>(
    words: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(words.each_ref().map(|(word, _)| *word));
    names.try_map(move |name| {
        let found = words.iter().find(|(word, _)| *word == name);
        found.map(|(_, meaning)| meaning.clone()).ok_or("no such word")
    })
}
