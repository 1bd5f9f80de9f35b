//! The address of a database, and how it is told: never with its password.
//!
//! `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=…&application_name=…`, as every PostgreSQL client takes it. Of the
//! parameters, `sslmode` and `sslrootcert` are read here, the rest by the driver:
//!
//! | `sslmode` | what it does |
//! |---|---|
//! | `disable` | never encrypts |
//! | `prefer` (default) | encrypts if the server can, without asking who it is; not at all on this machine |
//! | `require` | encrypts or fails; asks who it is only if `sslrootcert` is given |
//! | `verify-ca`, `verify-full` | encrypts, and the certificate must be for this host and of a known authority |
//!
//! `sslrootcert` is a PEM file with the authorities to believe; without it, those that browsers believe.

use super::tls::{Tls, Trust};
use crate::StoreError;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// How the server's own list of clients calls us, unless the address says otherwise.
const APPLICATION_NAME: &str = "aish";
/// How long one attempt to connect may take, in seconds, unless the address says otherwise.
const CONNECT_TIMEOUT_S: u64 = 5;
/// How long sent bytes may stay unanswered before a connection counts as dead, in seconds.
const TCP_USER_TIMEOUT_S: u64 = 15;
/// How long a connection is silent before it is asked whether it lives, in seconds.
const KEEPALIVE_IDLE_S: u64 = 15;
/// How often it is asked then, in seconds.
const KEEPALIVE_INTERVAL_S: u64 = 5;
/// How often in all, before it counts as dead.
const KEEPALIVE_RETRIES: u32 = 3;
/// PostgreSQL's port.
const PORT: u16 = 5432;

/// Where a ledger in PostgreSQL is.
///
/// ```
/// use aish_store::postgres::PostgresUrl;
///
/// let url = PostgresUrl::parse("postgres://ann:secret@db.example/aish?sslmode=verify-full")?;
/// assert_eq!(url.to_string(), "postgres://ann@db.example:5432/aish");
/// # Ok::<(), aish_store::StoreError>(())
/// ```
#[derive(Clone)]
pub struct PostgresUrl {
    pub(super) config: Config,
    pub(super) tls: Tls,
    /// Without the password.
    shown: String,
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresUrl").field(&self.shown).finish()
    }
}

/// The parameters that are ours to read, and the address without them.
struct Split {
    rest: String,
    mode: Option<String>,
    authorities: Option<PathBuf>,
}

impl PostgresUrl {
    /// Reads an address.
    ///
    /// # Errors
    /// [`StoreError::Format`] if it cannot be read, or its authorities cannot; the text quotes nothing of it that may be secret.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let split = split(text);
        // What was not understood as ours must not be lost: it may have asked for encryption.
        if ["sslmode", "sslrootcert"].iter().any(|name| split.rest.contains(name)) {
            return Err(unreadable());
        }
        // What the driver says of an address may quote a piece of its password.
        let mut config: Config = split.rest.parse().map_err(|_| unreadable())?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(unreadable());
        }
        let is_here = config.get_hosts().iter().all(is_on_this_machine);
        let (mode, trust) = security(split.mode.as_deref(), split.authorities, is_here)?;
        config.ssl_mode(mode);
        if config.get_application_name().is_none() {
            config.application_name(APPLICATION_NAME);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(CONNECT_TIMEOUT_S));
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(Duration::from_secs(TCP_USER_TIMEOUT_S));
        }
        if config.get_hosts().len() > 1 && config.get_target_session_attrs() == TargetSessionAttrs::Any {
            // Of several servers one can be written to.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        config.keepalives_idle(Duration::from_secs(KEEPALIVE_IDLE_S));
        config.keepalives_interval(Duration::from_secs(KEEPALIVE_INTERVAL_S));
        config.keepalives_retries(KEEPALIVE_RETRIES);
        Ok(Self {
            shown: shown(&config),
            tls: Tls::new(&trust)?,
            config,
        })
    }

    /// Its password, if it has one: for whoever has to keep it from others.
    pub fn password(&self) -> Option<&str> {
        std::str::from_utf8(self.config.get_password()?).ok()
    }

    /// Its first host, a directory where the server is on a unix socket, and its port.
    pub(super) fn first_host(&self) -> (String, u16) {
        hosts(&self.config).into_iter().next().unwrap_or_default()
    }
}

fn unreadable() -> StoreError {
    StoreError::Format(
        "the address of the PostgreSQL ledger cannot be read. It is \
         postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=MODE; write @ : / ? # % in a password as %40 %3A %2F %3F %23 %25"
            .to_owned(),
    )
}

