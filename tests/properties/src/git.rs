//! What a git server sends, and known_hosts files: an answer or an error, whatever the bytes.

use std::{io::Write as _, str, sync::atomic::AtomicBool};

use chandler_git::{
    Capabilities, CommitId, Entry, Framed, GitError, Objects, PackLimits, PackReader, Refs, Revision, Stop, protocol,
};
use chandler_ssh::KnownHosts;
use flate2::{Compression, write::ZlibEncoder};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

use crate::memory;

/// The memory that a response may take: the library allocates a little for each line, and a window to inflate.
const FIXED: usize = 2 << 20;
const PER_BYTE: usize = 100;
const PER_BYTE_OF_PACKS: usize = 16;
const LIMITS: PackLimits = PackLimits {
    objects: 400,
    object_bytes: 64 << 10,
    alive_bytes: 256 << 10,
    all_bytes: 16 << 20,
    work_bytes: 16 << 20,
    path_bytes: 300,
};
/// The most entries of a walk: the visitor bounds it.
const ENTRIES: usize = 500;

/// Responses: the first byte selects which. A pack is made of a text, so that its checksums are right.
pub(crate) fn holds(input: &[u8]) {
    let Some((how, bytes)) = input.split_first() else { return };
    match how % 3 {
        0 => memory::bounded(input, FIXED, PER_BYTE, || lists(bytes)),
        1 => memory::bounded(input, FIXED, PER_BYTE, || fetched(bytes)),
        _ => {
            let (pack, commit) = built(bytes);
            memory::bounded(input, FIXED, PER_BYTE_OF_PACKS, || packs(&pack, commit));
        }
    }
}

fn lists(bytes: &[u8]) {
    let _ = (Capabilities::parse(bytes), protocol::is_old(bytes));
    let Ok(refs) = Refs::parse(bytes) else { return };
    let text = String::from_utf8_lossy(bytes);
    for revision in [Revision::Branch("main".to_owned()), Revision::range(">=0.0.0").expect("a range")] {
        match refs.select(&revision) {
            Ok(selected) => assert!(text.to_lowercase().contains(&selected.commit.to_string()), "a commit of nowhere"),
            Err(error) => assert_message(&error),
        }
    }
}

/// The pack of a response, in one piece and in many; and where the response ends.
fn fetched(bytes: &[u8]) {
    let read = |size: usize| {
        let (mut reader, mut pack) = (PackReader::default(), Vec::new());
        bytes.chunks(size).try_for_each(|piece| reader.feed(piece, &mut pack))?;
        reader.end().map(|()| pack)
    };
    let whole = read(bytes.len().max(1));
    assert_eq!(whole, read(3), "pieces change the pack");
    let mut framed = Framed::default();
    let ended = bytes.chunks(5).try_fold(false, |_, piece| framed.feed(piece));
    match whole {
        Ok(pack) => {
            assert!(pack.len() <= bytes.len());
            assert_eq!(ended, Ok(true), "a whole response has no end");
        }
        Err(error) => assert_message(&error),
    }
}

fn packs(pack: &[u8], commit: CommitId) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(pack).expect("a file that can be written");
    std::io::Seek::rewind(&mut file).expect("a file that can be read");
    let mut objects = match Objects::index(file, directory.path(), LIMITS, &AtomicBool::new(false)) {
        Ok(objects) => objects,
        Err(error) => return assert_message(&error),
    };
    let (mut names, mut count) = (0, 0);
    let missing = objects.missing_files(commit, "", &mut || {
        names += 1;
        if names > ENTRIES { Err(()) } else { Ok(()) }
    });
    let walked = objects.walk(commit, "", &mut |entry| {
        count += 1;
        if let Entry::File(_, bytes) | Entry::Link(_, bytes) = entry {
            assert!(bytes.len() as u64 <= LIMITS.object_bytes, "a file larger than the limit");
        }
        if count < ENTRIES { Ok(()) } else { Err(()) }
    });
    match walked {
        Ok(()) => assert!(missing.is_ok_and(|missing| missing.is_empty()), "a file that was read is missing"),
        Err(Stop::Git(error)) => assert_message(&error),
        Err(Stop::Visitor(())) => {}
    }
}

