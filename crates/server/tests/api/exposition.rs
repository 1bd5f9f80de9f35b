//! A strict reader of what Prometheus reads (text exposition format 0.0.4): what it would refuse or misunderstand fails here.

use std::collections::{BTreeMap, BTreeSet};

/// Values by `name{label=value,…}`, labels sorted.
pub type Samples = BTreeMap<String, f64>;

/// Reads a text.
pub fn read(text: &str) -> Samples {
    assert!(text.ends_with('\n') && !text.contains('\r'));
    let mut samples = Samples::new();
    let mut known = BTreeSet::new();
    let (mut family, mut kind) = (String::new(), String::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, says) = help.split_once(' ').unwrap();
            assert!(is_name(name) && says.ends_with('.'), "{line}");
            assert!(known.insert(name.to_owned()), "twice: {line}");
            let typed = lines.next().unwrap().strip_prefix("# TYPE ").unwrap();
            let (typed, what) = typed.split_once(' ').unwrap();
            assert_eq!(typed, name);
            assert!(["counter", "gauge", "histogram"].contains(&what), "{what}");
            assert_eq!(what == "counter", name.ends_with("_total"), "{name}");
            (family, kind) = (name.to_owned(), what.to_owned());
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let part = name
            .strip_prefix(family.as_str())
            .unwrap_or_else(|| panic!("{line} is not of {family}"));
        let parts: &[&str] = if kind == "histogram" {
            &["_bucket", "_sum", "_count"]
        } else {
            &[""]
        };
        assert!(parts.contains(&part), "{line}");
        let value: f64 = value.parse().unwrap();
        assert!(value.is_finite() && (value >= 0.0), "{line}");
        let labels = labels_of(labels.strip_suffix('}').unwrap());
        assert_eq!(labels.contains_key("le"), part == "_bucket", "{line}");
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let key = if labels.is_empty() {
            name.to_owned()
        } else {
            format!("{name}{{{}}}", labels.join(","))
        };
        assert!(samples.insert(key, value).is_none(), "twice: {line}");
    }
    expect_histograms(&samples);
    samples
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
    name.starts_with(is_plain) && name.chars().all(|c| is_plain(c) || c.is_ascii_digit())
}

/// `a="b",c="d"`, with what stands escaped in a value.
fn labels_of(mut text: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").unwrap();
        assert!(is_name(name), "{text}");
        let mut value = String::new();
        let mut chars = rest.char_indices();
        let end = loop {
            match chars.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next().unwrap().1 {
                    'n' => '\n',
                    plain @ ('\\' | '"') => plain,
                    other => panic!("escaped {other}: {text}"),
                }),
                (_, c) => value.push(c),
            }
        };
        assert!(labels.insert(name.to_owned(), value).is_none(), "{text}");
        text = &rest[end + 1..];
        text = text.strip_prefix(',').unwrap_or(text);
    }
    labels
}

/// Buckets only grow, and the last one holds everything.
fn expect_histograms(samples: &Samples) {
    for (name, count) in samples.iter().filter(|(name, _)| name.contains("_seconds_count{")) {
        let route = name.split_once("{route=").unwrap().1.strip_suffix('}').unwrap();
        let mut buckets: Vec<(f64, f64)> = samples
            .iter()
            .filter(|(name, _)| name.contains("_bucket{") && name.ends_with(&format!(",route={route}}}")))
            .map(|(name, within)| {
                let bound = name.split_once("{le=").unwrap().1.split(',').next().unwrap();
                (bound.replace("+Inf", "inf").parse().unwrap(), *within)
            })
            .collect();
        buckets.sort_by(|left, right| left.0.total_cmp(&right.0));
        assert!(
            buckets.len() > 2 && buckets.is_sorted_by(|left, right| left.1 <= right.1),
            "{buckets:?}"
        );
        assert_eq!(buckets.last().unwrap(), &(f64::INFINITY, *count));
        assert!(samples.contains_key(&name.replace("_count{", "_sum{")), "{name}");
    }
}
