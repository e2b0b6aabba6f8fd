//! Tests that run as processes of their own, to be killed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where the process works.
const PLACE: &str = "TERRANE_TEST_PLACE";

/// Where this process works, if it was started by [`process`]; the test that is run in it does nothing otherwise.
pub fn here() -> Option<PathBuf> {
    std::env::var_os(PLACE).map(PathBuf::from)
}

/// This program.
pub fn program() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

/// Runs one test of this program as a process of its own, which works at `path`. Gives what it writes, line by line: to be
/// kept until it has ended, since it writes a last line.
pub fn process(test: &str, path: &Path) -> (Child, impl Iterator<Item = String> + use<>) {
    start(program(), test, path)
}

/// The same through another command, which takes the arguments of the program.
pub fn start(mut command: Command, test: &str, path: &Path) -> (Child, impl Iterator<Item = String> + use<>) {
    command.args(["--exact", test, "--nocapture"]).env(PLACE, path);
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a process");
    let lines = BufReader::new(process.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
    (process, lines)
}

/// Kills the process, and waits until it is gone.
pub fn kill(process: &mut Child) {
    process.kill().unwrap();
    process.wait().unwrap();
}
