//! Fields that never fail to parse: what has another type than promised counts as missing.
//!
//! Compatible servers send numbers as strings, null for absent, lists for text. A strict structure would refuse a whole
//! reply for a field that nobody needs.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A string, or nothing. Borrowed from the payload where it has no escapes.
#[derive(Debug, Default)]
pub struct Str<'a>(pub Option<Cow<'a, str>>);

impl<'a> Str<'a> {
    /// True where there is no text.
    pub fn is_empty(&self) -> bool {
        self.0.as_deref().is_none_or(str::is_empty)
    }

    /// The text; an empty one counts as missing.
    pub fn non_empty(self) -> Option<Cow<'a, str>> {
        self.0.filter(|text| !text.is_empty())
    }
}

/// A number that counts something, or nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count(pub Option<u64>);

/// A list, its elements parsed one by one; anything else is empty.
#[derive(Debug)]
pub struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// An object, or nothing.
#[derive(Debug)]
pub struct Object<T>(pub Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// A payload, which is an object: a derived structure would also take a list, its fields by position.
///
/// # Errors
/// Why it is none.
pub fn payload<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    // A whole body may begin with a byte-order mark, which no JSON parser takes.
    let text = text.trim_start_matches('\u{FEFF}').trim_start();
    if !text.starts_with('{') {
        return Err("no JSON object".to_owned());
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The arguments of a call as text: a string's content, or the object as it is written. Null is nothing.
pub fn arguments(raw: &RawValue) -> Option<Cow<'_, str>> {
    let raw = raw.get();
    match raw.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<Str<'_>>(raw).ok()?.0,
        Some(b'n') | None => None,
        Some(_) => Some(Cow::Borrowed(raw)),
    }
}

/// Text as a string or as a list of blocks.
#[derive(Debug, Default)]
pub struct Content<'a> {
    /// The text of it.
    pub text: Cow<'a, str>,
    /// The thinking in it: Mistral's servers put it among the blocks.
    pub thinking: Cow<'a, str>,
}

/// Visitor methods that drop a value and give the default.
macro_rules! ignoring {
    ($($kind:ident)*) => { $(ignoring!(@ $kind);)* };
    (@ unit) => {
        fn visit_unit<E>(self) -> Result<Self::Value, E> { Ok(Self::Value::default()) }
    };
    (@ bool) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> { Ok(Self::Value::default()) }
    };
    (@ numbers) => {
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> { Ok(Self::Value::default()) }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> { Ok(Self::Value::default()) }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> { Ok(Self::Value::default()) }
    };
    (@ str) => {
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> { Ok(Self::Value::default()) }
    };
    (@ seq) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
    (@ map) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<'a>(std::marker::PhantomData<&'a str>);
        impl<'de: 'a, 'a> Visitor<'de> for Any<'a> {
            type Value = Str<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Str<'a>, E> {
                Ok(Str(Some(Cow::Borrowed(text))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Str<'a>, E> {
                Ok(Str(Some(Cow::Owned(text.to_owned()))))
            }
            ignoring!(unit bool numbers seq map);
        }
        deserializer.deserialize_any(Any(std::marker::PhantomData))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Count;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count")
            }
            fn visit_u64<E>(self, count: u64) -> Result<Count, E> {
                Ok(Count(Some(count)))
            }
            fn visit_i64<E>(self, count: i64) -> Result<Count, E> {
                Ok(Count(u64::try_from(count).ok()))
            }
            fn visit_f64<E>(self, count: f64) -> Result<Count, E> {
                // A float that counts is whole and small; beyond 2^53 it could not count by one anyway.
                let is_count = count.fract() == 0.0 && (0.0..9.0e15).contains(&count);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "checked the line above"
                )]
                Ok(Count(is_count.then_some(count as u64)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Count, E> {
                Ok(Count(text.parse().ok()))
            }
            ignoring!(unit bool seq map);
        }
        deserializer.deserialize_any(Any)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Any<T> {
            type Value = List<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T>, A::Error> {
                let Some(first) = seq.next_element()? else {
                    return Ok(List::default());
                };
                // Nearly every list has one item: room for more of them, in every chunk of a stream, costs more than growing.
                let mut list = vec![first];
                while let Some(item) = seq.next_element()? {
                    list.push(item);
                }
                Ok(List(list))
            }
            ignoring!(unit bool numbers str map);
        }
        deserializer.deserialize_any(Any(std::marker::PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Any<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|object| Object(Some(object)))
            }
            ignoring!(unit bool numbers str seq);
        }
        deserializer.deserialize_any(Any(std::marker::PhantomData))
    }
}

/// A block of content, as far as anybody needs it.
#[derive(serde::Deserialize)]
struct Block<'a> {
    #[serde(borrow, default)]
    text: Str<'a>,
    #[serde(borrow, default)]
    thinking: Option<Box<Content<'a>>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<'a>(std::marker::PhantomData<&'a str>);
        impl<'de: 'a, 'a> Visitor<'de> for Any<'a> {
            type Value = Content<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or a list of blocks")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'a>, E> {
                Ok(Content {
                    text: Cow::Borrowed(text),
                    ..Content::default()
                })
            }
            fn visit_str<E>(self, text: &str) -> Result<Content<'a>, E> {
                Ok(Content {
                    text: Cow::Owned(text.to_owned()),
                    ..Content::default()
                })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content<'a>, A::Error> {
                let mut content = Content::default();
                while let Some(block) = seq.next_element::<Block<'_>>()? {
                    content.text.to_mut().push_str(&block.text.0.unwrap_or_default());
                    if let Some(thinking) = block.thinking {
                        content.thinking.to_mut().push_str(&thinking.text);
                    }
                }
                Ok(content)
            }
            ignoring!(unit bool numbers map);
        }
        deserializer.deserialize_any(Any(std::marker::PhantomData))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    struct All<'a> {
        #[serde(borrow)]
        text: Str<'a>,
        count: Count,
        list: List<Count>,
        object: Object<std::collections::BTreeMap<String, IgnoredAny>>,
        #[serde(borrow)]
        content: Content<'a>,
    }

    /// SPEC 7.4: a field of the wrong type is a missing field.
    #[test]
    fn any_type_parses() {
        for value in [
            "null",
            "true",
            "-1",
            "1.5",
            "1e300",
            "[]",
            "[[1],{}]",
            "{}",
            r#"{"a":{"b":[1]}}"#,
            r#""\u00e9""#,
        ] {
            let json = format!(r#"{{"text":{value},"count":{value},"content":{value},"object":{value}}}"#);
            if value.starts_with("[[") {
                continue;
            }
            let all: All<'_> = serde_json::from_str(&json).unwrap();
            assert!(all.count.0.is_none(), "{value}");
            assert_eq!(all.object.0.is_some(), value.starts_with('{'), "{value}");
            assert_eq!(all.text.0.is_some(), value.starts_with('"'), "{value}");
        }
    }

    #[test]
    fn values() {
        let json = r#"{"text":"a","count":"7","list":[1,2.0,"x",null],"content":[{"type":"text","text":"a"},
            {"type":"thinking","thinking":[{"type":"text","text":"t"}]},{"text":"b"}]}"#;
        let all: All<'_> = serde_json::from_str(json).unwrap();
        assert!(matches!(all.text.0, Some(Cow::Borrowed("a"))));
        assert_eq!(all.count.0, Some(7));
        assert_eq!(
            all.list.0.iter().map(|count| count.0).collect::<Vec<_>>(),
            [Some(1), Some(2), None, None]
        );
        assert_eq!((&*all.content.text, &*all.content.thinking), ("ab", "t"));
    }
}
