//! The output at the end.

use super::figures;
use serde_json::{Value, json};
use std::fmt;
use std::io;
use std::process::ExitCode;
use terrane_storage::upkeep::UpkeepError;
use terrane_storage::upkeep::schematics::ClosedWorldError;
use terrane_storage::{StoreError, WorldOpenError};

/// A result, or the reason why a command failed.
pub type Result<T> = std::result::Result<T, Failure>;

/// The reason why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// Arguments that contradict each other.
    pub fn arguments(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 2 }
    }

    /// A failure from an error of the library.
    fn of(error: &dyn fmt::Display, is_damage: bool) -> Self {
        Self { message: error.to_string(), code: if is_damage { End::Damaged.code() } else { 1 } }
    }

    /// Appends a hint to the message.
    pub fn with_hint(mut self, hint: &str) -> Self {
        self.message += hint;
        self
    }

    /// Appends a hint to the message if stored data is damaged.
    pub fn with_hint_for_damage(self, hint: &str) -> Self {
        if self.code == End::Damaged.code() { self.with_hint(hint) } else { self }
    }

    pub fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self { message, code: 1 }
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        error.to_string().into()
    }
}

impl From<ClosedWorldError> for Failure {
    fn from(error: ClosedWorldError) -> Self {
        Self::of(&error, matches!(&error, ClosedWorldError::Store(error) if error.is_damage()))
    }
}

macro_rules! from_errors_that_know_damage {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::of(&error, error.is_damage())
            }
        }
    )*};
}

from_errors_that_know_damage!(StoreError, WorldOpenError, UpkeepError);

/// The result of a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How the command ended.
    pub end: End,
    /// The figures.
    pub json: Value,
}

/// The way in which a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Well,
    /// The command found damage.
    Damaged,
    /// Ctrl-C stopped the command.
    Stopped,
}

impl End {
    /// The end of a command that did or did not finish, and did or did not find damage.
    pub fn of(is_finished: bool, is_whole: bool) -> Self {
        match (is_finished, is_whole) {
            (false, _) => Self::Stopped,
            (true, false) => Self::Damaged,
            (true, true) => Self::Well,
        }
    }

    /// The exit code of the program.
    pub fn code(self) -> u8 {
        match self {
            Self::Well => 0,
            Self::Damaged => 3,
            // As in shells.
            Self::Stopped => 130,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Well => "finished",
            Self::Damaged => "damaged",
            Self::Stopped => "stopped",
        }
    }
}

impl Outcome {
    /// Creates an outcome and adds a field with the end to the figures.
    pub fn new(end: End, mut json: Value) -> Self {
        json["outcome"] = end.name().into();
        Self { end, json }
    }

    /// The outcome of a command that was stopped and leaves nothing behind.
    pub fn stopped(note: &str) -> Self {
        Self::new(End::Stopped, json!({})).with_notes([note.to_owned()])
    }

    /// Adds sentences for people.
    pub fn with_notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        let notes: Vec<Value> = notes.into_iter().map(Value::from).collect();
        if !notes.is_empty() {
            self.json["notes"] = notes.into();
        }
        self
    }

    /// The outcome for people, with a line per figure.
    pub fn text(&self) -> String {
        let end = if self.end == End::Well { String::new() } else { format!("{}\n", self.end.name()) };
        end + &figures::lines(&self.json, "")
    }

    /// Prints it on the standard output.
    pub fn print(&self, json: bool) -> ExitCode {
        if json {
            println!("{}", self.json);
        } else {
            println!("{}", self.text().trim_end());
        }
        ExitCode::from(self.end.code())
    }
}

/// A note for each count other than 0.
pub fn counted<'a>(counts: impl IntoIterator<Item = (u64, &'a str)>) -> impl Iterator<Item = String> {
    counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"))
}
