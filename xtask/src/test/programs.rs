//! The test programs that cargo builds, run with the time of each test.

use super::steps::in_words;
use crate::cargo::Cargo;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The limit of CONTRIBUTING.md: a test that takes longer fails the run. It grows with what other programs take of the machine.
const LIMIT: Duration = Duration::from_secs(120);
/// A program that takes longer hangs, and is ended: CI would be stopped without a word about it.
const HANGS_AFTER: Duration = Duration::from_secs(30 * 60);
/// The number of tests that run at the same time for each processor. Most tests wait for threads, processes and clocks.
const TESTS_PER_PROCESSOR: usize = 2;
/// The program that takes longest.
const LONGEST: &str = "tests/it/main.rs";
/// The program whose tests draw: without a graphics card, one of them alone uses all processors.
const DRAWS: &str = "examples/tests/ladder.rs";
/// The length of the list of slow tests.
const LISTED: usize = 20;

/// The test programs of a build, and the times of their tests.
#[derive(Default)]
pub struct Programs {
    programs: Vec<Program>,
    times: BTreeMap<String, Duration>,
}

/// A test program.
struct Program {
    name: String,
    path: PathBuf,
    /// The folder of its package, in which cargo runs tests.
    folder: PathBuf,
}

impl Programs {
    /// Builds the tests of a choice of packages and features.
    pub fn build(&mut self, cargo: &Cargo, choice: &[&str]) -> Result<(), String> {
        let mut command = cargo.command(&["test", "--no-run", "--message-format=json-render-diagnostics"]);
        let output = command.args(choice).stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("cannot start {command:?}: {error}"))?;
        if !output.status.success() {
            return Err(format!("{command:?} failed ({})", output.status));
        }
        self.programs = String::from_utf8_lossy(&output.stdout).lines().filter_map(program).collect();
        // The longest first, so that the others run beside it, and the one that draws last, when the others have ended.
        self.programs.sort_by_key(|program| (!program.name.ends_with(LONGEST), program.name == DRAWS));
        if self.programs.is_empty() { Err("cargo has built no tests".to_owned()) } else { Ok(()) }
    }

    /// Runs all programs with these arguments and variables, two at a time: the tests of the longest wait for clocks and processes.
    /// Fails after the last one if a test failed or was too slow.
    pub fn run(&mut self, arguments: &[&str], variables: &[(&str, &OsStr)]) -> Result<(), String> {
        let (next, failures, times) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(BTreeMap::new()));
        let before = processor_times();
        let lane = || {
            while let Some(program) = self.programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut found = BTreeMap::new();
                if let Err(error) = program.run(arguments, variables, &mut found) {
                    lock(&failures).push(error);
                }
                lock(&times).append(&mut found);
            }
        };
        thread::scope(|scope| {
            scope.spawn(lane);
            lane();
        });
        self.times.append(&mut lock(&times));
        let mut failures = lock(&failures).clone();
        let limit = LIMIT.mul_f64(before.zip(processor_times()).map_or(1.0, |(before, now)| slowdown(before, now)));
        let slow = self.times.iter().filter(|(_, time)| **time > limit);
        failures.extend(slow.map(|(test, _)| format!("{test} is slower than {limit:.0?}, see CONTRIBUTING.md")));
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
    }

    /// The slowest tests as a table.
    pub fn slowest(&self) -> String {
        let mut times: Vec<_> = self.times.iter().map(|(test, time)| (*time, test)).collect();
        times.sort_unstable_by(|a, b| b.cmp(a));
        let rows = times.iter().take(LISTED).map(|(time, test)| format!("{:>14}  {test}\n", in_words(*time)));
        format!("\nThe slowest of {} tests:\n{}", times.len(), rows.collect::<String>())
    }
}

impl Program {
    /// Runs the program, adds the times of its tests, and prints its output as a whole.
    fn run(
        &self,
        arguments: &[&str],
        variables: &[(&str, &OsStr)],
        times: &mut BTreeMap<String, Duration>,
    ) -> Result<(), String> {
        let processors = thread::available_parallelism().map_or(2, usize::from);
        let threads = if self.name == DRAWS { 1 } else { processors * TESTS_PER_PROCESSOR };
        let mut command = Command::new(&self.path);
        command.args(arguments).arg(format!("--test-threads={threads}"));
        command.current_dir(&self.folder).envs(variables.iter().copied());
        // The times are an unstable option of the test harness, which this variable allows. It is not set for the build.
        command.args(["-Zunstable-options", "--report-time"]).env("RUSTC_BOOTSTRAP", "1");
        let output = self.path.with_extension("output");
        let status = run_into(&mut command, &output).map_err(|error| format!("cannot run {command:?}: {error}"))?;
        let text = fs::read(&output).map_err(|error| format!("cannot read {}: {error}", output.display()))?;
        let text = String::from_utf8_lossy(&text);
        print!("\n{}\n{text}", self.name);
        for (test, time) in text.lines().filter_map(test_with_time) {
            times.insert(format!("{}::{test}", self.name), time);
        }
        match status {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("{} failed ({status}): {command:?}", self.name)),
            None => Err(format!("{} hung for {HANGS_AFTER:?} and was ended: {command:?}", self.name)),
        }
    }
}

