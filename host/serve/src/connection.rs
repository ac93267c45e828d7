//! The connections of the HTTPS servers: a limited number, which end when they are idle, and a limited number of new ones in a second.
//!
//! A connection takes its place before the TLS handshake, and costs memory from then on. All this is before anything is known of the caller.

use std::{
    future::{Future as _, Ready, ready},
    io,
    pin::Pin,
    task::{Context, Poll, ready as is_ready},
    time::Duration,
};

use axum_server::accept::Accept;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep},
};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::{
    rates::{Rated, Rates},
    shares::{Share, Shares, Source},
};

/// Gives connections their places.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    shares: Shares<Source>,
    handshakes: Rated<Source>,
    idle: Duration,
}

impl Places {
    /// So many places, and so many new connections in a second. A connection on which nothing is transferred for `idle` ends.
    pub(crate) fn new(most: usize, handshakes: Rates, idle: Duration) -> Self {
        Self { shares: Shares::new(most, most), handshakes: Rated::new(handshakes), idle }
    }
}

impl<S> Accept<TcpStream, S> for Places {
    type Stream = Connection<TcpStream>;
    type Service = S;
    type Future = Ready<io::Result<(Self::Stream, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let accepted = stream.peer_addr().and_then(|address| {
            let source = Source::of(address.ip());
            // Ends before the handshake, and before another connection gives way.
            if !self.handshakes.take(source) {
                tracing::debug!(
                    "a connection is refused: its source or all sources had enough handshakes in the last second"
                );
                return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "too many TLS handshakes"));
            }
            let place = self.shares.take(source);
            Ok((Connection::new(stream, place, self.idle), service))
        });
        ready(accepted)
    }
}

/// A connection with its place. When it gives way or was idle for too long, it fails.
pub(crate) struct Connection<T> {
    stream: T,
    place: Share<Source>,
    gives_way: Pin<Box<WaitForCancellationFutureOwned>>,
    idle: Duration,
    timer: Pin<Box<Sleep>>,
    /// When bytes were last transferred.
    last: Instant,
}

impl<T> Connection<T> {
    fn new(stream: T, place: Share<Source>, idle: Duration) -> Self {
        let gives_way = Box::pin(place.gives_way());
        Self { stream, place, gives_way, idle, timer: Box::pin(sleep(idle)), last: Instant::now() }
    }

    /// Fails if the connection has to end. Otherwise, the task is woken when it has to.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.gives_way.as_mut().poll(cx).is_ready() {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the connection gave way to another one"));
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            let due = self.last + self.idle;
            if due <= Instant::now() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the connection was idle for too long"));
            }
            self.timer.as_mut().reset(due);
        }
        Ok(())
    }

    fn used(&mut self) {
        self.last = Instant::now();
        self.place.used();
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Connection<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        let before = buffer.filled().len();
        let read = is_ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        if buffer.filled().len() > before {
            self.used();
        }
        Poll::Ready(read)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Connection<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        let written = is_ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        if written.as_ref().is_ok_and(|written| *written > 0) {
            self.used();
        }
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        let written = is_ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, parts));
        if written.as_ref().is_ok_and(|written| *written > 0) {
            self.used();
        }
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    fn place(places: &Shares<Source>) -> Share<Source> {
        places.take(Source::of(Ipv4Addr::LOCALHOST.into()))
    }

    #[tokio::test]
    async fn a_connection_fails_when_it_gives_way_though_it_waits_for_bytes() {
        let places = Shares::new(1, 1);
        let (_caller, stream) = duplex(64);
        let mut connection = Connection::new(stream, place(&places), Duration::from_hours(1));
        let waiting = tokio::spawn(async move { (connection.read_u8().await, connection.write_u8(1).await) });
        tokio::task::yield_now().await;
        let _newcomer = place(&places);
        let (read, written) = waiting.await.unwrap();
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    }

    #[tokio::test]
    async fn a_connection_on_which_nothing_is_transferred_ends() {
        let places = Shares::new(1, 1);
        let (mut caller, stream) = duplex(64);
        let mut connection = Connection::new(stream, place(&places), Duration::from_millis(20));
        caller.write_all(b"a").await.unwrap();
        assert_eq!(connection.read_u8().await.unwrap(), b'a');
        assert_eq!(connection.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // A caller that does not read is idle, too.
        let (_caller, stream) = duplex(4);
        let mut connection = Connection::new(stream, place(&places), Duration::from_millis(20));
        let written = connection.write_all(b"more than four").await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
