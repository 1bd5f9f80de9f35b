//! Where a page leads.

use super::site::{Site, page, redirect};
use super::{client, error, get, names, place, place_for};
use aish_core::action::{Action, Effect};
use aish_core::policy::Onward;
use aish_tools::web::{Ahead, Proxies, WebGetTool};
use serde_json::json;

/// A chain that takes so many redirects to its end.
async fn chain(length: usize) -> Site {
    let steps = (0..length).map(|n| (format!("/{n}"), redirect(&format!("/{}", n + 1))));
    Site::serving(steps.chain([(format!("/{length}"), page("the end"))])).await
}

/// SPEC 4: ten redirects are followed and no more, in a circle or not; where the page is in the end is told.
#[tokio::test]
async fn ten_are_followed() {
    let place = place();
    let site = chain(10).await;
    let expect = format!("[redirected to {}]\n\nthe end", site.url("/10"));
    assert_eq!(get(&place, &site.url("/0")).await["output"], expect);
    let site = chain(11).await;
    let expect = format!(
        "More than 10 redirects: {} (the last one to {})",
        site.url("/0"),
        site.url("/11")
    );
    assert_eq!(error(&place, &site.url("/0")).await, expect);
    let circle = Site::serving([("/", redirect("/"))]).await;
    assert!(
        error(&place, &circle.url("/"))
            .await
            .starts_with("More than 10 redirects")
    );
    assert_eq!(circle.requests().len(), 11);
}

/// SPEC 3.3: a yes to one address is none to another site: it is told, and not asked for, unless a rule allows it.
#[tokio::test]
async fn to_another_site() {
    let other = Site::serving([("/", page("there"))]).await;
    let site = Site::serving([("/", redirect(&other.url("/")))]).await;
    let mut place = place();
    let result = get(&place, &site.url("/")).await;
    let told = format!(
        "[{} redirects to {}, which nobody was asked about: to go on, call web_get with that address]",
        site.url("/"),
        other.url("/")
    );
    assert_eq!(result, json!({"output": told, "status": 302, "content_type": ""}));
    assert_eq!(other.requests().len(), 0);
    let allowed = other.url("/");
    place.context.web.ahead = Ahead::by(move |action| match fetched(action) {
        url if url == allowed => Onward::Allowed,
        _ => Onward::Unspoken,
    });
    let expect = format!("[redirected to {}]\n\nthere", other.url("/"));
    assert_eq!(get(&place, &site.url("/")).await["output"], expect);
}

/// SPEC 5.1: a rule about a page is not passed by being led there from within its site.
#[tokio::test]
async fn to_what_a_rule_speaks_of() {
    let site = Site::serving([("/", redirect("/admin")), ("/admin", page("there"))]).await;
    let mut place = place();
    place.context.web.ahead = Ahead::by(|action| {
        if fetched(action).ends_with("/admin") {
            Onward::Against
        } else {
            Onward::Unspoken
        }
    });
    let result = get(&place, &site.url("/")).await;
    assert!(
        result["output"]
            .as_str()
            .unwrap()
            .contains("which nobody was asked about"),
        "{result}"
    );
    assert_eq!(site.requests().len(), 1);
}

fn fetched(action: &Action) -> String {
    assert_eq!(action.tool, "web_get");
    match action.effects.as_slice() {
        [Effect::Fetch { url, .. }] => url.clone(),
        other => panic!("{other:?}"),
    }
}

/// SPEC 4.2: a redirect to what is no page says so.
#[tokio::test]
async fn to_no_page() {
    let site = Site::serving([
        ("/file", redirect("file:///etc/passwd")),
        ("/user", redirect("http://a:b@127.0.0.1/")),
        ("/nowhere", redirect("")),
    ])
    .await;
    let place = place();
    let message = error(&place, &site.url("/file")).await;
    assert!(
        message.ends_with("redirects. Not an http or https address: file:///etc/passwd"),
        "{message}"
    );
    assert!(error(&place, &site.url("/user")).await.contains("password"));
    assert_eq!(get(&place, &site.url("/nowhere")).await["status"], 302);
}

/// SPEC 12, issue 6: a public page cannot lead to a private one, by number or by name. The public pages come through a proxy
/// here, which stands at a private address and may: the user put it there.
#[tokio::test]
async fn to_a_private_address() {
    let proxy = Site::serving([
        (
            "http://public.example/number",
            redirect("http://169.254.169.254/latest/meta-data/"),
        ),
        ("http://public.example/name", redirect("http://router.example/")),
        ("http://public.example/page", page("fine")),
        ("http://unknown.example/", page("known to the proxy")),
        ("http://router.example/", page("secret")),
    ])
    .await;
    let (lookup, _) = names(&[
        ("proxy.example", "127.0.0.1"),
        ("public.example", "93.184.215.14"),
        ("router.example", "192.168.1.1"),
    ]);
    let address = format!("http://proxy.example:{}", proxy.port);
    let make = move || Ok(client().proxy(reqwest::Proxy::all(&address).unwrap()));
    let tool = WebGetTool::new(make, Proxies(vec!["proxy.example".to_owned()])).looking_up(lookup);
    let mut place = place_for(tool);
    place.context.web.ahead = Ahead::by(|_| Onward::Allowed);
    assert_eq!(get(&place, "http://public.example/page").await["output"], "fine");
    assert_eq!(
        get(&place, "http://unknown.example/").await["output"],
        "known to the proxy"
    );
    let message = error(&place, "http://public.example/number").await;
    assert!(
        message.contains("redirects. Not a public address: 169.254.169.254"),
        "{message}"
    );
    let message = error(&place, "http://public.example/name").await;
    assert!(
        message.contains("Not a public address: router.example (192.168.1.1)"),
        "{message}"
    );
    let message = error(&place, "http://proxy.example/").await;
    assert!(
        message.contains("Not a public address: proxy.example (127.0.0.1)"),
        "{message}"
    );
    let asked = proxy.requests().join("\n");
    assert!(
        !asked.contains("router.example") && !asked.contains("169.254"),
        "{asked}"
    );
}
