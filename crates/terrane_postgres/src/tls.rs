//! Encrypted connections.

use crate::address::Address;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Trusts the certificates of the system and of the file that the address names. Reads nothing if the address turns TLS off.
pub(crate) fn connector(address: &Address) -> Result<MakeRustlsConnect, String> {
    let mut roots = RootCertStore::empty();
    if address.uses_tls() {
        // A system without certificates is an error only once a server's certificate has to be checked.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(file) = &address.certificates {
            let unusable =
                |error: &dyn std::fmt::Display| format!("cannot use the certificates in {}: {error}", file.display());
            for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unusable(&error))? {
                roots.add(certificate.map_err(|error| unusable(&error))?).map_err(|error| unusable(&error))?;
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = versions.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