/// A message fits the status, and has no control characters.
fn assert_message(error: &GitError) {
    let message = error.to_string();
    assert!(message.len() < 2000 && !message.chars().any(char::is_control), "{message:?}");
}

/// A pack and its last commit. A line `-- blob --`, `-- tree --`, `-- commit --`, `-- tag --`, `-- delta N --` or `-- grown N --` begins an
/// object; a delta is from object `N`, and a grown one is object `N` with the text at its end, stored as a difference. In a tree, a line is the mode, the name and the number of an object; the first line of a commit is
/// the number of its tree.
pub(crate) fn built(text: &[u8]) -> (Vec<u8>, CommitId) {
    let (mut objects, mut names, mut commit) = (Vec::new(), Vec::<[u8; 20]>::new(), [0; 20]);
    let (mut plain, mut places) = (Vec::<(&str, Vec<u8>)>::new(), Vec::new());
    let mut count = 0_u32;
    let mut lines = text.split_inclusive(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        let Some(kind) = kind_of(line) else { continue };
        let mut body = Vec::new();
        while let Some(line) = lines.next_if(|line| kind_of(line).is_none()) {
            body.extend_from_slice(line);
        }
        let of = |number: &[u8]| {
            let number: Option<usize> = str::from_utf8(number).ok().and_then(|text| text.trim().parse().ok());
            number.and_then(|number| names.get(number)).copied().unwrap_or([7; 20])
        };
        let mut grown_to = None;
        let (code, word, base, body) = match kind.split_once(' ').unwrap_or((kind, "")) {
            ("commit", _) => (1, "commit", Vec::new(), commit_of(&body, of)),
            ("tree", _) => (2, "tree", Vec::new(), tree_of(&body, of)),
            ("blob", _) => (3, "blob", Vec::new(), body),
            ("tag", _) => (4, "tag", Vec::new(), body),
            ("delta", number) => (7, "", of(number.as_bytes()).to_vec(), body),
            ("grown", number) => {
                let number: Option<usize> = number.trim().parse().ok().filter(|number| *number < names.len());
                let Some(number) = number else { continue };
                let (word, base) = plain[number].clone();
                let whole = [base.as_slice(), &body].concat();
                // Enough to exceed every limit.
                if whole.len() > 1 << 20 || plain.len() > 300 {
                    continue;
                }
                grown_to = Some((word, whole));
                (6, word, distance(objects.len() - places[number]), grown(base.len(), &body))
            }
            _ => continue,
        };
        let (word, whole) = grown_to.unwrap_or_else(|| (word, body.clone()));
        let name = sha1(&[format!("{word} {}\0", whole.len()).as_bytes(), &whole]);
        names.push(name);
        plain.push((word, whole));
        places.push(objects.len());
        if code == 1 {
            commit = name;
        }
        objects.extend(head(code, body.len()));
        objects.extend(base);
        let mut encoder = ZlibEncoder::new(&mut objects, Compression::fast());
        encoder.write_all(&body).and_then(|()| encoder.finish().map(drop)).expect("memory that can be written");
        count += 1;
    }
    let mut pack = [&b"PACK\0\0\0\x02"[..], &count.to_be_bytes(), &objects].concat();
    let sum = sha1(&[&pack]);
    pack.extend_from_slice(&sum);
    (pack, hex::encode(commit).parse().expect("the name of a commit"))
}

fn kind_of(line: &[u8]) -> Option<&str> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    str::from_utf8(line.strip_prefix(b"-- ")?.strip_suffix(b" --")?).ok()
}

fn commit_of(body: &[u8], of: impl Fn(&[u8]) -> [u8; 20]) -> Vec<u8> {
    let (first, rest) = body.split_at(body.iter().position(|byte| *byte == b'\n').unwrap_or(body.len()));
    let tree = hex::encode(of(first));
    [b"tree ", tree.as_bytes(), rest].concat()
}

fn tree_of(body: &[u8], of: impl Fn(&[u8]) -> [u8; 20]) -> Vec<u8> {
    let mut tree = Vec::new();
    for line in body.split(|byte| *byte == b'\n') {
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let (Some(mode), Some(name), Some(number)) = (words.next(), words.next(), words.next()) else { continue };
        tree.extend([mode, b" ", name, b"\0", &of(number)].concat());
    }
    tree
}

