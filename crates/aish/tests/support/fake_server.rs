//! A scripted OpenAI-compatible server for tests: threads and raw sockets, nothing of the program's own.
//!
//! A script is a list of exchanges. Each request takes the first exchange whose condition holds (most have none), so a
//! plain list is answered in order. A request that no exchange fits is answered 500 and kept as a *problem*;
//! [`FakeServer::assert_done`] fails on problems and on exchanges nobody asked for. `GET /v1/models`, `/health` and
//! `/props` are answered beside the script and counted apart.
//!
//! ```ignore
//! let server = FakeServer::script([Reply::call("c1", "glob", json!({"pattern": "*"})), Reply::text("two files")]);
//! // … run the program against server.base_url() …
//! assert_eq!(server.requests()[1].roles(), "system user assistant tool");
//! server.assert_done();
//! ```

use std::collections::VecDeque;
use std::io::{self, BufReader};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::answer::{After, Answer};
use super::reply::{Framing, Reply};
use super::strict::{Strictness, refusal};
pub use super::wire::Received;
use super::wire::read_request;

/// Whether an exchange fits a request.
type Condition = Box<dyn Fn(&Received) -> bool + Send>;
/// Makes an answer from a request.
type Responder = Box<dyn Fn(&Received) -> Reply + Send>;

struct Exchange {
    when: Option<Condition>,
    reply: Reply,
}

/// A server in the making.
#[derive(Default)]
pub struct Builder {
    exchanges: VecDeque<Exchange>,
    otherwise: Option<Responder>,
    everything: Option<Responder>,
    strictness: Strictness,
    models: Vec<String>,
    listing: Option<Reply>,
    key: Option<String>,
}

impl Builder {
    /// Adds an exchange that fits any request.
    pub fn reply(mut self, reply: Reply) -> Self {
        self.exchanges.push_back(Exchange { when: None, reply });
        self
    }

    /// Adds an exchange for requests of which the condition holds.
    pub fn when(mut self, condition: impl Fn(&Received) -> bool + Send + 'static, reply: Reply) -> Self {
        self.exchanges.push_back(Exchange {
            when: Some(Box::new(condition)),
            reply,
        });
        self
    }

    /// Answers every request that no exchange fits, without end.
    pub fn otherwise(mut self, respond: impl Fn(&Received) -> Reply + Send + 'static) -> Self {
        self.otherwise = Some(Box::new(respond));
        self
    }

    /// Answers every request of any method, and nothing else does: for a server that is no model's.
    pub fn everything(mut self, respond: impl Fn(&Received) -> Reply + Send + 'static) -> Self {
        self.everything = Some(Box::new(respond));
        self
    }

    /// Refuses what a server of that strictness refuses; such a request takes no exchange and is a problem.
    pub fn strict(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
        self
    }

    /// What `GET /v1/models` lists; `fake` if nothing else is said.
    pub fn models(mut self, names: &[&str]) -> Self {
        self.models = names.iter().map(ToString::to_string).collect();
        self
    }

    /// What is answered instead to whoever asks for a list of models, wherever it is asked for.
    pub fn listing(mut self, reply: Reply) -> Self {
        self.listing = Some(reply);
        self
    }

    /// Demands this bearer key, else 401.
    pub fn key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// Listens on a free port of 127.0.0.1.
    pub fn start(self) -> FakeServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind a loopback port");
        let address = listener.local_addr().expect("the address of a bound listener");
        let models = if self.models.is_empty() {
            vec!["fake".to_owned()]
        } else {
            self.models
        };
        let state = State {
            exchanges: self.exchanges,
            otherwise: self.otherwise,
            everything: self.everything,
            strictness: self.strictness,
            models,
            listing: self.listing,
            key: self.key,
            requests: Vec::new(),
            probes: Vec::new(),
            problems: Vec::new(),
            connections: Vec::new(),
            releases: 0,
            clients_gone: 0,
            replies_sent: 0,
            ending: false,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || accept(&listener, &accepting));
        FakeServer { address, shared }
    }
}

