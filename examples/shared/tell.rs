//! The common arguments of examples, and their messages.

use bevy_terrane::prelude::Resource;
use clap::{Args, Parser};
use indicatif::ProgressBar;
use serde::Serialize;
use std::fmt::Display;
use std::process::{self, ExitCode, Termination};
use std::sync::OnceLock;
use std::time::Duration;

/// The progress line, if there is one. `progress.rs` draws it, and all other messages appear above it.
pub static BAR: OnceLock<ProgressBar> = OnceLock::new();

/// The arguments that all examples share.
#[derive(Args, Resource, Clone, Debug)]
pub struct Run {
    /// Open no window; examples that draw save pictures instead
    #[arg(long, global = true)]
    pub headless: bool,

    /// How many seconds to run, plus the time for loading, saving and taking pictures
    #[arg(long, global = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub seconds: Option<u64>,

    /// Print the figures at the end as one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

impl Run {
    /// Returns `true` if `--seconds` have passed; never if they were not given.
    pub fn is_over(&self, elapsed: Duration) -> bool {
        self.seconds.is_some_and(|seconds| elapsed >= Duration::from_secs(seconds))
    }

    /// Prints the figures on the standard output.
    pub fn print(&self, figures: &(impl Serialize + Display)) {
        clear();
        match self.json.then(|| serde_json::to_string(figures)) {
            None => println!("{figures}"),
            Some(Ok(json)) => println!("{json}"),
            Some(Err(error)) => report(error),
        }
    }
}

/// Parses the command line. Exits after printing help, or after an error in one line.
pub fn arguments<Arguments: Parser>() -> Arguments {
    Arguments::try_parse().unwrap_or_else(|error| {
        if !error.use_stderr() {
            error.exit();
        }
        let text = error.to_string();
        // An empty line separates the reason from the usage.
        let reason: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
        say(format_args!("{}; --help lists all arguments", reason.join(" ")));
        process::exit(2)
    })
}

/// Prints a line on the standard error.
pub fn say(message: impl Display) {
    match BAR.get() {
        Some(bar) => bar.suspend(|| eprintln!("{message}")),
        None => eprintln!("{message}"),
    }
}

pub fn report(error: impl Display) {
    say(format_args!("error: {error}"));
}

/// Clears the progress line for the final output.
pub fn clear() {
    if let Some(bar) = BAR.get() {
        bar.finish_and_clear();
    }
}

/// The exit status of `main`. Prints an error in one line.
pub fn end<Status: Termination>(ended: Result<Status, impl Display>) -> ExitCode {
    clear();
    match ended {
        Ok(status) => status.report(),
        Err(error) => {
            report(error);
            ExitCode::FAILURE
        }
    }
}
