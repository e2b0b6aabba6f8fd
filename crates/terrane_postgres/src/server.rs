//! PostgreSQL servers of one's own, for tests and trials. The programs of PostgreSQL must be installed.
//!
//! PostgreSQL refuses to run as root. If this process is root, the server runs as the user `postgres`.

mod distance;
mod programs;

pub use distance::Distance;
use programs::Programs;
use std::fmt::Write;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use uuid::Uuid;

const USER: &str = "terrane";
const LOCALHOST: &str = "127.0.0.1";

/// A running server in a folder of its own. It stops when this is dropped or its process ends.
#[derive(Debug)]
pub struct PostgresServer {
    programs: Programs,
    folder: PathBuf,
    port: u16,
    password: String,
    /// Stops the server once its input ends, also if this process is killed.
    guard: Child,
}

/// How a server stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It ends all sessions and writes everything to disk.
    Fast,
    /// It stops at once, as in a crash, and recovers at the next start.
    Immediate,
}

/// The commits that survive a crash of the server's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syncing {
    /// All of them.
    On,
    /// Maybe none, but commits are faster. A crash of the server alone loses nothing.
    Off,
}

impl PostgresServer {
    /// Starts a server in a temporary folder, which is removed when the server stops for good.
    ///
    /// # Errors
    /// If PostgreSQL is not installed or does not start. The error contains its output.
    pub fn start(syncing: Syncing) -> io::Result<Self> {
        let programs = Programs::find()?;
        let folder = temporary_folder(&programs)?;
        create(&programs, &folder, syncing)?;
        Self::run(programs, folder, free_port()?, true)
    }

    /// Starts a server in `folder`, which keeps its data and its port. The folder is created if it is missing.
    ///
    /// # Errors
    /// If PostgreSQL is not installed or does not start, for instance because the user that runs it cannot reach the
    /// folder. The error contains its output.
    pub fn start_in(folder: &Path, syncing: Syncing) -> io::Result<Self> {
        let programs = Programs::find()?;
        std::fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        let kept_port = folder.join("port");
        if !folder.join("data/PG_VERSION").exists() {
            programs.own(&folder)?;
            std::fs::write(&kept_port, free_port()?.to_string())?;
            create(&programs, &folder, syncing)?;
        }
        let port = std::fs::read_to_string(kept_port)?;
        let port = port.trim().parse().map_err(|_| io::Error::other("the file `port` holds no number"))?;
        Self::run(programs, folder, port, false)
    }

    /// Starts a standby that follows this server. From now on, this server's commits wait for it.
    ///
    /// # Errors
    /// If PostgreSQL's programs fail. The error contains their output.
    pub fn standby(&self) -> io::Result<Self> {
        let folder = temporary_folder(&self.programs)?;
        let source = format!("host={LOCALHOST} port={} user={USER} password={}", self.port, self.password);
        // The standby has the same users.
        write_secret(&self.programs, &folder.join("password"), &self.password)?;
        let mut copy = self.programs.command_of_server("pg_basebackup");
        copy.args(["--checkpoint=fast", "--write-recovery-conf", "--dbname", &source, "--pgdata"])
            .arg(folder.join("data"));
        programs::run(&mut copy)?;
        let standby = Self::run(self.programs.clone(), folder, free_port()?, true)?;
        self.execute("ALTER SYSTEM SET synchronous_standby_names TO '*'")?;
        self.execute("SELECT pg_reload_conf()")?;
        Ok(standby)
    }

    /// Makes a standby a primary.
    ///
    /// # Errors
    /// If PostgreSQL's programs fail. The error contains their output.
    pub fn promote(&self) -> io::Result<()> {
        programs::run(self.control().args(["promote", "--wait"]))
    }

