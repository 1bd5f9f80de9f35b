//! The text that Prometheus reads (exposition format 0.0.4): families, each with its help, its type and its samples.

use std::fmt::{Display, Write as _};

/// What such a text is.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A text being written.
#[derive(Default)]
pub(super) struct Page {
    text: String,
    family: &'static str,
}

impl Page {
    /// Begins a family that only grows.
    pub(super) fn counter(&mut self, name: &'static str, help: &str) {
        self.family(name, "counter", help);
    }

    /// Begins a family that goes up and down.
    pub(super) fn gauge(&mut self, name: &'static str, help: &str) {
        self.family(name, "gauge", help);
    }

    /// Begins a family of histograms.
    pub(super) fn histogram(&mut self, name: &'static str, help: &str) {
        self.family(name, "histogram", help);
    }

    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.family = name;
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        // Writing to a string cannot fail, here and below.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// A sample of the family.
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.part("", labels, value);
    }

    /// A sample of a part of it: `_bucket`, `_sum`, `_count`.
    pub(super) fn part(&mut self, part: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.text, "{}{part}", self.family);
        for (place, (name, label)) in labels.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{name}=\"{}\"", escaped(label));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{after} {value}");
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

fn escaped(label: &str) -> String {
    label.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}
