//! The program put together: environment, configuration, trust and ledger become an engine.

use crate::cli::Common;
use crate::config::resolved::McpTransport;
use crate::config::{self, Config, ConfigError, Overrides, Resolved};
use crate::failure::Failure;
use crate::models::Registry;
use crate::models::setup::NAMED_ADDRESS;
use crate::oneshot;
use crate::paths::{Environment, Paths};
use crate::prices::Prices;
use crate::project::Project;
use crate::repl::SaveRule;
use crate::serve::ledger;
use crate::shell::variables::Withheld;
use crate::term::Form;
use crate::trust::{TrustStore, project_dir};
use aish_core::limits::Limits;
use aish_core::policy::Policy;
use aish_core::redact::Redactor;
use aish_engine::{Engine, Models, Offered, Proposals, Routing, Settings};
use aish_store::sqlite::SqliteStore;
use aish_store::{Owner, Store};
use aish_tools::{ToolContext, WebAccess};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, RwLock};

/// Characters of a result the model sees when nobody said and its context is not known (SPEC 4.3).
const RESULT_CHARS_DEFAULT: usize = 24_000;
/// And never fewer than this.
const RESULT_CHARS_MIN: usize = 6_000;
/// Of a model's context, one result may take a quarter; a token has about three characters.
const RESULT_CHARS_PER_WINDOW_TOKEN: f64 = 0.75;

/// Everything that was found out before anything is done.
pub struct App {
    /// The variables of the process.
    pub environment: Environment,
    /// Where aish's own files are.
    pub paths: Paths,
    /// The working directory; absolute, links resolved.
    pub cwd: PathBuf,
    /// The configuration and where it came from.
    pub resolved: Resolved,
    /// Which projects are trusted.
    pub trust: TrustStore,
    /// The instructions of the project; empty unless it is trusted.
    pub instructions: String,
    /// What a person should know, one line each.
    pub remarks: Vec<String>,
    common: Common,
    /// Made when it is first asked for.
    redactor: OnceLock<Redactor>,
}

impl App {
    /// Reads environment, configuration and trust. Changes nothing but the working directory, if asked to.
    ///
    /// # Errors
    /// The directory is not there, no place for files can be told, or the configuration is wrong.
    pub fn load(common: &Common) -> Result<Self, Failure> {
        let environment = Environment::of_process();
        if let Some(dir) = &common.cd {
            std::env::set_current_dir(dir)
                .map_err(|error| Failure::usage(format!("--cd: cannot work in {}: {error}", dir.display())))?;
        }
        let cwd = std::env::current_dir()
            .and_then(|dir| dir.canonicalize())
            .map_err(|error| Failure::usage(format!("cannot tell the working directory: {error}")))?;
        let paths = Paths::find(&environment, common.config.as_deref(), &cwd)
            .map_err(|error| Failure::usage(error.to_string()))?;
        let trust = TrustStore::new(&paths.trusted);
        let Project {
            config: source,
            instructions,
            mut remarks,
        } = project_dir(&cwd, environment.path("HOME"))
            .map(|dir| Project::read(&trust, &dir))
            .unwrap_or_default();
        if let Some(address) = environment
            .text(NAMED_ADDRESS)
            .filter(|address| !address.trim().is_empty())
            && !aish_provider::discover::is_address(address)
        {
            // It is not repeated: there may be a password in it.
            let message = format!("{NAMED_ADDRESS} is no address that begins with http:// or https://");
            return Err(Failure::usage(message).hint(format!("e.g. {NAMED_ADDRESS}=http://127.0.0.1:8080/v1")));
        }
        let judged = judged(&environment);
        // `--model` may also name a model that is found, not configured: that is not the configuration's to judge.
        let overrides = Overrides {
            model: None,
            approval: common.approval,
            form: common.plain.then_some(Form::Plain),
        };
        let resolved = config::load(&paths, source, &judged, &overrides).map_err(|error| config_failure(&error))?;
        remarks.extend(resolved.warnings.iter().cloned());
        Ok(Self {
            environment,
            paths,
            cwd,
            resolved,
            trust,
            instructions,
            remarks,
            common: common.clone(),
            redactor: OnceLock::new(),
        })
    }

    /// The same with the configuration read anew, after it was changed.
    ///
    /// # Errors
    /// As [`App::load`].
    pub fn again(&self) -> Result<Self, Failure> {
        let common = Common {
            // The process is there already.
            cd: None,
            config: self.common.config.as_ref().map(|_| self.paths.config_file.clone()),
            ..self.common.clone()
        };
        Self::load(&common)
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.resolved.config
    }

    /// The variables that the configuration is read together with.
    pub fn judged_environment(&self) -> Environment {
        judged(&self.environment)
    }

    /// `--model`.
    pub fn wanted_model(&self) -> Option<&str> {
        self.common.model.as_deref()
    }

