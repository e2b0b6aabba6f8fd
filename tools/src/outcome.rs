//! What is printed at the end.

use serde_json::Value;
use std::error::Error;
use std::process::ExitCode;

/// What a command needs, or why it cannot have it.
pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What a command did.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// For people.
    pub text: String,
    /// For programs.
    pub json: Value,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Well,
    /// Damage was found.
    Damaged,
    /// Ctrl-C ended it.
    Stopped,
}

impl End {
    /// The end of what was stopped or not, and found damage or not.
    pub fn of(is_finished: bool, is_whole: bool) -> Self {
        match (is_finished, is_whole) {
            (false, _) => Self::Stopped,
            (true, false) => Self::Damaged,
            (true, true) => Self::Well,
        }
    }

    /// For whoever started the program.
    pub fn code(self) -> u8 {
        match self {
            Self::Well => 0,
            Self::Damaged => 3,
            // As shells have it.
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
    /// The figures get a field that says how it ended.
    pub fn new(end: End, text: String, mut json: Value) -> Self {
        json["outcome"] = end.name().into();
        Self { end, text, json }
    }

    /// It was stopped, and nothing of it is left.
    pub fn stopped(text: &str) -> Self {
        Self::new(End::Stopped, text.into(), Value::Object(Default::default()))
    }

    /// Prints it on the standard output.
    pub fn print(&self, json: bool) -> ExitCode {
        if json {
            println!("{}", self.json);
        } else {
            println!("{}", self.text.trim_end());
        }
        ExitCode::from(self.end.code())
    }
}

/// As people read it.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}
