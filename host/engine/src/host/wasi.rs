//! WASI 0.2 as an empty world, for components whose toolchain brings imports along: no arguments, environment, directories
//! or network, standard input at its end, output into the call's log, a clock that stands still, and insecure randomness that
//! is a function of the provisioner and the content. Secure randomness traps: what is a function of public bytes is no secret.

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

/// The time that the clock shows: 2000-01-01T00:00:00Z.
const NOW: Duration = Duration::from_hours(24 * 365 * 30 + 24 * 7);

/// The most random bytes that one call returns.
const RANDOM_BYTES: u64 = 1 << 16;

/// The most bytes that a stream takes at once.
const STREAM_BYTES: usize = 1 << 16;

pub(super) fn empty_world(plugin: &Digest, content: &Digest, log: &SharedRecorder) -> WasiCtx {
    let stream = |stream| Capture { stream, log: log.clone() };
    let seed = |purpose| Randomness::new(purpose, plugin, content);
    WasiCtx::builder()
        .stdout(stream(Stream::Output))
        .stderr(stream(Stream::Error))
        .wall_clock(Frozen)
        .monotonic_clock(Frozen)
        // Nothing reaches it: `random::Host` below is what is linked.
        .secure_random(seed("unused"))
        .insecure_random(seed("insecure"))
        .insecure_random_seed(seed("seed").word())
        .max_random_size(RANDOM_BYTES)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}

/// A password that a provisioner drew from a seeded source would be the same for every tenant, and known to whoever has the
/// bundle. `HashMap` of Rust's standard library takes its seed from `insecure-seed`.
impl random::Host for State {
    fn get_random_bytes(&mut self, _length: u64) -> wasmtime::Result<Vec<u8>> {
        Err(Fault::SecureRandomness.into())
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        Err(Fault::SecureRandomness.into())
    }
}

/// A clock that stands still.
struct Frozen;

impl HostWallClock for Frozen {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        NOW
    }
}

impl HostMonotonicClock for Frozen {
    fn resolution(&self) -> u64 {
        1_000_000_000
    }

    fn now(&self) -> u64 {
        0
    }
}

/// SHA-256 in counter mode: not a secret, but the same for the same inputs whatever versions of libraries the host is built
/// with.
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

/// A standard stream that ends in the call's log. It never blocks and never fails: what is above the limits is dropped.
#[derive(Clone)]
struct Capture {
    stream: Stream,
    log: SharedRecorder,
}

impl IsTerminal for Capture {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Capture {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for Capture {
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
impl Pollable for Capture {
    async fn ready(&mut self) {}
}

impl AsyncWrite for Capture {
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
    fn randomness_depends_on_its_inputs_alone() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let word = |purpose, plugin, content| Randomness::new(purpose, plugin, content).word();
        assert_eq!(word("x", &a, &b), word("x", &a, &b));
        assert_ne!(word("x", &a, &b), word("x", &b, &a));
        assert_ne!(word("x", &a, &b), word("y", &a, &b));
        let mut randomness = Randomness::new("x", &a, &b);
        assert_ne!(randomness.try_next_u64(), randomness.try_next_u64());
    }
}
