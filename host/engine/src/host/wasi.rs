//! An empty WASI 0.2, for components whose toolchain imports it: no arguments, environment, directories or network;
//! standard input is empty, output goes to the call's log, the clock never advances, and insecure randomness is a
//! function of the provisioner and the content. Secure randomness traps, since a function of public bytes is not
//! secret.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use chandler_core::Digest;
use rand_core::TryRng;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    HostMonotonicClock, HostWallClock, WasiCtx,
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamResult, bindings::random::random},
};

use super::{Fault, SharedRecorder, State, log::Stream, record};

/// The time of the frozen clock: 2000-01-01T00:00:00Z.
const NOW: Duration = Duration::from_hours(24 * 365 * 30 + 24 * 7);

/// The most random bytes that one call returns.
const RANDOM_BYTES: u64 = 1 << 16;

/// The most bytes that a stream accepts at once.
const STREAM_BYTES: usize = 1 << 16;

pub(super) fn empty_world(plugin: &Digest, content: &Digest, log: &SharedRecorder) -> WasiCtx {
    let stream = |stream| CapturedStream { stream, log: log.clone() };
    let seed = |purpose| Randomness::new(purpose, plugin, content);
    WasiCtx::builder()
        .stdout(stream(Stream::Output))
        .stderr(stream(Stream::Error))
        .wall_clock(FrozenClock)
        .monotonic_clock(FrozenClock)
        // Unused: `random::Host` below replaces it in the linker.
        .secure_random(seed("unused"))
        .insecure_random(seed("insecure"))
        .insecure_random_seed(seed("seed").word())
        .max_random_size(RANDOM_BYTES)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}

/// A password drawn from a seeded source would be the same for every tenant and known to every user of the bundle.
/// `HashMap` in Rust's standard library takes its seed from `insecure-seed` instead.
impl random::Host for State {
    fn get_random_bytes(&mut self, _length: u64) -> wasmtime::Result<Vec<u8>> {
        Err(Fault::SecureRandomness.into())
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        Err(Fault::SecureRandomness.into())
    }
}

/// A clock that never advances.
struct FrozenClock;

impl HostWallClock for FrozenClock {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        NOW
    }
}

impl HostMonotonicClock for FrozenClock {
    fn resolution(&self) -> u64 {
        1_000_000_000
    }

    fn now(&self) -> u64 {
        0
    }
}

/// SHA-256 in counter mode: not secret, but the same for the same inputs regardless of the library versions of the
/// host.
struct Randomness {
    seed: [u8; 32],
    counter: u64,
}

impl Randomness {
    fn new(purpose: &str, plugin: &Digest, content: &Digest) -> Self {
        let mut hash = Sha256::new();
        for part in [purpose, plugin.as_str(), content.as_str()] {
            hash.update(part);
            hash.update(b"\n");
        }
        Self { seed: hash.finalize().into(), counter: 0 }
    }

    fn block(&mut self) -> [u8; 32] {
        let block = Sha256::new().chain_update(self.seed).chain_update(self.counter.to_le_bytes()).finalize();
        self.counter = self.counter.wrapping_add(1);
        block.into()
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(32) {
            for (to, from) in chunk.iter_mut().zip(self.block()) {
                *to = from;
            }
        }
    }

    fn word(mut self) -> u128 {
        u128::from_le_bytes(self.bytes())
    }
}

impl TryRng for Randomness {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_le_bytes(self.bytes()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_le_bytes(self.bytes()))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.fill(bytes);
        Ok(())
    }
}

/// A standard stream that writes to the call's log. It never blocks and never fails: output above the limits is
/// dropped.
#[derive(Clone)]
struct CapturedStream {
    stream: Stream,
    log: SharedRecorder,
}

impl IsTerminal for CapturedStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for CapturedStream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for CapturedStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        record(&self.log, |recorder| recorder.written(self.stream, &bytes));
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(STREAM_BYTES)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for CapturedStream {
    async fn ready(&mut self) {}
}

impl AsyncWrite for CapturedStream {
    fn poll_write(self: Pin<&mut Self>, _context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        record(&self.log, |recorder| recorder.written(self.stream, bytes));
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn randomness_depends_only_on_its_inputs() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let word = |purpose, plugin, content| Randomness::new(purpose, plugin, content).word();
        assert_eq!(word("x", &a, &b), word("x", &a, &b));
        assert_ne!(word("x", &a, &b), word("x", &b, &a));
        assert_ne!(word("x", &a, &b), word("y", &a, &b));
        let mut randomness = Randomness::new("x", &a, &b);
        assert_ne!(randomness.try_next_u64(), randomness.try_next_u64());
    }
}
