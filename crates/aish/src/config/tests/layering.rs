//! What comes of the layers: defaults, the user's file, a trusted project's, the environment, the command line.

use super::super::settings::{Kind, SETTINGS, Setting};
use super::*;
use aish_core::action::Reach;
use aish_core::policy::{ApprovalMode, Rule};
use aish_engine::Routing;
use aish_provider::profile::{Alternation, Format, SystemRole, ToolRole, WireCallIds, WireNaming};

/// SPEC 10.1: with no file at all there is a whole configuration.
#[test]
fn defaults() {
    let none = resolve(None, None, &Environment::default(), &Overrides::default()).unwrap();
    let expected = Config {
        discover: true,
        default_model: None,
        max_tool_turns: 50,
        retries: 3,
        models: Vec::new(),
        routing: Routing {
            quick_chars_max: 200,
            ..Routing::default()
        },
        approval: ApprovalConfig {
            mode: ApprovalMode::Ask,
            deny: Vec::new(),
            ask: Vec::new(),
            allow: Vec::new(),
            read_only_inside_tree: true,
        },
        shell: ShellConfig {
            confirm_cmd: true,
            program: None,
            edit_mode: EditMode::Emacs,
        },
        ui: UiConfig {
            background: None,
            plain: false,
            hints: true,
        },
        tools: ToolsConfig {
            max_output_size: 1_048_576,
            max_result_chars: None,
            parallel: true,
            web: Reach::Public,
        },
        mcp: McpConfig {
            max_tool_depth: 8,
            servers: Vec::new(),
            auto_approve: Default::default(),
        },
        serve: ServeConfig {
            listen: "127.0.0.1:8765".into(),
            store: None,
            hosts: Vec::new(),
            pending_ttl_s: 7 * 24 * 60 * 60,
            strict_call_id: false,
            turns_max: 256,
            otlp_endpoint: None,
        },
    };
    assert_eq!(none.config, expected);
    assert_eq!(config(""), expected);
}

/// SPEC 10.1: the shape people copy from the documentation, whole.
#[test]
fn the_documented_shape() {
    let config = config(
        r#"
        default_model = "desk"
        [models.desk]
        base_url = "http://127.0.0.1:8080/v1/"
        model = "qwen2.5-coder-7b"
        use_tool_role = false
        fallback = ["cloud"]
        [models.cloud]
        provider = "anthropic"
        model = "big"
        wire_names = "dot"
        [approval]
        deny = ["bash(git push --force*)"]
        [mcp.servers.boltzmann]
        url = "http://boltzmann.example:8080/mcp"
        auth_token = "0123456789"
        headers = { X-Team = "tools" }
        [mcp.servers.git]
        command = ["mcp-server-git", "--repository", "."]
        env = { NOTES = "/srv/notes" }
        timeout_s = 5
        [mcp.auto_approve]
        "boltzmann.read_file" = true
        "git.*" = false
        "#,
    );
    let desk = config.model(config.start_model().unwrap()).unwrap();
    assert_eq!(
        (desk.name.as_str(), desk.profile.base_url.as_str()),
        ("desk", "http://127.0.0.1:8080/v1")
    );
    assert_eq!(
        (desk.profile.format, desk.key_env.as_deref()),
        (Format::OpenaiChat, None)
    );
    assert_eq!(
        (desk.profile.temperature, desk.profile.tool_role),
        (Some(0.2), ToolRole::Text)
    );
    let cloud = config.model("cloud").unwrap();
    assert_eq!(
        (cloud.profile.base_url.as_str(), cloud.profile.temperature),
        ("https://api.anthropic.com", None)
    );
    assert_eq!(
        (cloud.key_env.as_deref(), cloud.profile.wire_names),
        (Some("ANTHROPIC_API_KEY"), WireNaming::Dot)
    );
    assert_eq!(config.approval.deny, [Rule::parse("bash(git push --force*)").unwrap()]);
    let [boltzmann, git] = config.mcp.servers.as_slice() else {
        panic!("two servers were written: {:?}", config.mcp.servers);
    };
    assert_eq!(boltzmann.auth_token.as_ref().unwrap().expose(), "0123456789");
    assert_eq!(boltzmann.timeout_s, 30);
    let McpTransport::Stdio { command, .. } = &git.transport else {
        panic!("git is a command");
    };
    assert_eq!((command.len(), git.timeout_s), (3, 5));
    assert_eq!(config.mcp.auto_approve.get("git.*"), Some(&false));
    let secrets: Vec<&str> = config.secrets().map(Secret::expose).collect();
    assert_eq!(secrets, ["0123456789", "/srv/notes"]);
    assert!(!format!("{config:?}").contains("0123456789"));
}

