//! How far it is: a line that is drawn anew in a terminal, line after line elsewhere.

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
    /// What the line in a terminal looks like, `indicatif`'s templates say.
    pub fn new(template: &str) -> Self {
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = BAR.get_or_init(|| ProgressBar::new(0));
        bar.set_style(style.progress_chars("=> "));
        bar.reset();
        Self { bar, shown: Instant::now() }
    }

    /// Whether it is time to show it: after a second in a terminal, after five elsewhere.
    pub fn is_due(&self) -> bool {
        self.shown.elapsed() >= Duration::from_secs(if self.bar.is_hidden() { 5 } else { 1 })
    }

    /// Shows that so many of so many are done.
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
