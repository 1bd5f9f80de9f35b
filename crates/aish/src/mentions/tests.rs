//! What is a mention, and what goes along for it.
#![allow(clippy::unwrap_used)]

use super::*;
use base64::Engine as _;
use file::IMAGE_BYTES_MAX;
use std::os::unix::fs::symlink;

/// The smallest beginning that tells a PNG.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(self, name: &str, bytes: &[u8]) -> Self {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        self
    }

    /// A link at `name` that leads to `target`.
    fn link(self, name: &str, target: &str) -> Self {
        symlink(target, self.0.path().join(name)).unwrap();
        self
    }

    /// Where it really is.
    fn real(&self) -> String {
        self.0.path().canonicalize().unwrap().display().to_string()
    }

    fn gather(&self, text: &str) -> Result<Mentioned, String> {
        let home = self.0.path().join("home");
        gather(
            text,
            Places {
                directory: self.0.path(),
                home: Some(&home),
                servers: &["desk".to_owned()],
            },
        )
    }

    fn parts(&self, text: &str) -> Vec<Part> {
        self.gather(text).unwrap().parts
    }
}

fn context(label: &str, text: &str) -> Part {
    Part::Context {
        label: label.into(),
        text: text.into(),
    }
}

fn image(bytes: &[u8]) -> Part {
    Part::Image {
        media_type: "image/png".into(),
        data: base64::engine::general_purpose::STANDARD.encode(bytes),
    }
}

