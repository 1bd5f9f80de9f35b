//! What showing a reply costs, in pieces as a model sends them (SPEC 11).
#![allow(missing_docs)]

use aish_markdown::{Background, Colour, Links, Look, Markdown, Syntaxes};
use divan::Bencher;
use divan::counter::ItemsCount;

/// Pieces of a reply.
const CHUNKS: usize = 20_000;
const CHUNK_BYTES: usize = 4;

fn main() {
    divan::main();
}

const KINDS: [&str; 4] = ["prose", "marks", "code", "plain code"];

fn text(kind: &str) -> String {
    let piece = match kind {
        "prose" => "Plain words of an answer that goes on for a while, as answers do.\n\n",
        "marks" => "- **Term**: some `code`, a [link](https://a.example/b) and *more*.\n",
        _ => "fn main() { let x = vec![1, 2, 3]; println!(\"{x:?}\"); } // done\n",
    };
    let start = match kind {
        "code" => "```rust\n",
        "plain code" => "```\n",
        _ => "",
    };
    let bytes = CHUNKS * CHUNK_BYTES;
    let mut text = start.to_owned() + &piece.repeat(bytes / piece.len() + 1);
    text.truncate(bytes);
    text
}

#[divan::bench(args = KINDS)]
fn chunks(bencher: Bencher<'_, '_>, kind: &str) {
    let text = text(kind);
    let syntaxes = Syntaxes::loaded();
    let look = Look {
        columns: 80,
        colour: Colour::Rich,
        links: Links::Osc8,
        background: Background::Dark,
    };
    bencher.counter(ItemsCount::new(CHUNKS)).bench(|| {
        let mut markdown = Markdown::with_syntaxes(look, &syntaxes);
        let mut out = String::new();
        let mut bytes = 0;
        for n in 0..CHUNKS {
            markdown.push(
                text.get(n * CHUNK_BYTES..(n + 1) * CHUNK_BYTES).unwrap_or_default(),
                &mut out,
            );
            bytes += out.len();
            out.clear();
        }
        markdown.finish(&mut out);
        bytes
    });
}

/// What the first block of code waits for, on a thread of its own.
#[divan::bench]
fn reading_the_syntaxes() -> bool {
    Syntaxes::loaded().are_ready("rust")
}
