//! Reads markup from a text that may not be all there yet.

use serde_json::value::RawValue;

/// Why what was looked for is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Miss {
    /// Something else is there.
    Never,
    /// The text ends before it can be told.
    NotYet,
}

/// Whether something that may be there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Optional {
    /// It is, and was read.
    There,
    /// It is not.
    Missing,
}

pub(super) type Parsed<T> = Result<T, Miss>;

/// The rest of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'t> {
    pub(super) rest: &'t str,
}

impl<'t> Reader<'t> {
    pub(super) fn spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }

    pub(super) fn is_empty(self) -> bool {
        self.rest.is_empty()
    }

    /// Reads these words.
    pub(super) fn token(&mut self, token: &str) -> Parsed<()> {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None if token.starts_with(self.rest) => Err(Miss::NotYet),
            None => Err(Miss::Never),
        }
    }

    /// Reads the first of these words that is there.
    pub(super) fn one_of(&mut self, tokens: &[&str]) -> Parsed<()> {
        let mut miss = Miss::Never;
        for token in tokens {
            match self.token(token) {
                Ok(()) => return Ok(()),
                Err(Miss::NotYet) => miss = Miss::NotYet,
                Err(Miss::Never) => {}
            }
        }
        Err(miss)
    }

    /// Reads the one of these words that is there; returns which.
    pub(super) fn choice<const N: usize>(&mut self, tokens: [&str; N]) -> Parsed<usize> {
        match tokens.iter().position(|token| self.rest.starts_with(token)) {
            Some(which) => self.one_of(&tokens).map(|()| which),
            None => self.one_of(&tokens).map(|()| 0),
        }
    }

    /// Reads one of these words if it is there.
    pub(super) fn optional(&mut self, tokens: &[&str]) -> Parsed<Optional> {
        match self.one_of(tokens) {
            Ok(()) => Ok(Optional::There),
            Err(Miss::NotYet) if !self.is_empty() => Err(Miss::NotYet),
            Err(Miss::NotYet | Miss::Never) => Ok(Optional::Missing),
        }
    }

    /// Reads what ends a call, behind white space. At the end of the text it may be missing: models stop there.
    pub(super) fn close(&mut self, tokens: &[&str]) -> Parsed<()> {
        self.spaces();
        if self.is_empty() { Ok(()) } else { self.one_of(tokens) }
    }

    /// Reads up to and with these words; returns what stands before them.
    pub(super) fn until(&mut self, end: &str) -> Parsed<&'t str> {
        let (before, rest) = self.rest.split_once(end).ok_or(Miss::NotYet)?;
        self.rest = rest;
        Ok(before)
    }

    /// Reads the letters of a name.
    pub(super) fn name(&mut self) -> Parsed<&'t str> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
        let bytes = self.rest.find(|c| !is_name(c)).ok_or(Miss::NotYet)?;
        let (name, rest) = self.rest.split_at_checked(bytes).ok_or(Miss::Never)?;
        if name.is_empty() {
            return Err(Miss::Never);
        }
        self.rest = rest;
        Ok(name)
    }

    /// Reads a JSON value, which is left as it is written.
    pub(super) fn json(&mut self) -> Parsed<&'t str> {
        self.spaces();
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<&RawValue>();
        match values.next() {
            Some(Ok(value)) => {
                let bytes = values.byte_offset();
                self.rest = self.rest.get(bytes..).unwrap_or_default();
                Ok(value.get())
            }
            Some(Err(error)) if error.is_eof() => Err(Miss::NotYet),
            Some(Err(_)) => Err(Miss::Never),
            None => Err(Miss::NotYet),
        }
    }
}
