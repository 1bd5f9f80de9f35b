//! Resources of servers (SPEC 6.9): listing them, and reading those that a question names with `@alias:uri`.

use super::Mcp;
use super::prompts::{CANNOT_BE_TYPED, shortened};
use super::shelf::Listing;
use crate::mentions::{Mentioned, Reference, TEXT_BYTES_MAX, mention_of_file, references};
use crate::term::columns::named;
use crate::term::quote::indented;
use aish_core::sanitize;
use aish_mcp::{McpError, Offer, Outcome, Resource, Template};
use std::sync::Arc;

/// Characters of a server's problem that are told.
const PROBLEM_CHARS_MAX: usize = 300;

impl Mcp {
    /// The resources of a server; waits for the server and asks it where that has to be.
    ///
    /// # Errors
    /// The server cannot be reached, or the list cannot be had.
    pub async fn resources(&self, alias: &str) -> Result<Arc<Listing<Resource>>, McpError> {
        let peer = self.servers().peer(alias).await?;
        let fetch = Offer::resources(peer.as_ref(), self.patience(alias));
        self.host.shelf.resources.get(alias, &peer, fetch).await
    }

    /// The templates of a server's resources; as [`Mcp::resources`].
    ///
    /// # Errors
    /// The server cannot be reached, or the list cannot be had.
    pub async fn templates(&self, alias: &str) -> Result<Arc<Listing<Template>>, McpError> {
        let peer = self.servers().peer(alias).await?;
        let fetch = Offer::templates(peer.as_ref(), self.patience(alias));
        self.host.shelf.templates.get(alias, &peer, fetch).await
    }

    /// Reads the resources that a question names, all at once, and puts them beside its files.
    ///
    /// # Errors
    /// One of them cannot go along: one line. The question should not be asked without it.
    pub async fn read_named(&self, text: &str, mentioned: &mut Mentioned) -> Result<(), String> {
        let named = references(text, &self.aliases());
        let read = named.iter().map(|reference| self.read(reference));
        let outcomes = futures_util::future::join_all(read).await;
        for (reference, outcome) in named.iter().zip(outcomes) {
            let outcome = outcome.map_err(|error| {
                let problem = sanitize::single_line(&error.message).into_owned();
                let problem: String = problem.chars().take(PROBLEM_CHARS_MAX).collect();
                format!("{reference} cannot be read: {problem}")
            })?;
            mentioned.add_resource(reference, outcome)?;
        }
        Ok(())
    }

    async fn read(&self, reference: &Reference) -> Result<Outcome, McpError> {
        let alias = reference.alias.as_str();
        let peer = self.servers().peer(alias).await?;
        Resource::read(peer.as_ref(), &reference.uri, self.patience(alias), TEXT_BYTES_MAX).await
    }
}

/// `@alias:uri  name: what it is`, a line each, escaped, and cut where it is wider than that; templates behind them. An address
/// is written as it has to be typed.
pub fn list(alias: &str, resources: &[Resource], templates: &[Template], columns: usize) -> String {
    let line = |address: &str, name: &str, description: &str| {
        let description = shortened(description);
        let colon = if description.is_empty() { "" } else { ": " };
        let what = format!("{}{colon}{description}", shortened(name));
        let (address, what) = match mention_of_file(&format!("{alias}:{address}")) {
            Some(mention) => (mention, what),
            None => (format!("@{alias}:{address}"), format!("{CANNOT_BE_TYPED} {what}")),
        };
        let line = named(&sanitize::single_line(&address), &sanitize::single_line(&what), columns);
        indented(&line, columns)
    };
    let resources = resources
        .iter()
        .map(|resource| line(&resource.uri, &resource.name, &resource.description));
    let templates = templates
        .iter()
        .map(|template| line(&template.uri_template, &template.name, &template.description));
    resources.chain(templates).collect()
}