struct State {
    exchanges: VecDeque<Exchange>,
    otherwise: Option<Responder>,
    everything: Option<Responder>,
    strictness: Strictness,
    models: Vec<String>,
    listing: Option<Reply>,
    key: Option<String>,
    requests: Vec<Received>,
    probes: Vec<Received>,
    problems: Vec<String>,
    /// By number of connection; taken out when it is reset.
    connections: Vec<Option<TcpStream>>,
    /// Stalls that may go on.
    releases: u64,
    clients_gone: usize,
    replies_sent: usize,
    ending: bool,
}

pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A test that failed while it held the lock has already said why.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Counts an answer that was sent to its end.
    pub(super) fn reply_sent(&self) {
        self.change(|state| state.replies_sent += 1);
    }

    /// Waits at most that long for leave to go on after a stall, and takes it.
    pub(super) fn take_release(&self, within: Duration) -> bool {
        let idle = |state: &mut State| state.releases == 0 && !state.ending;
        let woken = self.changed.wait_timeout_while(self.lock(), within, idle);
        let mut state = woken.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        let may_go_on = state.ending || state.releases > 0;
        state.releases = state.releases.saturating_sub(1);
        may_go_on
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

/// A running fake server; it ends, with all its connections, when it is dropped.
pub struct FakeServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl FakeServer {
    /// An empty script to add to.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A server that answers these in order and minds the rules of the API.
    pub fn script(replies: impl IntoIterator<Item = Reply>) -> Self {
        replies
            .into_iter()
            .fold(Self::builder().strict(Strictness::Api), Builder::reply)
            .start()
    }

    /// What goes into `base_url`, e.g. `http://127.0.0.1:4711/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Host and port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds an exchange to the end of the running script.
    pub fn push(&self, reply: Reply) {
        self.shared
            .change(|state| state.exchanges.push_back(Exchange { when: None, reply }));
    }

    /// The requests to the script so far.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.lock().requests.clone()
    }

    /// The only request; fails when there are none or more.
    pub fn only_request(&self) -> Received {
        let requests = self.requests();
        assert_eq!(
            requests.len(),
            1,
            "requests: {:?}",
            requests.iter().map(Received::roles).collect::<Vec<_>>()
        );
        requests.into_iter().next().expect("one request")
    }

    /// The `GET` requests that were answered beside the script.
    pub fn probes(&self) -> Vec<Received> {
        self.shared.lock().probes.clone()
    }

    /// How many connections were opened.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections.len()
    }

    /// What went wrong: requests refused or not provided for, broken HTTP.
    pub fn problems(&self) -> Vec<String> {
        self.shared.lock().problems.clone()
    }

    /// Lets one stall go on: the one that waits now, else the next one to come.
    pub fn release(&self) {
        self.shared.change(|state| state.releases += 1);
    }

    /// Waits until that many requests came beside the script.
    pub fn wait_for_probes(&self, count: usize) -> Vec<Received> {
        self.wait("requests beside the script", |state| state.probes.len() >= count);
        self.probes()
    }

    /// Waits until that many requests have come, and gives them.
    pub fn wait_for_requests(&self, count: usize) -> Vec<Received> {
        self.wait(&format!("{count} requests"), |state| state.requests.len() >= count);
        self.requests()
    }

    /// Waits until that many clients have gone away in the middle of an answer.
    pub fn wait_for_clients_gone(&self, count: usize) {
        self.wait(&format!("{count} clients gone"), |state| state.clients_gone >= count);
    }

    /// Waits until that many answers have been sent to their end.
    pub fn wait_for_replies(&self, count: usize) {
        self.wait(&format!("{count} replies sent"), |state| state.replies_sent >= count);
    }

    /// Fails unless every exchange was asked for and nothing went wrong.
    pub fn assert_done(&self) {
        let state = self.shared.lock();
        assert!(state.problems.is_empty(), "problems: {:#?}", state.problems);
        let left = state.exchanges.len();
        assert_eq!(
            left,
            0,
            "{left} exchanges were never asked for, after {} requests",
            state.requests.len()
        );
    }

    fn wait(&self, what: &str, holds: impl Fn(&State) -> bool) {
        let deadline = Instant::now() + super::default_wait();
        let mut state = self.shared.lock();
        while !holds(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "waited in vain for {what}; problems: {:?}",
                state.problems
            );
            let woken = self.shared.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.shared.change(|state| {
            state.ending = true;
            for connection in state.connections.iter().flatten() {
                // Already closed by the client: nothing left to do.
                let _ = connection.shutdown(Shutdown::Both);
            }
        });
        // Wakes the accepting thread, which then sees the end.
        let _ = TcpStream::connect(self.address);
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let (Ok(stream), false) = (stream, shared.lock().ending) else {
            return;
        };
        let Ok(handle) = stream.try_clone() else { return };
        let mut connection = 0;
        shared.change(|state| {
            connection = state.connections.len();
            state.connections.push(Some(handle));
        });
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            if let Err(error) = converse(stream, connection, &shared) {
                gone_or_problem(&shared, &error);
            }
        });
    }
}

