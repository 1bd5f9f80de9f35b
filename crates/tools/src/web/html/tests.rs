//! What pages read like.

use super::*;

fn read_at(base: &str, page: &str) -> String {
    text(
        page,
        &Url::parse(base).unwrap_or_else(|_| unreachable!()),
        TEXT_BYTES_MAX,
        &Stop::default(),
    )
}

fn check(page: &str, expect: &str) {
    let expect: Vec<&str> = expect
        .lines()
        .map(|line| line.strip_prefix("        |").unwrap_or(line))
        .collect();
    assert_eq!(read_at("https://a.example/x/y", page), expect.join("\n"), "{page}");
}

/// SPEC 4 (`web_get`): a page reads like a text.
#[test]
fn pages_read_like_texts() {
    check(
        "<html><head><title>The\n title</title><style>p{}</style></head><body><h1>One <em>big</em> thing</h1>\
         <p>A <b>few</b>\n\nwords,<br>and more.<p>Next.<hr><h2></h2><div>a</div><div>b</div><!-- c --></body></html>",
        "The title

        |# One big thing

        |A few words,
        |and more.

        |Next.

        |---

        |a
        |b",
    );
    check("<title>Same</title><h1>Same</h1>x", "# Same\n\nx");
    check("plain", "plain");
    check("", "");
}

/// SPEC 4 (`web_get`): lists keep their shape.
#[test]
fn lists() {
    check(
        "a<ul><li>one<li><p>two</p><p>more</p><ol start=9><li>x</li><li>y</li></ol></li><li></li><li>three</ul>b",
        "a

        |- one
        |- two

        |  more

        |  9. x
        |  10. y
        |- three

        |b",
    );
    check(
        "<dl><dt>Term<dd>What it is<dt>Other<dd>That</dl>",
        "Term\n  What it is\nOther\n  That",
    );
    check("<li>alone", "- alone");
}

/// SPEC 4 (`web_get`): links say where they lead, whole and once; those within the page, and those that run something, do not.
#[test]
fn links() {
    check(
        "see <a href='../z?q=1&amp;r=2'>this page</a>.",
        "see this page (https://a.example/z?q=1&r=2).",
    );
    check(
        "<a href=https://b.example/>https://b.example/</a>",
        "https://b.example/",
    );
    check(
        "<a href='#top'>up</a> <a href='javascript:x()'>go</a> <a href=/x></a>",
        "up go",
    );
    check(
        "<a href=/1>one</a> <a href=/1>again</a>",
        "one (https://a.example/1) again",
    );
    check(
        "<a href='y#part'>here</a> <a href='/x/y?z'>there</a>",
        "here there (https://a.example/x/y?z)",
    );
    check("<h2><a href='#x'>§</a>Part</h2>", "## Part");
    check("2<sup>n-1</sup>", "2^n-1");
    check("<a href='mailto:me@a.example'>me@a.example</a>", "me@a.example");
    check(
        "<base href='/deep/er/'><a href=z>z</a>",
        "z (https://a.example/deep/er/z)",
    );
    check(
        "<a href=/1>one<a href=/2>two",
        "one (https://a.example/1)two (https://a.example/2)",
    );
    check("<img src=x alt='A map'><img src=y alt=''>", "[image: A map]");
}

/// SPEC 4 (`web_get`): code stays as it is, quotations are told apart.
#[test]
fn code_and_quotations() {
    check(
        "<p>Run <code>a  b</code>:</p><pre><code class='x language-rust'>\nfn main() {\n    <b>x</b>&lt;1;\n}\n</code></pre>after",
        "Run `a b`:

        |```rust
        |fn main() {
        |    x<1;
        |}
        |```

        |after",
    );
    check("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````");
    check(
        "<blockquote>one<p>two<blockquote>deep</blockquote></blockquote>out",
        "> one\n\n> two\n\n> > deep\n\nout",
    );
}

