//! What the user can choose.

use super::tell::Run;
use clap::Parser;
use std::path::PathBuf;

/// Upgrades all claims of an export: they get the value that the next version of the game wants, and their keys get
/// another ending.
///
/// It can be killed at any time, or stopped by --seconds; the next run goes on.
///
/// Exit codes: 0 all are upgraded, 1 an error, 2 wrong arguments, 3 some stay as they are, 124 stopped by --seconds.
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

    /// What all examples have.
    #[command(flatten)]
    pub run: Run,
}