/// SPEC 7.1: without a default the first model written is used, not the first by name.
#[test]
fn the_first_model_is_the_default() {
    let config = config("[models.zeta]\nmodel = 'm'\n[models.alpha]\nmodel = 'm'");
    assert_eq!(config.start_model().unwrap(), "zeta");
}

/// SPEC 10.1: a key goes only where its owner paired it with an address.
#[test]
fn no_official_key_for_other_addresses() {
    let config = config("[models.a]\nmodel = 'm'\nbase_url = 'http://x'\n[models.b]\nmodel = 'm'");
    assert_eq!(config.model("a").unwrap().key_env, None);
    assert_eq!(config.model("b").unwrap().key_env.as_deref(), Some("OPENAI_API_KEY"));
}

/// SPEC 7.1, 10.1: a preset gives address, key and quirks; what the user says goes over it, and an address of theirs gets no
/// key that they did not name.
#[test]
fn presets() {
    let config = config(
        "
        [models.m]
        preset = 'mistral'
        model = 'mistral-large-latest'
        strict_alternation = false
        [models.box]
        preset = 'llama.cpp'
        model = 'gemma-3-4b'
        base_url = 'http://box:8080/v1'
        [models.proxy]
        preset = 'anthropic'
        model = 'claude-x'
        base_url = 'http://proxy'
        [models.own]
        provider = 'openai-chat'
        base_url = 'https://api.openai.com/v1'
        model = 'gpt-5'
        price = { input = 1, output = 2.5, cached = 0.1 }
        ",
    );
    let of = |name: &str| {
        let model = config.model(name).unwrap();
        (model.profile.base_url.as_str(), model.key_env.as_deref())
    };
    assert_eq!(of("m"), ("https://api.mistral.ai/v1", Some("MISTRAL_API_KEY")));
    assert_eq!(of("box"), ("http://box:8080/v1", None));
    assert_eq!(of("proxy"), ("http://proxy", None));
    assert_eq!(of("own"), ("https://api.openai.com/v1", Some("OPENAI_API_KEY")));
    let profile = |name: &str| config.model(name).unwrap().profile.clone();
    assert_eq!(
        (profile("m").alternation, profile("m").wire_call_ids),
        (Alternation::Joined, WireCallIds::NineCharacters)
    );
    assert_eq!(profile("box").system_role, SystemRole::User);
    assert_eq!(profile("proxy").format, Format::Anthropic);
    assert_eq!(profile("own").temperature, None, "its reasoning models refuse one");
    let price = config.model("own").unwrap().price.unwrap();
    assert_eq!((price.input, price.output, price.cached), (1.0, 2.5, Some(0.1)));
}

/// SPEC 7.1: of several variables a provider's key may be in, the one that is set is used.
#[test]
fn the_variable_that_is_set() {
    let user = "[models.g]\nprovider = 'gemini'\nmodel = 'm'";
    let key = |variables: &[(&str, &str)]| {
        let resolved = layered(user, "", variables, &Overrides::default()).unwrap();
        resolved.config.model("g").unwrap().key_env.clone().unwrap()
    };
    assert_eq!(key(&[("GOOGLE_API_KEY", "k")]), "GOOGLE_API_KEY");
    assert_eq!(key(&[]), "GEMINI_API_KEY");
}

/// SPEC 10.1: each setting that is declared changes the configuration, and is not lost on the way.
#[test]
fn every_setting_reaches_the_configuration() {
    for setting in SETTINGS {
        let key = setting.key.replace("<name>", "desk").replace("<alias>", "srv");
        let key = key
            .replace("<tool>", "'srv.*'")
            .replace("<header>", "X-A")
            .replace("<variable>", "A");
        let mut lines = vec![
            ("models.desk.model".to_owned(), "'m'".to_owned()),
            ("models.cloud.model".to_owned(), "'m'".to_owned()),
            ("models.small.model".to_owned(), "'m'".to_owned()),
            ("models.large.model".to_owned(), "'m'".to_owned()),
            ("models.desk.price.input".to_owned(), "1".to_owned()),
            ("models.desk.price.output".to_owned(), "1".to_owned()),
        ];
        match setting.leaf() {
            "command" | "cwd" | "<variable>" => lines.push(("mcp.servers.srv.command".to_owned(), "['x']".to_owned())),
            _ => lines.push(("mcp.servers.srv.url".to_owned(), "'http://x'".to_owned())),
        }
        let text = |lines: &[(String, String)]| {
            lines
                .iter()
                .map(|(key, value)| format!("{key} = {value}\n"))
                .collect::<String>()
        };
        let before = config(&text(&lines));
        lines.retain(|(other, _)| *other != key);
        lines.push((key.clone(), unusual(setting)));
        assert_ne!(config(&text(&lines)), before, "{key}");
    }
}

