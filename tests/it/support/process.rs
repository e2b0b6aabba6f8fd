//! Tests that run as separate processes, to be killed or listened to. Every wait for one has a deadline, so a process that
//! hangs fails its test and does not block the whole run.

use bevy_terrane::simulation::SplitMix64;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The working folder of the process.
const PLACE: &str = "TERRANE_TEST_PLACE";

/// The time that a process may take for its next line, or for its end.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The working folder if this process was started by [`process`]; without one, its test does nothing.
pub fn here() -> Option<PathBuf> {
    std::env::var_os(PLACE).map(PathBuf::from)
}

pub fn program() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

/// Signals that end an app.
#[cfg(unix)]
pub const ENDING: [(i32, &str); 3] = [(1, "-HUP"), (2, "-INT"), (15, "-TERM")];

/// The command under a parent that ignores exactly these of the [`ENDING`] signals, regardless of the test's own parent.
#[cfg(unix)]
pub fn ignoring(mut command: Command, ignored: &[&str]) -> Command {
    use std::os::unix::process::CommandExt;

    unsafe extern "C" {
        /// From the system's C library.
        fn signal(number: i32, handler: usize) -> usize;
    }
    const DEFAULT: usize = 0;
    const IGNORE: usize = 1;
    let handlers = ENDING.map(|(number, name)| (number, if ignored.contains(&name) { IGNORE } else { DEFAULT }));
    let set = move || {
        for (number, handler) in handlers {
            // SAFETY: `signal` is safe to call between fork and exec, and neither handler is a function.
            unsafe { signal(number, handler) };
        }
        Ok(())
    };
    // SAFETY: the closure does nothing else.
    unsafe { command.pre_exec(set) };
    command
}

/// A separate process, which ends with the test at the latest.
pub struct Process(Child);

impl Process {
    /// Waits until it has ended. A process that does not end is killed, and fails the test.
    #[track_caller]
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.wait_within(DEADLINE)
    }

    #[track_caller]
    pub fn wait_within(&mut self, limit: Duration) -> io::Result<ExitStatus> {
        // The process may wait for the end of its input.
        drop(self.0.stdin.take());
        let end = Instant::now() + limit;
        while Instant::now() < end {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(2));
        }
        let number = self.0.id();
        self.0.kill()?;
        self.0.wait()?;
        panic!("process {number} had not ended after {limit:?}");
    }

    /// Sends a signal, by its name for `kill`.
    #[cfg(unix)]
    pub fn signal(&self, name: &str) {
        let sent = output(Command::new("kill").args([name, &self.0.id().to_string()]));
        assert!(sent.status.success(), "kill {name}: {sent:?}");
    }
}

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended, unless the test failed.
        if let Ok(None) = self.0.try_wait() {
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }
}

/// Runs one test of this program as a separate process with the folder `path`. Returns its output, line by line.
pub fn process(test: &str, path: &Path) -> (Process, Lines) {
    start(program(), test, path)
}

/// The same through another command, which passes on the program's arguments.
pub fn start(mut command: Command, test: &str, path: &Path) -> (Process, Lines) {
    command.args(["--exact", test, "--nocapture"]).env(PLACE, path);
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a process");
    let lines = BufReader::new(process.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
    let (sender, receiver) = channel();
    // Reads to the end even if the lines are no longer wanted, since the process writes a last line.
    thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
    (Process(process), Lines(receiver))
}

/// The output of a process, until it ends. The test fails if the next line does not come within the deadline.
pub struct Lines(Receiver<String>);

impl Iterator for Lines {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        match self.0.recv_timeout(DEADLINE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the process wrote nothing for {DEADLINE:?}"),
        }
    }
}

/// Runs one test of this program as a separate process and kills it at a random time, again and again. Each process first writes a line
/// that tells what it found; this is compared from the first word on.
pub fn kill_again_and_again(test: &str, kills: u64, expected: &str) {
    let mut random = SplitMix64::new(kills);
    let folder = tempfile::tempdir().unwrap();
    let begin = expected.split(' ').next().unwrap_or_default();
    for round in 0..=kills {
        let (mut process, mut lines) = process(test, &folder.path().join("world"));
        let found = lines.find(|line| line.starts_with(begin));
        thread::sleep(Duration::from_micros(random.below(120_000).into()));
        kill(&mut process);
        assert_eq!(found.as_deref(), Some(expected), "after {round} kills");
    }
}

/// Kills the process, and waits until it is gone.
pub fn kill(process: &mut Process) {
    process.kill().unwrap();
    process.wait().unwrap();
}

/// Runs a command to its end, and returns its output.
#[track_caller]
pub fn output(command: &mut Command) -> Output {
    output_within(command, DEADLINE)
}

/// The same with another limit.
#[track_caller]
pub fn output_within(command: &mut Command, limit: Duration) -> Output {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    fn all(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            drop(pipe.read_to_end(&mut bytes));
            bytes
        })
    }
    let stdout = all(process.stdout.take().expect("it is piped"));
    let stderr = all(process.stderr.take().expect("it is piped"));
    let status = Process(process).wait_within(limit).unwrap();
    Output { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
}

/// Waits for endless processes must fail, and leave no process behind.
#[cfg(unix)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_process_that_does_not_end_fails_the_test_and_is_killed() {
        let sleeper = Command::new("sleep").arg("600").spawn().unwrap();
        let mut sleeper = Process(sleeper);
        let waited = catch_unwind(AssertUnwindSafe(|| sleeper.wait_within(Duration::from_millis(50))));
        assert!(waited.is_err());
        assert!(sleeper.try_wait().unwrap().is_some(), "it is gone");
    }
}
