//! Bodies that a blocking thread writes.
//!
//! A caller that stops reading would hold the thread, and the file that it reads, for ever: so each part must be taken within a time, and a
//! slow caller gives way to others. A body that is cut short ends with an error, never like a whole one.

use std::{
    io::{self, BufWriter, Write},
    sync::Arc,
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use tokio::{runtime::Handle, sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;

use crate::places::Place;

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
    place: Arc<Place>,
}

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sending = timeout(self.patience, self.send.send(Ok(Bytes::copy_from_slice(bytes))));
        let sent = self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.place.gives_way() => None,
                sent = sending => Some(sent),
            }
        });
        let Some(sent) = sent else {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the caller reads slowly, and others wait"));
        };
        match sent {
            Ok(Ok(())) => {
                self.place.moved(bytes.len());
                Ok(bytes.len())
            }
            Ok(Err(_)) => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the caller went away")),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the caller does not read")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A body that `write` produces on a blocking thread. The place is free when it has ended.
pub(crate) fn written(place: Place, write: impl FnOnce(&mut Sink) -> io::Result<()> + Send + 'static) -> Body {
    written_within(PATIENCE, place, write)
}

fn written_within(
    patience: Duration,
    place: Place,
    write: impl FnOnce(&mut Sink) -> io::Result<()> + Send + 'static,
) -> Body {
    let (send, receive) = mpsc::channel(1);
    let failed = send.clone();
    place.begin();
    let place = Arc::new(place);
    let held = Arc::clone(&place);
    let work = move |runtime: Handle| {
        let mut sink = BufWriter::with_capacity(PART_BYTES, Parts { send, runtime, patience, place });
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
    use crate::places::{Caller, Places};

    #[tokio::test]
    async fn a_body_is_whole_or_ends_with_an_error() {
        let text = vec![7_u8; 200 << 10];
        let expected = text.clone();
        let place = || Places::new(1).take(&Caller::new("ann")).unwrap();
        let body = written(place(), move |sink| sink.write_all(&text));
        assert_eq!(to_bytes(body, usize::MAX).await.unwrap(), expected);
        let body = written(place(), |sink| {
            sink.write_all(&vec![7; 100 << 10])?;
            Err(io::Error::other("the disk"))
        });
        assert!(to_bytes(body, usize::MAX).await.is_err());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_place_is_free_though_the_caller_does_not_read() {
        let (places, ann) = (Places::new(1), Caller::new("ann"));
        let place = places.take(&ann).unwrap();
        let _body = written_within(Duration::from_millis(10), place, |sink| sink.write_all(&vec![7; 1 << 20]));
        while places.take(&ann).is_err() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_slow_body_gives_way() {
        let places = Places::new(1);
        let place = places.take(&Caller::new("mallory")).unwrap();
        let body = written_within(Duration::from_hours(1), place, |sink| sink.write_all(&vec![7; 1 << 20]));
        places.age();
        let _place = places.take(&Caller::new("ann")).unwrap();
        assert!(to_bytes(body, usize::MAX).await.is_err());
    }
}
