//! The command line.

use super::tell::Run;
use clap::Parser;
use std::path::PathBuf;

/// Upgrades all claims of an export: they get the value that the next version of the game uses, and their keys get a new
/// ending.
///
/// It can be killed at any time, or stopped by --seconds; the next run continues.
///
/// Exit codes: 0 all are upgraded, 1 an error, 2 wrong arguments, 3 some were left unchanged, 124 stopped by --seconds.
#[derive(Parser, Clone, Debug)]
#[command(name = "upgrade", verbatim_doc_comment)]
pub struct Arguments {
    /// The first file of the export, or an object store; without one a sample file is created and upgraded
    pub file: Option<PathBuf>,

    /// The ending of the keys to upgrade
    #[arg(long, default_value = "/game:owner")]
    pub from: String,

    /// The new ending of the keys
    #[arg(long, default_value = "/game:claim")]
    pub to: String,

    /// The arguments that all examples share.
    #[command(flatten)]
    pub run: Run,
}
