//! What the user can choose.

use super::outcome::Failure;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use terrane_storage::upkeep::ExistingGround;
use terrane_world::snapshot::Turn;
use terrane_world::space::{BlockBox, BlockPos, ColumnArea, ColumnPos};
use uuid::Uuid;

/// Looks after the stored worlds of games made with bevy_terrane.
///
/// A world that a running game has open is refused, with the number of its process; but for a backup the game is asked.
///
/// Exit codes: 0 all is well, 1 an error, 2 wrong arguments, 3 damage was found, 130 stopped by Ctrl-C.
#[derive(Parser, Clone, Debug)]
#[command(name = "terrane", version, verbatim_doc_comment)]
pub struct Arguments {
    /// What is to be done
    #[command(subcommand)]
    pub command: Command,

    /// Print one JSON object on the standard output
    #[arg(long, global = true)]
    pub json: bool,
}

/// What is to be done.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Tells what is in a world: sizes, dimensions, types, history. Changes nothing
    Info {
        /// The world's folder
        world: PathBuf,
    },
    /// Shows one chunk or entity as text. Changes nothing
    Inspect {
        /// The world's folder
        world: PathBuf,
        /// A chunk or an entity
        #[command(subcommand)]
        what: Inspected,
    },
    /// Reads and checks every value of a world, and lists what is damaged. Changes nothing
    Verify {
        /// The world's folder
        world: PathBuf,
    },
    /// Makes a new world of all that can still be read of a damaged one, which stays as it is
    Salvage {
        /// The damaged world's folder
        world: PathBuf,
        /// The new world's folder, which must be empty or not there
        new: PathBuf,
    },
    /// Makes an exact copy of a world
    Copy {
        /// The world's folder
        world: PathBuf,
        /// The copy's folder, which must be empty or not there
        new: PathBuf,
    },
    /// Adds a backup of a world to a folder of backups. What did not change since the last one takes no room
    Backup {
        /// The world's folder
        world: PathBuf,
        /// The folder of backups; it is made if it is not there
        folder: PathBuf,
        /// Remove all but so many of the newest backups
        #[arg(long, value_name = "NUMBER")]
        keep: Option<NonZeroU32>,
    },
    /// Makes a world of a backup
    Restore {
        /// The folder of backups
        folder: PathBuf,
        /// The world's folder, which must be empty or not there
        #[arg(required_unless_present = "list")]
        world: Option<PathBuf>,
        /// The backup's number [default: the newest]
        #[arg(long)]
        number: Option<u32>,
        /// List the backups instead
        #[arg(long, conflicts_with_all = ["world", "number"])]
        list: bool,
    },
    /// Deletes what lies outside a shape, and gives the room back. It is generated anew when somebody comes there
    Prune(PruneArguments),
    /// Gives back the room of what was deleted and replaced
    Compact {
        /// The world's folder
        world: PathBuf,
    },
    /// Writes a dimension, or a box of it, into a portable file: ground, entities, types. Given again after Ctrl-C or a crash, it
    /// goes on. Of a world that a game has open, export a backup
    Export(ExportWorldArguments),
    /// Takes an export into a world. Given again after Ctrl-C or a crash, it goes on
    Import(ImportWorldArguments),
    /// Looks at a schematic, the file of a piece of a world, and takes it in or out of one
    Schematic {
        /// What is to be done with it
        #[command(subcommand)]
        what: SchematicCommand,
    },
}

/// What is to be done with a schematic.
#[derive(Subcommand, Clone, Debug)]
pub enum SchematicCommand {
    /// Tells what is in it: size, blocks, entities. Changes nothing
    Info {
        /// The file
        file: PathBuf,
    },
    /// Writes a box of a world into a schematic. The world stays as it is
    Export(ExportArguments),
    /// Puts a schematic into a world. Each square of 4 x 4 columns is written as a whole; after a crash or Ctrl-C the same
    /// command does the rest. Ground that was never generated is left alone
    Import(ImportArguments),
}

/// What is to be exported.
#[derive(Args, Clone, Debug)]
pub struct ExportArguments {
    /// The world's folder
    pub world: PathBuf,

    /// The file, which must not be there yet
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

    /// How much time is spent on making it small
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(0..=9))]
    pub level: u32,
}

/// What is to be imported.
#[derive(Args, Clone, Debug)]
pub struct ImportArguments {
    /// The world's folder
    pub world: PathBuf,

    /// The file
    pub file: PathBuf,

    /// The dimension's name
    #[arg(long, short)]
    pub dimension: String,

    /// Where its lowest corner goes, as it is when it is turned [default: where the file says that it was]
    #[arg(long, value_name = "X,Y,Z", value_parser = block, allow_hyphen_values = true)]
    pub at: Option<BlockPos>,

    /// Quarter turns, clockwise seen from above
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub turn: u8,

    /// Change the direction of an axis, before it is turned
    #[arg(long, value_parser = one_of([("x", Turn::FLIP_X), ("z", Turn::FLIP_Z)]))]
    pub flip: Option<Turn>,

    /// Take what can be read of a damaged file: whole layers from the bottom up. The rest of the world stays as it is
    #[arg(long)]
    pub salvage: bool,

