//! The HTTP client that carries requests to models: its timeouts, proxies, certificates and redirects.
//!
//! Rules, each with a reason: TLS roots are read when the first TLS connection needs them, because most models are on
//! this machine and starting up must cost nothing; a loopback address never goes through a proxy, because no proxy can
//! reach it; a redirect is followed only within one origin, because the request carries a key and a conversation.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Redirects within one origin that are followed.
const REDIRECTS_MAX: usize = 5;

/// Hosts that never go through a proxy, whatever the environment says.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

/// How long to wait for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect_timeout_s: u64,
    /// For the first byte of a reply: a model on a slow machine reads a long prompt for minutes.
    pub first_byte_timeout_s: u64,
    /// Between two chunks of a reply.
    pub idle_timeout_s: u64,
    /// For the count of tokens after a reply has said why it ends, where a server then keeps silent.
    pub after_finish_timeout_s: u64,
    /// For the rest of a refusal's body.
    pub error_body_timeout_s: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect_timeout_s: 10,
            first_byte_timeout_s: 600,
            idle_timeout_s: 120,
            after_finish_timeout_s: 5,
            error_body_timeout_s: 10,
        }
    }
}

/// What the environment says about the network. Plain data: see [`Network::from_vars`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// The proxy for plain HTTP.
    pub http_proxy: Option<String>,
    /// The proxy for HTTPS.
    pub https_proxy: Option<String>,
    /// The proxy for both, where there is none of their own.
    pub all_proxy: Option<String>,
    /// Hosts that are reached directly, comma-separated.
    pub no_proxy: Option<String>,
    /// A PEM file whose certificates replace the built-in roots.
    pub cert_file: Option<PathBuf>,
}

impl Network {
    /// Reads the usual variables through `var`, e.g. `|name| std::env::var(name).ok()`.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Self {
        let either = |lower: &str, upper: &str| var(lower).or_else(|| var(upper)).filter(|value| !value.is_empty());
        // In a CGI process `HTTP_PROXY` is a header that the caller chose (CVE-2016-5385).
        let is_cgi = var("REQUEST_METHOD").is_some();
        Self {
            http_proxy: either("http_proxy", if is_cgi { "http_proxy" } else { "HTTP_PROXY" }),
            https_proxy: either("https_proxy", "HTTPS_PROXY"),
            all_proxy: either("all_proxy", "ALL_PROXY"),
            no_proxy: either("no_proxy", "NO_PROXY"),
            cert_file: var("SSL_CERT_FILE").filter(|path| !path.is_empty()).map(PathBuf::from),
        }
    }

    /// The hosts of the proxies, as [`reqwest`] connects to them.
    pub fn proxy_hosts(&self) -> Vec<String> {
        let proxies = [&self.http_proxy, &self.https_proxy, &self.all_proxy];
        let host = |address: &String| {
            let url = reqwest::Url::parse(address).ok().filter(reqwest::Url::has_host);
            // One without a scheme is taken for one that is reached over plain HTTP.
            let url = url.or_else(|| reqwest::Url::parse(&format!("http://{address}")).ok())?;
            url.host_str().map(str::to_owned)
        };
        proxies.into_iter().flatten().filter_map(host).collect()
    }
}