/// The head of an object in a pack: its type, and the bytes of its length from the lowest.
fn head(code: u8, length: usize) -> Vec<u8> {
    let low = |length: usize, mask: usize| u8::try_from(length & mask).unwrap_or_default();
    let (mut head, mut rest) = (vec![code << 4 | low(length, 15)], length >> 4);
    while rest > 0 {
        if let Some(last) = head.last_mut() {
            *last |= 0x80;
        }
        head.push(low(rest, 0x7f));
        rest >>= 7;
    }
    head
}

/// A difference: all of the base, then a text.
fn grown(base: usize, text: &[u8]) -> Vec<u8> {
    let mut bytes = [numbers(base), numbers(base + text.len())].concat();
    if base > 0 {
        // Copies from the beginning: no byte of the place, three of the length.
        bytes.push(0b1111_0000);
        bytes.extend(&base.to_le_bytes()[..3]);
    }
    for piece in text.chunks(127) {
        bytes.push(u8::try_from(piece.len()).unwrap_or_default());
        bytes.extend_from_slice(piece);
    }
    bytes
}

/// A number in pieces of seven bits, the lowest first.
fn numbers(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        bytes.push(if number > 0 { low | 0x80 } else { low });
        if number == 0 {
            return bytes;
        }
    }
}

/// How far before itself the base of a difference begins (gitformat-pack, "offset encoding").
fn distance(mut distance: usize) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(distance & 0x7f).unwrap_or_default()];
    distance >>= 7;
    while distance > 0 {
        distance -= 1;
        bytes.push(u8::try_from(distance & 0x7f).unwrap_or_default() | 0x80);
        distance >>= 7;
    }
    bytes.reverse();
    bytes
}

fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    for part in parts {
        context.update(part);
    }
    context.finish().as_ref().try_into().expect("20 bytes")
}

/// A known_hosts file: only keys that it names in a line without a marker are trusted.
pub(crate) fn known_hosts(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    memory::bounded(input, 1 << 20, PER_BYTE, || {
        let file = match text.parse::<KnownHosts>() {
            Ok(file) => file,
            Err(error) => return assert!(error.to_string().len() < 500),
        };
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['@', '#']));
        let words: Vec<&str> = lines.flat_map(|line| line.split([' ', '\t'])).collect();
        for (host, port) in [("example.com", 22), ("git.example.com", 2222), ("2001:db8::1", 22)] {
            let Ok(known) = file.of(host, port) else { continue };
            for key in [&b"\0\0\0\x0bssh-ed25519"[..], &KEY] {
                if known.check(key).is_ok() {
                    let written = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, key);
                    assert!(words.contains(&written.as_str()), "a key of nowhere");
                }
            }
        }
    });
}

/// The key of the seeds.
const KEY: [u8; 51] =
    *b"\0\0\0\x0bssh-ed25519\0\0\0\x20\x78\xc8\xc1\xc4\x50\x30\x36\x47\x38\x51\x28\xeb\x77\x0d\xe8\xfe\
    \xe1\x51\x6f\xa9\x33\xde\x9c\xb8\x27\x8b\x3b\x03\xcc\xe2\xff\x31";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::seeds::seeds;

    #[test]
    fn the_seed_of_known_hosts_trusts_the_key() {
        let seeds = seeds("known_hosts", Path::new("/nowhere")).unwrap();
        let file: KnownHosts = str::from_utf8(&seeds[0]).unwrap().parse().unwrap();
        assert_eq!(file.of("example.com", 22).unwrap().check(&KEY), Ok(()));
    }

    #[test]
    fn what_is_built_is_read() {
        let text = b"-- blob --\ntext\n-- tree --\n100644 a 0\n-- tree --\n40000 d 1\n-- commit --\n2\n\nm\n";
        let (pack, commit) = built(text);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pack");
        std::fs::write(&path, pack).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let mut objects = Objects::index(file, directory.path(), LIMITS, &AtomicBool::new(false)).unwrap();
        let mut found = Vec::new();
        let walked = objects.walk(commit, "", &mut |entry| {
            if let Entry::File(path, bytes) = entry {
                found.push((path.to_vec(), bytes.to_vec()));
            }
            Ok::<(), ()>(())
        });
        assert!(walked.is_ok());
        assert_eq!(found, [(b"d/a".to_vec(), b"text\n".to_vec())]);
    }
}
