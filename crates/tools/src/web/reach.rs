//! How far a fetch reaches: the clients that connect, and the one place where names become addresses.

use super::WebLimits;
use super::address::{is_public, refusal};
use aish_core::action::{Action, Reach};
use aish_core::policy::Onward;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, ClientBuilder, redirect};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How far a call may reach into the network.
#[derive(Clone, Debug, Default)]
pub struct WebAccess {
    /// What may be at an address that is fetched.
    pub reach: Reach,
    /// What becomes of a redirect to another address.
    pub ahead: Ahead,
}

/// What the rules say of where a call that runs is led on to.
#[derive(Clone, Default)]
pub struct Ahead(Option<Arc<Judge>>);

type Judge = dyn Fn(&Action) -> Onward + Send + Sync;

impl Ahead {
    /// Judged by this: the action is the same call of the other address.
    pub fn by(judge: impl Fn(&Action) -> Onward + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(judge)))
    }

    /// What is said of that action; nothing, where nobody judges.
    pub(super) fn judge(&self, action: &Action) -> Onward {
        self.0.as_ref().map_or(Onward::Unspoken, |judge| judge(action))
    }
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Ahead(by rule)"
        } else {
            "Ahead(nothing)"
        })
    }
}

/// What finds the addresses of a name; their ports do not matter.
pub type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// The hosts of the proxies in use, as they are written where they are configured. To these alone a connection is made wherever
/// they are: the user put them there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies(pub Vec<String>);

/// Makes the clients when they are first needed, one for each reach: what one may not connect to, it must not have open either.
pub(super) struct Clients {
    make: Box<dyn Fn() -> Result<ClientBuilder, String> + Send + Sync>,
    proxies: Proxies,
    lookup: Lookup,
    public: OnceLock<Result<Client, String>>,
    anywhere: OnceLock<Result<Client, String>>,
}

impl Clients {
    pub(super) fn new(make: Box<dyn Fn() -> Result<ClientBuilder, String> + Send + Sync>, proxies: Proxies) -> Self {
        Self {
            make,
            proxies,
            lookup: Arc::new(|name| Box::pin(system(name))),
            public: OnceLock::new(),
            anywhere: OnceLock::new(),
        }
    }

    pub(super) fn looking_up(self, lookup: Lookup) -> Self {
        Self { lookup, ..self }
    }

    /// The client for what may be reached.
    pub(super) fn client(&self, reach: Reach, limits: &WebLimits) -> Result<Client, String> {
        let made = match reach {
            Reach::Public => &self.public,
            Reach::Anywhere => &self.anywhere,
        };
        made.get_or_init(|| {
            let names = Names {
                lookup: Arc::clone(&self.lookup),
                reach,
                proxies: self.proxies.clone(),
            };
            let builder = (self.make)()?
                .redirect(redirect::Policy::none())
                .referer(false)
                .connect_timeout(Duration::from_millis(limits.connect_timeout_ms))
                .dns_resolver(Arc::new(names));
            builder
                .build()
                .map_err(|error| format!("Cannot make an HTTP client: {error}"))
        })
        .clone()
    }

    /// Where a proxy looks up names, what this machine knows of one is the best that is known. Nothing is said of a name that it
    /// does not know, and nothing where there is no proxy: then the name is judged when it is connected to.
    pub(super) async fn check_for_proxy(&self, name: &str) -> Result<(), String> {
        if self.proxies.0.is_empty() {
            return Ok(());
        }
        let found = (self.lookup)(name.to_owned()).await.unwrap_or_default();
        match found.iter().find(|found| !is_public(found.ip())) {
            Some(private) => Err(refusal(name, Some(private.ip()))),
            None => Ok(()),
        }
    }
}

/// The system's own lookup.
async fn system(name: String) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.collect())
}

/// Names become addresses here, and a connection is made to one of those and no other.
struct Names {
    lookup: Lookup,
    reach: Reach,
    proxies: Proxies,
}

/// A name that leads to nowhere public.
#[derive(Debug, thiserror::Error)]
#[error("{}", refusal(.name, Some(*.found)))]
pub(super) struct NotPublic {
    name: String,
    found: IpAddr,
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let is_proxy = self.proxies.0.iter().any(|proxy| proxy.eq_ignore_ascii_case(&name));
        let reach = if is_proxy { Reach::Anywhere } else { self.reach };
        let found = (self.lookup)(name.clone());
        Box::pin(async move {
            let found = found.await?;
            let (public, private): (Vec<_>, Vec<_>) = found
                .into_iter()
                .partition(|found| reach == Reach::Anywhere || is_public(found.ip()));
            match (public.is_empty(), private.first()) {
                (true, Some(private)) => Err(NotPublic {
                    name,
                    found: private.ip(),
                }
                .into()),
                (true, None) => Err(io::Error::other("the name leads nowhere").into()),
                (false, _) => Ok(Box::new(public.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn resolved(reach: Reach, found: &[&str]) -> Result<Vec<String>, String> {
        let found: Vec<SocketAddr> = found
            .iter()
            .filter_map(|ip| Some(SocketAddr::new(ip.parse().ok()?, 0)))
            .collect();
        let names = Names {
            lookup: Arc::new(move |_| Box::pin(std::future::ready(Ok(found.clone())))),
            reach,
            proxies: Proxies(vec!["proxy.corp".to_owned()]),
        };
        let name: Name = "a.example".parse().map_err(|_| "no name")?;
        let all = names.resolve(name).await.map_err(|error| error.to_string())?;
        Ok(all.map(|address| address.ip().to_string()).collect())
    }

    /// SPEC 12, issue 6: of the addresses of a name only public ones are connected to.
    #[tokio::test]
    async fn names_lead_to_public_addresses() {
        let mixed = ["10.0.0.1", "93.184.215.14", "::1", "2606:2800:21f::1"];
        let public = vec!["93.184.215.14".to_owned(), "2606:2800:21f::1".to_owned()];
        assert_eq!(resolved(Reach::Public, &mixed).await, Ok(public));
        let refused = resolved(Reach::Public, &["169.254.169.254"])
            .await
            .err()
            .unwrap_or_default();
        assert!(refused.contains("a.example (169.254.169.254)"), "{refused}");
        assert_eq!(
            resolved(Reach::Anywhere, &["127.0.0.1"]).await,
            Ok(vec!["127.0.0.1".to_owned()])
        );
        assert!(resolved(Reach::Public, &[]).await.is_err());
    }
}
