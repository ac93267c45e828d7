//! Bodies that a blocking thread writes.
//!
//! A caller that stops reading would hold the thread, and the file that it reads, for ever: so each part must be taken within a time. A
//! body that is cut short ends with an error, never like a whole one.

use std::{
    io::{self, BufWriter, Write},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use tokio::{runtime::Handle, sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;

/// The bytes of a part.
const PART_BYTES: usize = 64 << 10;
/// How long a caller may take for a part.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a thread writes to.
pub(crate) type Sink = BufWriter<Parts>;

/// Sends parts to the connection.
pub(crate) struct Parts {
    send: mpsc::Sender<io::Result<Bytes>>,
    runtime: Handle,
    patience: Duration,
}

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sending = timeout(self.patience, self.send.send(Ok(Bytes::copy_from_slice(bytes))));
        match self.runtime.block_on(sending) {
            Ok(Ok(())) => Ok(bytes.len()),
            Ok(Err(_)) => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the caller went away")),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the caller does not read")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A body that `write` produces on a blocking thread. `held` is dropped when it has ended.
pub(crate) fn written<H: Send + 'static>(
    held: H,
    write: impl FnOnce(&mut Sink) -> io::Result<()> + Send + 'static,
) -> Body {
    written_within(PATIENCE, held, write)
}

fn written_within<H: Send + 'static>(
    patience: Duration,
    held: H,
    write: impl FnOnce(&mut Sink) -> io::Result<()> + Send + 'static,
) -> Body {
    let (send, receive) = mpsc::channel(1);
    let failed = send.clone();
    let work = move |runtime: Handle| {
        let mut sink = BufWriter::with_capacity(PART_BYTES, Parts { send, runtime, patience });
        write(&mut sink).and_then(|()| sink.flush())
    };
    tokio::spawn(async move {
        let runtime = Handle::current();
        let ended = tokio::task::spawn_blocking(move || work(runtime)).await;
        drop(held);
        if let Err(error) = ended.unwrap_or_else(|error| Err(io::Error::other(error))) {
            tracing::info!(%error, "a body of the content service was cut short");
            // Waits for the caller, who needs to see it, and holds nothing but this channel.
            let _ = failed.send(Err(error)).await;
        }
    });
    Body::from_stream(ReceiverStream::new(receive))
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[tokio::test]
    async fn a_body_is_whole_or_ends_with_an_error() {
        let text = vec![7_u8; 200 << 10];
        let expected = text.clone();
        let body = written((), move |sink| sink.write_all(&text));
        assert_eq!(to_bytes(body, usize::MAX).await.unwrap(), expected);
        let body = written((), |sink| {
            sink.write_all(&vec![7; 100 << 10])?;
            Err(io::Error::other("the disk"))
        });
        assert!(to_bytes(body, usize::MAX).await.is_err());
    }

    #[tokio::test]
    async fn what_is_held_is_released_though_the_caller_does_not_read() {
        let (held, released) = tokio::sync::oneshot::channel::<()>();
        let _body = written_within(Duration::from_millis(10), held, |sink| sink.write_all(&vec![7; 1 << 20]));
        assert!(released.await.is_err(), "dropped, not sent");
    }
}