/// A word that begins with `@` and names a file; an address, a name and what is not there are text.
#[test]
fn what_is_a_mention() {
    let folder = Folder::new()
        .file("a.md", b"one")
        .file("b c.md", b"two")
        .file("home/d", b"three")
        .file("example.org", b"not meant");
    let one = || vec![context("a.md", "one")];
    assert_eq!(folder.parts("look at @a.md"), one());
    assert_eq!(folder.parts("(see @a.md), please; @a.md."), one());
    assert_eq!(folder.parts("is it @a.md?"), one());
    assert_eq!(
        folder.parts(r#"@"b c.md" and @~/d"#),
        [context("b c.md", "two"), context("~/d", "three")]
    );
    assert_eq!(folder.parts(r"is it @b\ c.md?"), [context("b c.md", "two")]);
    assert_eq!(folder.parts("me@example.org asks @someone"), []);
    assert_eq!(folder.parts("@ @\" @\"\""), []);
}

/// SPEC 6.9: what names a server's resource names no file, and is no mistake either.
#[test]
fn resources_are_no_files() {
    let folder = Folder::new().file("desk:a.md", b"one");
    let mentioned = folder.gather(r#"see @desk:a.md and @"desk:b c""#).unwrap();
    assert_eq!(mentioned, Mentioned::default());
}

/// What looks like a path and is none is said to be sent as text; a name of somebody is not worth a word.
#[test]
fn hints() {
    let folder = Folder::new().file("sub/x", b"");
    let check = |text: &str, expect: &[&str]| {
        assert_eq!(folder.gather(text).unwrap().remarks, expect, "{text}");
    };
    check("@nowhere.md", &["@nowhere.md names no file here; it is sent as text"]);
    check("@src/nowhere", &["@src/nowhere names no file here; it is sent as text"]);
    check("@someone, @docs:file:///x", &[]);
    check("@sub", &["@sub is a directory; it is sent as text"]);
}

/// Images are told by their content, whatever they are called; text that begins like one is text.
#[test]
fn images() {
    let folder = Folder::new()
        .file("a.png", PNG)
        .file("b.txt", PNG)
        .file("c.png", b"text")
        .file("d.md", b"GIFs are fun")
        .file("e.md", b"Convert WEBP files");
    assert_eq!(
        folder.parts("@a.png @b.txt @c.png"),
        [image(PNG), image(PNG), context("c.png", "text")]
    );
    assert_eq!(
        folder.parts("@d.md @e.md"),
        [context("d.md", "GIFs are fun"), context("e.md", "Convert WEBP files")]
    );
    let parts = folder.parts("@a.png, @c.png");
    assert_eq!(image_names("@a.png, @c.png", &parts), ["a.png"]);
    assert_eq!(image_names("@a.png @gone.png", &parts), [""; 0]);
    assert_eq!(image_names(r"@a\ b.png", &[image(PNG)]), [r"a\ b.png"]);
}

/// SPEC 12: what is read is bounded: a long text is cut and says so, an image that is too large is an error.
#[test]
fn bounds() {
    let mut large = PNG.to_vec();
    large.resize(IMAGE_BYTES_MAX, 0);
    let mut too_large = large.clone();
    too_large.push(0);
    let folder = Folder::new()
        .file("long.txt", &vec![b'x'; TEXT_BYTES_MAX + 1])
        .file("large.png", &large)
        .file("too-large.png", &too_large);
    let long = folder.gather("@long.txt").unwrap();
    assert!(
        matches!(&long.parts[..], [Part::Context { label, text }] if text.len() == TEXT_BYTES_MAX && label.contains("262145")),
    );
    assert_eq!(
        long.remarks,
        ["@long.txt is cut: the first 262144 of its 262145 bytes go along"]
    );
    assert_eq!(folder.parts("@large.png").len(), 1);
    let problem = folder.gather("@too-large.png").unwrap_err();
    assert_eq!(
        problem,
        "@too-large.png is too large: models take images of up to 3932160 bytes, this one has 3932161; send a smaller picture"
    );
    let many: String = (0..=FILES_MAX).map(|n| format!("@f{n}.md ")).collect();
    let folder = (0..=FILES_MAX).fold(Folder::new(), |folder, n| folder.file(&format!("f{n}.md"), b"x"));
    assert!(folder.gather(&many).unwrap_err().contains("32 files"));
}

/// SPEC 7.2: the largest image is what Anthropic takes, which counts it in base64.
#[test]
fn the_largest_image() {
    let mut large = PNG.to_vec();
    large.resize(IMAGE_BYTES_MAX, 0);
    let parts = Folder::new().file("large.png", &large).parts("@large.png");
    assert!(matches!(&parts[..], [Part::Image { data, .. }] if data.len() == 5 << 20));
}

/// SPEC 12: the images of a question are bounded, and each is sent once however it is named.
#[test]
fn many_images() {
    let folder = (0..=IMAGES_MAX).fold(Folder::new(), |folder, n| folder.file(&format!("{n}.png"), PNG));
    let folder = folder.link("again.png", "0.png");
    assert_eq!(folder.parts("@again.png @0.png @./0.png @0.png,"), [image(PNG)]);
    let most: String = (0..IMAGES_MAX).map(|n| format!("@{n}.png ")).collect();
    assert_eq!(folder.parts(&format!("{most} @0.png")).len(), IMAGES_MAX);
    assert_eq!(
        folder.gather(&format!("{most} @20.png")).unwrap_err(),
        "@20.png is one image too many: a question may name 20; name the rest in the next one"
    );
}

/// SPEC 12: so are their bytes together: the request that carries them all has to be taken.
#[test]
fn many_large_images() {
    let mut large = PNG.to_vec();
    large.resize(IMAGE_BYTES_MAX, 0);
    let folder = (0..4).fold(Folder::new(), |folder, n| {
        // Each its own: the same bytes twice are still two files.
        large[IMAGE_BYTES_MAX - 1] = n;
        folder.file(&format!("{n}.png"), &large)
    });
    assert_eq!(folder.parts("@0.png @1.png @2.png").len(), 3);
    let error = folder.gather("@0.png @1.png @2.png @3.png").unwrap_err();
    assert!(
        error.starts_with("@3.png is too much with the images before it: together they may have 15 MB"),
        "{error}"
    );
}

/// SPEC 12: a link does not lend its name to a file that was not named: elsewhere, hidden, or secret-looking.
#[test]
fn links() {
    let outside = Folder::new().file("b c.md", b"not named").file("x.md", b"not named");
    let elsewhere = outside.real();
    let folder = Folder::new()
        .file("sub/a.md", b"one")
        .file("d.md", b"two")
        .file("server.key", b"three")
        .file(".git/config", b"four")
        .link("near.md", "sub/a.md")
        .file("e\u{1b}[2J.md", b"five")
        .link("sub/odd.md", "../e\u{1b}[2J.md")
        .link("broken.md", "gone.md")
        .link("b.md", &format!("{elsewhere}/b c.md"))
        .link("folder", &elsewhere)
        .link("sub/up.md", "../d.md")
        .link("key.md", "server.key")
        .link("config.md", ".git/config");
    let here = folder.real();
    let refused = |mention: &str, target: &str, instead: &str| {
        let expect = format!("{mention} is a link to {target}: write {instead} to send it");
        assert_eq!(folder.gather(&format!("sum up {mention}")), Err(expect));
        assert_eq!(folder.parts(&format!("sum up {instead}")).len(), 1, "{instead}");
    };
    let outside = format!("{elsewhere}/b c.md");
    refused("@b.md", &outside, &format!("@\"{outside}\""));
    refused(
        "@folder/x.md",
        &format!("{elsewhere}/x.md"),
        &format!("@{elsewhere}/x.md"),
    );
    refused("@sub/up.md", &format!("{here}/d.md"), &format!("@{here}/d.md"));
    refused("@key.md", &format!("{here}/server.key"), &format!("@{here}/server.key"));
    refused(
        "@config.md",
        &format!("{here}/.git/config"),
        &format!("@{here}/.git/config"),
    );
    let odd = folder.gather("@sub/odd.md").unwrap_err();
    assert!(
        !odd.contains('\u{1b}') && odd.ends_with(": copy that file to send it"),
        "{odd}"
    );
    assert_eq!(folder.parts("@near.md @broken.md"), [context("near.md", "one")]);
    assert_eq!(
        folder.gather("@folder").unwrap().remarks,
        ["@folder is a directory; it is sent as text"]
    );
}

/// SPEC 12: the directory one works in and the home may be behind links: what is named in them is named.
#[test]
fn places_behind_links() {
    let folder = Folder::new()
        .file("real/a.md", b"one")
        .file("real/sub/b.md", b"two")
        .link("linked", "real");
    let linked = folder.0.path().join("linked");
    let sub = linked.join("sub");
    let check = |text: &str, directory: &Path, home: &Path| {
        let places = Places {
            directory,
            home: Some(home),
            servers: &[],
        };
        assert_eq!(gather(text, places).unwrap().parts.len(), 1, "{text}");
    };
    let nowhere = Path::new("/nowhere");
    check("@a.md", &linked, nowhere);
    check("@../a.md", &sub, nowhere);
    check("@~/a.md", nowhere, &linked);
    check("@~/a.md", Path::new("/"), &linked);
    check("@~/sub/b.md", &sub, &linked);
    check(&format!("@{}/a.md", linked.display()), nowhere, &linked);
}

/// SPEC 12: a file that looks secret goes along when its own name was written, and that is said.
#[test]
fn secret_files() {
    let folder = Folder::new().file("home/.ssh/config", b"Host x").file(".env", b"A=1");
    let mentioned = folder.gather("@~/.ssh/config @.env").unwrap();
    assert_eq!(
        mentioned.parts,
        [context("~/.ssh/config", "Host x"), context(".env", "A=1")]
    );
    assert_eq!(
        mentioned.remarks,
        [
            "@~/.ssh/config looks like a secret file; it is sent, since you named it",
            "@.env looks like a secret file; it is sent, since you named it"
        ]
    );
}

/// SPEC 12: what was judged is read, whatever is put in its place meanwhile.
#[test]
fn a_file_swapped_for_a_link() {
    let folder = Folder::new().file("a.md", b"named").file("home/secret", b"not named");
    let path = folder.0.path().join("a.md");
    let found = Found::at(&path).unwrap();
    let moved = folder.0.path().join("moved.md");
    std::fs::rename(&path, &moved).unwrap();
    symlink("home/secret", &path).unwrap();
    let text = "named".to_owned();
    assert_eq!(
        found.read(),
        Ok(Content::Text {
            text,
            whole_bytes: None
        })
    );
}

/// SPEC 12: nothing hangs: a pipe that nobody writes to and a device without end are refused.
#[test]
fn what_is_no_file() {
    let folder = Folder::new()
        .file("data.bin", b"\0\x01\x02")
        .file("doc.pdf", b"%PDF-1.7\0")
        .file("photo.bmp", b"BM\x3a\0\0\0");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        folder.0.path().join("pipe"),
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    )
    .unwrap();
    let problem = |text: &str| folder.gather(text).unwrap_err();
    assert_eq!(problem("@pipe"), "@pipe is no file of bytes");
    assert_eq!(problem("@/dev/zero"), "@/dev/zero is no file of bytes");
    assert_eq!(
        problem("@data.bin"),
        "@data.bin is neither text nor an image that models take: convert it to text first"
    );
    assert!(problem("@doc.pdf").contains("(application/pdf): convert it to text first"));
    assert_eq!(
        problem("@photo.bmp"),
        "@photo.bmp is an image that models do not take (image/bmp): convert it to PNG, JPEG, GIF or WebP"
    );
}
