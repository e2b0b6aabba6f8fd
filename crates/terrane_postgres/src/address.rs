//! The address of a world: a URL as libpq takes it, with the world's name behind `#`.

use std::env;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

const DEFAULT_WORLD: &str = "terrane";
/// The longest name of a schema, in bytes.
const LONGEST_NAME: usize = 63;
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// The time after which a host that does not answer counts as unreachable, and a silent connection as broken.
const SILENCE: Duration = Duration::from_secs(10);

/// A parsed address. Without a password in it, that of the variable `PGPASSWORD` is used.
#[derive(Clone)]
pub(crate) struct Address {
    /// How to connect to each of the hosts.
    pub hosts: Vec<Config>,
    /// The name of the world, which is that of its schema.
    pub world: String,
    /// The address without its password and options.
    pub path: PathBuf,
    /// A PEM file with certificates to trust besides those of the system.
    pub certificates: Option<PathBuf>,
}

impl Address {
    /// Parses an address. The error never contains a part of the address that may be a password.
    pub fn parse(address: &str, is_read_only: bool) -> Result<Self, String> {
        let (url, world) = address.rsplit_once('#').unwrap_or((address, DEFAULT_WORLD));
        check_world(world)?;
        let behind_scheme = SCHEMES.iter().find_map(|scheme| url.strip_prefix(scheme));
        let rest = behind_scheme.ok_or("an address begins with postgres://")?;
        let (credentials, rest) =
            rest.split_once('@').map_or(("", rest), |(_, at)| rest.split_at(rest.len() - at.len()));
        let (hosts, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if hosts.contains('@') || rest.split('?').next().is_some_and(|database| database.contains('@')) {
            return Err("write an @ in the user's name or password as %40, a / as %2f, and a # as %23".into());
        }
        let (database, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (mut known, mut certificates) = (Vec::new(), None);
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("sslrootcert", file)) => certificates = Some(PathBuf::from(file)),
                // The certificate and its name are always checked.
                Some(("sslmode", "verify-ca" | "verify-full")) => known.push("sslmode=require"),
                _ => known.push(option),
            }
        }
        let options = known.join("&");
        let hosts = hosts.split(',').map(|host| {
            let url = format!("postgres://{credentials}{host}{database}?{options}");
            let mut config: Config = url.parse().map_err(|error| crate::failure::message(&error))?;
            set_defaults(&mut config, is_read_only);
            match config.get_hosts() {
                [] => Err("the address names no host".to_owned()),
                _ => Ok(config),
            }
        });
        let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
        let path = path(&hosts, world);
        Ok(Self { hosts, world: world.to_owned(), path, certificates })
    }

    /// Returns `true` if a connection may use TLS.
    pub fn uses_tls(&self) -> bool {
        self.hosts.iter().any(|host| host.get_ssl_mode() != SslMode::Disable)
    }
}

/// The world's name is never part of the error: if a password has an unescaped `#`, the name contains the end of the
/// password.
fn check_world(world: &str) -> Result<(), String> {
    let is_known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    if world.is_empty() || world.len() > LONGEST_NAME || !world.bytes().all(is_known) || world.starts_with("pg_") {
        return Err(format!(
            "the world's name behind # has 1 to {LONGEST_NAME} of the characters a-z, 0-9, _ and -, and does not begin \
             with pg_; write a # in a password as %23"
        ));
    }
    Ok(())
}

fn set_defaults(config: &mut Config, is_read_only: bool) {
    if let (None, Ok(password)) = (config.get_password(), env::var("PGPASSWORD")) {
        config.password(password);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(SILENCE / 2);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    if config.get_application_name().is_none() {
        config.application_name("bevy_terrane");
    }
    if config.get_target_session_attrs() == TargetSessionAttrs::Any && !is_read_only {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    config.keepalives_idle(SILENCE).keepalives_interval(SILENCE / 5).keepalives_retries(3);
}

fn path(hosts: &[Config], world: &str) -> PathBuf {
    let named: Vec<_> =
        hosts.iter().flat_map(|config| config.get_hosts().iter().zip(ports(config)).map(name)).collect();
    let user = hosts.iter().find_map(Config::get_user).map_or(String::new(), |user| format!("{user}@"));
    let database = hosts.iter().find_map(Config::get_dbname).unwrap_or_default();
    PathBuf::from(format!("postgres://{user}{}/{database}#{world}", named.join(",")))
}

fn ports(config: &Config) -> impl Iterator<Item = u16> {
    let ports = config.get_ports();
    (0..).map(move |index| ports.get(index).or(ports.first()).copied().unwrap_or(5432))
}

fn name((host, port): (&Host, u16)) -> String {
    match host {
        Host::Tcp(host) if host.contains(':') => format!("[{host}]:{port}"),
        Host::Tcp(host) => format!("{host}:{port}"),
        #[cfg(unix)]
        Host::Unix(folder) => format!("{}:{port}", folder.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_has_no_password() {
        for (address, path) in [
            ("postgres://u:geheim@h/d", "postgres://u@h:5432/d#terrane"),
            ("postgresql://u:gehe%23im@h:77/d?sslmode=disable#w-2", "postgres://u@h:77/d#w-2"),
            ("postgres://u@h,i:6/d?password=geheim", "postgres://u@h:5432,i:6/d#terrane"),
            ("postgres://u:geheim@[::1]:5/d?sslmode=verify-full#a", "postgres://u@[::1]:5/d#a"),
            ("postgres:///d?host=/run/pg&user=u&password=geheim#a", "postgres://u@/run/pg:5432/d#a"),
        ] {
            assert_eq!(Address::parse(address, false).map(|parsed| parsed.path), Ok(path.into()), "{address}");
        }
    }

    #[test]
    fn wrong_addresses_are_refused_without_their_password() {
        for address in [
            "mysql://u:geheim@h/d",
            "postgres://u:geheim@h/d?colour=red",
            "postgres://u:geheim@h:port/d",
            "postgres://u:x@geheim@h/d",
            "postgres://u:x@geheim/y@h/d",
            "postgres://u:x#geheim@h/d",
            "postgres://u:x#geheim",
            "postgres://u:geheim@/d",
            "postgres://u:geheim@h/d#World",
            "postgres://u:geheim@h/d#pg_x",
            "postgres://u:geheim@h/d#",
            "geheim",
        ] {
            let error = Address::parse(address, false).map(|parsed| parsed.path).expect_err(address);
            assert!(!error.contains("geheim"), "{error}");
        }
    }

    #[test]
    fn a_writer_wants_a_primary_and_a_reader_any_server() {
        let attributes = |is_read_only| {
            let address = Address::parse("postgres://u@h,i/d", is_read_only).unwrap();
            address.hosts.iter().map(Config::get_target_session_attrs).collect::<Vec<_>>()
        };
        assert_eq!(attributes(false), [TargetSessionAttrs::ReadWrite; 2]);
        assert_eq!(attributes(true), [TargetSessionAttrs::Any; 2]);
    }
}
