//! The nearest of many names: what a mistyped command was meant to be.

/// Names to search, each with the set of its letters, which rules most of them out without comparing.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: Vec<(u64, Box<str>)>,
}

/// The longest name considered, in bytes.
const NAME_BYTES_MAX: usize = 40;

/// From this length on a word may have two mistakes.
const TWO_MISTAKES_LENGTH_MIN: usize = 7;

impl Names {
    /// The name nearest to `word` by Damerau-Levenshtein distance (neighbours swapped count as one), `None` if none is near
    /// enough: one mistake, or two in a longer word. Of several as near: one with a swap or a letter doubled first, then one that begins alike,
    /// then the longest, then the first given. A word that is itself among them gives `None`.
    pub fn nearest(&self, word: &str) -> Option<&str> {
        let length = word.len();
        if !(2..=NAME_BYTES_MAX).contains(&length) || !word.is_ascii() {
            return None;
        }
        let allowed = if length >= TWO_MISTAKES_LENGTH_MIN { 2 } else { 1 };
        let letters = letters(word);
        let mut best: Option<(usize, bool, bool, usize)> = None;
        let mut found = None;
        for (mask, name) in &self.names {
            let differ = (mask ^ letters).count_ones() as usize;
            if differ > 2 * allowed || name.len().abs_diff(length) > allowed {
                continue;
            }
            let distance = distance(word.as_bytes(), name.as_bytes());
            if distance == 0 {
                return None;
            }
            // A name of two letters is one mistake from hundreds of words.
            let swapped = differ == 0 && name.len() == length;
            let short = name.len() < 3 || length < 3;
            if distance > allowed || (short && !swapped && !doubled(word, name)) {
                continue;
            }
            let rank = (
                distance,
                !(swapped || doubled(word, name)),
                word.as_bytes().first() != name.as_bytes().first(),
                usize::MAX - name.len(),
            );
            if best.is_none_or(|so_far| rank < so_far) {
                best = Some(rank);
                found = Some(&**name);
            }
        }
        found
    }
}

impl<S: AsRef<str>> FromIterator<S> for Names {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        let usable = |name: &S| (2..=NAME_BYTES_MAX).contains(&name.as_ref().len()) && name.as_ref().is_ascii();
        let entry = |name: S| (letters(name.as_ref()), Box::from(name.as_ref()));
        Self {
            names: names.into_iter().filter(usable).map(entry).collect(),
        }
    }
}

/// Which characters are in `word`, as bits.
fn letters(word: &str) -> u64 {
    word.bytes()
        .fold(0, |set, byte| set | 1 << (byte.wrapping_sub(b'@') & 63))
}

/// Whether `word` is `name` with a letter typed twice, as `lss` for `ls`.
fn doubled(word: &str, name: &str) -> bool {
    word.len() == name.len() + 1 && letters(word) == letters(name)
}

/// How many insertions, removals, replacements and swaps of neighbours lie between the two (optimal string alignment).
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut before = [0_usize; NAME_BYTES_MAX + 1];
    let mut above = [0_usize; NAME_BYTES_MAX + 1];
    let mut row = [0_usize; NAME_BYTES_MAX + 1];
    for (column, cell) in above.iter_mut().enumerate() {
        *cell = column;
    }
    let at = |cells: &[usize], index: usize| cells.get(index).copied().unwrap_or(usize::MAX / 2);
    for (i, from) in one.iter().enumerate() {
        row[0] = i + 1;
        for (j, to) in other.iter().enumerate() {
            let mut cost = (at(&above, j) + usize::from(from != to))
                .min(at(&above, j + 1) + 1)
                .min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && one.get(i - 1) == Some(to) && other.get(j - 1) == Some(from);
            if swapped {
                cost = cost.min(at(&before, j - 1) + 1);
            }
            if let Some(cell) = row.get_mut(j + 1) {
                *cell = cost;
            }
        }
        before = above;
        above = row;
    }
    at(&above, other.len())
}

#[cfg(test)]
mod tests {
    use super::Names;

    /// SPEC 8.1: what a mistyped command was meant to be.
    #[test]
    fn nearest() {
        let names: Names = [
            "git",
            "go",
            "ls",
            "less",
            "cd",
            "cat",
            "grep",
            "docker",
            "systemctl",
            "make",
            "clear",
        ]
        .into_iter()
        .collect();
        let check = |word: &str, expected: Option<&str>| assert_eq!(names.nearest(word), expected, "{word}");
        check("gti", Some("git"));
        check("got", Some("git"));
        check("sl", Some("ls"));
        check("lss", Some("ls"));
        check("dokcer", Some("docker"));
        check("systemclt", Some("systemctl"));
        check("sytsemclt", Some("systemctl"));
        check("claer", Some("clear"));
        check("git", None);
        check("is", None);
        check("hello", None);
        check("größe", None);
        check("", None);
        check(&"x".repeat(10_000), None);
    }
}