/// Runs a command with its output in a file; `None` if it hung.
fn run_into(command: &mut Command, output: &Path) -> io::Result<Option<ExitStatus>> {
    let file = File::create(output)?;
    let mut process = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn()?;
    let begin = Instant::now();
    while begin.elapsed() < HANGS_AFTER {
        if let Some(status) = process.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(50));
    }
    process.kill()?;
    process.wait().map(|_| None)
}

/// The time that all processors were busy, and the part of it that this process and its ended children took, in ticks of the
/// system's clock. `None` if the system does not tell.
fn processor_times() -> Option<[u64; 2]> {
    let numbers = |text: &str| text.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<u64>>();
    let all = fs::read_to_string("/proc/stat").ok()?;
    let all = numbers(all.lines().next()?);
    let own = fs::read_to_string("/proc/self/stat").ok()?;
    // The name before may contain anything. User and system time are the 12th and 13th number, those of children follow.
    let own = own.rsplit_once(')')?.1.split_whitespace().skip(11).take(4);
    // User, nice, system; then idle and waiting; then interrupts and what other machines took.
    let busy = all.get(..3)?.iter().sum::<u64>() + all.get(5..8)?.iter().sum::<u64>();
    Some([busy, own.filter_map(|word| word.parse::<u64>().ok()).sum()])
}

/// How many times as long a test may take because other programs use the processors. At most three times, since a container sees the
/// times of the whole machine, of which it has only a part.
fn slowdown(before: [u64; 2], now: [u64; 2]) -> f64 {
    let [busy, own] = [0, 1].map(|time| now[time].saturating_sub(before[time]) as f64);
    (busy / own.max(1.0)).clamp(1.0, 3.0)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The test program in a message of cargo.
fn program(message: &str) -> Option<Program> {
    let path = text(message, "\"executable\":\"").filter(|_| message.contains("\"test\":true},\"features\""))?;
    let (folder, name) = (text(message, "\"manifest_path\":\"")?, text(message, "\"src_path\":\"")?);
    let folder = Path::new(&folder).parent()?.to_owned();
    let name = Path::new(&name).strip_prefix(&folder).map_or(name.clone(), |name| name.display().to_string());
    let package = folder.file_name()?.to_string_lossy().into_owned();
    Some(Program { name: format!("{package}/{name}"), path: path.into(), folder })
}

/// The string that follows this key in a message of cargo.
fn text(message: &str, key: &str) -> Option<String> {
    let value = message.split_once(key)?.1.split('"').next()?;
    Some(value.replace("\\\\", "\\"))
}

/// The test of a line that the test harness prints, and its time.
fn test_with_time(line: &str) -> Option<(&str, Duration)> {
    let (test, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let seconds = result.rsplit_once('<')?.1.strip_suffix("s>")?.parse().ok()?;
    Some((test, Duration::try_from_secs_f64(seconds).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_in_the_messages_of_cargo() {
        let message = |is_test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///a/tools#terrane-tools@0.1.0","manifest_path":"/a/tools/Cargo.toml","target":{{"kind":["bin"],"name":"terrane","src_path":"/a/tools/src/main.rs","test":true}},"profile":{{"opt_level":"2","test":{is_test}}},"features":[],"filenames":["/t/terrane-1"],"executable":"/t/terrane-1","fresh":true}}"#
            )
        };
        let found = program(&message(true)).unwrap();
        assert_eq!(
            (&*found.name, found.path, found.folder),
            ("tools/src/main.rs", "/t/terrane-1".into(), "/a/tools".into())
        );
        assert!(program(&message(false)).is_none(), "the program itself is none");
    }

    #[test]
    fn a_test_may_take_longer_while_other_programs_use_the_processors() {
        assert_eq!(slowdown([100, 10], [300, 210]), 1.0, "nothing else runs");
        assert_eq!(slowdown([100, 10], [500, 210]), 2.0);
        assert_eq!(slowdown([100, 10], [9_000, 20]), 3.0, "the machine is much larger than the container");
        assert_eq!(slowdown([100, 10], [200, 210]), 1.0, "clocks are read one after the other");
        let [busy, own] = processor_times().unwrap();
        assert!(busy > own, "{busy}, {own}");
    }

    #[test]
    fn times_are_read_from_the_lines_of_the_test_harness() {
        let time = |line| test_with_time(line).map(|(test, time)| (test, time.as_millis()));
        assert_eq!(time("test light::a_roof_is_dark ... ok <1.250s>"), Some(("light::a_roof_is_dark", 1_250)));
        assert_eq!(time("test light::a_roof_is_dark ... FAILED <0.001s>"), Some(("light::a_roof_is_dark", 1)));
        assert_eq!(time("test other ... ignored"), None);
        assert_eq!(time("test result: ok. 2 passed; 0 failed; finished in 1.20s"), None);
    }
}