fn split(text: &str) -> Split {
    let mut split = Split {
        rest: text.to_owned(),
        mode: None,
        authorities: None,
    };
    // A password may hold a question mark; what the driver takes for the password ends with the first `@`.
    let host = text.find('@').unwrap_or(0);
    let Some(end) = text.get(host..).and_then(|rest| rest.find('?')) else {
        return split;
    };
    let (address, query) = text.split_at(host + end);
    let query = query.trim_start_matches('?');
    let mut theirs = Vec::new();
    for piece in query.split('&') {
        // A plus sign is one here, not a blank.
        let plain = piece.replace('+', "%2B");
        match url::form_urlencoded::parse(plain.as_bytes()).next() {
            Some((name, value)) if name == "sslmode" => split.mode = Some(value.into_owned()),
            Some((name, value)) if name == "sslrootcert" => split.authorities = Some(value.into_owned().into()),
            Some(_) => theirs.push(piece),
            None => {}
        }
    }
    split.rest = if theirs.is_empty() {
        address.to_owned()
    } else {
        format!("{address}?{}", theirs.join("&"))
    };
    split
}

fn security(mode: Option<&str>, authorities: Option<PathBuf>, is_here: bool) -> Result<(SslMode, Trust), StoreError> {
    match (mode, authorities) {
        (Some("disable"), _) => Ok((SslMode::Disable, Trust::Nobody)),
        (None | Some("prefer"), _) if is_here => Ok((SslMode::Disable, Trust::Nobody)),
        (None | Some("prefer"), _) => Ok((SslMode::Prefer, Trust::Anybody)),
        (Some("require"), None) => Ok((SslMode::Require, Trust::Anybody)),
        (Some("verify-ca" | "verify-full"), None) => Ok((SslMode::Require, Trust::Known)),
        (Some("require" | "verify-ca" | "verify-full"), Some(file)) => Ok((SslMode::Require, Trust::Of(file))),
        (Some(_), _) => Err(StoreError::Format(
            "the address of the PostgreSQL ledger has an unknown sslmode: it is disable, prefer, require, verify-ca or \
             verify-full"
                .to_owned(),
        )),
    }
}

/// Bytes to this host leave no machine.
fn is_on_this_machine(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback()),
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

fn hosts(config: &Config) -> Vec<(String, u16)> {
    let ports = config.get_ports();
    // One port is for all hosts.
    let port = |n: usize| ports.get(n).or(ports.first()).copied().unwrap_or(PORT);
    let hosts = config.get_hosts().iter().enumerate();
    hosts
        .map(|(n, host)| match host {
            Host::Tcp(name) => (name.clone(), port(n)),
            #[cfg(unix)]
            Host::Unix(path) => (path.display().to_string(), port(n)),
        })
        .collect()
}

fn shown(config: &Config) -> String {
    let hosts: Vec<String> = hosts(config)
        .into_iter()
        .map(|(host, port)| format!("{host}:{port}"))
        .collect();
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{user}{}/{database}", hosts.join(","))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn check(address: &str, expect: &str, mode: SslMode) {
        let url = PostgresUrl::parse(address).unwrap();
        assert_eq!(url.to_string(), expect);
        assert_eq!(url.config.get_ssl_mode(), mode, "{address}");
        assert!(!format!("{url:?}").contains("secret"));
    }

    /// SPEC 9.5, 10.5: an address is read as other clients read it, and told without its password.
    #[test]
    fn addresses() {
        check(
            "postgres://ann:secret@db.example/x",
            "postgres://ann@db.example:5432/x",
            SslMode::Prefer,
        );
        check(
            "postgresql://ann:s%40cret@127.0.0.1:5433/x?application_name=desk",
            "postgres://ann@127.0.0.1:5433/x",
            SslMode::Disable,
        );
        check(
            "postgres://ann@a.example:1,b.example:2/x?sslmode=require&connect_timeout=2",
            "postgres://ann@a.example:1,b.example:2/x",
            SslMode::Require,
        );
        check(
            "postgres://ann:se?cret=1@db/x?sslmode=require",
            "postgres://ann@db:5432/x",
            SslMode::Require,
        );
        check(
            "postgres://ann@localhost/x?sslmode=verify-full",
            "postgres://ann@localhost:5432/x",
            SslMode::Require,
        );
        check(
            "postgres://ann@%2Frun%2Fpg/x",
            "postgres://ann@/run/pg:5432/x",
            SslMode::Disable,
        );
    }

    /// SPEC 10.4, 10.5: what cannot be read is told with what would be, and without a piece of a password.
    #[test]
    fn unreadable_addresses() {
        for address in [
            "postgres://ann:secret",
            "postgres://db/x?application_name=a@b&sslmode=secret",
            "postgres://ann:x/secret@db:secret/x",
            "postgres://ann:secret@db/x?sslmode=secret",
            "postgres:///x",
            "http://ann:secret@db/x",
            "",
        ] {
            let told = PostgresUrl::parse(address).unwrap_err().to_string();
            assert!(!told.contains("secret"), "{told}");
            assert!(told.contains("PostgreSQL"), "{told}");
        }
        let told = PostgresUrl::parse("postgres://a@db/x?sslmode=verify-full&sslrootcert=/nonexistent/ca.pem");
        let told = told.unwrap_err().to_string();
        assert!(told.contains("sslrootcert /nonexistent/ca.pem"), "{told}");
    }
}
