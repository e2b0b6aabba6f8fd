//! The project's tasks. `cargo xtask` lists them.
//!
//! Uses only the standard library, so that it builds in a second on a machine with nothing but Rust.

#[cfg(test)]
mod architecture;
mod cargo;
mod command_line;
mod demo;
mod documentation;
#[cfg(test)]
mod links;
mod pictures;
mod promises;
mod setup;
mod source;
mod template;
mod test;

use command_line::{HELP, Task};
use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match command_line::parse(env::args_os().skip(1)) {
        Ok(Task::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(Task::Demo(arguments)) => demo::run(arguments),
        Ok(Task::Doc) => documentation::run(),
        Ok(Task::Check) => test::check(),
        Ok(Task::Test) => test::run(),
        Ok(Task::Pictures(names)) => pictures::run(names),
        Ok(Task::Promises) => promises::run(),
        Ok(Task::Count) => source::count::run(),
        Err(error) => {
            eprintln!("{error}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    result.unwrap_or_else(|error| {
        eprintln!("\nerror: {error}");
        ExitCode::FAILURE
    })
}
