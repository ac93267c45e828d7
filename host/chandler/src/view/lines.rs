//! A few lines of a file, without reading more of it than is shown: files may be large, lines too, and findings many.

use super::diagnostics::Sources;

/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;
/// Characters of a line that are kept before and after a location. Fewer are shown; white space and escapes take some of them.
const KEPT: usize = 640;
/// The size of the lines, in bytes, including bytes that are not text.
const KEPT_BYTES: usize = 8 * KEPT;
/// A location further to the right is not looked for.
const FARTHEST: usize = 4 << 20;
/// The line after the target line is not looked for further away.
const NEXT: usize = 64 << 10;

/// A part of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The text.
    pub text: String,
    /// Characters of the line before it.
    pub skipped: usize,
    /// Whether the line continues after it.
    pub goes_on: bool,
}

/// A line, and those around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The number of the first line, from 0.
    pub first: usize,
    /// The lines.
    pub lines: Vec<Cut>,
    /// Which of them is the target.
    pub target: usize,
}

/// Finds lines of the texts of findings. Findings that are in the order of their files and lines read each file once.
pub struct Lines<'a> {
    sources: Sources<'a>,
    file: Option<File>,
}

/// The position of the search in a file.
struct File {
    path: String,
    /// The number of a line, from 0, and the position of its first byte.
    line: usize,
    start: u64,
    /// The line before it.
    before: Option<Cut>,
    /// Bytes that were read, and the position of the first one.
    chunk: Vec<u8>,
    position: u64,
}

impl<'a> Lines<'a> {
    /// None is read yet.
    pub fn new(sources: &Sources<'a>) -> Self {
        Self { sources: *sources, file: None }
    }

    /// The lines around `line` of a file, both counted from 1, each with the characters around `column`. None if there is no such line.
    pub fn around(&mut self, path: &str, line: u32, column: Option<u32>) -> Option<Window> {
        let target = usize::try_from(line).ok()?.checked_sub(1)?;
        let column = column.and_then(|column| usize::try_from(column).ok()?.checked_sub(1)).unwrap_or(0);
        if column > FARTHEST {
            return None;
        }
        let file = self.file.take().filter(|file| file.path == path && file.line <= target);
        let mut file = file.map_or_else(|| File::open(&self.sources, path), Some)?;
        let found = file.around(&self.sources, target, column);
        self.file = Some(file);
        found
    }
}

impl File {
    fn open(sources: &Sources<'_>, path: &str) -> Option<Self> {
        let chunk = sources.read(path, 0, CHUNK)?;
        Some(Self { path: path.to_owned(), line: 0, start: 0, before: None, chunk, position: 0 })
    }

    /// The bytes from a position, up to the end of what is read at once. None at the end of the file, or if it cannot be read.
    fn bytes(&mut self, sources: &Sources<'_>, at: u64) -> Option<&[u8]> {
        let end = self.position + self.chunk.len() as u64;
        if !(self.position..end).contains(&at) {
            self.chunk = sources.read(&self.path, at, CHUNK)?;
            self.position = at;
        }
        let from = usize::try_from(at - self.position).ok()?;
        self.chunk.get(from..).filter(|bytes| !bytes.is_empty())
    }

    fn around(&mut self, sources: &Sources<'_>, target: usize, column: usize) -> Option<Window> {
        while self.line < target {
            let before = (self.line + 1 == target).then(|| self.cut(sources, self.start, 0, 0).0);
            let next = self.next_line(sources)?;
            (self.before, self.line, self.start) = (before, self.line + 1, next);
        }
        let (cut, next) = self.cut(sources, self.start, column.saturating_sub(KEPT), NEXT as u64);
        let mut lines: Vec<Cut> = self.before.iter().cloned().collect();
        let at = lines.len();
        lines.push(cut);
        if let Some(next) = next
            && self.bytes(sources, next).is_some()
        {
            lines.push(self.cut(sources, next, 0, 0).0);
        }
        Some(Window { first: target - at, lines, target: at })
    }

    /// The position of the line after the current one.
    fn next_line(&mut self, sources: &Sources<'_>) -> Option<u64> {
        let mut at = self.start;
        loop {
            let bytes = self.bytes(sources, at)?;
            match memchr::memchr(b'\n', bytes) {
                Some(end) => return Some(at + end as u64 + 1),
                None => at += bytes.len() as u64,
            }
        }
    }

