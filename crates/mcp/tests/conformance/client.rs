//! The client that the suite examines: what each scenario asks of a client, done with the connections that the program uses.

use aish_core::secret::Secret;
use aish_mcp::connect::{Network, connect_over};
use aish_mcp::host::{News, Question, Reply};
use aish_mcp::memory::Memory;
use aish_mcp::oauth::{Identity, Keyring, Login, login};
use aish_mcp::servers::{Connector, Servers, State};
use aish_mcp::tool::{Call, Caller};
use aish_mcp::{Alias, Definition, Endpoint, Era, ErrorKind, Host, HttpEndpoint, McpError, Peer, ServerConfig};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// The suite only ends the shell around a client that takes too long, after 30 s.
const DEADLINE_MS: u64 = 25_000;
/// How long one request may take.
const REQUEST_TIMEOUT_MS: u64 = 10_000;
/// Logins of one scenario.
const LOGINS_MAX: usize = 3;
/// The address that the suite takes for a document describing the client.
const DOCUMENT_URL: &str = "https://conformance-test.local/client-metadata.json";
/// Bytes of a result that are kept.
const RESULT_BYTES_MAX: usize = 1 << 20;

/// What went wrong, for the suite's log.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Does what the scenario is about with the server at that address.
///
/// # Errors
/// It came to nothing.
pub async fn run(url: String, scenario: &str) -> Result<(), Failure> {
    let deadline = Duration::from_millis(DEADLINE_MS);
    tokio::time::timeout(deadline, async {
        let client = Client::connect(url)?;
        let done = client.play(scenario).await;
        client.servers.close().await;
        done
    })
    .await?
}

/// One connected server.
struct Client {
    servers: Servers,
    alias: Alias,
    endpoint: HttpEndpoint,
    network: Network,
    logins: Cell<usize>,
}

impl Client {
    fn connect(url: String) -> Result<Self, Failure> {
        // There is one provider, and nobody has installed it before.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()?;
        let keyring = Keyring::in_memory();
        let network = Network { client, keyring };
        let servers = Servers::new(Arc::new(Dial(network.clone())), Arc::new(Person), Memory::none());
        let alias = Alias::parse("suite")?;
        let endpoint = HttpEndpoint {
            url,
            token: None,
            headers: Vec::new(),
        };
        servers.add(ServerConfig {
            alias: alias.clone(),
            endpoint: Endpoint::Http(endpoint.clone()),
            timeout: Duration::from_millis(REQUEST_TIMEOUT_MS),
            era: Era::Unknown,
            enabled_tools: Vec::new(),
            disabled_tools: Vec::new(),
            is_required: true,
            is_trusted: false,
        })?;
        Ok(Self {
            servers,
            alias,
            endpoint,
            network,
            logins: Cell::new(0),
        })
    }

    /// Does what the scenario is about.
    async fn play(&self, scenario: &str) -> Result<(), Failure> {
        let tools = self.tools().await?;
        match scenario {
            "initialize" | "request-metadata" | "json-schema-ref-no-deref" => Ok(()),
            "http-custom-headers" => self.call_as_told().await,
            "http-standard-headers" => {
                self.call_all(&tools).await?;
                self.read_all().await
            }
            // Every tool that was not refused, and the rounds of two of them go on while another is called.
            "http-invalid-tool-headers" | "sep-2322-client-request-state" => self.call_all(&tools).await,
            "json-schema-2020-12-preservation" => {
                let subject = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
                let schema = &subject.ok_or("the tool is missing")?.input_schema;
                self.call("json_schema_echo", &json!({ "schema": schema })).await
            }
            _ => match tools.first() {
                Some(tool) => self.call(&tool.name, &arguments_for(tool)).await,
                None => Err("it offers no tool".into()),
            },
        }
    }

    /// The tools, once it is connected.
    async fn tools(&self) -> Result<Vec<Definition>, Failure> {
        self.patiently(|| async { self.servers.peer(self.alias.as_str()).await.map(|_| ()) })
            .await?;
        let server = self.servers.get(self.alias.as_str()).ok_or("it is gone")?;
        Ok(server.status.offer.tools.clone())
    }

    /// Does it, and where the server wants a login first, logs in and does it again.
    async fn patiently<F: Future<Output = Result<(), McpError>>>(&self, act: impl Fn() -> F) -> Result<(), Failure> {
        loop {
            let problem = match act().await {
                Ok(()) => return Ok(()),
                Err(problem) => problem,
            };
            let challenge = match &problem.kind {
                ErrorKind::Unauthorized { challenge } => challenge.clone(),
                ErrorKind::Forbidden => None,
                _ => return Err(problem.into()),
            };
            if self.logins.replace(self.logins.get() + 1) >= LOGINS_MAX {
                return Err(problem.into());
            }
            self.login(challenge.as_deref()).await?;
            let failed = |state: &State| matches!(state, State::Failed(_));
            if self
                .servers
                .get(self.alias.as_str())
                .is_some_and(|server| failed(&server.status.state))
            {
                let mut changes = self.servers.changes();
                self.servers.refresh(self.alias.as_str());
                changes.changed().await?;
            }
        }
    }

    async fn login(&self, challenge: Option<&str>) -> Result<(), Failure> {
        let identity = identity()?;
        let (open, opened) = tokio::sync::oneshot::channel();
        let told = Login {
            alias: &self.alias,
            endpoint: &self.endpoint,
            client: &self.network.client,
            keyring: &self.network.keyring,
            identity: &identity,
            challenge,
        };
        let login = login(&told, |address| {
            // The login ends when nobody waits for it any more.
            let _ = open.send(address.clone());
        });
        let browser = async {
            let Ok(address) = opened.await else {
                return std::future::pending().await;
            };
            browse(&self.network.client, address).await
        };
        tokio::select! {
            done = login => Ok(done?),
            failed = browser => Err(failed),
        }
    }

