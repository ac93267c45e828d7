//! Packs of any objects, byte by byte.

#![expect(clippy::indexing_slicing, reason = "a test that cannot continue panics")]

use std::io::Write as _;

use flate2::{Compression, write::ZlibEncoder};
use gix_hash::Kind;
use gix_object::compute_hash;

/// A pack that is being written.
#[derive(Default)]
pub(crate) struct Pack {
    bytes: Vec<u8>,
    plain: Vec<(gix_object::Kind, Vec<u8>)>,
    at: Vec<usize>,
}

/// An object of a pack.
#[derive(Clone, Copy)]
pub(crate) struct Object {
    index: usize,
    pub(crate) name: [u8; 20],
}

/// A tree object of entries: mode, name, object.
pub(crate) fn tree(entries: &[(&str, String, [u8; 20])]) -> Vec<u8> {
    let entry =
        |(mode, name, id): &(&str, String, [u8; 20])| [mode.as_bytes(), b" ", name.as_bytes(), b"\0", id].concat();
    entries.iter().flat_map(entry).collect()
}

impl Pack {
    pub(crate) fn blob(&mut self, bytes: &[u8]) -> Object {
        self.whole(3, gix_object::Kind::Blob, bytes)
    }

    pub(crate) fn tree(&mut self, bytes: &[u8]) -> Object {
        self.whole(2, gix_object::Kind::Tree, bytes)
    }

    pub(crate) fn commit(&mut self, tree: [u8; 20]) -> Object {
        let text = format!(
            "tree {}\nauthor A <a@example.com> 0 +0000\ncommitter A <a@example.com> 0 +0000\n\nm\n",
            hex::encode(tree)
        );
        self.whole(1, gix_object::Kind::Commit, text.as_bytes())
    }

    /// An object that is another one and some bytes more, stored as a difference from it, by its place or by its name.
    pub(crate) fn grown(&mut self, base: Object, more: &[u8], is_named: bool) -> Object {
        let plain = self.plain[base.index].1.clone();
        let instructions = [copy(plain.len()), vec![u8::try_from(more.len()).unwrap()], more.to_vec()].concat();
        self.difference(base, [plain, more.to_vec()].concat(), instructions, is_named)
    }

    /// An object that is the first bytes of another one.
    pub(crate) fn cut(&mut self, base: Object, length: usize) -> Object {
        let plain = self.plain[base.index].1[..length].to_vec();
        self.difference(base, plain, copy(length), false)
    }

    /// A difference that announces an object of a size.
    pub(crate) fn announced(&mut self, base: Object, size: usize) {
        let body = [number(self.plain[base.index].1.len()), number(size), copy(1)].concat();
        self.entry(6, body.len(), &distance(self.bytes_at() - self.at[base.index]), &body);
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The whole pack.
    pub(crate) fn finish(self) -> Vec<u8> {
        let count = u32::try_from(self.at.len()).unwrap().to_be_bytes();
        let mut pack = [&b"PACK\0\0\0\x02"[..], &count, &self.bytes].concat();
        let mut hasher = gix_hash::hasher(Kind::Sha1);
        hasher.update(&pack);
        pack.extend_from_slice(hasher.try_finalize().unwrap().as_slice());
        pack
    }

    fn whole(&mut self, code: u8, kind: gix_object::Kind, bytes: &[u8]) -> Object {
        self.entry(code, bytes.len(), b"", bytes);
        self.add(kind, bytes.to_vec())
    }

    fn difference(&mut self, base: Object, plain: Vec<u8>, instructions: Vec<u8>, is_named: bool) -> Object {
        let body = [number(self.plain[base.index].1.len()), number(plain.len()), instructions].concat();
        if is_named {
            self.entry(7, body.len(), &base.name, &body);
        } else {
            self.entry(6, body.len(), &distance(self.bytes_at() - self.at[base.index]), &body);
        }
        self.add(self.plain[base.index].0, plain)
    }

    fn add(&mut self, kind: gix_object::Kind, plain: Vec<u8>) -> Object {
        let name = compute_hash(Kind::Sha1, kind, &plain).unwrap().as_slice().try_into().unwrap();
        self.plain.push((kind, plain));
        Object { index: self.plain.len() - 1, name }
    }

    fn bytes_at(&self) -> usize {
        12 + self.bytes.len()
    }

    fn entry(&mut self, code: u8, length: usize, base: &[u8], body: &[u8]) {
        self.at.push(self.bytes_at());
        let mut rest = length >> 4;
        let first = code << 4 | u8::try_from(length & 15).unwrap();
        self.bytes.push(if rest > 0 { first | 0x80 } else { first });
        while rest > 0 {
            let low = u8::try_from(rest & 0x7f).unwrap();
            rest >>= 7;
            self.bytes.push(if rest > 0 { low | 0x80 } else { low });
        }
        self.bytes.extend_from_slice(base);
        let mut encoder = ZlibEncoder::new(&mut self.bytes, Compression::best());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap();
    }
}

/// A number in pieces of seven bits, the lowest first.
fn number(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).unwrap();
        number >>= 7;
        bytes.push(if number > 0 { low | 0x80 } else { low });
        if number == 0 {
            return bytes;
        }
    }
}

/// How far before itself the base of a difference begins.
fn distance(mut distance: usize) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(distance & 0x7f).unwrap()];
    distance >>= 7;
    while distance > 0 {
        distance -= 1;
        bytes.push(u8::try_from(distance & 0x7f).unwrap() | 0x80);
        distance >>= 7;
    }
    bytes.reverse();
    bytes
}

/// Instructions that copy the first bytes of the base.
fn copy(length: usize) -> Vec<u8> {
    let mut instructions = Vec::new();
    let mut at = 0;
    while at < length {
        let size = (length - at).min(0x00ff_ffff);
        let (at_bytes, size_bytes) = (at.to_le_bytes(), size.to_le_bytes());
        instructions.push(0xff);
        instructions.extend_from_slice(&at_bytes[..4]);
        instructions.extend_from_slice(&size_bytes[..3]);
        at += size;
    }
    instructions
}
