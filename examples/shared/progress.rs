//! Progress: a line that is redrawn in a terminal, and separate lines elsewhere.

use super::tell::{self, BAR};
use bevy::prelude::Resource;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// Shows the progress on the standard error.
#[derive(Resource)]
pub struct Progress {
    bar: &'static ProgressBar,
    shown: Instant,
}

impl Progress {
    /// Creates the progress line. `template` is an `indicatif` template for terminals.
    pub fn new(template: &str) -> Self {
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = BAR.get_or_init(|| ProgressBar::new(0));
        bar.set_style(style.progress_chars("=> "));
        bar.reset();
        Self { bar, shown: Instant::now() }
    }

    /// Returns `true` if an update is due: after one second in a terminal, after five elsewhere.
    pub fn is_due(&self) -> bool {
        self.shown.elapsed() >= Duration::from_secs(if self.bar.is_hidden() { 5 } else { 1 })
    }

    pub fn show(&mut self, done: u64, all: u64, text: String) {
        self.shown = Instant::now();
        if self.bar.is_hidden() {
            return tell::say(text);
        }
        self.bar.set_length(all);
        self.bar.set_position(done);
        self.bar.set_message(text);
    }
}