    /// Saves a rule among the allow rules of the user's configuration (the answer `s`, SPEC 5.3).
    ///
    /// # Errors
    /// The file cannot be changed: one line.
    pub fn save_rule(&self, rule: &str) -> Result<PathBuf, String> {
        save_rule(&self.paths.config_file, rule)
    }

    /// The same, for whoever outlives this.
    pub fn rule_saver(&self) -> SaveRule {
        let file = self.paths.config_file.clone();
        Box::new(move |rule| save_rule(&file, rule))
    }

    /// What replies cost, as far as anybody here knows.
    pub fn prices(&self, registry: Arc<Registry>) -> Prices {
        Prices::new(self.config(), &self.environment, registry)
    }

    /// The ledger; opened when it is first used.
    pub fn store(&self) -> Arc<SqliteStore> {
        Arc::new(SqliteStore::new(&self.paths.ledger))
    }

    /// The engine with the model it begins with, and the models it may ask. Without any model everything but asking one
    /// works. May ask providers which models they have.
    ///
    /// # Errors
    /// The model that was asked for is not there.
    pub async fn engine(&self) -> Result<(Arc<Engine>, Arc<Registry>), Failure> {
        let (engine, registry) = self.engine_without_model();
        let chosen = registry.choose(self.wanted_model()).await;
        if let Some(chosen) = chosen.map_err(|_| registry.absence().failure(&engine.redactor))? {
            for remark in chosen.remarks() {
                oneshot::eprint_line(&engine.redactor.redact(&remark));
            }
            begin_with(&engine, chosen.name, self.config().tools.max_result_chars);
        }
        Ok((engine, registry))
    }

    /// The engine before anybody knows which model it begins with ([`begin_with`]). Asks nobody.
    pub fn engine_without_model(&self) -> (Arc<Engine>, Arc<Registry>) {
        self.engine_over(self.store())
    }

    /// The same over another ledger.
    pub fn engine_over(&self, store: Arc<dyn Store>) -> (Arc<Engine>, Arc<Registry>) {
        let registry = Arc::new(Registry::new(self.config(), &self.environment));
        let tools = crate::tools::builtin(registry.network(), Arc::clone(&store));
        let engine = Engine {
            store,
            models: Arc::clone(&registry) as Arc<dyn Models>,
            tools: Arc::new(Offered::new(tools)),
            asides: Arc::default(),
            owner: Owner::this_process(),
            redactor: self.redactor(),
            settings: RwLock::new(self.settings()),
        };
        (Arc::new(engine), registry)
    }

    fn settings(&self) -> Settings {
        let config = self.config();
        let limits = Limits {
            max_tool_turns: config.max_tool_turns,
            max_tool_depth: config.mcp.max_tool_depth,
            max_model_attempts: config.retries.saturating_add(1),
            max_result_chars: config.tools.max_result_chars.unwrap_or(RESULT_CHARS_DEFAULT),
        };
        Settings {
            model: String::new(),
            mode: config.approval.mode,
            policy: self.policy(),
            limits,
            parallel: config.tools.parallel,
            tools: !self.common.no_tools,
            instructions: self.instructions.clone(),
            // Whoever names a model wants that one asked.
            routing: match self.common.model {
                Some(_) => Routing::default(),
                None => config.routing.clone(),
            },
            schema: None,
            proposals: Proposals::default(),
            context: ToolContext {
                directory: self.cwd.clone(),
                environment: Arc::new(self.tool_environment()),
                output_bytes_max: config.tools.max_output_size,
                hidden: aish_tools::Hidden::default(),
                web: WebAccess {
                    reach: config.tools.web,
                    ..WebAccess::default()
                },
                place: None,
            },
        }
    }

    fn policy(&self) -> Policy {
        let config = self.config();
        Policy {
            deny: config.approval.deny.clone(),
            ask: config.approval.ask.clone(),
            allow: config.approval.allow.clone(),
            auto_approve: config
                .mcp
                .auto_approve
                .iter()
                .map(|(key, yes)| (key.clone(), *yes))
                .collect(),
            guests: self.guests(),
            read_only_inside_tree: config.approval.read_only_inside_tree,
            root: self.cwd.clone(),
            directory: self.cwd.clone(),
            home: self.home(),
            own: self.own_places(),
        }
    }

    /// The servers that the project's file brings.
    fn guests(&self) -> Vec<String> {
        let aliases = self.config().mcp.servers.iter().map(|server| &server.alias);
        let is_guest = |alias: &&String| {
            let path = ["mcp", "servers", alias.as_str()];
            self.resolved.layers.project_origin(&path).is_some()
        };
        aliases.filter(is_guest).cloned().collect()
    }

    /// The user's home, links resolved as paths of calls are.
    fn home(&self) -> Option<PathBuf> {
        let home = self.environment.path("HOME")?;
        Some(home.canonicalize().unwrap_or_else(|_| home.to_owned()))
    }

