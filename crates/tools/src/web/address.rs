//! Addresses of pages: which text is one, the one form it has, and which are public.
//!
//! Rules of policy speak of addresses by patterns, so two ways to write one address must not be two texts: hosts are lower case
//! without a final dot, numbers are in their usual form, what needs no escape has none, and there is no fragment.

use aish_core::action::Reach;
use reqwest::Url;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::Host;

/// Bytes of an address: what servers take.
const URL_BYTES_MAX: usize = 8192;
/// Characters of an address that is none, in a message.
const SHOWN_CHARS_MAX: usize = 200;

/// Reads an address as a model or a server wrote it.
///
/// # Errors
/// A message for the model.
pub(super) fn read(text: &str) -> Result<Url, String> {
    let text = text.trim();
    if text.len() > URL_BYTES_MAX {
        return Err(format!(
            "An address of {} bytes is longer than the {URL_BYTES_MAX} that are fetched",
            text.len()
        ));
    }
    // Browsers read these as something else, or not at all: what a person is shown must be what is fetched.
    if text.contains(|c: char| c.is_control() || c == '\\') {
        return Err(format!(
            "Not an address: {} (it has a control character or a backslash in it)",
            shown(text)
        ));
    }
    let url = Url::parse(text).map_err(|why| {
        let hint = if text.contains("://") {
            ""
        } else {
            "; write it whole, e.g. https://example.com/page"
        };
        format!("Not an address: {} ({why}){hint}", shown(text))
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("Not an http or https address: {}", shown(text)));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("An address with a user's name or a password in it is not fetched".to_owned());
    }
    normal(url).ok_or_else(|| format!("Not an address: {} (its host is no name)", shown(text)))
}

/// The one form of an address.
fn normal(mut url: Url) -> Option<Url> {
    url.set_fragment(None);
    if let Some(Host::Domain(name)) = url.host() {
        let name = name.trim_end_matches('.').to_owned();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if name.is_empty() || !name.chars().all(is_part) {
            return None;
        }
        url.set_host(Some(&name)).ok()?;
    }
    let path = without_needless_escapes(url.path());
    url.set_path(&path);
    if let Some(query) = url.query().map(without_needless_escapes) {
        url.set_query(Some(&query));
    }
    Some(url)
}

/// Text in which no character is escaped that needs no escape, and others are escaped in capitals (RFC 3986, section 6.2.2).
fn without_needless_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        rest = after;
        let digits = after
            .get(..2)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(digits) = digits else {
            out.push('%');
            continue;
        };
        rest = after.get(2..).unwrap_or_default();
        let byte = u8::from_str_radix(digits, 16).unwrap_or_default();
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push_str(&digits.to_ascii_uppercase());
        }
    }
    out.push_str(rest);
    out
}

/// Refuses an address that says by itself that it is not public. What a name leads to is judged when it is known.
///
/// # Errors
/// A message for the model, with the setting that allows it.
pub(super) fn check(url: &Url, reach: Reach) -> Result<(), String> {
    if reach == Reach::Anywhere {
        return Ok(());
    }
    match url.host() {
        Some(Host::Ipv4(ip)) if !is_public(IpAddr::V4(ip)) => Err(refusal(&ip.to_string(), None)),
        Some(Host::Ipv6(ip)) if !is_public(IpAddr::V6(ip)) => Err(refusal(&ip.to_string(), None)),
        Some(Host::Domain(name)) if name == "localhost" || name.ends_with(".localhost") => Err(refusal(name, None)),
        Some(Host::Ipv4(_) | Host::Ipv6(_) | Host::Domain(_)) => Ok(()),
        None => Err("An address without a host is not fetched".to_owned()),
    }
}

/// Why a host is not connected to; `found` is where its name leads.
pub(super) fn refusal(host: &str, found: Option<IpAddr>) -> String {
    let found = found.map(|ip| format!(" ({ip})")).unwrap_or_default();
    format!(
        "Not a public address: {host}{found}; pages of this machine and its own network are fetched only when the user sets \
         tools.web_private = true"
    )
}

