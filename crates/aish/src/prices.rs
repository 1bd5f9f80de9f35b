//! What models cost: list prices by model name, in US dollars per million tokens, and what of them the user knows better.
//!
//! A price is an estimate for a person's eye, not a bill: discounts, batches and hours of the day are unknown here. What the
//! user says comes first, then what the model's server says in its list, then the table ([`Pricing`]). Where nothing is known
//! there is no cost at all, never a zero; a model on this machine costs nothing and shows nothing ([`Tariff`]).

mod table;

use crate::config::Config;
use crate::models::Registry;
use crate::paths::Environment;
use aish_core::event::Usage;
use aish_provider::ModelProfile;
use aish_provider::preset::{self, Place};
use aish_provider::price::Price;
use std::sync::Arc;

/// Tokens a price is for.
const TOKENS_PER_PRICE: f64 = 1e6;
/// Digits that a version or date behind a name has at least (`-001`, `-2411`, `-20250929`): fewer make another model of it.
const VERSION_DIGITS_MIN: usize = 3;
/// What may stand behind a name besides a version, and does not make another model of it.
const SAME_MODEL_SUFFIXES: [&str; 2] = ["-latest", "-preview"];

/// What a reply cost, in US dollars. Cached tokens and those written into a cache are part of the request's.
fn cost_usd(price: &Price, usage: &Usage) -> f64 {
    let plain = usage
        .input_tokens
        .saturating_sub(usage.cached_tokens)
        .saturating_sub(usage.cache_write_tokens);
    let part = |tokens: u64, price: f64| tokens_of(tokens) * price;
    let sum = part(plain, price.input)
        + part(usage.cached_tokens, price.cached.unwrap_or(price.input))
        + part(usage.cache_write_tokens, price.cache_write.unwrap_or(price.input))
        + part(usage.output_tokens, price.output);
    sum / TOKENS_PER_PRICE
}

#[allow(
    clippy::cast_precision_loss,
    reason = "an estimate: 2^53 tokens are beyond anybody's means"
)]
fn tokens_of(tokens: u64) -> f64 {
    tokens as f64
}

/// What is known of a reply's cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tariff {
    /// A model on this machine: nothing to pay.
    Local,
    /// This many US dollars.
    Usd(f64),
    /// Nobody knows.
    Unknown,
}

/// What is known of a model's price.
struct Pricing<'a> {
    /// What the user says.
    own: Option<Price>,
    /// What the model's server says.
    listed: Option<Price>,
    is_local: bool,
    /// What the model is called, the best name first.
    names: &'a [&'a str],
}

impl Pricing<'_> {
    /// The price that counts, for a request of that many tokens; `Err` tells what there is without one.
    fn price(&self, input_tokens: u64) -> Result<Price, Tariff> {
        // A server on this machine that states a price passes questions on; none is what one states that does not.
        let listed = self.listed.filter(|price| !self.is_local || *price != FREE);
        if let Some(price) = self.own.or(listed) {
            return Ok(price);
        }
        if self.is_local {
            return Err(Tariff::Local);
        }
        let in_table = self.names.iter().find_map(|name| in_table(name, input_tokens));
        in_table.ok_or(Tariff::Unknown)
    }
}

/// Nothing, for everything.
const FREE: Price = Price {
    input: 0.0,
    output: 0.0,
    cached: None,
    cache_write: None,
};

/// What a short request to a model is taken to cost, out of what the user (or else the model's server) says, what is listed,
/// and the table; `None` where nobody knows, and on this machine.
pub fn price_of(own: Option<Price>, listed: Option<Price>, profile: &ModelProfile) -> Option<Price> {
    let pricing = Pricing {
        own,
        listed,
        is_local: is_loopback(&profile.base_url),
        names: &[&profile.model],
    };
    pricing.price(0).ok()
}

/// A model as the configuration has it.
struct Known {
    name: String,
    model: String,
    is_local: bool,
    price: Option<Price>,
}

/// The prices that hold for this process.
pub struct Prices {
    known: Vec<Known>,
    /// Whether models without a provider's name in front are on this machine (`AISH_BASE_URL`).
    unnamed_is_local: bool,
    /// Who knows what servers say.
    registry: Option<Arc<Registry>>,
}

impl Prices {
    /// The built-in table, under what servers list and what the configuration says.
    pub fn new(config: &Config, environment: &Environment, registry: Arc<Registry>) -> Self {
        let known = config.models.iter().map(|model| Known {
            name: model.name.clone(),
            model: model.profile.model.clone(),
            is_local: is_loopback(&model.profile.base_url),
            price: model.price,
        });
        Self {
            known: known.collect(),
            unnamed_is_local: environment.text("AISH_BASE_URL").is_some_and(is_loopback),
            registry: Some(registry),
        }
    }

