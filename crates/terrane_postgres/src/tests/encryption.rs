//! Encrypted connections.

use crate::server::{PostgresServer, Syncing};
use crate::{PostgresConfig, PostgresStore};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use terrane_storage::{Durability, Family, KeyValueStore, WriteBatch};

const CERTIFICATE: &str = "
    [req]
    distinguished_name = name
    x509_extensions = extensions
    prompt = no
    [name]
    CN = a test of terrane_postgres
    [extensions]
    subjectAltName = IP:127.0.0.1
";

/// Makes a certificate and its key in the folder.
fn make_certificate(folder: &Path) {
    std::fs::write(folder.join("config"), CERTIFICATE).unwrap();
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    openssl.args(["-config", "config", "-out", "certificate", "-keyout", "key"]).current_dir(folder);
    let made = openssl.output().expect("install the package `openssl`");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Lets the server offer TLS.
fn use_certificate(server: &PostgresServer, folder: &Path) {
    for (file, made) in [("server.crt", "certificate"), ("server.key", "key")] {
        let text = std::fs::read_to_string(folder.join(made)).unwrap();
        let lines = format!("SELECT unnest(string_to_array('{}', E'\\n'))", text.trim());
        server.execute(&format!("COPY ({lines}) TO PROGRAM 'umask 077; cat > {file}'")).unwrap();
    }
    server.execute("ALTER SYSTEM SET ssl TO on").unwrap();
    server.execute("SELECT pg_reload_conf(), pg_sleep(1)").unwrap();
}

#[test]
fn a_server_is_trusted_only_with_a_known_certificate() {
    let server = PostgresServer::start(Syncing::Off).unwrap();
    let folder = tempfile::tempdir().unwrap();
    make_certificate(folder.path());
    let address = |options: &str| server.address().replace("sslmode=disable", options);
    let trusting = format!("sslmode=verify-full&sslrootcert={}", folder.path().join("certificate").display());

    let error = PostgresStore::open(&address(&trusting)).unwrap_err().to_string();
    assert!(error.contains("does not support TLS"), "{error}");

    use_certificate(&server, folder.path());
    let store = PostgresStore::open(&address(&trusting)).unwrap();
    let mut batch = WriteBatch::default();
    batch.put(Family::Meta, *b"key", vec![7; 1 << 20]);
    store.write(batch, Durability::Sync).unwrap();
    assert_eq!(store.get(Family::Meta, b"key"), Ok(Some(vec![7; 1 << 20])));
    let used = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name = 'bevy_terrane'";
    let used = server.execute(used);
    assert_eq!(used.unwrap(), "t");

    // Without the certificate, encrypted connections are refused at once.
    for options in ["sslmode=require", "sslmode=prefer", ""] {
        let error = PostgresStore::open(&address(options)).unwrap_err().to_string();
        assert!(error.contains("certificate") && !error.contains(server.password()), "{error}");
    }
    let other_name = address(&trusting).replace("127.0.0.1", "localhost");
    let error = PostgresStore::open(&other_name).unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");

    let config = PostgresConfig { patience: Duration::from_secs(5), ..PostgresConfig::default() };
    PostgresStore::open_with(&server.address(), &config).unwrap();
}
