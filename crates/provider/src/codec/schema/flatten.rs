//! References and `allOf` written out: what a schema says, as one set of fields.
//!
//! Where two parts of an `allOf` say different things under one word, the first counts: to keep one of two conditions takes
//! more than both, never less.

use super::{DEPTH_MAX, NODES_MAX, RECURSION_MAX, WORD_BYTES_MAX};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// References that may lead from one to the next, and parts of `allOf` within each other.
const CHAIN_MAX: usize = 32;

/// A way through a schema, within its bounds.
pub(super) struct Walk<'s> {
    root: &'s Value,
    /// Schemas seen so far.
    nodes: usize,
    /// Bytes of words taken over so far.
    word_bytes: usize,
    /// The references that led here.
    path: Vec<&'s str>,
    /// A reference led into a schema that it stands in.
    is_recursive: bool,
}

/// What a schema says, references and `allOf` written out.
#[derive(Default)]
pub(super) struct Flat<'s> {
    /// All fields but those below.
    pub fields: BTreeMap<&'s str, &'s Value>,
    /// The properties of all parts.
    pub properties: Option<BTreeMap<&'s str, &'s Value>>,
    /// What any part requires, in order, each once.
    pub required: Vec<&'s str>,
    /// Names of properties are told by pattern somewhere, so that what `additionalProperties` means cannot be kept.
    pub is_patterned: bool,
}

impl<'s> Walk<'s> {
    pub fn new(root: &'s Value) -> Self {
        Self {
            root,
            nodes: 0,
            word_bytes: 0,
            path: Vec::new(),
            is_recursive: false,
        }
    }

    /// Enters a schema at that depth; false where there is no more room and anything must be taken.
    pub fn enter(&mut self, depth: usize) -> bool {
        self.nodes += 1;
        self.nodes <= NODES_MAX && depth <= DEPTH_MAX
    }

    /// True once a schema was met within itself.
    pub fn is_recursive(&self) -> bool {
        self.is_recursive
    }

    /// What people and models read of a schema, to begin its projection with.
    pub fn words(&mut self, flat: &Flat<'s>) -> Map<String, Value> {
        let mut out = Map::new();
        for name in ["title", "description"] {
            if let Some(words) = flat.fields.get(name).filter(|words| words.is_string())
                && self.takes(words)
            {
                out.insert(name.to_owned(), (*words).clone());
            }
        }
        out
    }

    /// True where there is room to take these words over.
    pub fn takes(&mut self, words: &Value) -> bool {
        let bytes = match words {
            Value::String(text) => text.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 8,
            Value::Array(_) | Value::Object(_) => words.to_string().len(),
        };
        if self.word_bytes + bytes > WORD_BYTES_MAX {
            return false;
        }
        self.word_bytes += bytes;
        true
    }

    /// What a schema says, for as long as `then` looks at it and into it.
    pub fn flattened<T>(&mut self, schema: &'s Value, then: impl FnOnce(&mut Self, &Flat<'s>) -> T) -> T {
        let before = self.path.len();
        let mut flat = Flat::default();
        self.flatten(schema, &mut flat, 0);
        let out = then(self, &flat);
        self.path.truncate(before);
        out
    }

    fn flatten(&mut self, schema: &'s Value, flat: &mut Flat<'s>, chain: usize) {
        // `true` and what is no schema at all say nothing; `false` says that nothing is taken, which no dialect can say.
        let Some(fields) = schema.as_object() else {
            return;
        };
        flat.add(fields);
        if chain > CHAIN_MAX {
            return;
        }
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str)
            && let Some(target) = self.target(reference)
        {
            let within = self.path.iter().filter(|before| **before == reference).count();
            self.is_recursive |= within > 0;
            if within < RECURSION_MAX {
                self.path.push(reference);
                self.flatten(target, flat, chain + 1);
            } else if let Some(kind) = target.get("type") {
                // Cut short: what kind of thing it is can still be said.
                flat.fields.entry("type").or_insert(kind);
            }
        }
        for part in fields.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.nodes += 1;
            if self.nodes <= NODES_MAX {
                self.flatten(part, flat, chain + 1);
            }
        }
    }

    /// What a reference within the schema leads to (RFC 6901).
    fn target(&self, reference: &str) -> Option<&'s Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

impl<'s> Flat<'s> {
    fn add(&mut self, fields: &'s Map<String, Value>) {
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("$ref" | "allOf" | "$defs" | "definitions", _) => {}
                ("properties", Value::Object(properties)) => {
                    let own = self.properties.get_or_insert_default();
                    for (name, schema) in properties {
                        own.entry(name).or_insert(schema);
                    }
                }
                ("required", Value::Array(names)) => {
                    for name in names.iter().filter_map(Value::as_str) {
                        if !self.required.contains(&name) {
                            self.required.push(name);
                        }
                    }
                }
                ("patternProperties", _) => self.is_patterned = true,
                (name, value) => {
                    self.fields.entry(name).or_insert(value);
                }
            }
        }
    }

    /// The alternatives; none where the schema says more beside them than they would, because servers read either.
    pub fn alternatives(&self) -> Option<&'s Vec<Value>> {
        const TELLING: [&str; 4] = ["enum", "const", "items", "prefixItems"];
        if self.properties.is_some() || TELLING.iter().any(|name| self.fields.contains_key(name)) {
            return None;
        }
        let listed = |name| self.fields.get(name).and_then(|list| list.as_array());
        let alternatives = listed("anyOf").or_else(|| listed("oneOf"));
        alternatives.filter(|list| !list.is_empty())
    }
}
