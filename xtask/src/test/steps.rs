//! Named steps with their times.

use std::process::Command;
use std::time::{Duration, Instant};

/// The steps of a run, each with its time.
pub struct Steps {
    start: Instant,
    done: Vec<(String, Duration)>,
}

impl Default for Steps {
    fn default() -> Self {
        Self { start: Instant::now(), done: Vec::new() }
    }
}

impl Steps {
    /// Runs a command as a step.
    pub fn run(&mut self, name: &str, command: &mut Command) -> Result<(), String> {
        self.time(name, || execute(command))
    }

    /// Runs a step, and notes its time even if it fails.
    pub fn time<T>(&mut self, name: &str, step: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        println!("\n== {name} ==");
        let start = Instant::now();
        let result = step().map_err(|error| format!("{name}: {error}"));
        self.done.push((name.to_owned(), start.elapsed()));
        println!(
            "-- {name}: {} {}",
            if result.is_ok() { "passed in" } else { "failed after" },
            in_words(start.elapsed())
        );
        result
    }

    /// The steps as a table, in their order.
    pub fn table(&self) -> String {
        let rows = self.done.iter().map(|(name, time)| format!("{:>14}  {name}\n", in_words(*time)));
        format!("\nThe steps:\n{}", rows.collect::<String>())
    }

    /// The time since the beginning.
    pub fn elapsed(&self) -> String {
        in_words(self.start.elapsed())
    }
}

/// Runs a command as the only step.
pub fn step(name: &str, command: &mut Command) -> Result<(), String> {
    Steps::default().run(name, command)
}

fn execute(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed ({status})")) }
}

pub fn in_words(duration: Duration) -> String {
    match duration.as_secs() {
        0..60 => format!("{:.1} s", duration.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable() {
        assert_eq!(in_words(Duration::from_millis(1_240)), "1.2 s");
        assert_eq!(in_words(Duration::from_secs(60)), "1 min 0 s");
        assert_eq!(in_words(Duration::from_secs(754)), "12 min 34 s");
    }

    /// Promise, commands: `cargo xtask test` runs everything that CI runs, and names the step that failed.
    #[cfg(unix)]
    #[test]
    fn a_failed_step_names_itself_and_its_command() {
        let mut steps = Steps::default();
        assert_eq!(steps.run("Fine", &mut Command::new("true")), Ok(()));
        let error = steps.run("Wrong", &mut Command::new("false")).unwrap_err();
        assert!(error.contains("Wrong") && error.contains("\"false\""), "{error}");
        assert!(steps.run("Absent", &mut Command::new("/no/such/program")).unwrap_err().contains("cannot start"));
        let table = steps.table();
        assert!(["Fine", "Wrong", "Absent"].iter().all(|name| table.contains(name)), "{table}");
    }
}