/// A value of a setting that is not its default.
fn unusual(setting: &Setting) -> String {
    match setting.kind {
        Kind::Bool if setting.default == Some("true") => "false".to_owned(),
        Kind::Bool => setting.example.to_owned(),
        Kind::Integer(min, _) => min.to_string(),
        Kind::Float(_, max) => format!("{max:?}"),
        Kind::Choice(words) => format!("{:?}", words.last().unwrap()),
        Kind::Text | Kind::AnyText | Kind::Url | Kind::Variable | Kind::Texts | Kind::Words(_) | Kind::Rules => {
            setting.example.to_owned()
        }
    }
}

/// SPEC 10.1: later layers win, and every variable declared is read.
#[test]
fn later_layers_win() {
    let (user, project) = (
        "max_tool_turns = 10\ntools.max_output_size = 2000",
        "max_tool_turns = 20",
    );
    let turns = |variables: &[(&str, &str)]| {
        let resolved = layered(user, project, variables, &Overrides::default()).unwrap();
        (resolved.config.max_tool_turns, resolved.config.tools.max_output_size)
    };
    assert_eq!(turns(&[]), (20, 2000));
    assert_eq!(turns(&[("AISH_MAX_TOOL_TURNS", "30")]), (30, 2000));
    for setting in SETTINGS {
        let Some(variable) = setting.env else { continue };
        let value = unusual(setting);
        let value = value.trim_matches('"');
        let resolved = layered("", "", &[(variable, value)], &Overrides::default()).unwrap();
        assert_ne!(resolved.config, config(""), "{variable}={value}");
    }
}

