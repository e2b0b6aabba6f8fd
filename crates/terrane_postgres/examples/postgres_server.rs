//! Starts a PostgreSQL server in a folder, and prints its address. It runs until its input ends or it is terminated:
//! `cargo run --example postgres_server --features server -- FOLDER`.
//!
//! `FOLDER COMMAND ARGUMENTS` runs a command instead, with the address as its last argument, and stops when it ends.

#[cfg(unix)]
use {
    std::error::Error,
    std::io::{self, Read},
    std::path::Path,
    std::process::{Command, ExitCode},
    terrane_postgres::server::{PostgresServer, Syncing},
};

#[cfg(not(unix))]
fn main() {
    eprintln!("this starts PostgreSQL on Unix only");
}

#[cfg(unix)]
fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().ok_or("name the folder for the data")?;
    // The server stops when this process ends, for whatever reason.
    let server = PostgresServer::start_in(Path::new(&folder), Syncing::On)?;
    println!("{}", server.address());
    let Some(program) = arguments.next() else {
        io::stdin().read_to_end(&mut Vec::new())?;
        return Ok(ExitCode::SUCCESS);
    };
    // Ctrl-C reaches the command too, which may have to save something before it ends.
    ctrlc::set_handler(|| {})?;
    let status = Command::new(program).args(arguments).arg(server.address()).status()?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
