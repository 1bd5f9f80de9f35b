//! Where a model is set up: what a person would have to change when it does not answer, in the words of whoever set it up.
//!
//! A newcomer with one variable in the environment has no `base_url` and no `key_env`: [`Setup`] knows what there is, and
//! [`Setup::advice`] names it (SPEC 10.4).

use crate::config::ModelConfig;
use aish_provider::discover::{self, Candidate};
use aish_provider::preset::{self, Place, Preset};

/// The variable that names a server.
pub const NAMED_ADDRESS: &str = "AISH_BASE_URL";

/// Where an address is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// In the configuration.
    Configured,
    /// In this variable.
    Variable(&'static str),
    /// Nowhere: it is a provider's own.
    Provider,
    /// Nowhere: it is a usual port of this machine.
    ThisMachine,
}

/// Where a key is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    /// In this variable, which is sent.
    Sent(String),
    /// Nowhere; this variable would be looked into.
    Unset(&'static str),
    /// Nowhere, and no variable is looked into.
    Unnamed,
}

/// Where a model, or the models of a provider, are set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The model's or the provider's name.
    pub name: String,
    /// Where its address is.
    pub address: Address,
    /// Where its key is.
    pub key: KeyPlace,
}

impl Setup {
    /// That of a configured model.
    pub fn configured(model: &ModelConfig) -> Self {
        let owner = preset::of_address(&model.profile.base_url).filter(|owner| is_on_network(owner));
        Self {
            name: model.name.clone(),
            address: match owner {
                Some(_) => Address::Provider,
                None => Address::Configured,
            },
            key: match &model.key_env {
                Some(variable) => KeyPlace::Sent(variable.clone()),
                None => KeyPlace::Unnamed,
            },
        }
    }

    /// That of whatever a candidate has.
    pub fn found(candidate: &Candidate) -> Self {
        let usual = match candidate.preset {
            Some(preset) => preset.key_envs().first().copied(),
            None => Some("AISH_API_KEY").filter(|_| candidate.name == discover::NAMED),
        };
        Self {
            name: match candidate.name {
                discover::NAMED => NAMED_ADDRESS.to_owned(),
                provider => provider.to_owned(),
            },
            address: match candidate.preset {
                None => Address::Variable(NAMED_ADDRESS),
                Some(preset) if preset.base_url == candidate.base_url && is_on_network(preset) => Address::Provider,
                Some(preset) => preset.base_url_env.map_or(Address::ThisMachine, Address::Variable),
            },
            key: match (candidate.key_env, usual) {
                (Some(variable), _) => KeyPlace::Sent(variable.to_owned()),
                (None, Some(usual)) => KeyPlace::Unset(usual),
                (None, None) => KeyPlace::Unnamed,
            },
        }
    }

    /// What the address is called where it can be corrected, e.g. `AISH_BASE_URL`; `None` where nobody wrote it.
    pub fn address_name(&self) -> Option<String> {
        match self.address {
            Address::Configured => Some(format!("base_url of [models.{}]", self.name)),
            Address::Variable(variable) => Some(variable.to_owned()),
            Address::Provider | Address::ThisMachine => None,
        }
    }

    /// What to do about a failure, by the word that the ledger has for it ([`aish_provider::ErrorKind::word`]); `None` where
    /// nothing of the setup is to blame.
    pub fn advice(&self, error: &str) -> Option<String> {
        match error {
            "connect" | "timeout" | "broken" => Some(self.unreachable()),
            "auth" => Some(match &self.key {
                KeyPlace::Sent(variable) => format!("check {variable}"),
                KeyPlace::Unset(variable) => format!("set {variable}"),
                KeyPlace::Unnamed => format!(
                    "it wants a key: name the variable that holds it, key_env in [models.{}]",
                    self.name
                ),
            }),
            // Nothing of a model is there, or nothing that takes a question.
            "http_404" | "http_405" | "http_501" => Some(match self.address_name() {
                Some(address) => {
                    format!("check {address} and the model's name (`aish models list` lists what there is)")
                }
                None => "check the model's name (`aish models list` lists what there is)".to_owned(),
            }),
            "protocol" => self.address_name().map(|address| format!("check {address}")),
            _ => None,
        }
    }

    fn unreachable(&self) -> String {
        match (self.address, self.address_name()) {
            (Address::Configured, Some(address)) => {
                format!("start the server, or correct {address} (`aish config path` says where it stands)")
            }
            (_, Some(address)) => format!("start the server, or correct {address}"),
            (Address::ThisMachine, None) => "start the server".to_owned(),
            (_, None) => "check the network, and HTTPS_PROXY if it needs a proxy".to_owned(),
        }
    }
}

fn is_on_network(preset: &Preset) -> bool {
    matches!(preset.place, Place::Network(_))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn found(name: &str, variables: &[(&str, &str)]) -> Setup {
        let value = |name: &str| variables.iter().find(|var| var.0 == name).map(|var| var.1.to_owned());
        let all = discover::from_vars(value);
        Setup::found(all.iter().find(|candidate| candidate.name == name).unwrap())
    }

    #[track_caller]
    fn check(setup: &Setup, error: &str, expect: &str) {
        assert_eq!(setup.advice(error).unwrap_or_default(), expect);
    }

    /// SPEC 10.4: advice names what a person has set, and nothing they have not.
    #[test]
    fn advice_names_what_there_is() {
        let named = found(discover::NAMED, &[("AISH_BASE_URL", "http://desk/v1")]);
        check(&named, "connect", "start the server, or correct AISH_BASE_URL");
        check(&named, "auth", "set AISH_API_KEY");
        let keyed = found("anthropic", &[("ANTHROPIC_API_KEY", "k")]);
        check(&keyed, "auth", "check ANTHROPIC_API_KEY");
        check(
            &keyed,
            "timeout",
            "check the network, and HTTPS_PROXY if it needs a proxy",
        );
        check(&keyed, "protocol", "");
        let moved = found("openai", &[("OPENAI_BASE_URL", "http://desk/v1")]);
        check(&moved, "auth", "set OPENAI_API_KEY");
        check(
            &moved,
            "http_404",
            "check OPENAI_BASE_URL and the model's name (`aish models list` lists what there is)",
        );
        assert_eq!(moved.advice("http_501"), moved.advice("http_404"));
        check(&moved, "http_500", "");
        let here = Setup::found(&Candidate::of_preset(preset::find("ollama").unwrap(), |_| false));
        check(&here, "connect", "start the server");
        let configured = Setup {
            name: "desk".to_owned(),
            address: Address::Configured,
            key: KeyPlace::Unnamed,
        };
        check(
            &configured,
            "connect",
            "start the server, or correct base_url of [models.desk] (`aish config path` says where it stands)",
        );
    }
}
