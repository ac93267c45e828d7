//! Compressed bytes in, plain bytes out, counted.

use std::{
    cell::Cell,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    rc::Rc,
};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use crate::{LimitExceeded, Limits, blocking::Cancel};

/// The ratio of archives that unpack to less than this is not checked.
const UNMEASURED: u64 = 4 << 20;

/// The most memory that a zstd file may require for decoding. The levels that build tools offer need 8 MiB.
const ZSTD_WINDOW: u64 = 32 << 20;

/// The remaining budget of the archives of one source.
#[derive(Debug)]
pub(crate) struct Budget {
    unpacked: Rc<Cell<u64>>,
    limit: u64,
    ratio: u64,
    cancel: Cancel,
}

impl Budget {
    pub(crate) fn new(limits: &Limits, cancel: &Cancel) -> Self {
        let (limit, ratio) = (limits.unpacked_bytes, limits.compression_ratio);
        Self { unpacked: Rc::new(Cell::new(0)), limit, ratio, cancel: cancel.clone() }
    }

    /// Counts the compressed bytes that are read. The caller may stop waiting there, too: many parts of an archive may hold nothing.
    pub(super) fn count<R: Read>(&self, compressed: R, counts: &Counts) -> Counted<R> {
        Counted { inner: compressed, count: Rc::clone(&counts.consumed), cancel: self.cancel.clone() }
    }

    /// Bounds the plain bytes of an archive, or of a part of it.
    pub(super) fn bound<R: Read>(&self, plain: R, counts: &Counts) -> Bounded<R> {
        Bounded {
            inner: plain,
            counts: counts.clone(),
            total: Rc::clone(&self.unpacked),
            limit: self.limit,
            ratio: self.ratio,
            cancel: self.cancel.clone(),
        }
    }
}

/// The bytes of one archive so far: compressed bytes that were read, and plain ones that came out.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    consumed: Rc<Cell<u64>>,
    produced: Rc<Cell<u64>>,
}

/// The decompressed bytes of a file. Its first bytes determine the compression, as in container runtimes, since media types are
/// often wrong. Consecutive gzip members form one file.
pub(super) fn reader(file: File, budget: &Budget) -> io::Result<Box<dyn Read>> {
    let counts = Counts::default();
    let counted = budget.count(file, &counts);
    let mut input = BufReader::with_capacity(16 << 10, counted);
    let magic = input.fill_buf()?;
    let plain: Box<dyn Read> = if magic.starts_with(&[0x1f, 0x8b]) {
        Box::new(MultiGzDecoder::new(input))
    } else if magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Box::new(Zstd { input: Some(input), frame: None })
    } else {
        Box::new(input)
    };
    Ok(Box::new(budget.bound(plain, &counts)))
}

/// Counts the bytes that are read from the compressed file.
pub(super) struct Counted<R> {
    inner: R,
    count: Rc<Cell<u64>>,
    cancel: Cancel,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.cancel.check()?;
        let count = self.inner.read(buffer)?;
        self.count.set(self.count.get().saturating_add(count as u64));
        Ok(count)
    }
}

/// Fails if the output exceeds the budget.
pub(super) struct Bounded<R> {
    inner: R,
    counts: Counts,
    total: Rc<Cell<u64>>,
    limit: u64,
    ratio: u64,
    cancel: Cancel,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.cancel.check()?;
        let count = self.inner.read(buffer)? as u64;
        let produced = self.counts.produced.get().saturating_add(count);
        self.counts.produced.set(produced);
        self.total.set(self.total.get().saturating_add(count));
        if self.total.get() > self.limit {
            return Err(io::Error::other(LimitExceeded::UnpackedBytes(self.limit)));
        }
        if produced > UNMEASURED && produced > self.counts.consumed.get().saturating_mul(self.ratio) {
            return Err(io::Error::other(LimitExceeded::CompressionRatio(self.ratio)));
        }
        // Not more than the length of the buffer.
        Ok(usize::try_from(count).unwrap_or(buffer.len()))
    }
}

/// The frames of a zstd file, one after the other.
struct Zstd<R: BufRead> {
    input: Option<R>,
    frame: Option<StreamingDecoder<R, FrameDecoder>>,
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let count = frame.read(buffer)?;
                if count > 0 || buffer.is_empty() {
                    return Ok(count);
                }
                self.input = self.frame.take().map(StreamingDecoder::into_inner);
            }
            let Some(mut input) = self.input.take() else { return Ok(0) };
            if input.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let frame = StreamingDecoder::new_with_max_window_size(input, ZSTD_WINDOW);
            self.frame = Some(frame.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Seek as _, Write as _},
        sync::atomic::Ordering,
    };

    use super::*;

    /// A member of gzip and a frame of zstd without content.
    const EMPTY: [&[u8]; 2] = [
        &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0x28, 0xb5, 0x2f, 0xfd, 0, 0x58, 1, 0, 0],
    ];

    #[test]
    fn members_without_content_end_when_the_caller_stops_waiting() {
        for empty in EMPTY {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&empty.repeat(100_000)).unwrap();
            for stops in [false, true] {
                file.rewind().unwrap();
                let cancel = Cancel::default();
                let mut plain = reader(file.try_clone().unwrap(), &Budget::new(&Limits::default(), &cancel)).unwrap();
                cancel.flag().store(stops, Ordering::Relaxed);
                let counted = plain.read(&mut [0; 10]);
                assert_eq!(counted.is_err(), stops, "{counted:?}");
            }
        }
    }

    /// The flag is set while one call reads members without end.
    #[test]
    fn one_call_looks_at_the_flag_again_and_again() {
        struct Stops<'a>(Cancel, u32, &'a [u8]);
        impl Read for Stops<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.1 += 1;
                assert!(self.1 < 100, "nobody looked at the flag");
                if self.1 == 50 {
                    self.0.flag().store(true, Ordering::Relaxed);
                }
                let whole = buffer.len() / self.2.len() * self.2.len();
                buffer[..whole].copy_from_slice(&self.2.repeat(whole / self.2.len()));
                Ok(whole)
            }
        }
        let cancel = Cancel::default();
        let (budget, counts) = (Budget::new(&Limits::default(), &cancel), Counts::default());
        let compressed = budget.count(Stops(cancel, 0, EMPTY[0]), &counts);
        let mut plain = budget.bound(MultiGzDecoder::new(BufReader::new(compressed)), &counts);
        assert!(plain.read(&mut [0; 10]).is_err());
    }
}
