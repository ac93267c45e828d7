//! Copies the bytes of a connection in both directions.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split},
    time::timeout,
};

use crate::shares::{Share, Source};

/// The bytes that are read at once.
const BUFFER: usize = 8 << 10;

/// Passes bytes on in both directions until the server has sent its last one, or an end does not take its bytes within `stall`. A caller may
/// end its half before that.
///
/// # Errors
/// An end is gone, or does not take its bytes.
pub(super) async fn copied<C, S>(place: &Share<Source>, stall: Duration, caller: C, server: S) -> io::Result<()>
where
    C: AsyncRead + AsyncWrite,
    S: AsyncRead + AsyncWrite,
{
    let (mut from_caller, mut to_caller) = split(caller);
    let (mut from_server, mut to_server) = split(server);
    let requests = async {
        copy(place, stall, &mut from_caller, &mut to_server).await?;
        std::future::pending::<io::Result<()>>().await
    };
    tokio::select! {
        answered = copy(place, stall, &mut from_server, &mut to_caller) => answered,
        failed = requests => failed,
    }
}

/// Copies until the reader ends, and then ends the writer.
async fn copy(
    place: &Share<Source>,
    stall: Duration,
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = reader.read(&mut buffer).await?;
        place.used();
        if read == 0 {
            return timeout(stall, writer.shutdown()).await?;
        }
        timeout(stall, writer.write_all(buffer.get(..read).unwrap_or_default())).await??;
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures::FutureExt as _;
    use tokio::io::duplex;

    use super::*;
    use crate::shares::Shares;

    const STALL: Duration = Duration::from_millis(10);

    fn source() -> Source {
        Source::of(Ipv4Addr::LOCALHOST.into())
    }

    #[tokio::test]
    async fn a_connection_that_is_used_keeps_its_place() {
        let places = Shares::new(2, 2);
        let (first, second) = (places.take(source()), places.take(source()));
        let (mut caller, relayed) = duplex(64);
        let (upstream, mut leader) = duplex(64);
        caller.write_all(b"a").await.unwrap();
        {
            let mut passing = std::pin::pin!(copied(&first, STALL, relayed, upstream));
            assert!((&mut passing).now_or_never().is_none());
        }
        assert_eq!(leader.read_u8().await.unwrap(), b'a');
        let _third = places.take(source());
        assert!(second.gives_way().now_or_never().is_some() && first.gives_way().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_connection_ends_when_the_server_ends_or_the_caller_does_not_read() {
        let place = Shares::new(2, 2).take(source());
        // The caller neither reads nor ends: the first bytes fit, and the rest does not.
        let (_caller, relayed) = duplex(4);
        let (upstream, mut leader) = duplex(64);
        leader.write_all(b"more than four").await.unwrap();
        let ended = copied(&place, STALL, relayed, upstream).await;
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // The server ends, and the caller stays.
        let (mut caller, relayed) = duplex(64);
        let (upstream, mut leader) = duplex(64);
        leader.write_all(b"bye").await.unwrap();
        drop(leader);
        copied(&place, STALL, relayed, upstream).await.unwrap();
        let mut answer = String::new();
        caller.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "bye");
    }
}