/// Whether two addresses are of one site: the same host, but for a `www.` in front, and no less safe a scheme.
pub(super) fn is_same_site(from: &Url, to: &Url) -> bool {
    let name = |url: &Url| {
        let host = url.host_str().unwrap_or_default();
        host.strip_prefix("www.").unwrap_or(host).to_owned()
    };
    let is_same_scheme = from.scheme() == to.scheme() && from.port() == to.port();
    let is_made_safe =
        from.scheme() == "http" && to.scheme() == "https" && from.port().is_none() && to.port().is_none();
    name(from) == name(to) && (is_same_scheme || is_made_safe)
}

/// Whether an address is one of the internet's: everybody's, of one host, and of no special use (RFC 6890 and the registries
/// it set up).
pub(super) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let is_special = match ip.octets() {
        // This host, private networks, this machine, shared address space of providers, link-local.
        [0 | 10 | 127, ..] | [100, 64..=127, ..] | [169, 254, ..] | [172, 16..=31, ..] | [192, 168, ..] => true,
        // Protocol assignments, documentation, a withdrawn relay, benchmarks.
        [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [192, 88, 99, _] | [198, 18 | 19, ..] => true,
        // Multicast, reserved, broadcast.
        [224..=255, ..] => true,
        [..] => false,
    };
    !is_special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let segments = ip.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // An IPv4 address in another form: mapped, translated (NAT64), within a tunnel (6to4).
        [0, 0, 0, 0, 0, 0xFFFF, high, low] | [0x64, 0xFF9B, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        // Protocol assignments (tunnels, benchmarks), documentation.
        [0x2001, 0..=0x1FF, ..] | [0x2001, 0xDB8, ..] | [0x3FFF, 0..=0xFFF, ..] => false,
        // All that is assigned to the internet so far.
        [0x2000..=0x3FFF, ..] => true,
        [..] => false,
    }
}