    async fn call_all(&self, tools: &[Definition]) -> Result<(), Failure> {
        let arguments: Vec<Value> = tools.iter().map(arguments_for).collect();
        let calls = tools.iter().zip(&arguments);
        let calls = calls.map(|(tool, arguments)| self.call(&tool.name, arguments));
        futures_util::future::try_join_all(calls).await.map(|_| ())
    }

    /// Makes the calls that the scenario's context names.
    async fn call_as_told(&self) -> Result<(), Failure> {
        let context: Value = serde_json::from_str(&std::env::var("MCP_CONFORMANCE_CONTEXT")?)?;
        let calls = context.get("toolCalls").and_then(Value::as_array);
        for call in calls.ok_or("the context names no calls")? {
            let name = call.get("name").and_then(Value::as_str).ok_or("a call has no name")?;
            let arguments = call.get("arguments").ok_or("a call has no arguments")?;
            self.call(name, arguments).await?;
        }
        Ok(())
    }

    /// Reads every resource and asks for every prompt.
    async fn read_all(&self) -> Result<(), Failure> {
        for (list, field, key, method) in [
            ("resources/list", "resources", "uri", "resources/read"),
            ("prompts/list", "prompts", "name", "prompts/get"),
        ] {
            let listed = self.request(list, Map::new()).await?;
            let items = listed.get(field).and_then(Value::as_array).cloned();
            for item in items.unwrap_or_default() {
                let named = item.get(key).cloned().unwrap_or_default();
                self.request(method, Map::from_iter([(key.to_owned(), named)])).await?;
            }
        }
        Ok(())
    }

    async fn call(&self, tool: &str, arguments: &Value) -> Result<(), Failure> {
        let arguments = arguments.as_object().ok_or("arguments are no object")?;
        self.patiently(|| async {
            let call = Call {
                alias: &self.alias,
                tool,
                pinned: None,
                arguments,
                answers: None,
                bytes_max: RESULT_BYTES_MAX,
                watch: Arc::new(|_| {}),
            };
            self.servers.call(call).await.map(|_| ())
        })
        .await
    }

    async fn request(&self, method: &str, params: Map<String, Value>) -> Result<Value, Failure> {
        let peer = self.servers.peer(self.alias.as_str()).await?;
        let patience = Duration::from_millis(REQUEST_TIMEOUT_MS);
        Ok(peer.request(method, params, patience, None).await?)
    }
}

/// A number for each number, and so on; the suite looks at types.
fn arguments_for(tool: &Definition) -> Value {
    let required = tool.input_schema.get("required").and_then(Value::as_array);
    let properties = tool.input_schema.get("properties");
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let values = names.map(|name| {
        let kind = properties.and_then(|all| all.get(name)?.get("type")?.as_str());
        let value = match kind {
            Some("number" | "integer") => json!(2),
            Some("boolean") => json!(true),
            Some(_) | None => json!("x"),
        };
        (name.to_owned(), value)
    });
    Value::Object(values.collect())
}

/// As whom the scenario wants the client to be known.
fn identity() -> Result<Identity, Failure> {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let text = |name: &str| context.get(name).and_then(Value::as_str);
    Ok(match text("client_id") {
        Some(id) => Identity::Registered {
            id: id.to_owned(),
            secret: text("client_secret").map(Secret::new),
        },
        None => Identity::Document(DOCUMENT_URL.to_owned()),
    })
}

/// The browser of a person who allows everything: follows where it is sent, until the login has its answer.
async fn browse(client: &reqwest::Client, address: reqwest::Url) -> Failure {
    let followed = async {
        let response = client.get(address).send().await?;
        let to = response.headers().get("location").ok_or("it does not redirect")?;
        let to = response.url().join(to.to_str()?)?;
        client.get(to).send().await?;
        Ok::<(), Failure>(())
    };
    match followed.await {
        Ok(()) => std::future::pending().await,
        Err(failure) => failure,
    }
}

/// Connects as the program does.
struct Dial(Network);

impl Connector for Dial {
    fn connect<'a>(
        &'a self,
        config: &'a ServerConfig,
        host: Arc<dyn Host>,
    ) -> BoxFuture<'a, Result<Arc<dyn Peer>, McpError>> {
        Box::pin(connect_over(config, &self.0, host))
    }
}

/// Somebody who says yes, and leaves the defaults of a form as they are.
struct Person;

impl Host for Person {
    fn ask<'a>(&'a self, _server: &'a Alias, question: Question) -> BoxFuture<'a, Reply> {
        let values = match question {
            Question::Form { schema, .. } => filled(&schema),
            Question::Url { .. } => Map::new(),
        };
        Box::pin(std::future::ready(Reply::Accepted(values)))
    }

    fn sample<'a>(&'a self, _server: &'a Alias, _params: Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(std::future::ready(Err("there is no model".to_owned())))
    }

    fn news(&self, _server: &Alias, _news: News) {}
}

/// A form's defaults, and yes where there is none.
fn filled(schema: &Value) -> Map<String, Value> {
    let fields = schema.get("properties").and_then(Value::as_object);
    let filled = fields.into_iter().flatten().filter_map(|(name, field)| {
        let is_boolean = field.get("type") == Some(&json!("boolean"));
        let value = field.get("default").cloned();
        Some((name.clone(), value.or_else(|| is_boolean.then_some(json!(true)))?))
    });
    filled.collect()
}
