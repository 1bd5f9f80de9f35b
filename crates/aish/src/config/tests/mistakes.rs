//! What people are told when the configuration is wrong.

use super::*;

/// SPEC 10.1: an unknown key is an error that names the nearest one, with line, column and the place itself.
#[test]
fn unknown_keys_name_the_nearest() {
    insta::assert_snapshot!(errors("# mine\n\n    defualt_model = \"desk\"\n"), @r#"
    config.toml:3:5: unknown key "defualt_model"; did you mean "default_model"?
      3 |     defualt_model = …
        |     ^^^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("[modls.desk]\nmodel = 'm'"), @r#"
    config.toml:1:2: unknown key "modls"; did you mean "models"?
      1 | [modls.desk]
        |  ^^^^^
    "#);
    insta::assert_snapshot!(errors("[models.desk]\nmodel = 'm'\nbase_uri = 'http://x'"), @r#"
    config.toml:3:1: unknown key "base_uri" in [models.desk]; did you mean "base_url"?
      3 | base_uri = …
        | ^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("confirm_cmd = false"), @r#"
    config.toml:1:1: unknown key "confirm_cmd"; did you mean the one in [shell]?
      1 | confirm_cmd = …
        | ^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("[shell]\nmax_tool_turns = 3"), @r#"
    config.toml:2:1: unknown key "max_tool_turns" in [shell]; did you mean the one at the top of the file, above every [table]?
      2 | max_tool_turns = …
        | ^^^^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("[shell]\nzzz = 3"), @r#"
    config.toml:2:1: unknown key "zzz" in [shell]; known here: confirm_cmd, program, edit_mode
      2 | zzz = …
        | ^^^
    "#);
}

/// SPEC 10.1, 10.4: a wrong value says what was expected, what was found and how to write it.
#[test]
fn wrong_values_say_what_was_expected() {
    insta::assert_snapshot!(errors("max_tool_turns = \"50\""), @r#"
    config.toml:1:18: max_tool_turns: expected a whole number from 1 to 1000, found the text "50"; e.g. max_tool_turns = 50
      1 | max_tool_turns = "50"
        |                  ^^^^
    "#);
    insta::assert_snapshot!(errors("max_tool_turns = 0"), @r"
    config.toml:1:18: max_tool_turns: expected a whole number from 1 to 1000, found 0; e.g. max_tool_turns = 50
      1 | max_tool_turns = 0
        |                  ^
    ");
    insta::assert_snapshot!(errors("[tools]\nmax_output_size = 1_073_741_824"), @r"
    config.toml:2:19: tools.max_output_size: expected a whole number from 1024 to 104857600, found 1073741824; e.g. max_output_size = 1048576
      2 | max_output_size = 1_073_741_824
        |                   ^^^^^^^^^^^^^
    ");
    insta::assert_snapshot!(errors("[approval]\nmode = \"atuo\""), @r#"
    config.toml:2:8: approval.mode: expected one of "ask", "auto", "full", found "atuo"; did you mean "auto"?
      2 | mode = "atuo"
        |        ^^^^^^
    "#);
    insta::assert_snapshot!(errors("[approval]\nallow = [\"bash\", \"bash(ls\"]"), @r#"
    config.toml:2:18: approval.allow: rule `bash(ls` has no closing parenthesis; write e.g. `bash(git push*)`
      2 | allow = ["bash", "bash(ls"]
        |                  ^^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("[approval]\ndeny = [\"bash\", 3]"), @r#"
    config.toml:2:17: approval.deny: expected text, found 3; e.g. deny = ["bash(git push --force*)"]
      2 | deny = ["bash", 3]
        |                 ^
    "#);
    insta::assert_snapshot!(errors("[models]\ndesk = \"qwen\""), @r"
    config.toml:2:1: models.desk is a table; write [models.desk] and its settings below
      2 | desk = …
        | ^^^^
    ");
    insta::assert_snapshot!(errors("[mcp.auto_approve]\nboltzmann.read_file = true"), @r#"
    config.toml:2:1: mcp.auto_approve.boltzmann: expected true or false, found a table; quote a name with a dot: "alias.tool" = true
      2 | boltzmann.read_file = true
        | ^^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("[[models]]\nname = 'desk'"), @r"
    config.toml:1:3: models is a table; write [models.<name>] and its settings below
      1 | [[models]]
        |   ^^^^^^
    ");
}

/// SPEC 10.1: everything that is wrong is said at once, in the order of the file.
#[test]
fn all_mistakes_are_collected() {
    let text = "max_tool_turns = 0\n[shell]\nconfirm_cmd = \"no\"\nconfirm = 1\n[tools]\nparallel = 1\n";
    let errors = errors(text);
    let heads: Vec<&str> = errors.lines().filter(|line| line.starts_with("config.toml:")).collect();
    let places: Vec<&str> = heads.iter().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(
        places,
        [
            "config.toml:1:18",
            "config.toml:3:15",
            "config.toml:4:1",
            "config.toml:6:12"
        ]
    );
}

/// SPEC 10.1: what is no TOML has line and column too, and several of them are all said.
#[test]
fn syntax_errors_have_a_place() {
    insta::assert_snapshot!(errors("max_tool_turns = 5\n[shell\nconfirm_cmd = yes\n"), @r"
    config.toml:2:7: not TOML: unclosed table, expected `]`
      2 | [shell
        |       ^
    ");
    insta::assert_snapshot!(errors("a = 1\na = 2"), @r"
    config.toml:2:1: not TOML: duplicate key
      2 | a = 2
        | ^
    ");
}

/// SPEC 10.4: names that other settings speak of must exist.
#[test]
fn names_must_exist() {
    insta::assert_snapshot!(errors("default_model = 'dsk'\n[models.desk]\nmodel = 'm'"), @r#"
    config.toml:1:17: default_model: no model "dsk"; did you mean "desk"?
      1 | default_model = 'dsk'
        |                 ^^^^^
    "#);
    insta::assert_snapshot!(errors("[models.desk]\nmodel = 'm'\nfallback = ['cloud']"), @r#"
    config.toml:3:12: models.desk.fallback: no model "cloud"; there are: desk
      3 | fallback = ['cloud']
        |            ^^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("[models.desk]\nmodel = 'm'\nfallback = ['desk']"), @r"
    config.toml:3:12: models.desk.fallback: the fallbacks go round in a circle: desk, desk
      3 | fallback = ['desk']
        |            ^^^^^^^^
    ");
    insta::assert_snapshot!(errors("[models.desk]\nbase_url = 'http://x'"), @r#"
    config.toml:1:9: [models.desk] has no `model`: the provider's name for it; e.g. model = "qwen2.5-coder-7b"
      1 | [models.desk]
        |         ^^^^
    "#);
    insta::assert_snapshot!(errors("[models.'my desk']\nmodel = 'm'"), @r#"
    config.toml:1:9: wrong name "my desk": the name of a model has no spaces and nothing that cannot be seen
      1 | [models.'my desk']
        |         ^^^^^^^^^
    "#);
}

/// A default with no model configured may name one that is found at start (SPEC 7.7).
#[test]
fn a_default_without_models_is_left_alone() {
    let config = config("default_model = 'found'");
    assert_eq!(
        (config.default_model.as_deref(), config.start_model()),
        (Some("found"), Some("found"))
    );
}

/// SPEC 7.6: a chain of models that leads back to its beginning is told once; a provider's model needs no entry.
#[test]
fn chains_of_models() {
    let model = |name: &str, fallback: &str| format!("[models.{name}]\nmodel = 'm'\nfallback = [{fallback}]\n");
    insta::assert_snapshot!(errors(&(model("a", "'b'") + &model("b", "'c'") + &model("c", "'a'"))), @r"
    config.toml:3:12: models.a.fallback: the fallbacks go round in a circle: a, b, c, a
      3 | fallback = ['b']
        |            ^^^^^
    ");
    let diamond = model("a", "'b', 'c'") + &model("b", "'d'") + &model("c", "'d'") + &model("d", "'openai/gpt-x'");
    assert_eq!(config(&diamond).models.len(), 4);
    insta::assert_snapshot!(errors("[models.desk]\nmodel = 'm'\n[routing]\nwork = 'dest'"), @r#"
    config.toml:4:8: routing.work: no model "dest"; did you mean "desk"?
      4 | work = 'dest'
        |        ^^^^^^
    "#);
}

/// SPEC 7.1, 10.4: what a model's settings lack or what in them does not go together.
#[test]
fn models_are_checked() {
    let model = |text: &str| errors(&format!("[models.desk]\nmodel = 'm'\n{text}"));
    insta::assert_snapshot!(model("price = { input = 1 }"), @r"
    config.toml:1:9: [models.desk] has a price that lacks `input` or `output`; e.g. price = { input = 3.0, output = 15.0 }
      1 | [models.desk]
        |         ^^^^
    ");
    insta::assert_snapshot!(model("preset = 'anthropic'\nprovider = 'openai-chat'"), @r"
    config.toml:1:9: [models.desk] has preset anthropic and provider openai-chat, which is not spoken at its usual address; set base_url too
      1 | [models.desk]
        |         ^^^^
    ");
    insta::assert_snapshot!(model("preset = 'olama'"), @r#"
    config.toml:3:10: models.desk.preset: expected one of "openai", "anthropic", "google", "openrouter", "xai", "meta", "mistral", "deepseek", "groq", "llama.cpp", "ollama", "lmstudio", "vllm", found "olama"; did you mean "ollama"?
      3 | preset = 'olama'
        |          ^^^^^^^
    "#);
    insta::assert_snapshot!(model("provider_tools = ['web_serch']"), @r#"
    config.toml:3:19: models.desk.provider_tools: unknown word "web_serch"; known here: "web_search"
      3 | provider_tools = ['web_serch']
        |                   ^^^^^^^^^^^
    "#);
}

/// SPEC 6.4: servers are one thing or the other, and their aliases fit into tool names.
#[test]
fn servers_are_checked() {
    let server = |text: &str| errors(&format!("[mcp.servers.git]\n{text}"));
    let url = "url = 'http://x/mcp'\n";
    insta::assert_snapshot!(server(""), @r#"
    config.toml:1:14: [mcp.servers.git] has neither a `url` nor a `command`; e.g. url = "http://127.0.0.1:8080/mcp"
      1 | [mcp.servers.git]
        |              ^^^
    "#);
    insta::assert_snapshot!(server("url = 'http://x'\ncommand = ['y']"), @r"
    config.toml:1:14: [mcp.servers.git] has both a `url` and a `command`; keep one
      1 | [mcp.servers.git]
        |              ^^^
    ");
    insta::assert_snapshot!(server("command = []"), @r#"
    config.toml:1:14: [mcp.servers.git] has a `command` without a program; e.g. command = ["mcp-server-git"]
      1 | [mcp.servers.git]
        |              ^^^
    "#);
    insta::assert_snapshot!(server(&format!("{url}env = {{ A = 'b' }}")), @r"
    config.toml:1:14: [mcp.servers.git] has an `env`, which only a `command` can use
      1 | [mcp.servers.git]
        |              ^^^
    ");
    insta::assert_snapshot!(server(&format!("{url}cwd = '/srv'")), @r"
    config.toml:1:14: [mcp.servers.git] has a `cwd`, which only a `command` can use
      1 | [mcp.servers.git]
        |              ^^^
    ");
    insta::assert_snapshot!(server("command = ['y']\nauth_env = 'TOKEN'"), @r"
    config.toml:1:14: [mcp.servers.git] has headers or a token, which only a `url` can use; give a `command` its secrets in `env`
      1 | [mcp.servers.git]
        |              ^^^
    ");
    insta::assert_snapshot!(errors(&format!("[mcp.servers.Git]\n{url}")), @r#"
    config.toml:1:14: wrong name "Git": the alias of a server begins with a small letter; then small letters, digits, _ and - follow
      1 | [mcp.servers.Git]
        |              ^^^
    "#);
    insta::assert_snapshot!(errors(&format!("[mcp.servers.x]\n{url}headers = {{ 'a b' = 'c' }}")), @r#"
    config.toml:3:13: wrong name "a b": this is not the name of an HTTP header
      3 | headers = …
        |           ^
    "#);
    insta::assert_snapshot!(errors("[mcp.auto_approve]\n'git.*.x' = true"), @r#"
    config.toml:2:1: wrong name "git.*.x": write "alias.tool", "alias.*" or the name of a built-in tool
      2 | 'git.*.x' = …
        | ^^^^^^^^^
    "#);
}

/// SPEC 10.5: a secret that was typed wrong is not repeated.
#[test]
fn mistyped_secrets_are_not_repeated() {
    let secrets = [
        "[mcp.servers.x]\nurl = 'http://x'\nauth_tokn = 'hunter2hunter2'",
        "[mcp.servers.x]\nurl = 'http://x'\nauth_token = ['hunter2hunter2']",
        "[mcp.servers.x]\nauth_token = 'hunter2hunter2\nurl = 'http://x'",
        "[mcp.servers.x.headers]\nX-Pat = ['hunter2hunter2']",
        "[models.x]\nmodel = 'm'\nkey_env = 'sk-hunter2hunter2'",
        "[models.x]\nmodel = 'm'\napi_key = 'hunter2hunter2'",
        "[models.x]\nmodel = 'm'\nbase_url = 'http://me:hunter2@x'",
    ];
    for text in secrets {
        let errors = errors(text);
        assert!(!errors.contains("hunter2"), "{errors}");
    }
}

/// SPEC 10.1: a variable that is wrong is named, with what was expected.
#[test]
fn wrong_variables_are_named() {
    let variables = [
        ("AISH_MAX_TOOL_TURNS", "many"),
        ("AISH_APPROVAL", "yolo"),
        ("AISH_TOOLS_PARALLEL", ""),
    ];
    insta::assert_snapshot!(layered("", "", &variables, &Overrides::default()).unwrap_err(), @r#"
    $AISH_MAX_TOOL_TURNS: expected a whole number from 1 to 1000, found "many"; e.g. AISH_MAX_TOOL_TURNS=50
    $AISH_APPROVAL: expected one of "ask", "auto", "full", found "yolo"; e.g. AISH_APPROVAL=auto
    "#);
    let resolved = layered(
        "",
        "",
        &[("AISH_MODLE", "x"), ("AISH_OTHER_THING", "y")],
        &Overrides::default(),
    )
    .unwrap();
    assert_eq!(
        resolved.warnings,
        ["$AISH_MODLE is not a variable of aish; did you mean AISH_MODEL?"]
    );
}

/// SPEC 10.4: a file that was asked for must be there; the usual one need not.
#[test]
fn a_named_file_must_exist() {
    let home = tempfile::tempdir().unwrap();
    let environment = Environment::from_pairs([("AISH_HOME", home.path())]);
    let load_with = |flag: Option<&Path>| {
        let paths = Paths::find(&environment, flag, home.path()).unwrap();
        load(&paths, None, &environment, &Overrides::default())
    };
    assert_eq!(load_with(None).unwrap().config, config(""));
    let error = load_with(Some(Path::new("other.toml"))).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read the configuration /") && error.contains("other.toml: "),
        "{error}"
    );
    assert!(error.ends_with("; it was chosen by --config"), "{error}");
    std::fs::write(home.path().join("config.toml"), "max_tool_turns = 7").unwrap();
    assert_eq!(load_with(None).unwrap().config.max_tool_turns, 7);
    std::fs::write(home.path().join("config.toml"), "# ".repeat(600_000)).unwrap();
    assert!(load_with(None).unwrap_err().to_string().contains("larger than"));
    std::fs::write(home.path().join("config.toml"), b"a = '\xff'").unwrap();
    assert!(load_with(None).is_err());
}

/// SPEC 10.4: no text makes the reading of it fail in any other way than with a message: the documented example with each
/// byte left out, doubled or replaced, and cut after each byte.
#[test]
fn no_text_is_too_broken_for_a_message() {
    let text = reference();
    let text = text.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    for at in (0..text.len()).filter(|at| text.is_char_boundary(*at) && text.is_char_boundary(at + 1)) {
        let (before, after) = (&text[..at], &text[at + 1..]);
        let it = &text[at..=at];
        let broken = [
            before.to_owned(),
            format!("{before}{after}"),
            format!("{before}{it}{it}{after}"),
            format!("{before}\u{1b}{after}"),
            format!("{before}ß{after}"),
            format!("{before}\"{after}"),
            format!("{before}\n{after}"),
        ];
        for text in broken {
            if let Err(error) = user(&text) {
                let error = error.to_string();
                assert!(
                    error.starts_with("config.toml:") && !error.contains('\u{1b}'),
                    "{text}\n{error}"
                );
            }
        }
    }
}
