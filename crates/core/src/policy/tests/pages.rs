//! What is said of pages from the network, and of where they lead.

use super::*;
use ApprovalMode::{Ask, Auto, Full};
use Verdict::{Allow, Ask as Asks, Deny};

fn page(url: &str) -> Action {
    on(
        "web_get",
        Effect::Fetch {
            url: url.into(),
            reach: Reach::Public,
        },
    )
}

fn own_network(url: &str) -> Action {
    on(
        "web_get",
        Effect::Fetch {
            url: url.into(),
            reach: Reach::Anywhere,
        },
    )
}

/// SPEC 5.2: a page at a public address is asked about in `ask` and not in `auto`; what may be at a private one, in both.
#[test]
fn modes_over_pages() {
    let policy = Policy::new("/w");
    for (mode, public, private) in [(Ask, Asks, Asks), (Auto, Allow, Asks), (Full, Allow, Allow)] {
        check(&policy, mode, &page("https://docs.example/"), public);
        check(&policy, mode, &own_network("https://docs.example/"), private);
    }
}

/// SPEC 5.2: a page can talk a model into putting what it found in other conversations into an address: once it has searched them,
/// `auto` asks about every page, also where one leads. What the user allowed stays allowed.
#[test]
fn pages_after_what_was_recalled() {
    let mut policy = Policy::new("/w");
    policy.allow = rules(&["web_get(https://docs.example/*)"]);
    let so_far = SoFar {
        recalled: Recalled::Words,
        ..SoFar::default()
    };
    let (anywhere, allowed) = (page("https://other.example/?q=1"), page("https://docs.example/a"));
    for (mode, expect) in [(Ask, Asks), (Auto, Asks), (Full, Allow)] {
        let judged = |action: &Action| policy.judge(action, CallSource::Builtin, mode, so_far);
        assert_eq!(judged(&anywhere).verdict, expect, "{mode:?}");
        assert_eq!(judged(&allowed).verdict, Allow, "{mode:?}");
        assert_eq!(judged(&read("/w/a")).verdict, Allow, "{mode:?}");
    }
    let rule = policy.judge(&anywhere, CallSource::Builtin, Auto, so_far).rule;
    assert!(rule.contains("other conversations"), "{rule}");
    let onward = |page: &Action| policy.onward(page, CallSource::Builtin, Auto, so_far);
    assert_eq!(
        (onward(&anywhere), onward(&allowed)),
        (Onward::Unspoken, Onward::Allowed)
    );
}

/// SPEC 5.1: rules speak of pages by their addresses.
#[test]
fn rules_on_pages() {
    let mut policy = Policy::new("/w");
    policy.allow = rules(&["web_get(https://docs.example/*)"]);
    policy.ask = rules(&["web_get(https://docs.example/admin/*)"]);
    policy.deny = rules(&["web_get(*://bad.example/*)"]);
    check(&policy, Ask, &page("https://docs.example/a?b"), Allow);
    check(&policy, Ask, &own_network("https://docs.example/a"), Allow);
    check(&policy, Auto, &page("https://docs.example/admin/x"), Asks);
    check(&policy, Ask, &page("https://docs.example.bad.example/"), Asks);
    check(&policy, Ask, &page("http://docs.example/"), Asks);
    check(&policy, Full, &page("https://bad.example/x"), Deny);
}

/// SPEC 5.3: a rule that is saved for a page allows the pages of its site, and no others.
#[test]
fn saved_for_a_page() {
    let saved = |url: &str| Rule::allowing(&page(url)).unwrap().to_string();
    assert_eq!(
        saved("https://docs.example/a/b?c=/d"),
        "web_get(https://docs.example/*)"
    );
    assert_eq!(
        saved("http://docs.example:8080/"),
        "web_get(http://docs.example:8080/*)"
    );
}

/// SPEC 3.3, 5.1: a yes to one address is none to another that it leads to, and no rule is passed by being led around it.
#[test]
fn where_a_page_leads() {
    let mut policy = Policy::new("/w");
    policy.allow = rules(&["web_get(https://docs.example/*)"]);
    policy.ask = rules(&["web_get(https://mail.example/*)"]);
    policy.deny = rules(&["web_get(https://bad.example/*)"]);
    let onward = |mode, url: &str| policy.onward(&page(url), CallSource::Builtin, mode, SoFar::default());
    assert_eq!(onward(Ask, "https://docs.example/next"), Onward::Allowed);
    assert_eq!(onward(Ask, "https://other.example/"), Onward::Unspoken);
    assert_eq!(onward(Auto, "https://other.example/"), Onward::Allowed);
    assert_eq!(onward(Auto, "https://mail.example/"), Onward::Against);
    assert_eq!(onward(Full, "https://mail.example/"), Onward::Allowed);
    assert_eq!(onward(Full, "https://bad.example/"), Onward::Against);
    let grant = Grant::of(&page("https://docs.example/"));
    let granted = policy.onward(
        &page("https://other.example/"),
        CallSource::Builtin,
        Ask,
        SoFar::granted(&[grant]),
    );
    assert_eq!(granted, Onward::Allowed);
}