/// SPEC 10.3: `--model` and `--approval` win over everything.
#[test]
fn the_command_line_wins() {
    let user = "default_model = 'a'\n[models.a]\nmodel = 'm'\n[models.b]\nmodel = 'm'\n[models.c]\nmodel = 'm'";
    let variables = [("AISH_MODEL", "b"), ("AISH_APPROVAL", "full")];
    let overrides = |model: &str| Overrides {
        model: Some(model.to_owned()),
        approval: Some(ApprovalMode::Auto),
        form: Some(Form::Plain),
    };
    let config = layered(user, "", &variables, &overrides("c")).unwrap().config;
    assert_eq!(config.start_model().unwrap(), "c");
    assert!(config.ui.plain);
    assert_eq!(config.approval.mode, ApprovalMode::Auto);
    let error = layered(user, "", &variables, &overrides("dd")).unwrap_err();
    insta::assert_snapshot!(error, @r#"--model: default_model: no model "dd"; there are: a, b, c"#);
}

/// SPEC 10.1, 5.1: rules of all layers add up; nothing a project says removes a rule of the user's.
#[test]
fn rules_add_up() {
    let user = "approval.deny = ['bash(rm*)']\napproval.ask = ['bash']";
    let project = "approval.deny = ['bash(dd*)', 'bash(rm*)']\napproval.ask = []\napproval.allow = ['bash(make)']";
    let approval = layered(user, project, &[], &Overrides::default())
        .unwrap()
        .config
        .approval;
    let texts = |rules: &[Rule]| rules.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(texts(&approval.deny), ["bash(rm*)", "bash(dd*)"]);
    assert_eq!(texts(&approval.ask), ["bash"]);
    assert_eq!(texts(&approval.allow), ["bash(make)"]);
}

/// A tool's bare name allows no command, though it looks so.
#[test]
fn an_allow_rule_that_allows_no_command_is_pointed_out() {
    let warnings = user("approval.allow = ['bash(cargo test*)', 'git.*', 'bash(make)', 'bash']")
        .unwrap()
        .warnings;
    insta::assert_snapshot!(warnings.join("\n"), @"approval.allow: `bash` allows no command: name those you mean, e.g. `bash(cargo test*)`, or choose the mode `full`");
}

/// SPEC 10.1, 10.5: `aish config show` has every value, where it comes from, and no secret; it reads as TOML.
#[test]
fn what_is_in_force_is_shown() {
    let user = "
default_model = 'desk'
[models.desk]
model = 'm'
base_url = 'http://127.0.0.1:8080/v1'
[approval]
deny = ['bash(rm*)']
[mcp.servers.srv]
url = 'http://x'
auth_token = 'hunter2'
headers = { X-A = 'hunter2' }
[mcp.auto_approve]
'srv.*' = true
";
    let project = "approval.deny = ['bash(dd*)']";
    let resolved = layered(user, project, &[("AISH_APPROVAL", "auto")], &Overrides::default()).unwrap();
    let text = show(&resolved.layers);
    assert!(toml::from_str::<toml::Table>(&text).is_ok(), "{text}");
    insta::assert_snapshot!(text, @r#"
    default_model = "desk"                             # config.toml:2:17
    discover = true                                    # default
    max_tool_turns = 50                                # default
    retries = 3                                        # default
    routing.quick_chars_max = 200                      # default
    approval.mode = "auto"                             # $AISH_APPROVAL
    approval.deny = ["bash(rm*)", "bash(dd*)"]         # config.toml:7:8, .aish/config.toml:1:17
    approval.ask = []                                  # default
    approval.allow = []                                # default
    approval.read_only_inside_tree = true              # default
    shell.confirm_cmd = true                           # default
    shell.edit_mode = "emacs"                          # default
    tools.max_output_size = 1048576                    # default
    tools.parallel = true                              # default
    tools.web_private = false                          # default
    mcp.max_tool_depth = 8                             # default
    serve.listen = "127.0.0.1:8765"                    # default
    serve.pending_ttl_s = 604800                       # default
    serve.strict_call_id = false                       # default
    serve.turns_max = 256                              # default
    ui.background = "auto"                             # default
    ui.plain = false                                   # default
    ui.hints = true                                    # default
    models.desk.base_url = "http://127.0.0.1:8080/v1"  # config.toml:5:12
    models.desk.model = "m"                            # config.toml:4:9
    models.desk.use_tool_role = true                   # default
    models.desk.wire_names = "underscore"              # default
    models.desk.fallback = []                          # default
    models.desk.provider_tools = []                    # default
    mcp.servers.srv.url = "http://x"                   # config.toml:9:7
    mcp.servers.srv.auth_token = "[redacted]"          # config.toml:10:14
    mcp.servers.srv.enabled = true                     # default
    mcp.servers.srv.timeout_s = 30                     # default
    mcp.servers.srv.enabled_tools = []                 # default
    mcp.servers.srv.disabled_tools = []                # default
    mcp.servers.srv.required = false                   # default
    mcp.servers.srv.trusted = false                    # default
    mcp.auto_approve."srv.*" = true                    # config.toml:13:11
    mcp.servers.srv.headers.X-A = "[redacted]"         # config.toml:11:19
    "#);
}

/// SPEC 6.4, 10.1: where a server starts is seen from the file that says so, and a project says it of its own servers only.
#[test]
fn servers_start_where_their_file_says() {
    let user =
        "[mcp.servers.git]\ncommand = ['g']\ncwd = 'a'\nenabled = false\n[mcp.servers.web]\nurl = 'http://h/mcp'";
    let project = "[mcp.servers.notes]\ncommand = ['n']\ncwd = 'a'";
    let resolved = layered(user, project, &[], &Overrides::default()).unwrap();
    let found: Vec<_> = resolved
        .config
        .mcp
        .servers
        .iter()
        .map(|server| {
            let cwd = match &server.transport {
                McpTransport::Stdio { cwd, .. } => cwd.clone(),
                McpTransport::Http { .. } => None,
            };
            (server.alias.as_str(), server.enabled, cwd)
        })
        .collect();
    let a = |base| {
        Some(Cwd {
            path: "a".to_owned(),
            base,
        })
    };
    let expect = [
        ("git", false, a(CwdBase::Configuration)),
        ("web", true, None),
        ("notes", true, a(CwdBase::Project)),
    ];
    assert_eq!(found, expect);
    for line in ["enabled = false", "cwd = '/'"] {
        let error = project_errors(&format!("[mcp.servers.git]\n{line}"));
        assert!(error.contains("stands in your own file"), "{error}");
    }
    let error = project_errors("[mcp.servers.own]\ncommand = ['n']\ncwd = '/${TOKEN}'");
    assert!(error.contains("a project's file may not"), "{error}");
}

/// SPEC 8.9: what text stands on can be said, where the terminal does not.
#[test]
fn how_things_look() {
    let ui = |text: &str| config(text).ui;
    assert_eq!(ui("ui.background = 'light'").background, Some(Background::Light));
    assert_eq!(ui("ui.background = 'dark'").background, Some(Background::Dark));
    assert_eq!(ui("ui.background = 'auto'").background, None);
    assert!(ui("ui.plain = true").plain && !ui("").plain);
}