    /// The built-in table alone.
    #[cfg(test)]
    pub fn builtin() -> Self {
        Self {
            known: Vec::new(),
            unnamed_is_local: false,
            registry: None,
        }
    }

    /// What a reply cost. `name` is the model's configured or found name, where the ledger has it; `usage.model` what its
    /// provider calls it.
    pub fn tariff(&self, name: Option<&str>, usage: &Usage) -> Tariff {
        let known = self.known.iter().find(|known| Some(known.name.as_str()) == name);
        let is_local = match (known, name) {
            (Some(known), _) => known.is_local,
            (None, Some(name)) => self.is_found_here(name),
            (None, None) => false,
        };
        // What answered is what is paid for; what was asked for may be an alias of the user's or the server's own.
        let names = [usage.model.as_deref(), known.map(|known| known.model.as_str()), name];
        let names: Vec<&str> = names.into_iter().flatten().collect();
        let registry = self.registry.as_ref();
        let pricing = Pricing {
            own: known.and_then(|known| known.price),
            listed: registry
                .zip(name)
                .and_then(|(registry, name)| registry.listed_price(name)),
            is_local,
            names: &names,
        };
        match pricing.price(usage.input_tokens) {
            Ok(price) => Tariff::Usd(cost_usd(&price, usage)),
            Err(tariff) => tariff,
        }
    }

    fn is_found_here(&self, name: &str) -> bool {
        match preset::split(name) {
            Some((preset, _)) => preset.place == Place::ThisMachine,
            None => self.unnamed_is_local,
        }
    }
}

/// Whether an address is this machine's own.
fn is_loopback(base_url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(base_url) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_address = host
        .parse::<std::net::IpAddr>()
        .is_ok_and(|address| address.is_loopback() || address.is_unspecified());
    is_address || host == "localhost" || host.ends_with(".localhost")
}

/// The list price of a model, for a request of that many tokens; the longest name that fits counts. Providers and resellers
/// put their own names in front (`anthropic/…`, `models/…`) and write dots for dashes.
fn in_table(name: &str, input_tokens: u64) -> Option<Price> {
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = name.to_lowercase().replace('.', "-");
    let fits = |row: &&table::Row| {
        let rest = name.strip_prefix(&row.name.replace('.', "-"));
        rest.is_some_and(is_version) && row.input_tokens_max.is_none_or(|max| input_tokens <= max)
    };
    let best = table::ROWS.iter().filter(fits).max_by_key(|row| {
        // Of two rows of one name the one for the shorter requests is the one meant.
        (
            row.name.len(),
            std::cmp::Reverse(row.input_tokens_max.unwrap_or(u64::MAX)),
        )
    })?;
    Some(best.price)
}

/// Whether what stands behind a name only says which build of the same model it is.
fn is_version(rest: &str) -> bool {
    if rest.is_empty() || SAME_MODEL_SUFFIXES.iter().any(|suffix| rest.starts_with(suffix)) {
        return true;
    }
    let digits = rest.strip_prefix(['-', '@']).unwrap_or_default();
    digits.chars().take_while(char::is_ascii_digit).count() >= VERSION_DIGITS_MIN
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::float_cmp)]
mod tests {
    use super::*;

    fn prices(known: &[(&str, &str, &str, Option<Price>)]) -> Prices {
        let known = known.iter().map(|(name, model, base_url, price)| Known {
            name: (*name).to_owned(),
            model: (*model).to_owned(),
            is_local: is_loopback(base_url),
            price: *price,
        });
        Prices {
            known: known.collect(),
            unnamed_is_local: true,
            registry: None,
        }
    }

    fn usage(model: Option<&str>) -> Usage {
        Usage {
            input_tokens: 1_000_000,
            output_tokens: 100_000,
            model: model.map(str::to_owned),
            ..Usage::default()
        }
    }

    /// Cached tokens, those written into a cache and the rest each have their price; together they are the request.
    #[test]
    fn every_token_is_paid_once() {
        let price = Price {
            input: 3.0,
            cached: Some(0.3),
            cache_write: Some(3.75),
            output: 15.0,
        };
        let usage = Usage {
            input_tokens: 1_000_000,
            cached_tokens: 500_000,
            cache_write_tokens: 200_000,
            output_tokens: 100_000,
            ..Usage::default()
        };
        assert_eq!(cost_usd(&price, &usage), 0.9 + 0.15 + 0.75 + 1.5);
        let plain = Price {
            cached: None,
            cache_write: None,
            ..price
        };
        assert_eq!(cost_usd(&plain, &usage), 3.0 + 1.5);
    }

