//! PostgreSQL's programs.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The user that runs a server if this process is root.
const SERVER_USER: &str = "postgres";

/// Where the programs are, and whether a server needs another user.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    folder: PathBuf,
    is_root: bool,
}

impl Programs {
    pub fn find() -> io::Result<Self> {
        let configured = Command::new("pg_config").arg("--bindir").output().ok();
        let configured = configured.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
        let packaged = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let packaged = packaged.map(|version| version.path().join("bin"));
        let in_path = std::env::var_os("PATH").unwrap_or_default();
        let folders = configured.into_iter().chain(packaged).chain(std::env::split_paths(&in_path));
        // Some installations have only the programs of a client in `pg_config`'s folder.
        let folder = folders.into_iter().find(|folder| folder.join("initdb").is_file());
        let missing = || io::Error::other("PostgreSQL's programs were not found; install the package `postgresql`");
        let user = Command::new("id").arg("-u").output()?;
        Ok(Self { folder: folder.ok_or_else(missing)?, is_root: user.stdout.trim_ascii() == b"0" })
    }

    pub fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }

    pub fn command(&self, program: &str) -> Command {
        Command::new(self.path(program))
    }

    /// A command that runs as the user of the server, in a folder that this user can read. `sh` is that of the system.
    pub fn command_of_server(&self, program: &str) -> Command {
        let program = if program == "sh" { program.into() } else { self.path(program) };
        let mut command = match self.is_root {
            true => {
                let mut command = Command::new("runuser");
                command.args(["-u", SERVER_USER, "--"]).arg(program);
                command
            }
            false => Command::new(program),
        };
        command.current_dir("/");
        command
    }

    /// Makes a file or folder one of the server's user.
    pub fn own(&self, path: &Path) -> io::Result<()> {
        match self.is_root {
            true => run(Command::new("chown").arg(SERVER_USER).arg(path)),
            false => Ok(()),
        }
    }
}

/// Runs a command to its end. Its output is part of the error.
pub(super) fn run(command: &mut Command) -> io::Result<()> {
    output(command).map(|_| ())
}

/// The output of a command.
pub(super) fn output(command: &mut Command) -> io::Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    match output.status.success() {
        true => Ok(text.trim_end().to_owned()),
        false => {
            let program = command.get_program().to_string_lossy().into_owned();
            Err(io::Error::other(format!("{program} failed: {text}{errors}")))
        }
    }
}
