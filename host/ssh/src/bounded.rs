//! The bytes that a server sends.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::WaitForCancellationFutureOwned;

/// Ends after a number of bytes, so that the library's buffers for a connection are limited, and when it is no longer needed.
pub(crate) struct Bounded<R> {
    reader: R,
    left: u64,
    is_exceeded: Arc<AtomicBool>,
    done: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<R> Bounded<R> {
    pub(crate) fn new(reader: R, most: u64, done: WaitForCancellationFutureOwned) -> Self {
        Self { reader, left: most, is_exceeded: Arc::default(), done: Box::pin(done) }
    }

    /// Whether it ended since there were too many bytes.
    pub(crate) fn is_exceeded(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_exceeded)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.done.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        if self.left == 0 {
            self.is_exceeded.store(true, Ordering::Relaxed);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.reader).poll_read(cx, buffer);
        let read_now = buffer.filled().len().saturating_sub(before) as u64;
        self.left = self.left.saturating_sub(read_now);
        read
    }
}