/// A client that leaves in the middle is what many tests want to see; anything else is a problem.
fn gone_or_problem(shared: &Shared, error: &io::Error) {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    let gone = matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof
    );
    shared.change(|state| match (state.ending, gone) {
        (true, _) => {}
        (false, true) => state.clients_gone += 1,
        (false, false) => state.problems.push(format!("connection: {error}")),
    });
}

/// Serves one connection until either side closes it.
fn converse(stream: TcpStream, connection: usize, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(request) = read_request(&mut reader, connection)? {
        let reply = choose(shared, &request);
        let closes = reply.framing == Framing::Close || request.header("connection") == Some("close");
        let mut answer = Answer::new(&stream, shared, reply.framing);
        match answer.perform(&reply)? {
            After::Open if !closes => {}
            After::Open | After::Closed => return stream.shutdown(Shutdown::Both),
            After::Reset => {
                // The reset goes out when the last handle closes, so the kept one goes first.
                shared.change(|state| drop(state.connections.get_mut(connection).and_then(Option::take)));
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Records the request and takes the exchange that fits it.
fn choose(shared: &Shared, request: &Received) -> Reply {
    let mut state = shared.lock();
    let reply = if let Some(respond) = &state.everything {
        let reply = respond(request);
        state.requests.push(request.clone());
        reply
    } else if request.method == "GET" {
        state.probes.push(request.clone());
        match &state.listing {
            Some(reply) if request.path.contains("/models") => reply.clone(),
            Some(_) | None => probe_reply(&state.models, &request.path),
        }
    } else {
        state.requests.push(request.clone());
        let number = state.requests.len();
        script_reply(&mut state, request, number)
    };
    drop(state);
    shared.changed.notify_all();
    reply
}

fn probe_reply(models: &[String], path: &str) -> Reply {
    match path {
        "/health" => Reply::json(200, &json!({"status": "ok"})),
        "/props" => Reply::json(200, &json!({"default_generation_settings": {"n_ctx": 8192}})),
        "/v1/models" => {
            let data: Vec<Value> = models.iter().map(|id| json!({"id": id, "object": "model"})).collect();
            Reply::json(200, &json!({"object": "list", "data": data}))
        }
        _ => Reply::error(404, "File Not Found"),
    }
}

fn script_reply(state: &mut State, request: &Received, number: usize) -> Reply {
    if let Some(key) = &state.key
        && request.header("authorization") != Some(&format!("Bearer {key}"))
    {
        return Reply::error(401, "Invalid API Key");
    }
    if let Some(refusal) = refusal(&request.json, state.strictness) {
        state.problems.push(format!("request {number}: {}", refusal.message));
        return Reply::json(refusal.status, &refusal.body);
    }
    let fits = |exchange: &Exchange| exchange.when.as_ref().is_none_or(|holds| holds(request));
    if let Some(exchange) = state
        .exchanges
        .iter()
        .position(fits)
        .and_then(|at| state.exchanges.remove(at))
    {
        return exchange.reply;
    }
    if let Some(respond) = &state.otherwise {
        return respond(request);
    }
    state.problems.push(format!(
        "request {number} was not provided for: {} {}",
        request.path,
        request.roles()
    ));
    Reply::error(500, "the script has no exchange for this request")
}
