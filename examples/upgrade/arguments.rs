//! What the user can choose.

use clap::Parser;
use clap::error::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

/// Upgrades all claims of an export: they get the value that the next version of the game wants, and their keys get
/// another ending.
///
/// It can be killed at any time; the next run goes on.
///
/// Exit codes: 0 all are upgraded, 1 an error, 2 wrong arguments, 3 some stay as they are.
#[derive(Parser, Clone, Debug)]
#[command(name = "upgrade", verbatim_doc_comment)]
pub struct Arguments {
    /// The first file of the export, or an object store; without one it makes one to show it with
    pub file: Option<PathBuf>,

    /// The ending of the keys that are upgraded
    #[arg(long, default_value = "/game:owner")]
    pub from: String,

    /// The ending that they have then
    #[arg(long, default_value = "/game:claim")]
    pub to: String,
}

impl Arguments {
    /// What the command line says, or the code to exit with when that is said.
    pub fn from_command_line() -> Result<Self, ExitCode> {
        Self::try_parse().map_err(|error| {
            let _ = error.print();
            match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                _ => ExitCode::from(2),
            }
        })
    }
}
