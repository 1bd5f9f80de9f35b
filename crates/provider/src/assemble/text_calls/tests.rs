//! Calls as models write them, and text that only looks like it.
#![allow(clippy::unwrap_used)]

use super::hold::{HELD_BYTES_MAX, Hold};
use super::*;
use crate::profile::WireNaming;

/// Reads with the tools `glob`, `bash` and `srv.read`, whose `path` is text.
fn with_tools<T>(read: impl FnOnce(Tools<'_>) -> T) -> T {
    let names = WireNames::new(WireNaming::Underscore, ["glob", "bash", "srv.read"]);
    let callable = ["glob", "bash", "srv.read"].map(|name| Callable {
        name: name.to_owned(),
        texts: vec!["path".to_owned()],
    });
    read(Tools {
        names: &names,
        callable: &callable,
    })
}

/// The text that stays and the calls, as `name(arguments)`.
fn found(text: &str) -> (String, Vec<String>) {
    let found = with_tools(|tools| find(text, Lines::default(), tools));
    match found {
        Some(found) => {
            let calls = found
                .calls
                .iter()
                .map(|call| format!("{}({})", call.name, call.arguments));
            (text[..found.text_bytes].to_owned(), calls.collect())
        }
        None => (text.to_owned(), Vec::new()),
    }
}

/// What is shown of a text that comes in these pieces, before its end.
fn shown(pieces: &[&str]) -> String {
    with_tools(|tools| {
        let mut hold = Hold::default();
        pieces
            .iter()
            .map(|piece| hold.take(piece, tools).into_owned())
            .collect()
    })
}

/// Asserts that a text is these calls behind that text, and that nothing of them is shown, however it comes.
#[track_caller]
fn check(text: &str, before: &str, calls: &[&str]) {
    assert_eq!(
        found(text),
        (before.to_owned(), calls.iter().map(|call| (*call).to_owned()).collect()),
        "{text}"
    );
    let chars: Vec<String> = text.chars().map(String::from).collect();
    let each: Vec<&str> = chars.iter().map(String::as_str).collect();
    assert_eq!(shown(&each).trim_end(), before, "{text}");
    assert_eq!(shown(&[text]).trim_end(), before, "{text}");
}

const GLOB: &str = r#"{"name": "glob", "arguments": {"pattern":  "*"}}"#;
const GLOB_CALL: &str = r#"glob({"pattern":  "*"})"#;

/// SPEC 7.4: calls in tags, their arguments exactly as written.
#[test]
fn tags() {
    check(&format!("<tool_call>\n{GLOB}\n</tool_call>\n"), "", &[GLOB_CALL]);
    let bare = r#"<tool_call>{"name":"bash"}</tool_call>"#;
    check(&format!("{bare} {bare}"), "", &["bash({})", "bash({})"]);
    check(
        &format!(
            "I look.\n<tool_call>{GLOB}</tool_call><tool_call>{{\"name\":\"bash\",\"parameters\":{{}}}}</tool_call>"
        ),
        "I look.",
        &[GLOB_CALL, "bash({})"],
    );
    let string = r#"<tool_call>{"name":"glob","arguments":"{\"pattern\":\"a\"}"}</tool_call>"#;
    check(string, "", &[r#"glob({"pattern":"a"})"#]);
    let inside = r#"<tool_call>{"name":"glob","arguments":{"pattern":"</tool_call>"}}</tool_call>"#;
    check(inside, "", &[r#"glob({"pattern":"</tool_call>"})"#]);
    // Models stop behind the object.
    check(&format!("<tool_call>{GLOB}"), "", &[GLOB_CALL]);
    check(&format!("<tools>{GLOB}</tools><|im_end|>"), "", &[GLOB_CALL]);
    check(
        r#"<tool_call>[{"name":"srv__read","arguments":{}}]</tool_call>"#,
        "",
        &["srv.read({})"],
    );
}

/// SPEC 7.4: functions and parameters in tags; values are text where the tool wants text.
#[test]
fn functions() {
    check(r#"<function=bash>{"a": 1}</function>"#, "", &[r#"bash({"a": 1})"#]);
    let qwen = "<tool_call>\n<function=srv__read>\n<parameter=path>\n12\n</parameter>\n<parameter=lines>\n3\n</parameter>\n\
                </function>\n</tool_call>";
    check(
        &format!("Now.\n\n{qwen}"),
        "Now.",
        &[r#"srv.read({"lines":3,"path":"12"})"#],
    );
    let forgotten = qwen.replacen("<tool_call>\n", "", 1);
    check(&forgotten, "", &[r#"srv.read({"lines":3,"path":"12"})"#]);
    let glm = "<tool_call>bash\n<arg_key>path</arg_key>\n<arg_value>a < b</arg_value>\n<arg_key>all</arg_key>\
               <arg_value>true</arg_value>\n</tool_call>";
    check(
        &format!("{glm}\n{glm}"),
        "",
        &[r#"bash({"all":true,"path":"a < b"})"#; 2],
    );
    let minimax = "<minimax:tool_call>\n<invoke name=\"glob\">\n<parameter name=\"pattern\">*.rs</parameter>\n</invoke>\n\
                   <invoke name=\"bash\">\n</invoke>\n</minimax:tool_call>";
    check(minimax, "", &[r#"glob({"pattern":"*.rs"})"#, "bash({})"]);
    let dsml = "I look.<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"bash\">\n<｜DSML｜parameter name=\"n\" string=\"true\">1\
                </｜DSML｜parameter>\n<｜DSML｜parameter name=\"m\" string=\"false\">1</｜DSML｜parameter>\n</｜DSML｜invoke>\n\
                </｜DSML｜function_calls>";
    check(dsml, "I look.", &[r#"bash({"m":1,"n":"1"})"#]);
}

/// SPEC 7.4: which parameters are text is told by the tool's schema.
#[test]
fn texts_of_a_tool() {
    let tool = ToolSpec {
        name: "bash".to_owned(),
        description: String::new(),
        input_schema: serde_json::json!({"type": "object", "properties": {
            "command": {"type": "string"}, "seconds": {"type": "integer"}, "any": {}, "odd": 1,
        }}),
    };
    assert_eq!(Callable::of(&tool).texts, ["command"]);
}

/// SPEC 7.4: calls behind the tokens of a template.
#[test]
fn tokens() {
    check(
        &format!("<|python_tag|>{GLOB}; {GLOB}<|eom_id|>"),
        "",
        &[GLOB_CALL, GLOB_CALL],
    );
    check(&format!("I look.[TOOL_CALLS] [{GLOB}]"), "I look.", &[GLOB_CALL]);
    check(
        "[TOOL_CALLS]bash{\"a\":1}[TOOL_CALLS]glob[ARGS]{}",
        "",
        &["bash({\"a\":1})", "glob({})"],
    );
    check(
        "[TOOL_CALLS]bash[CALL_ID]abc[ARGS]{\"a\":1}</s>",
        "",
        &["bash({\"a\":1})"],
    );
    check(&format!("<|tool_call|>[{GLOB}]<|/tool_call|>"), "", &[GLOB_CALL]);
    check(&format!("functools[{GLOB}]"), "", &[GLOB_CALL]);
    let kimi = "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{\"a\":1}\
                <|tool_call_end|><|tool_call_begin|>functions.glob:1<|tool_call_argument_begin|>{}<|tool_call_end|>\
                <|tool_calls_section_end|>";
    check(&format!("I look.{kimi}"), "I look.", &["bash({\"a\":1})", "glob({})"]);
    let one = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n```json\n{\"a\":1}\n```<｜tool▁call▁end｜>";
    let other = "<｜tool▁call▁begin｜>glob<｜tool▁sep｜>{}<｜tool▁call▁end｜>";
    let deepseek = format!("<｜tool▁calls▁begin｜>{one}\n{other}<｜tool▁calls▁end｜>");
    check(&deepseek, "", &["bash({\"a\":1})", "glob({})"]);
    check(&deepseek.replace('｜', "|"), "", &["bash({\"a\":1})", "glob({})"]);
    let harmony = "<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{\"a\":1}<|call|>";
    check(harmony, "", &["bash({\"a\":1})"]);
    check(&format!("<|start|>assistant{harmony}"), "", &["bash({\"a\":1})"]);
    check(
        "Again.\n[call: srv.read]\n{\"path\":\"a\"}",
        "Again.",
        &["srv.read({\"path\":\"a\"})"],
    );
}

/// SPEC 7.4: JSON without markup, and one fenced block, if they are the whole reply.
#[test]
fn whole_replies() {
    check(GLOB, "", &[GLOB_CALL]);
    check(&format!("[{GLOB}, {GLOB}]"), "", &[GLOB_CALL, GLOB_CALL]);
    check(&format!("```json\n{GLOB}\n```\n"), "", &[GLOB_CALL]);
    check(&format!("```\n[{GLOB}]\n```"), "", &[GLOB_CALL]);
    check(
        r#"{"type":"function","name":"bash","parameters":{"a":1}}"#,
        "",
        &["bash({\"a\":1})"],
    );
    check(
        r#"{"type":"function","function":{"name":"bash","arguments":{}}}"#,
        "",
        &["bash({})"],
    );
    check(
        r#"{"tool_calls":[{"function":"bash","parameters":{}}]}"#,
        "",
        &["bash({})"],
    );
    check(r#"{"tool_name":"bash","parameters":{}}"#, "", &["bash({})"]);
}

/// SPEC 7.4: calls as Python writes them, of declared tools and with literals only.
#[test]
fn python() {
    check(
        r#"[glob(pattern="*.rs"), bash()]"#,
        "",
        &[r#"glob({"pattern":"*.rs"})"#, "bash({})"],
    );
    let literals = r#"[bash(a='it\'s', b=-1.5, c=[True, None,], d={"k": {'l': False}}, e = "\n",)]"#;
    let expect = r#"bash({"a":"it's","b":-1.5,"c":[true,null],"d":{"k":{"l":false}},"e":"\n"})"#;
    check(literals, "", &[expect]);
    let lfm = "<|tool_call_start|>[srv__read(path=\"a]b\")]<|tool_call_end|>";
    check(
        &format!("I look.{lfm}<|im_end|>"),
        "I look.",
        &[r#"srv.read({"path":"a]b"})"#],
    );
    check(
        &format!("<|tool_call_start|>[{GLOB}]<|tool_call_end|>"),
        "",
        &[GLOB_CALL],
    );
    check(
        "```tool_code\nglob(pattern=\"*\")\n```",
        "",
        &[r#"glob({"pattern":"*"})"#],
    );
    check(
        "I look.\n```tool_code\ndefault_api.bash()\n[glob(n=1)]\n```\n",
        "I look.",
        &["bash({})", r#"glob({"n":1})"#],
    );
}

/// SPEC 7.4: what Python would have to compute, and what only looks like a call, stays text.
#[test]
fn python_that_stays_text() {
    let deep = format!("[bash(a={}1{})]", "[".repeat(100), "]".repeat(100));
    for text in [
        "[rm(path=\"/\")]",
        "[bash(command)]",
        "[bash(a=b)]",
        "[bash(a=1+1)]",
        "[bash(a=f(1))]",
        "[bash(a=f\"x\")]",
        "[bash(\"ls\")]",
        "[bash(a=1, a=2)]",
        r#"[bash(a="\x41")]"#,
        r#"[bash(a="""x""")]"#,
        "[bash(a=\"x\ny\")]",
        "[bash(a=1), rm()]",
        "[bash(a=1)",
        "[bash(a=1)] is how.",
        "So: [bash(a=1)]",
        "[bash](https://example.com)",
        "[1, 2, 3]",
        "bash(a=1)",
        "```tool_code\nrm()\n```",
        "```tool_code\nbash()\n```\nThat is how.",
        "```tool_code\nimport os\nbash()\n```",
        "```python\nbash()\n```",
        "```tool_code\nbash()",
        "> ```tool_code\n> bash()\n> ```",
        &deep,
    ] {
        assert_eq!(found(text), (text.to_owned(), Vec::new()), "{text}");
    }
    assert_eq!(shown(&["[x] is", " done"]), "[x] is done");
}

/// SPEC 7.4: examples, quotations, unknown names and broken ones stay text, all of it.
#[test]
fn text_stays_text() {
    let block = "<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>";
    for text in [
        format!("```\n{block}\n```"),
        format!("```\n{block}"),
        format!("> ~~~\n{block}"),
        format!("> {block}"),
        format!("Write `{block}`"),
        format!("Write {block}"),
        format!("{block}\nThat is how it is done."),
        block.replace("bash", "rm"),
        block.replace("{}", "[]"),
        block.replace("{}", "\"no\""),
        block.replace("}}", "}"),
        format!("<tool_call>{{\"name\":\"rm\",\"arguments\":{{}}}}</tool_call>\n{block}"),
        "<tool_call>bash\n<arg_key>a</arg_key><arg_value>1</arg_value>".to_owned(),
        "<function=bash>\n<parameter=a>1".to_owned(),
        "<tool_call></tool_call>".to_owned(),
        "[TOOL_CALLS][]".to_owned(),
        format!("Here:\n```json\n{GLOB}\n```"),
        format!("```json\n{GLOB}\n```\nThat is a call."),
        format!("```rust\n{GLOB}\n```"),
        format!("So: {GLOB}"),
        format!("{GLOB}\nand more"),
        r#"{"name":"bash"}"#.to_owned(),
        r#"{"name": "Alice", "parameters": {"age": 30}}"#.to_owned(),
        "<|channel|>commentary<|message|>Let me look.".to_owned(),
        "[call: rm]\n{}".to_owned(),
        "`[TOOL_CALLS]bash{}`".to_owned(),
        String::new(),
    ] {
        assert_eq!(found(&text), (text.clone(), Vec::new()), "{text}");
    }
}

/// SPEC 7.3, 8.6: text is shown as it comes; only what may be a call waits, and not longer than that.
#[test]
fn what_is_held() {
    assert_eq!(shown(&["Hello, a < b, [1]"]), "Hello, a < b, [1]");
    assert_eq!(shown(&["I look.\n<tool"]), "I look.\n");
    assert_eq!(shown(&["I look.\n<tool", "box>"]), "I look.\n<toolbox>");
    assert_eq!(shown(&["<tool_call> is ", "a tag"]), "<tool_call> is a tag");
    assert_eq!(shown(&["{\"city\": "]), "{\"city\": ");
    assert_eq!(shown(&["{\"name\": "]), "");
    assert_eq!(shown(&["```", "rust\nfn"]), "```rust\nfn");
    assert_eq!(shown(&["[1] is", " <tool_call>"]), "[1] is <tool_call>");
    let long = format!(
        "<tool_call>{{\"name\":\"bash\",\"arguments\":{{\"a\":\"{}",
        "x".repeat(HELD_BYTES_MAX)
    );
    assert_eq!(shown(&[&long]), long);
    // What is shown already is a call all the same.
    assert_eq!(found(&format!("{long}\"}}}}</tool_call>")).1.len(), 1);
}

/// SPEC 12: a text made of beginnings costs no more than looking at each.
#[test]
fn many_beginnings() {
    let text = "<tool_call>{\n".repeat(10_000);
    assert_eq!(found(&text).1, Vec::<String>::new());
    let calls = format!("<tool_call>{GLOB}</tool_call>").repeat(1_000);
    assert_eq!(found(&calls).1, Vec::<String>::new());
}

proptest::proptest! {
    /// SPEC 7.4, 12: however a text is cut, the same is shown in the end, nothing twice and nothing lost; no text panics.
    #[test]
    fn any_text(pieces in proptest::collection::vec("(<tool_call>|\\{\"name\":\"bash\",\"arguments\":\\{\\}\\}|</tool_call>|\
        <\\|python_tag\\|>|\\[TOOL_CALLS\\]|bash|\\(|\\[|a=1|\"|\\)|\\]|,|```tool_code|<function=|>|```|\n| |[a-z<{é｜▁]){0,6}", 0..8)) {
        let text = pieces.concat();
        let _found = found(&text);
        let mut whole = String::new();
        with_tools(|tools| {
            let mut hold = Hold::default();
            for piece in &pieces {
                whole.push_str(&hold.take(piece, tools));
            }
            whole.push_str(&hold.end());
        });
        proptest::prop_assert_eq!(whole, text);
    }
}
