//! What a model costs as far as this process was told: by the configuration, by the list of its server, by the built-in table.

use super::{Choice, Registry};
use crate::prices;
use aish_provider::price::Price;
use std::sync::PoisonError;

impl Registry {
    /// What the server of a model says that it costs, if it was asked for its models and said so. `name` is that of a found
    /// model, or of a configured one that is on the list of its server.
    pub fn listed_price(&self, name: &str) -> Option<Price> {
        let configured = self.configured.iter().find(|model| model.name == name);
        let profile = configured.map(|model| &model.profile);
        let all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fitting = all.iter().filter(|found| match profile {
            Some(profile) => (&found.candidate.base_url, &found.model.id) == (&profile.base_url, &profile.model),
            None => found.name == name,
        });
        fitting.find_map(|found| found.model.price)
    }

    /// What a model is taken to cost; `None` where nobody knows, and on this machine.
    pub fn price_of(&self, choice: &Choice) -> Option<Price> {
        let listed = self.listed_price(&choice.name);
        prices::price_of(choice.price, listed, &choice.profile)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::{Layer, Overrides, Source, resolve};
    use crate::paths::Environment;
    use aish_provider::discover::{Candidate, Listed};
    use aish_provider::preset;

    /// SPEC 7.1: a configured model costs what the list of its server says, unless its owner says otherwise.
    #[test]
    fn a_configured_model_on_a_list() {
        let text = "
            [models.or]
            preset = 'openrouter'
            model = 'a/m'
            [models.own]
            preset = 'openrouter'
            model = 'a/m'
            price = { input = 1, output = 2 }
            [models.other]
            preset = 'openrouter'
            model = 'a/other'
        ";
        let source = Source {
            name: "config.toml".to_owned(),
            text: text.to_owned(),
            layer: Layer::User,
        };
        let environment = Environment::default();
        let resolved = resolve(Some(source), None, &environment, &Overrides::default()).unwrap();
        let registry = Registry::new(&resolved.config, &environment);
        let listed = Listed {
            price: Some(Price {
                input: 7.0,
                output: 8.0,
                cached: None,
                cache_write: None,
            }),
            ..Listed::unlisted("a/m")
        };
        let candidate = Candidate::of_preset(preset::find("openrouter").unwrap(), |_| false);
        registry.add(&candidate, &listed);
        let input = |name: &str| {
            registry
                .price_of(&registry.known(name).unwrap())
                .map(|price| price.input)
        };
        assert_eq!(
            ["or", "own", "other", "openrouter/a/m"].map(input),
            [Some(7.0), Some(1.0), None, Some(7.0)]
        );
    }
}