    /// The longest name counts; a date behind it makes no other model, another number does.
    #[test]
    fn names() {
        let check = |name: &str, expect: Option<f64>| {
            assert_eq!(in_table(name, 1_000).map(|price| price.input), expect, "{name}");
        };
        check("gpt-4o-mini-2024-07-18", Some(0.15));
        check("gpt-4o-2024-08-06", Some(2.5));
        check("claude-sonnet-4-5-20250929", Some(3.0));
        check("claude-opus-4-20250514", Some(15.0));
        check("anthropic/claude-opus-4.5", Some(5.0));
        check("models/gemini-2.5-flash", Some(0.3));
        check("gemini-2.0-flash-001", Some(0.1));
        check("mistral-large-latest", Some(0.5));
        check("mistral-large-2411", Some(2.0));
        // Nobody knows what these cost: they are none of the models in the table.
        check("gpt-5.99", None);
        check("claude-opus-4-99", None);
        check("gpt-4o-audio-preview", None);
        check("deepseek/deepseek-v4-pro:free", None);
        check("qwen2.5-coder-7b", None);
        check("", None);
    }

    /// Longer requests cost more, where the provider says so.
    #[test]
    fn long_requests() {
        let input = |tokens| in_table("gemini-2.5-pro", tokens).map(|price| price.input);
        assert_eq!((input(200_000), input(200_001)), (Some(1.25), Some(2.5)));
    }

    /// The user's price before the list, this machine before any list, and no price rather than a wrong one.
    #[test]
    fn who_knows_the_price() {
        let own = Price {
            input: 1.0,
            cached: None,
            cache_write: None,
            output: 0.0,
        };
        let prices = prices(&[
            ("desk", "gpt-4o", "http://127.0.0.1:8080/v1", None),
            ("v6", "gpt-4o", "http://[::1]:8080/v1", None),
            ("cloud", "gpt-4o", "https://api.example.test/v1", None),
            ("own", "gpt-4o", "http://127.0.0.1:8080/v1", Some(own)),
            ("odd", "odd", "https://api.example.test/v1", None),
        ]);
        let check = |name: Option<&str>, model: Option<&str>, expect: Tariff| {
            assert_eq!(prices.tariff(name, &usage(model)), expect, "{name:?} {model:?}");
        };
        check(Some("desk"), Some("gpt-4o"), Tariff::Local);
        check(Some("v6"), None, Tariff::Local);
        check(Some("cloud"), None, Tariff::Usd(3.5));
        check(Some("cloud"), Some("gpt-4o-mini"), Tariff::Usd(0.15 + 0.06));
        check(Some("own"), Some("gpt-4o"), Tariff::Usd(1.0));
        check(Some("odd"), Some("odd"), Tariff::Unknown);
        check(Some("odd"), Some("gpt-4o"), Tariff::Usd(3.5));
        check(Some("ollama/mistral-large-latest"), None, Tariff::Local);
        check(Some("openai/gpt-4o"), None, Tariff::Usd(3.5));
        check(Some("gpt-4o"), None, Tariff::Local);
        check(None, Some("gpt-4o"), Tariff::Usd(3.5));
        check(None, None, Tariff::Unknown);
    }

    /// SPEC 7.1: what the user says comes first, then what the server lists, then the table; a server on this machine that
    /// lists no price costs nothing.
    #[test]
    fn who_is_believed() {
        let price = |input: f64| Price { input, ..FREE };
        let check = |own: Option<f64>, listed: Option<f64>, base_url: &str, expect: Option<f64>| {
            let profile = ModelProfile::openai_chat(base_url, "gpt-4o");
            let found = price_of(own.map(price), listed.map(price), &profile);
            assert_eq!(found.map(|price| price.input), expect, "{own:?} {listed:?} {base_url}");
        };
        let (there, here) = ("https://api.example.test/v1", "http://127.0.0.1:4000/v1");
        check(Some(1.0), Some(2.0), there, Some(1.0));
        check(None, Some(2.0), there, Some(2.0));
        check(None, Some(0.0), there, Some(0.0));
        check(None, None, there, Some(2.5));
        check(None, Some(2.0), here, Some(2.0));
        check(None, Some(0.0), here, None);
        check(None, None, here, None);
    }

    /// Every row is a price: names are written as they are compared, and nothing is negative or free.
    #[test]
    fn the_table_is_sound() {
        for row in table::ROWS {
            assert_eq!(row.name, row.name.to_lowercase());
            assert!(row.price.input > 0.0 && row.price.output > 0.0, "{}", row.name);
            assert!(
                row.price.cached.is_none_or(|cached| cached <= row.price.input),
                "{}",
                row.name
            );
        }
    }
}
