//! The sockets and the threads on which they run.

use crate::identity::{Identity, Verifier};
use crate::wire::ALPN;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use rustls::crypto::ring;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// A side that sends nothing for this long is gone.
pub(crate) const SILENCE: Duration = Duration::from_secs(4);
/// How often a side that has nothing to say shows that it is there.
const ALIVE: Duration = Duration::from_secs(1);
/// The bytes of a stream, and of a connection, that the other side may send before they are read.
const WINDOW_OF_CLIENT: u32 = 256 << 10;
const WINDOW_OF_SERVER: u32 = 4 << 20;
/// The bytes of datagrams that wait to be sent or read.
const DATAGRAMS: usize = 256 << 10;

/// The threads of the sockets.
pub(crate) fn runtime(threads: usize) -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(threads.max(1)).thread_name("terrane net").enable_all().build()
}

fn transport(window: u32) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        .max_idle_timeout(IdleTimeout::try_from(SILENCE).ok())
        .keep_alive_interval(Some(ALIVE))
        .stream_receive_window(VarInt::from_u32(window))
        .receive_window(VarInt::from_u32(2 * window))
        .datagram_receive_buffer_size(Some(DATAGRAMS))
        .datagram_send_buffer_size(DATAGRAMS)
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(4));
    Arc::new(config)
}

pub(crate) fn listen(address: SocketAddr, identity: &Identity) -> io::Result<Endpoint> {
    let provider = Arc::new(ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate.clone()], identity.key.clone_key());
    let mut tls = tls.map_err(io::Error::other)?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).map_err(io::Error::other)?));
    config.transport_config(transport(WINDOW_OF_CLIENT));
    Endpoint::server(config, address)
}

pub(crate) fn client_config(verifier: Arc<Verifier>) -> io::Result<ClientConfig> {
    let tls = rustls::ClientConfig::builder_with_provider(verifier.provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    let mut tls = tls;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).map_err(io::Error::other)?));
    config.transport_config(transport(WINDOW_OF_SERVER));
    Ok(config)
}
