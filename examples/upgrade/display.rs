//! How far it is: a bar in a terminal, lines elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The time between two lines where there is no terminal.
const LINE_PERIOD: Duration = Duration::from_secs(5);

/// Shows how many of how many objects are done.
pub fn show() -> impl FnMut(usize, usize) -> ControlFlow<()> {
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("[{wide_bar}] {pos} of {len} objects, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    let mut last_line = Instant::now();
    move |done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        if bar.is_hidden() && last_line.elapsed() >= LINE_PERIOD {
            last_line = Instant::now();
            eprintln!("{done} of {all} objects");
        }
        ControlFlow::Continue(())
    }
}
