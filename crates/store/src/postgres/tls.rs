//! Encryption of a connection: `rustls` where the driver wants to know how. Channel binding is not offered: a server that
//! insists on it (`SCRAM-SHA-256-PLUS` alone) cannot be reached.

use crate::StoreError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::{Connect, TlsConnector, client};

/// Whose certificate is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// No server is encrypted to.
    Nobody,
    /// Any: nobody listens in, but who answers is not known.
    Anybody,
    /// Those of the authorities that browsers believe.
    Known,
    /// Those of the authorities in a file.
    Of(PathBuf),
}

/// What encrypts connections.
#[derive(Clone)]
pub(super) struct Tls(Option<Arc<ClientConfig>>);

impl Tls {
    pub(super) fn new(trust: &Trust) -> Result<Self, StoreError> {
        let unusable = |error: rustls::Error| StoreError::Io {
            attempt: "preparing TLS to PostgreSQL".to_owned(),
            source: Box::new(error),
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = || {
            ClientConfig::builder_with_provider(Arc::clone(&provider))
                .with_safe_default_protocol_versions()
                .map_err(unusable)
        };
        let known = |roots: RootCertStore| Ok(builder()?.with_root_certificates(roots).with_no_client_auth());
        let config = match trust {
            Trust::Nobody => return Ok(Self(None)),
            Trust::Anybody => builder()?
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate(Arc::clone(&provider))))
                .with_no_client_auth(),
            Trust::Known => known(RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()))?,
            Trust::Of(file) => known(authorities(file)?)?,
        };
        Ok(Self(Some(Arc::new(config))))
    }
}

fn authorities(file: &Path) -> Result<RootCertStore, StoreError> {
    let unusable = |why: String| {
        StoreError::Format(format!(
            "sslrootcert {} of the PostgreSQL ledger's address cannot be used: {why}",
            file.display()
        ))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unusable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unusable("it holds no certificate".to_owned()));
    }
    Ok(roots)
}

/// Takes whatever certificate there is, if its owner holds its key: `sslmode=require` encrypts, and asks no more.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, io::Error> {
        let Some(config) = &self.0 else {
            return Ok(Handshake(None));
        };
        let name = ServerName::try_from(domain.to_owned()).map_err(io::Error::other)?;
        Ok(Handshake(Some((TlsConnector::from(Arc::clone(config)), name))))
    }
}

/// How one connection becomes an encrypted one; none where that was not wanted.
pub(super) struct Handshake(Option<(TlsConnector, ServerName<'static>)>);

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Shaking;

    fn connect(self, stream: Socket) -> Shaking {
        Shaking(self.0.map(|(connector, name)| connector.connect(name, stream)))
    }
}

/// A handshake under way.
pub(super) struct Shaking(Option<Connect<Socket>>);

impl Future for Shaking {
    type Output = Result<Encrypted, io::Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Some(connect) => Pin::new(connect).poll(context).map_ok(Encrypted),
            None => Poll::Ready(Err(io::Error::other("encryption is switched off by sslmode"))),
        }
    }
}

/// An encrypted connection.
pub(super) struct Encrypted(client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
