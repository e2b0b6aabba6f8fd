//! [`Identity`]: the certificate of a server, and how a client knows that it is the right one.

use ::ring::digest;
use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, mem};
use tempfile::NamedTempFile;
use thiserror::Error;

/// The name in all certificates: clients compare the certificate, and no name.
pub(crate) const NAME: &str = "bevy_terrane";

/// The certificate of a server and its private key. All servers of a shared world have the same one, so that clients know them all.
#[derive(Debug)]
pub struct Identity {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// The SHA-256 of a server's certificate, as 64 hexadecimal digits. It is no secret: a game ships it with the address of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// The error for an identity that cannot be made or read.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// The file cannot be read or written.
    #[error("the server's identity in {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The file has no certificate with its key.
    #[error("{} is not the identity of a server: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The certificate cannot be made.
    #[error("a certificate cannot be made: {0}")]
    Made(String),
}

impl Identity {
    /// A new identity, which is lost with the process.
    ///
    /// # Errors
    /// Fails if the system has no random numbers.
    pub fn generate() -> Result<Self, IdentityError> {
        let (certificate, key) = made()?;
        Ok(Self { certificate: certificate.der().clone(), key: PrivatePkcs8KeyDer::from(key.serialize_der()).into() })
    }

    /// The identity in a PEM file, which is made if it is missing. Only the owner of a new file can read it.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written, or is something else.
    pub fn in_file(path: impl AsRef<Path>) -> Result<Self, IdentityError> {
        let path = path.as_ref();
        let failed = |error| IdentityError::File { path: path.to_path_buf(), error };
        if !path.try_exists().map_err(failed)? {
            let (certificate, key) = made()?;
            let text = format!("{}{}", certificate.pem(), key.serialize_pem());
            write_privately(path, text.as_bytes()).map_err(failed)?;
        }
        let text = fs::read(path).map_err(failed)?;
        let invalid = |reason: rustls::pki_types::pem::Error| IdentityError::Invalid {
            path: path.to_path_buf(),
            reason: reason.to_string(),
        };
        Ok(Self {
            certificate: CertificateDer::from_pem_slice(&text).map_err(invalid)?,
            key: PrivateKeyDer::from_pem_slice(&text).map_err(invalid)?,
        })
    }

    /// What clients know the server by.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }
}

fn made() -> Result<(rcgen::Certificate, KeyPair), IdentityError> {
    let failed = |error: rcgen::Error| IdentityError::Made(error.to_string());
    let key = KeyPair::generate().map_err(failed)?;
    let params = CertificateParams::new([NAME.to_owned()]).map_err(failed)?;
    Ok((params.self_signed(&key).map_err(failed)?, key))
}

/// Writes a file that only its owner can read. It is there whole or not at all, since several servers may begin at the same time.
fn write_privately(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        // Another server of the world was faster.
        Err(failed) if failed.error.kind() != io::ErrorKind::AlreadyExists => Err(failed.error),
        _ => Ok(()),
    }
}

impl Fingerprint {
    fn of(certificate: &CertificateDer<'_>) -> Self {
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(digest::digest(&digest::SHA256, certificate).as_ref());
        Self(fingerprint)
    }
}

impl Display for Fingerprint {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The error for a text that is no fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a fingerprint has 64 hexadecimal digits")]
pub struct FingerprintError;

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(FingerprintError);
        let digits = text.trim().bytes().map(digit).collect::<Result<Vec<u32>, _>>()?;
        let bytes: Vec<u8> =
            digits.chunks(2).map(|pair| pair.iter().fold(0, |sum, digit| sum << 4 | *digit as u8)).collect();
        if digits.len() != 64 {
            return Err(FingerprintError);
        }
        bytes.try_into().map(Self).map_err(|_| FingerprintError)
    }
}

/// How a client knows that a server is the right one. The connection is encrypted in any case.
#[derive(Clone, Debug)]
pub enum Trust {
    /// The server has this certificate.
    Pinned(Fingerprint),
    /// The server has the certificate that it had when the client connected first, as `ssh` does it: this file keeps the fingerprints of
    /// servers by their addresses.
    FirstUse(PathBuf),
}

/// Compares the certificate of a server with what is known.
#[derive(Debug)]
pub(crate) struct Verifier {
    pub trust: Trust,
    pub address: String,
    pub provider: Arc<CryptoProvider>,
    /// Why the last server was refused.
    pub refusal: Mutex<Option<String>>,
}

impl Verifier {
    pub fn new(trust: Trust, address: String) -> Arc<Self> {
        Arc::new(Self { trust, address, provider: Arc::new(ring::default_provider()), refusal: Mutex::default() })
    }

    pub fn take_refusal(&self) -> Option<String> {
        mem::take(&mut *self.refusal.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn check(&self, found: Fingerprint) -> Result<(), String> {
        match &self.trust {
            Trust::Pinned(pinned) if *pinned == found => Ok(()),
            Trust::Pinned(_) => {
                Err(format!("the server at {} has another certificate ({found}) than it must have", self.address))
            }
            Trust::FirstUse(path) => {
                let text = match fs::read_to_string(path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                    read => read.map_err(|error| format!("{}: {error}", path.display()))?,
                };
                let known: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
                match known.get(self.address.as_str()) {
                    Some(fingerprint) if fingerprint.parse() == Ok(found) => Ok(()),
                    Some(_) => Err(format!(
                        "the server at {} has another certificate than before: if that is right, remove its line from {}",
                        self.address,
                        path.display()
                    )),
                    None => {
                        remember(path, &self.address, found).map_err(|error| format!("{}: {error}", path.display()))
                    }
                }
            }
        }
    }
}

fn remember(path: &Path, address: &str, found: Fingerprint) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    writeln!(fs::OpenOptions::new().append(true).create(true).open(path)?, "{address} {found}")
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(Fingerprint::of(certificate)).map(|()| ServerCertVerified::assertion()).map_err(|reason| {
            *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
            CertificateError::ApplicationVerificationFailure.into()
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