    /// A line from a character on, and the position after it, if its end is at most `farthest` bytes after what is kept.
    fn cut(&mut self, sources: &Sources<'_>, start: u64, from: usize, farthest: u64) -> (Cut, Option<u64>) {
        let (mut kept, mut characters, mut at) = (Vec::new(), 0, start);
        let mut goes_on = false;
        // The part of a line that would be kept if it ended before the character.
        let mut head = Vec::new();
        let mut after = 0_u64;
        let end = loop {
            let Some(bytes) = self.bytes(sources, at) else { break None };
            let found = memchr::memchr(b'\n', bytes);
            let line = found.and_then(|end| bytes.get(..end)).unwrap_or(bytes);
            let mut taken = 0;
            if !goes_on {
                for byte in line {
                    if byte & 0xc0 != 0x80 {
                        characters += 1;
                    }
                    if characters > from + 2 * KEPT || kept.len() >= KEPT_BYTES {
                        goes_on = true;
                        break;
                    }
                    if characters > from {
                        kept.push(*byte);
                    } else if head.len() < KEPT_BYTES {
                        head.push(*byte);
                    }
                    taken += 1;
                }
            }
            after += (line.len() - taken) as u64;
            at += line.len() as u64;
            if found.is_some() {
                break Some(at + 1);
            }
            if after > farthest {
                break None;
            }
        };
        let skipped = if kept.is_empty() && characters > 0 { 0 } else { from };
        let kept = if skipped == 0 && kept.is_empty() { head } else { kept };
        let text = String::from_utf8_lossy(&kept);
        let text = text.strip_suffix('\r').unwrap_or(&text).to_owned();
        (Cut { text, skipped, goes_on }, end)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        ops::Range,
        sync::atomic::{AtomicU64, Ordering},
    };

    use chandler_core::{Content, Digest, Entry, MemoryContent, ReadError};
    use proptest::prelude::*;

    use super::*;

    /// A file that counts the bytes that are read of it.
    struct Counted(MemoryContent, AtomicU64);

    impl Counted {
        fn new(text: impl Into<Vec<u8>>) -> Self {
            Self(MemoryContent::new([("a.yaml", text)]), AtomicU64::new(0))
        }

        fn lines(&self) -> Lines<'_> {
            Lines::new(&Sources { content: Some(self), ..Sources::default() })
        }
    }

    impl Content for Counted {
        fn digest(&self) -> &Digest {
            self.0.digest()
        }

        fn total_bytes(&self) -> u64 {
            self.0.total_bytes()
        }

        fn entries(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<Entry> {
            self.0.entries(prefix, after, limit)
        }

        fn read(&self, path: &str, offset: u64, len: usize) -> Result<Vec<u8>, ReadError> {
            let bytes = self.0.read(path, offset, len)?;
            self.1.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            Ok(bytes)
        }
    }

    fn texts(window: &Window) -> Vec<&str> {
        window.lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn many_lines_of_a_large_file_are_found_in_one_pass() {
        let text = (0..200_000).fold(String::new(), |text, number| text + &format!("line {number}\n"));
        let file = Counted::new(text.clone());
        let mut lines = file.lines();
        for number in (1..1000_u32).map(|step| step * 200) {
            let window = lines.around("a.yaml", number + 1, None).unwrap();
            let around: Range<u32> = number - 1..number + 2;
            assert_eq!(texts(&window), around.map(|number| format!("line {number}")).collect::<Vec<_>>());
        }
        let read = file.1.load(Ordering::Relaxed);
        assert!(read <= 2 * text.len() as u64, "{read} bytes are read of {}", text.len());
        // An earlier line starts again.
        assert_eq!(texts(&lines.around("a.yaml", 1, None).unwrap()), ["line 0", "line 1"]);
    }

    #[test]
    fn a_huge_line_is_neither_kept_nor_read_for_each_finding() {
        let mut text = vec![0; 8 << 20];
        text.extend_from_slice(b"\nnext\n");
        text.extend(vec![b'x'; 8 << 20]);
        let size = text.len() as u64;
        let file = Counted::new(text);
        let mut lines = file.lines();
        for _ in 0..100 {
            let window = lines.around("a.yaml", 1, None).unwrap();
            assert!(window.lines.iter().all(|line| line.text.len() <= KEPT_BYTES));
        }
        for _ in 0..100 {
            let window = lines.around("a.yaml", 2, None).unwrap();
            assert_eq!((window.lines.len(), window.lines[1].text.as_str()), (3, "next"));
        }
        let read = file.1.load(Ordering::Relaxed);
        assert!(read < 3 * size, "{read}");
        assert_eq!(lines.around("a.yaml", 1, Some(u32::MAX)), None);
        assert_eq!(lines.around("b.yaml", 1, None), None);
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_text(text in "[a\nü\r]{0,40}", line in 1..8_u32, first in 1..8_u32) {
            let file = Counted::new(text.clone());
            let mut lines = file.lines();
            lines.around("a.yaml", first, None);
            let all: Vec<&str> = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
            let at = usize::try_from(line).unwrap() - 1;
            let found = lines.around("a.yaml", line, None);
            prop_assert_eq!(found.as_ref().map(|it| it.lines[it.target].text.as_str()), all.get(at).copied());
        }
    }
}
