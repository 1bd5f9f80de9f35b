//! What a key press costs: parsing a line and cutting it into pieces, and asking whether it is whole.

use aish_command::{Grammar, open, parse};
use divan::black_box;

fn main() {
    divan::main();
}

/// About 200 characters, with a bit of everything.
const LINE: &str = "for f in $(find . -name '*.rs' -newer \"$stamp\" | head -n 20); do grep -nH --color=auto 'unsafe' \"$f\" \
                    2>/dev/null | awk -F: '{ print $1 \":\" $2 }' >> out.txt && echo \"$f done\"; done";

#[divan::bench]
fn parse_and_cut() -> usize {
    parse(black_box(LINE)).map_or(0, |syntax| syntax.pieces().len())
}

#[divan::bench]
fn parse_alone() -> bool {
    parse(black_box(LINE)).is_ok_and(|syntax| syntax.is_malformed())
}

#[divan::bench]
fn whether_it_is_whole() -> bool {
    open(black_box(LINE), Grammar::Bash).is_some()
}