    /// Configuration, ledger and what is trusted: a model that could write them would approve its own calls.
    fn own_places(&self) -> Vec<PathBuf> {
        let places = [&self.paths.config_file, &self.paths.data_dir, &self.paths.cache_dir];
        places
            .into_iter()
            .map(|place| place.canonicalize().unwrap_or_else(|_| place.clone()))
            .collect()
    }

    /// The variables that hold keys of ours: no command sees them, no status shows their values.
    fn key_variables(&self) -> Vec<&str> {
        let config = self.config();
        let models = config.models.iter().filter_map(|model| model.key_env.as_deref());
        let servers = config
            .mcp
            .servers
            .iter()
            .filter_map(|server| server.auth_env.as_deref());
        let put_in = crate::mcp::credential_variables(&config.mcp.servers);
        let mut names: Vec<&str> = models.chain(servers).chain(put_in).collect();
        names.extend(self.environment.names().filter(|name| name.ends_with("_API_KEY")));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The variables that no command of a model's is given.
    pub fn withheld(&self) -> Withheld {
        Withheld::new(self.key_variables())
    }

    fn tool_environment(&self) -> Vec<(String, String)> {
        let withheld = self.withheld();
        self.environment
            .names()
            .filter(|name| !withheld.covers(name))
            .filter_map(|name| Some((name.to_owned(), self.environment.text(name)?.to_owned())))
            .collect()
    }

    /// What makes text fit to leave the process: one for all of it, which learns of tokens as they come.
    pub fn redactor(&self) -> Redactor {
        let made = self.redactor.get_or_init(|| {
            let redactor = Redactor::new(self.secrets());
            crate::mcp::login::teach(self, &redactor);
            redactor
        });
        made.clone()
    }

    /// The secrets of environment and configuration, each with what it is called.
    fn secrets(&self) -> Vec<(String, String)> {
        let keys = self.key_variables();
        let put_in = crate::mcp::secret_variables(&self.config().mcp.servers);
        let from_environment = keys
            .iter()
            .copied()
            .chain(put_in)
            .filter_map(|name| Some((name.to_owned(), self.environment.text(name)?.trim().to_owned())));
        let from_config = self
            .config()
            .secrets()
            .map(|secret| ("config".to_owned(), secret.expose().to_owned()));
        let from_addresses = self.addresses().flat_map(|(name, address)| {
            let secrets = aish_provider::http::secrets_of(address).into_iter();
            secrets.map(move |secret| (name.to_owned(), secret))
        });
        let from_store = self.config().serve.store.iter().flat_map(|address| {
            let secrets = ledger::secrets_of(address).into_iter();
            secrets.map(|secret| (ledger::SETTING.to_owned(), secret))
        });
        from_environment
            .chain(from_config)
            .chain(from_addresses)
            .chain(from_store)
            .collect()
    }

    /// Addresses of models and servers, with what they are called: people write passwords and keys into them.
    fn addresses(&self) -> impl Iterator<Item = (&str, &str)> {
        let in_environment = self
            .environment
            .names()
            .filter(|name| name.ends_with("_BASE_URL"))
            .filter_map(|name| Some((name, self.environment.text(name)?)));
        let models = self.config().models.iter();
        let servers = self
            .config()
            .mcp
            .servers
            .iter()
            .filter_map(|server| match &server.transport {
                McpTransport::Http { url } => Some(("url", url.as_str())),
                McpTransport::Stdio { .. } => None,
            });
        in_environment
            .chain(models.map(|model| ("base_url", model.profile.base_url.as_str())))
            .chain(servers)
    }
}

/// Lets a session begin with that model, unless somebody chose one meanwhile. `max_result_chars` is what the configuration
/// says; where it says nothing, the model's context does.
pub fn begin_with(engine: &Engine, model: String, max_result_chars: Option<usize>) {
    // A model that cannot be asked yet (its key is missing) says so when it is.
    let window = engine.models.model(&model).ok().and_then(|model| model.context_window);
    engine.update(|settings| {
        if settings.model.is_empty() {
            settings.model = model;
            settings.limits.max_result_chars = max_result_chars.unwrap_or_else(|| result_chars(window));
        }
    });
}

fn judged(environment: &Environment) -> Environment {
    // Together with `AISH_BASE_URL` it names a model of that server, not one of the configuration.
    match environment.text("AISH_BASE_URL") {
        Some(_) => environment.without("AISH_MODEL"),
        None => environment.clone(),
    }
}

fn save_rule(file: &Path, rule: &str) -> Result<PathBuf, String> {
    let rule = aish_core::policy::Rule::parse(rule)?;
    config::add_rule(file, config::RuleList::Allow, &rule).map_err(|error| error.to_string())?;
    Ok(file.to_owned())
}

fn result_chars(window: Option<u64>) -> usize {
    match window {
        None => RESULT_CHARS_DEFAULT,
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        Some(tokens) => ((tokens as f64 * RESULT_CHARS_PER_WINDOW_TOKEN) as usize).max(RESULT_CHARS_MIN),
    }
}

fn config_failure(error: &ConfigError) -> Failure {
    Failure::usage(error.to_string())
}
