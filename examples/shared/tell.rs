//! How examples hear what they are to do, and tell what becomes of it.

use bevy_terrane::prelude::Resource;
use clap::{Args, Parser};
use indicatif::ProgressBar;
use serde::Serialize;
use std::fmt::Display;
use std::process::{self, ExitCode, Termination};
use std::sync::OnceLock;
use std::time::Duration;

/// The line that is drawn anew, if there is one: `progress.rs` draws it, and everything else goes above it.
pub static BAR: OnceLock<ProgressBar> = OnceLock::new();

/// The arguments that all examples have.
#[derive(Args, Resource, Clone, Debug)]
pub struct Run {
    /// Open no window; an example that draws leaves pictures
    #[arg(long, global = true)]
    pub headless: bool,

    /// How many seconds to run; loading, saving and taking pictures come on top
    #[arg(long, global = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub seconds: Option<u64>,

    /// Print the figures at the end as one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

impl Run {
    /// Whether the user's seconds have passed; never if the user gave none.
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

/// What the command line says. Help ends the process, and so does what is wrong: in one line.
pub fn arguments<Arguments: Parser>() -> Arguments {
    Arguments::try_parse().unwrap_or_else(|error| {
        if !error.use_stderr() {
            error.exit();
        }
        let text = error.to_string();
        // An empty line divides it from the usage.
        let reason: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
        say(format_args!("{}; --help lists all arguments", reason.join(" ")));
        process::exit(2)
    })
}

/// A line on the standard error.
pub fn say(message: impl Display) {
    match BAR.get() {
        Some(bar) => bar.suspend(|| eprintln!("{message}")),
        None => eprintln!("{message}"),
    }
}

/// Says what went wrong.
pub fn report(error: impl Display) {
    say(format_args!("error: {error}"));
}

/// Makes room on the terminal for what is printed at the end.
pub fn clear() {
    if let Some(bar) = BAR.get() {
        bar.finish_and_clear();
    }
}

/// The exit status of all that `main` does; an error is said in one line.
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