/// Text of somebody else's in a message.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 5.1: an address has one form, whatever way it is written.
    #[test]
    fn one_form() {
        for (written, form) in [
            ("https://Docs.Example./a#part", "https://docs.example/a"),
            (
                " http://a.example:80/%7Eme/%2e%2E/%c3%a9?q=%61%26 ",
                "http://a.example/%C3%A9?q=a%26",
            ),
            ("https://a.example/p%72ivate/x", "https://a.example/private/x"),
            ("https://a.example/%2Fx%", "https://a.example/%2Fx%"),
            ("https://bücher.example", "https://xn--bcher-kva.example/"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://2130706433", "http://127.0.0.1/"),
            ("http://[::FFFF:7f00:1]:80/", "http://[::ffff:7f00:1]/"),
        ] {
            assert_eq!(read(written).map(String::from), Ok(form.to_owned()), "{written}");
        }
    }

    /// SPEC 4.2: what is no address of a page is named.
    #[test]
    fn no_addresses() {
        for (written, why) in [
            ("example.com/x", "write it whole"),
            ("ftp://a.example/", "Not an http or https address: ftp://a.example/"),
            ("file:///etc/passwd", "Not an http or https address"),
            ("data:text/html,x", "Not an http or https address"),
            ("https://user@a.example/", "a user's name or a password"),
            ("https://127.0.0.1:x@a.example/", "a user's name or a password"),
            ("http:\\\\a.example\\b", "a control character or a backslash"),
            ("https://a.exa\tmple/", "a control character or a backslash"),
            ("https://*/", "its host is no name"),
            ("https://a.exam*ple/", "its host is no name"),
            ("http://./", "its host is no name"),
            ("https://", "Not an address"),
            ("https://999.1.1.1/", "Not an address"),
        ] {
            let error = read(written).err().unwrap_or_default();
            assert!(error.contains(why), "{written}: {error}");
        }
        assert!(read(&format!("https://a.example/{}", "x".repeat(9000))).is_err());
    }

    /// SPEC 12, issue 6: what is not of the internet is told, in every form it can be written in.
    #[test]
    fn public_and_not() {
        let not_public = [
            "http://127.0.0.1/",
            "http://localhost:8080/",
            "http://x.localhost/",
            "http://LOCALHOST./",
            "http://0/",
            "http://10.1.2.3/",
            "http://172.16.0.1/",
            "http://172.31.255.255/",
            "http://192.168.1.1/",
            "http://100.64.0.1/",
            "http://169.254.169.254/latest",
            "http://0xA9FEA9FE/",
            "http://025177524776/",
            "http://169.254.43518/",
            "http://192.0.0.8/",
            "http://192.0.2.1/",
            "http://198.18.0.1/",
            "http://198.51.100.1/",
            "http://203.0.113.9/",
            "http://224.0.0.1/",
            "http://240.0.0.1/",
            "http://255.255.255.255/",
            "http://[::]/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://[::7f00:1]/",
            "http://[64:ff9b::192.168.0.1]/",
            "http://[64:ff9b:1::1]/",
            "http://[2002:a00:1::]/",
            "http://[2001::1]/",
            "http://[2001:db8::1]/",
            "http://[3fff::1]/",
            "http://[fc00::1]/",
            "http://[fd12:3456::1]/",
            "http://[fe80::1]/",
            "http://[fec0::1]/",
            "http://[ff02::1]/",
            "http://[100::1]/",
            "http://[5f00::1]/",
        ];
        for text in not_public {
            let url = read(text).unwrap_or_else(|why| unreachable!("{text}: {why}"));
            let error = check(&url, Reach::Public).err().unwrap_or_default();
            assert!(error.contains("tools.web_private = true"), "{text}: {error}");
            assert_eq!(check(&url, Reach::Anywhere), Ok(()), "{text}");
        }
        for text in [
            "http://93.184.215.14/",
            "http://172.32.0.1/",
            "http://100.128.0.1/",
            "http://192.0.1.1/",
            "http://223.255.255.255/",
            "http://[2606:2800:21f::1]/",
            "http://[::ffff:93.184.215.14]/",
            "http://[64:ff9b::93.184.215.14]/",
            "https://docs.example/",
            "https://localhost.example/",
        ] {
            let url = read(text).unwrap_or_else(|why| unreachable!("{text}: {why}"));
            assert_eq!(check(&url, Reach::Public), Ok(()), "{text}");
        }
    }

    #[test]
    fn sites() {
        let is_same = |from: &str, to: &str| match (Url::parse(from), Url::parse(to)) {
            (Ok(from), Ok(to)) => is_same_site(&from, &to),
            (Ok(_) | Err(_), _) => unreachable!(),
        };
        assert!(is_same("http://a.example/x", "https://www.a.example/y"));
        assert!(is_same("https://www.a.example/", "https://a.example/"));
        assert!(is_same("http://a.example:8080/", "http://a.example:8080/x"));
        assert!(!is_same("https://a.example/", "http://a.example/"));
        assert!(!is_same("https://a.example/", "https://b.a.example/"));
        assert!(!is_same("https://a.example/", "https://a.example:8443/"));
        assert!(!is_same("http://a.example:8080/", "https://a.example/"));
    }

    proptest::proptest! {
        /// SPEC 12: whatever a model writes is an address in its one form, or refused.
        #[test]
        fn any_text(text in r#"(https?://)?[a-z0-9.:@/%\[\]x*é-]{0,24}"#) {
            if let Ok(url) = read(&text) {
                let again = read(url.as_str());
                proptest::prop_assert_eq!(again.as_ref().map(Url::as_str), Ok(url.as_str()));
            }
        }
    }
}