/// SPEC 4 (`web_get`): tables are rows of cells.
#[test]
fn tables() {
    check(
        "<table><tr><th>Name<th>Size</tr><tr><td><p>a</p></td><td>1</td></tr><tr><td></td><td>2</table>after",
        "Name | Size
        |--- | ---
        |a | 1
        | | 2

        |after",
    );
    check("<table><tr><td>all<br>of<p>a page</table>", "all\nof\n\na page");
}

/// SPEC 4 (`web_get`): what is no part of the text is left out; what is left out never takes the rest of the page with it.
#[test]
fn noise() {
    check(
        "<nav><ul><li>Home</ul></nav><div hidden>x<div>y</div></div><div style='display : none'>z</div>kept\
         <svg><title>no</title><text>no</text></svg><script>if (a<b) document.write('<p>')</script><button>Press</button>",
        "kept",
    );
    check(
        "<nav><a>Home</a><p>The text, whose menu never ends.",
        "Home\n\nThe text, whose menu never ends.",
    );
    check("<noscript>Needs no script.</noscript>", "Needs no script.");
    let main = "word ".repeat(60);
    let page = format!("<title>T</title><header>Site</header><main><p>{main}</main><footer>(c)</footer>");
    check(&page, &format!("T\n\n{}", main.trim()));
    check(
        "<header>Site</header><main>short</main><footer>(c)</footer>",
        "Site\n\nshort\n\n(c)",
    );
}

/// SPEC 4 (`web_get`): what a browser does not show, nobody reads.
#[test]
fn invisible_characters() {
    check("co&shy;op&#8203;erate &nbsp; x", "cooperate x");
}

/// SPEC 4 (`web_get`): a page says its own encoding.
#[test]
fn declared_encodings() {
    let name = |page: &str| declared_encoding(page.as_bytes()).map(Encoding::name);
    assert_eq!(name("<meta charset='iso-8859-2'>"), Some("ISO-8859-2"));
    let http = "<meta http-equiv=content-type content='text/html; charset=shift_jis'>";
    assert_eq!(name(http), Some("Shift_JIS"));
    assert_eq!(name("<meta charset=utf-16>"), Some("UTF-8"));
    assert_eq!(name("<p>charset=x</p>"), None);
    assert_eq!(name(&format!("{}<meta charset=iso-8859-2>", " ".repeat(2000))), None);
}

/// SPEC 12: however a page is made, reading it takes a time and a memory that are those of its length.
#[test]
fn pages_made_to_hurt() {
    const TIMES: usize = 50_000;
    for (piece, after) in [
        ("<div>", ""),
        ("<b><a href=x>", ""),
        ("<table><tr><td>", "x"),
        ("<ul><li>", "x"),
        ("<blockquote>", "x"),
        ("<pre>", "x"),
        ("<p hidden><div hidden>", ""),
        ("<h1><li>", "x"),
        ("<!-", ""),
        ("<a b='", ""),
        ("</", ""),
        ("<script", ">"),
        ("&amp", ""),
        ("&#x", ";"),
        ("<a x=1 ", ">"),
        ("``` ", ""),
        ("<base href=/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa>", ""),
        ("<td>", "x"),
        ("<title>", "x"),
    ] {
        let page = piece.repeat(TIMES) + after;
        let text = read_at("https://a.example/", &page);
        assert!(text.len() <= TEXT_BYTES_MAX + 2000, "{piece}: {}", text.len());
    }
    let far = format!("https://a.example/{}/", "d".repeat(900));
    let links: String = (0..30_000).map(|n| format!("<a href=y{n}>z</a>")).collect();
    let text = read_at(&far, &links);
    assert!(text.len() <= TEXT_BYTES_MAX + 2000, "{}", text.len());
    assert!(text.ends_with("[The rest of the page was left out]"));
}

proptest::proptest! {
    /// SPEC 12: no page makes it fail.
    #[test]
    fn any_page_is_read(page in r#"([<>/ "'=&;a-cé\n-]|<(/)?(p|a|li|ul|ol|td|tr|table|pre|nav|main|svg|h1|code|title|br|blockquote|base)( href=x| hidden)?>|<!--|<script>){0,60}"#) {
        let text = read_at("https://a.example/", &page);
        assert!(!text.contains('\0'));
    }
}