/// A client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A proxy's address is none.
    #[error("the proxy `{variable}` from the environment is no address")]
    Proxy {
        /// Which variable.
        variable: &'static str,
        /// Why; it may quote the address and a password in it, so it is no part of the message.
        source: reqwest::Error,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The client cannot be put together.
    #[error("cannot make an HTTP client")]
    Build(#[source] reqwest::Error),
}

/// Makes a client. It is cheap to clone and keeps its connections, so one is enough for a process.
///
/// # Errors
/// A proxy's address is invalid, or TLS cannot be set up.
pub fn client(timeouts: &Timeouts, network: &Network) -> Result<reqwest::Client, ClientError> {
    builder(timeouts, network)?.build().map_err(ClientError::Build)
}

/// Begins a client, for who needs another one than [`client`] makes.
///
/// # Errors
/// As [`client`].
pub fn builder(timeouts: &Timeouts, network: &Network) -> Result<reqwest::ClientBuilder, ClientError> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("aish/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(Duration::from_secs(timeouts.connect_timeout_s))
        .redirect(same_origin())
        .referer(false)
        // The environment's proxies are added below, with the exception for this machine.
        .no_proxy()
        .tls_backend_preconfigured(tls(network)?);
    let direct = match network.no_proxy.as_deref() {
        Some(hosts) => format!("{LOOPBACK},{hosts}"),
        None => LOOPBACK.to_owned(),
    };
    for (variable, address, make) in [
        (
            "HTTP_PROXY",
            &network.http_proxy,
            reqwest::Proxy::http as fn(String) -> _,
        ),
        ("HTTPS_PROXY", &network.https_proxy, reqwest::Proxy::https),
        ("ALL_PROXY", &network.all_proxy, reqwest::Proxy::all),
    ] {
        if let Some(address) = address {
            let proxy = make(address.clone()).map_err(|source| ClientError::Proxy { variable, source })?;
            builder = builder.proxy(proxy.no_proxy(reqwest::NoProxy::from_string(&direct)));
        }
    }
    Ok(builder)
}

/// Follows redirects within one origin; one that leads elsewhere is handed back as the answer.
fn same_origin() -> reqwest::redirect::Policy {
    reqwest::redirect::Policy::custom(|attempt| {
        let is_same = attempt
            .previous()
            .first()
            .is_some_and(|first| first.origin() == attempt.url().origin());
        // Only these two keep the method and the body: anything else would turn a question into a look at a page.
        let keeps_method = matches!(attempt.status().as_u16(), 307 | 308);
        if is_same && keeps_method && attempt.previous().len() <= REDIRECTS_MAX {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

fn tls(network: &Network) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = LazyRoots {
        cert_file: network.cert_file.clone(),
        provider: Arc::clone(&provider),
        inner: OnceLock::new(),
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// The usual verification of servers, with roots that are read at the first handshake.
#[derive(Debug)]
struct LazyRoots {
    cert_file: Option<PathBuf>,
    provider: Arc<CryptoProvider>,
    inner: OnceLock<Result<Arc<WebPkiServerVerifier>, rustls::Error>>,
}

impl LazyRoots {
    fn inner(&self) -> Result<&WebPkiServerVerifier, rustls::Error> {
        match self.inner.get_or_init(|| self.load()) {
            Ok(verifier) => Ok(verifier),
            Err(error) => Err(error.clone()),
        }
    }

    fn load(&self) -> Result<Arc<WebPkiServerVerifier>, rustls::Error> {
        let mut roots = RootCertStore::empty();
        match &self.cert_file {
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
            Some(path) => {
                let unusable = |why: String| rustls::Error::General(format!("SSL_CERT_FILE {}: {why}", path.display()));
                let pem = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
                for certificate in CertificateDer::pem_slice_iter(&pem) {
                    let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
                    // System bundles hold a few certificates that are no roots to rustls.
                    let _ignored = roots.add(certificate);
                }
                if roots.is_empty() {
                    return Err(unusable("no certificate in it".to_owned()));
                }
            }
        }
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider))
            .build()
            .map_err(|error| CertificateError::Other(OtherError(Arc::new(error))).into())
    }
}

impl ServerCertVerifier for LazyRoots {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.inner()?
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner()?.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner()?.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        // The schemes are the crypto provider's whatever the roots are, and are asked for before any certificate.
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn network(vars: &[(&str, &str)]) -> Network {
        Network::from_vars(|name| vars.iter().find(|var| var.0 == name).map(|var| var.1.to_owned()))
    }

    #[test]
    fn variables() {
        let network = network(&[
            ("https_proxy", "http://p:1"),
            ("HTTP_PROXY", "http://q:1"),
            ("NO_PROXY", ""),
        ]);
        assert_eq!(network.https_proxy.as_deref(), Some("http://p:1"));
        assert_eq!(network.http_proxy.as_deref(), Some("http://q:1"));
        assert_eq!(network.no_proxy, None);
    }

    #[test]
    fn hosts_of_proxies() {
        let network = network(&[
            ("HTTP_PROXY", "proxy.corp:3128"),
            ("HTTPS_PROXY", "http://me:pw@Second.corp:3128/"),
            ("ALL_PROXY", "socks5h://10.0.0.1"),
        ]);
        assert_eq!(network.proxy_hosts(), ["proxy.corp", "second.corp", "10.0.0.1"]);
    }

    #[test]
    fn a_cgi_header_is_no_proxy() {
        let network = network(&[("REQUEST_METHOD", "GET"), ("HTTP_PROXY", "http://evil:1")]);
        assert_eq!(network.http_proxy, None);
    }

    /// SPEC 6.11: an unusable proxy is named by its variable, without the password in it.
    #[test]
    fn a_bad_proxy_is_an_error() {
        let network = network(&[("ALL_PROXY", "http://user:secret@ no")]);
        let error = client(&Timeouts::default(), &network).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the proxy `ALL_PROXY` from the environment is no address"
        );
    }

    /// Roots are read when a certificate must be verified, not before.
    #[test]
    fn roots_are_lazy_and_their_errors_named() {
        let network = network(&[("SSL_CERT_FILE", "/nonexistent/roots.pem")]);
        client(&Timeouts::default(), &network).unwrap();
        let verifier = LazyRoots {
            cert_file: network.cert_file,
            provider: Arc::new(rustls::crypto::ring::default_provider()),
            inner: OnceLock::new(),
        };
        let error = verifier.inner().unwrap_err().to_string();
        assert!(error.contains("SSL_CERT_FILE /nonexistent/roots.pem"), "{error}");
        let built_in = LazyRoots {
            cert_file: None,
            provider: Arc::new(rustls::crypto::ring::default_provider()),
            inner: OnceLock::new(),
        };
        assert!(built_in.inner().is_ok());
    }
}
