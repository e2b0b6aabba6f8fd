//! The command line.

use std::ffi::OsString;

/// Printed without arguments, and after a mistake.
pub const HELP: &str = "\
Tasks of bevy_terrane:

  cargo xtask demo [--] [ARGS]   Run the Jacksboro demo. Every argument goes to the demo:
                                 `cargo xtask demo --help` lists what it knows.
                                 `--store postgres://..` keeps its world in PostgreSQL, and
                                 `--postgres` starts a server for that first, in target/postgres.
  cargo xtask test               Run every check of the project, in this order:
                                   formatting        cargo fmt
                                   one build         no program that README and guide run, and no game made
                                                     from the template, compiles a dependency anew
                                   lints             cargo clippy, warnings denied, also with few features
                                   documentation     cargo doc, warnings denied
                                   tests             unit, integration and doc tests, among them the
                                                     architecture check, xtask/src/architecture.rs;
                                                     those of files of other programs where there are such
                                   the template      a game made from it compiles no dependency anew, and runs
                                   packages          cargo package, without compiling them again
                                 Its last lines are the times of these steps, and the slowest tests.
  cargo xtask check              Run the quick checks: formatting, the lints of all features, and the unit
                                 tests of the packages that have changed since the last commit.
  cargo xtask doc                Build the documentation, with the pictures and pages to which it links.
  cargo xtask pictures [NAMES]   Make the pictures of README and guide again, in docs/images.
  cargo xtask promises           Write all promises with their tests to promises.md in the target folder.
  cargo xtask count              Count lines, files and types of the libraries, and circles of imports.

The first two install what the build needs and the machine lacks (Debian and Ubuntu: with apt-get),
`test` and `demo --postgres` also PostgreSQL.

Environment:
  CARGO_TARGET_DIR     where to build, as for cargo itself; by default target
  XTASK_SKIP_SETUP=1   do not look for what is missing, and install nothing
  TERRANE_SCHEMATICS   schematics that other programs made; by default ../shared/schematics
  TERRANE_ROUNDS=10    repeat the long tests (kills, random worlds, damaged bytes) ten times as often
  TERRANE_DELAY=50     the milliseconds to the database, each way, in tests of several servers
";

/// One task with its arguments.
#[derive(Debug, PartialEq)]
pub enum Task {
    /// Print [`HELP`].
    Help,
    /// Run the demo with these arguments.
    Demo(Vec<OsString>),
    /// Build the documentation.
    Doc,
    /// Run every check.
    Test,
    /// Run the quick checks.
    Check,
    /// Make the pictures with these names, or all.
    Pictures(Vec<OsString>),
    /// Write the page of promises.
    Promises,
    /// Count the code.
    Count,
}

/// Reads the arguments that follow `cargo xtask`; the error is a sentence for the user.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Task, String> {
    let mut arguments = arguments.into_iter();
    let Some(task) = arguments.next() else { return Ok(Task::Help) };
    let mut rest: Vec<OsString> = arguments.collect();
    match task.to_str() {
        Some("help" | "--help" | "-h") => Ok(Task::Help),
        Some("demo") => {
            // Only the first `--` is a separator. A later one is an argument for the demo.
            if rest.first().is_some_and(|first| first == "--") {
                rest.remove(0);
            }
            Ok(Task::Demo(rest))
        }
        Some("pictures") if !rest.iter().any(|name| name == "--help" || name == "-h") => Ok(Task::Pictures(rest)),
        Some("pictures") => Ok(Task::Help),
        Some(name @ ("check" | "count" | "doc" | "test" | "promises")) => {
            match rest.first().and_then(|first| first.to_str()) {
                None if rest.is_empty() => Ok(match name {
                    "check" => Task::Check,
                    "count" => Task::Count,
                    "doc" => Task::Doc,
                    "test" => Task::Test,
                    _ => Task::Promises,
                }),
                Some("--help" | "-h") => Ok(Task::Help),
                _ => Err(format!("`{name}` takes no arguments, but got {:?}.", rest[0])),
            }
        }
        _ => Err(format!("There is no task {task:?}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Result<Task, String> {
        parse(words.iter().map(OsString::from))
    }

    fn demo(words: &[&str]) -> Result<Task, String> {
        Ok(Task::Demo(words.iter().map(OsString::from).collect()))
    }

    #[test]
    fn no_arguments_ask_for_help() {
        for words in [&[][..], &["help"], &["--help"], &["-h"], &["test", "--help"]] {
            assert_eq!(parse_words(words), Ok(Task::Help), "{words:?}");
        }
    }

    /// Promise, commands: `cargo xtask demo` passes each of its arguments on to the demo.
    #[test]
    fn the_demo_gets_every_argument() {
        assert_eq!(parse_words(&["demo"]), demo(&[]));
        assert_eq!(parse_words(&["demo", "--help"]), demo(&["--help"]));
        assert_eq!(parse_words(&["demo", "--seconds", "20"]), demo(&["--seconds", "20"]));
        assert_eq!(parse_words(&["demo", "--", "--seconds", "20"]), demo(&["--seconds", "20"]));
        assert_eq!(parse_words(&["demo", "--", "a", "--", "b"]), demo(&["a", "--", "b"]));
    }

    #[test]
    fn pictures_can_be_named() {
        assert_eq!(parse_words(&["pictures"]), Ok(Task::Pictures(Vec::new())));
        assert_eq!(parse_words(&["pictures", "arena"]), Ok(Task::Pictures(vec!["arena".into()])));
        assert_eq!(parse_words(&["pictures", "--help"]), Ok(Task::Help));
    }

    #[cfg(unix)]
    #[test]
    fn arguments_need_not_be_unicode() {
        use std::os::unix::ffi::OsStringExt;
        let odd = OsString::from_vec(vec![b'a', 0xff]);
        assert_eq!(parse(["demo".into(), odd.clone()]), Ok(Task::Demo(vec![odd.clone()])));
        assert!(parse(["test".into(), odd.clone()]).is_err());
        assert!(parse([odd]).is_err());
    }

    #[test]
    fn mistakes_are_named() {
        assert!(parse_words(&["dmeo"]).unwrap_err().contains("dmeo"));
        assert!(parse_words(&["test", "--fast"]).unwrap_err().contains("--fast"));
        assert!(parse_words(&["promises", "all"]).unwrap_err().contains("`promises` takes no arguments"));
    }
}
