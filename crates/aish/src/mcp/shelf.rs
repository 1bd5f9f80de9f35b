//! What servers offer beyond tools, fetched when somebody wants it and kept for as long as that connection lasts and the server
//! says nothing else.

use aish_mcp::host::News;
use aish_mcp::{Alias, McpError, Peer, Prompt, Resource, Template};
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A list of a server, and what was left out of it: one line each, escaped.
#[derive(Debug)]
pub struct Listing<T> {
    /// What there is. All text is the server's: hostile until escaped.
    pub items: Vec<T>,
    /// What was left out and why.
    pub remarks: Vec<String>,
}

/// The lists of every server.
#[derive(Default)]
pub struct Shelf {
    /// Prompts.
    pub prompts: Kept<Prompt>,
    /// Resources.
    pub resources: Kept<Resource>,
    /// Templates of resources.
    pub templates: Kept<Template>,
}

impl Shelf {
    /// Lets go of lists that are others now.
    pub fn hear(&self, server: &Alias, news: &News) {
        match news {
            News::PromptsChanged => self.prompts.forget(server.as_str()),
            News::ResourcesChanged => {
                self.resources.forget(server.as_str());
                self.templates.forget(server.as_str());
            }
            News::ToolsChanged | News::ResourceUpdated { .. } | News::Log { .. } | News::Stderr { .. } => {}
        }
    }

    /// Lets go of all lists of a server that is gone.
    pub fn forget(&self, alias: &str) {
        self.prompts.forget(alias);
        self.resources.forget(alias);
        self.templates.forget(alias);
    }
}

/// One kind of list, by alias.
pub struct Kept<T>(Mutex<HashMap<String, Entry<T>>>);

struct Entry<T> {
    /// Counts how often the server said that its list is another.
    changes: u64,
    list: Option<Came<T>>,
}

/// A list, and the connection that it came over.
struct Came<T> {
    peer: Weak<dyn Peer>,
    list: Arc<Listing<T>>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Default for Entry<T> {
    fn default() -> Self {
        Self { changes: 0, list: None }
    }
}

impl<T> Kept<T> {
    /// The list that came over that connection, fetched where it is not there.
    ///
    /// # Errors
    /// It cannot be fetched.
    pub async fn get(
        &self,
        alias: &str,
        peer: &Arc<dyn Peer>,
        fetch: impl Future<Output = Result<(Vec<T>, Vec<String>), McpError>>,
    ) -> Result<Arc<Listing<T>>, McpError> {
        let changes = {
            let mut entries = self.lock();
            let entry = entries.entry(alias.to_owned()).or_default();
            if let Some(kept) = &entry.list
                && std::ptr::addr_eq(kept.peer.as_ptr(), Arc::as_ptr(peer))
            {
                return Ok(Arc::clone(&kept.list));
            }
            entry.changes
        };
        let (items, remarks) = fetch.await?;
        let list = Arc::new(Listing { items, remarks });
        let mut entries = self.lock();
        let entry = entries.entry(alias.to_owned()).or_default();
        // What changed meanwhile is not what was fetched, for all that is known.
        if entry.changes == changes {
            entry.list = Some(Came {
                peer: Arc::downgrade(peer),
                list: Arc::clone(&list),
            });
        }
        Ok(list)
    }

    fn forget(&self, alias: &str) {
        let mut entries = self.lock();
        let entry = entries.entry(alias.to_owned()).or_default();
        entry.changes += 1;
        entry.list = None;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use aish_mcp::About;
    use aish_mcp::peer::Watch;
    use futures_util::future::BoxFuture;
    use serde_json::{Map, Value};
    use std::time::Duration;

    /// A connection that is never asked.
    struct Silent(About);

    impl Peer for Silent {
        fn about(&self) -> &About {
            &self.0
        }

        fn request<'a>(
            &'a self,
            _method: &'a str,
            _params: Map<String, Value>,
            _patience: Duration,
            _watch: Option<Watch>,
        ) -> BoxFuture<'a, Result<Value, McpError>> {
            Box::pin(std::future::pending())
        }

        fn ended(&self) -> BoxFuture<'_, McpError> {
            Box::pin(std::future::pending())
        }

        fn close(&self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }
    }

    fn peer() -> Arc<dyn Peer> {
        Arc::new(Silent(About::default()))
    }

    async fn got(kept: &Kept<u32>, peer: &Arc<dyn Peer>, fetched: u32) -> u32 {
        let fetch = std::future::ready(Ok((vec![fetched], Vec::new())));
        kept.get("git", peer, fetch)
            .await
            .unwrap()
            .items
            .first()
            .copied()
            .unwrap()
    }

    /// SPEC 6.4: a list is fetched once for a connection, and anew when the server says so or is connected to anew.
    #[tokio::test]
    async fn once_for_a_connection() {
        let kept = Kept::default();
        let (first, second) = (peer(), peer());
        assert_eq!(got(&kept, &first, 1).await, 1);
        assert_eq!(got(&kept, &first, 2).await, 1);
        assert_eq!(got(&kept, &second, 3).await, 3);
        kept.forget("git");
        assert_eq!(got(&kept, &second, 4).await, 4);
        // The server says that it changed while it is being fetched: what comes is used, and not kept.
        kept.forget("git");
        let fetch = async {
            kept.forget("git");
            Ok((vec![5], Vec::new()))
        };
        kept.get("git", &second, fetch).await.unwrap();
        assert_eq!(got(&kept, &second, 6).await, 6);
    }
}