    /// Stops the server. [`restart`](Self::restart) starts it again.
    ///
    /// # Errors
    /// If PostgreSQL's programs fail. The error contains their output.
    pub fn stop(&self, stop: Stop) -> io::Result<()> {
        let mode = match stop {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        programs::run(self.control().args(["stop", "--wait", "--mode", mode]))
    }

    /// Starts the stopped server again, with the same data and port.
    ///
    /// # Errors
    /// If PostgreSQL does not start. The error contains its output.
    pub fn restart(&self) -> io::Result<()> {
        let options = format!(
            "-p {} -c listen_addresses={LOCALHOST} -c unix_socket_directories='{}'",
            self.port,
            self.folder.display()
        );
        let log = self.folder.join("log");
        let mut start = self.control();
        start.args(["start", "--wait", "--options", &options, "--log"]).arg(&log);
        programs::run(&mut start).map_err(|error| {
            let mut message = error.to_string();
            // The reason is in the log only.
            let _ = write!(message, "\n{}", std::fs::read_to_string(&log).unwrap_or_default());
            io::Error::other(message)
        })
    }

    /// Runs an SQL statement. Returns the values of its rows, one row a line.
    ///
    /// # Errors
    /// If the statement fails, with the server's message.
    pub fn execute(&self, statement: &str) -> io::Result<String> {
        let mut psql = self.programs.command("psql");
        psql.env("PGPASSWORD", &self.password).args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            LOCALHOST,
            "-U",
            USER,
        ]);
        psql.args(["-d", "postgres", "-p", &self.port.to_string(), "-c", statement]);
        programs::output(&mut psql)
    }

    /// The TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of the server's database over TCP, without a world.
    pub fn address(&self) -> String {
        self.address_at(&[self.port])
    }

    /// The address of the server's database over its Unix socket, without a world.
    pub fn socket_address(&self) -> String {
        let (folder, password) = (self.folder.display(), &self.password);
        format!("postgres:///postgres?host={folder}&port={}&user={USER}&password={password}&sslmode=disable", self.port)
    }

    /// The address with other ports, for proxies and standbys.
    pub fn address_at(&self, ports: &[u16]) -> String {
        let hosts: Vec<_> = ports.iter().map(|port| format!("{LOCALHOST}:{port}")).collect();
        format!("postgres://{USER}:{}@{}/postgres?sslmode=disable", self.password, hosts.join(","))
    }

    /// The password in the addresses.
    pub fn password(&self) -> &str {
        &self.password
    }

    fn run(programs: Programs, folder: PathBuf, port: u16, is_temporary: bool) -> io::Result<Self> {
        let mut guard = programs.command_of_server("sh");
        let script = r#"
            read -r _
            "$1" stop -D "$2/data" -m fast -t 10 || "$1" stop -D "$2/data" -m immediate
            [ "$3" = keep ] || rm -rf "$2"
        "#;
        guard.args(["-c", script, "guard"]).arg(programs.path("pg_ctl")).arg(&folder);
        guard.arg(if is_temporary { "remove" } else { "keep" });
        // A signal to the group of this process must not end the guard, too.
        guard.process_group(0);
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let password = std::fs::read_to_string(folder.join("password"))?;
        let server = Self { guard: guard.spawn()?, programs, folder, port, password };
        server.restart()?;
        Ok(server)
    }

    fn control(&self) -> Command {
        let mut control = self.programs.command_of_server("pg_ctl");
        control.arg("--silent").arg("--pgdata").arg(self.folder.join("data"));
        control
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

fn create(programs: &Programs, folder: &Path, syncing: Syncing) -> io::Result<()> {
    let password_file = folder.join("password");
    write_secret(programs, &password_file, &Uuid::new_v4().simple().to_string())?;
    let mut initdb = programs.command_of_server("initdb");
    initdb.args([
        "--auth=scram-sha-256",
        "--no-sync",
        "--encoding=UTF8",
        "--no-locale",
        "--username",
        USER,
        "--pwfile",
    ]);
    programs::run(initdb.arg(&password_file).arg("--pgdata").arg(folder.join("data")))?;
    let mut settings = "max_connections = 200\nshared_buffers = 64MB\n".to_owned();
    if syncing == Syncing::Off {
        settings += "fsync = off\n";
    }
    let mut file = std::fs::OpenOptions::new().append(true).open(folder.join("data/postgresql.conf"))?;
    io::Write::write_all(&mut file, settings.as_bytes())
}

/// Writes a file that only the server's user can read.
fn write_secret(programs: &Programs, file: &Path, secret: &str) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut opened = options.write(true).create(true).truncate(true).mode(0o600).open(file)?;
    io::Write::write_all(&mut opened, secret.as_bytes())?;
    programs.own(file)
}

fn temporary_folder(programs: &Programs) -> io::Result<PathBuf> {
    let folder = tempfile::Builder::new().prefix("terrane_postgres_").tempdir()?.keep();
    programs.own(&folder)?;
    Ok(folder)
}

/// A port that was free a moment ago.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((LOCALHOST, 0))?.local_addr()?.port())
}