    /// Leave out ground that was never generated, instead of refusing all of it
    #[arg(long)]
    pub only_generated: bool,

    /// Remove the entities that are already in the box, instead of leaving them there. Players stay
    #[arg(long)]
    pub replace_entities: bool,
}

/// A corner of a box: x, y and z. Without a height it has all of them.
type Corner = (i64, Option<i64>, i64);

/// What may become of ground that is there already.
const EXISTING: [(&str, ExistingGround); 3] =
    [("refuse", ExistingGround::Refuse), ("keep", ExistingGround::Keep), ("replace", ExistingGround::Replace)];

/// What of a world is exported.
#[derive(Args, Clone, Debug)]
pub struct ExportWorldArguments {
    /// The world's folder
    pub world: PathBuf,

    /// The file. If there are more, they are beside it with .2, .3 behind its name
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

    /// How many objects are in a file
    #[arg(long, value_name = "NUMBER", default_value = "100000")]
    pub objects_per_file: NonZeroUsize,

    /// Leave out columns of which something is damaged
    #[arg(long)]
    pub leave_damaged: bool,
}

/// What comes into a world.
#[derive(Args, Clone, Debug)]
pub struct ImportWorldArguments {
    /// The first file of the export
    pub file: PathBuf,

    /// The world's folder
    pub world: PathBuf,

    /// The name of the dimension, which is made if it is not there [default: the one it had]
    #[arg(long, short)]
    pub dimension: Option<String>,

    /// Make the world if it is not there
    #[arg(long)]
    pub create: bool,

    /// How far it is moved, in blocks: multiples of 16
    #[arg(long, value_name = "X,Y,Z", default_value = "0,0,0", value_parser = block, allow_hyphen_values = true)]
    pub r#move: BlockPos,

    /// Ground that is there already: change nothing and say so, let it stay, or replace it
    #[arg(long, default_value = "refuse", value_parser = one_of(EXISTING))]
    pub existing: ExistingGround,

    /// Leave out columns that were never generated, if the export has only a part of their heights
    #[arg(long)]
    pub only_generated: bool,

    /// Leave out columns of which something is damaged
    #[arg(long)]
    pub leave_damaged: bool,

    /// Forget an import of this export that was stopped: what it brought is then ground that is there already
    #[arg(long)]
    pub anew: bool,
}

/// What is to be shown.
#[derive(Subcommand, Clone, Debug)]
pub enum Inspected {
    /// A chunk of 16 x 16 x 16 blocks
    #[command(allow_negative_numbers = true)]
    Chunk {
        /// The dimension's name
        dimension: String,
        /// The chunk's place: the block's, divided by 16
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

/// What is to be pruned.
#[derive(Args, Clone, Debug)]
pub struct PruneArguments {
    /// The world's folder
    pub world: PathBuf,

    /// The dimension's name
    #[arg(long, short)]
    pub dimension: String,

    /// Keep the columns of 16 blocks that are so near to the centre
    #[arg(long, short, conflicts_with_all = ["from", "to"], required_unless_present = "from")]
    pub radius: Option<u32>,

    /// The shape around the centre
    #[arg(long, short, default_value = "disc", value_parser = ["disc", "square"])]
    pub shape: String,

    /// The column in the middle
    #[arg(long, short, value_name = "X,Z", default_value = "0,0", value_parser = column, allow_hyphen_values = true)]
    pub center: ColumnPos,

    /// Keep a box instead: the column with the lowest coordinates
    #[arg(long, value_name = "X,Z", value_parser = column, requires = "to", allow_hyphen_values = true)]
    pub from: Option<ColumnPos>,

    /// The column of the box with the highest coordinates, included
    #[arg(long, value_name = "X,Z", value_parser = column, requires = "from", allow_hyphen_values = true)]
    pub to: Option<ColumnPos>,

    /// Only count what would be deleted
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

impl Command {
    /// Whether it only looks at something, for moments.
    pub fn only_looks(&self) -> bool {
        matches!(self, Self::Info { .. } | Self::Inspect { .. } | Self::Restore { list: true, .. })
    }
}

impl ExportWorldArguments {
    /// The box.
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
    /// How far it is moved, in chunks.
    pub fn moved_by(&self) -> Result<[i64; 3], Failure> {
        let BlockPos { x, y, z } = self.r#move;
        match [x, y, z].iter().all(|blocks| blocks % 16 == 0) {
            true => Ok([x, y, z].map(|blocks| blocks / 16)),
            false => Err(Failure::arguments("--move takes multiples of 16: an export holds whole chunks")),
        }
    }
}

impl PruneArguments {
    /// What is to be kept.
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

/// So many whole numbers with commas between them.
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

/// A parser for one of these words, and what each means.
fn one_of<T: Clone + Send + Sync + 'static, const N: usize>(
    words: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(words.each_ref().map(|(word, _)| *word));
    names.try_map(move |name| {
        let found = words.iter().find(|(word, _)| *word == name);
        found.map(|(_, meaning)| meaning.clone()).ok_or("no such word")
    })
}
