//! Servers that mean harm, or are others than the client takes them for.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chandler_ssh::{Command, HostKeyError, Identity, KnownHosts, Options, Output, SshError};
use russh::{
    Channel, ChannelId, MethodKind, MethodSet,
    keys::{
        PrivateKey,
        ssh_key::{LineEnding, private::Ed25519Keypair},
    },
    server::{self, Auth, ChannelOpenHandle, Msg, Session, VerifiedPublicKey},
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

const LONG: Duration = Duration::from_mins(1);
const SHORT: Duration = Duration::from_millis(300);

fn key(seed: u8) -> PrivateKey {
    PrivateKey::from(Ed25519Keypair::from_seed(&[seed; 32]))
}

fn options(file: &str, begin: Duration, idle: Duration) -> Options {
    let known: KnownHosts = file.parse().unwrap();
    Options {
        known: known.of("h", 22).unwrap(),
        user: "git".to_owned(),
        identity: Identity::parse(&key(1).to_openssh(LineEnding::LF).unwrap()).unwrap(),
        begin_timeout: begin,
        idle_timeout: idle,
        bytes: 10 << 20,
    }
}

/// The known hosts with the host key of [`serve`].
fn known() -> String {
    format!("h {}", key(2).public_key().to_openssh().unwrap())
}

/// What a server does once it runs a command.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Conduct {
    Honest,
    Silent,
    RefusesUser,
    RefusesCommand,
    FloodsError,
    FloodsOutput,
    Drops,
}

struct Server {
    conduct: Conduct,
    asked: Arc<AtomicUsize>,
}

impl server::Handler for Server {
    type Error = russh::Error;

    async fn auth_publickey(&mut self, _: &str, _: VerifiedPublicKey<'_>) -> Result<Auth, russh::Error> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let proceed_with_methods = Some(MethodSet::from(&[MethodKind::PublicKey][..]));
        Ok(match self.conduct {
            Conduct::RefusesUser => Auth::Reject { proceed_with_methods, partial_success: false },
            _ => Auth::Accept,
        })
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        reply.accept().await;
        Ok(())
    }

    async fn exec_request(&mut self, id: ChannelId, _: &[u8], session: &mut Session) -> Result<(), russh::Error> {
        if self.conduct == Conduct::RefusesCommand {
            return session.channel_failure(id);
        }
        session.channel_success(id)?;
        let (handle, conduct) = (session.handle(), self.conduct);
        tokio::spawn(async move {
            match conduct {
                Conduct::Honest => {
                    let _ = handle.extended_data(id, 1, "a warning").await;
                    let _ = handle.data(id, "output").await;
                    let _ = handle.eof(id).await;
                    let _ = handle.close(id).await;
                }
                Conduct::FloodsError => while handle.extended_data(id, 1, vec![b'x'; 10_000]).await.is_ok() {},
                Conduct::FloodsOutput => while handle.data(id, vec![b'x'; 10_000]).await.is_ok() {},
                Conduct::Drops => {
                    let _ = handle.data(id, "out").await;
                    let _ = handle.disconnect(russh::Disconnect::ByApplication, "bye".to_owned(), String::new()).await;
                }
                _ => {}
            }
        });
        Ok(())
    }
}

/// A server with this conduct, and how often it was asked to accept a user.
fn serve(conduct: Conduct) -> (DuplexStream, Arc<AtomicUsize>) {
    let (here, there) = tokio::io::duplex(64 << 10);
    let config = server::Config {
        keys: vec![key(2)],
        auth_rejection_time: Duration::ZERO,
        auth_rejection_time_initial: Some(Duration::ZERO),
        ..server::Config::default()
    };
    let asked = Arc::<AtomicUsize>::default();
    let server = Server { conduct, asked: Arc::clone(&asked) };
    tokio::spawn(async move {
        // A client that does not like it goes away.
        if let Ok(session) = server::run_stream(Arc::new(config), there, server).await {
            let _ = session.await;
        }
    });
    (here, asked)
}

/// What a command prints until its end, and on standard error.
async fn output(conduct: Conduct, options: Options) -> Result<(Vec<u8>, Vec<u8>), SshError> {
    let mut command = Command::run(serve(conduct).0, options, "x", &[("A", "b")]).await?;
    let mut printed = Vec::new();
    while let Output::Bytes(bytes) = command.read().await? {
        printed.extend_from_slice(&bytes);
    }
    Ok((printed, command.into_standard_error().await))
}

#[tokio::test]
async fn an_honest_server_runs_the_command() {
    let printed = output(Conduct::Honest, options(&known(), LONG, LONG)).await;
    assert_eq!(printed, Ok((b"output".to_vec(), b"a warning".to_vec())));
}

#[tokio::test]
async fn a_server_is_believed_only_with_its_host_key() {
    let file = |seed: u8| format!("h {}", key(seed).public_key().to_openssh().unwrap());
    let changed =
        |error: &SshError| matches!(error, SshError::HostKey(HostKeyError::Changed { name, .. }) if name == "h");
    let revoked = |error: &SshError| *error == SshError::HostKey(HostKeyError::Revoked(2));
    let no_type = |error: &SshError| *error == SshError::HostKey(HostKeyError::Type("h".to_owned()));
    let ecdsa = "h ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAA";
    let revoking = format!("{}\n@revoked {}", file(2), file(2));
    let changed: &dyn Fn(&SshError) -> bool = &changed;
    for (file, expected) in [(file(3), changed), (revoking, &revoked), (ecdsa.to_owned(), &no_type)] {
        let (stream, asked) = serve(Conduct::Honest);
        let error = Command::run(stream, options(&file, LONG, LONG), "x", &[]).await.err().unwrap();
        assert!(expected(&error), "{file}: {error}");
        assert_eq!(asked.load(Ordering::Relaxed), 0, "no key of a user is shown to it");
    }
}

#[tokio::test]
async fn failures_have_their_own_errors() {
    let user = "git".to_owned();
    for (conduct, idle, expected) in [
        (Conduct::RefusesUser, LONG, SshError::Denied { user: user.clone() }),
        (Conduct::RefusesCommand, LONG, SshError::NoCommand { user }),
        (Conduct::Silent, SHORT, SshError::TimedOut),
        (Conduct::FloodsError, LONG, SshError::TooMuch),
        (Conduct::FloodsOutput, LONG, SshError::TooMuch),
        (Conduct::Drops, LONG, SshError::Closed),
    ] {
        assert_eq!(output(conduct, options(&known(), LONG, idle)).await, Err(expected), "{conduct:?}");
    }
}

#[tokio::test]
async fn what_is_no_ssh_server_is_left_in_time() {
    let run = async |stream: DuplexStream| Command::run(stream, options(&known(), SHORT, SHORT), "x", &[]).await.err();
    let (here, _there) = tokio::io::duplex(1024);
    assert_eq!(run(here).await, Some(SshError::TimedOut), "one that never answers");

    let (here, there) = tokio::io::duplex(1024);
    drop(there);
    assert_eq!(run(here).await, Some(SshError::Closed), "one that closes the connection");

    for endless in [&b"x"[..], b"welcome\r\n", b"SSH-2.0-\x00\xff", b"\xff\xff\xff\xff"] {
        let (here, mut there) = tokio::io::duplex(1024);
        let writes = tokio::spawn(async move { while there.write_all(endless).await.is_ok() {} });
        let error = run(here).await.unwrap();
        assert!(matches!(error, SshError::Protocol(_) | SshError::Closed), "{endless:?}: {error}");
        // The connection is closed.
        writes.await.unwrap();
    }

    let (here, mut there) = tokio::io::duplex(1024);
    let old = tokio::spawn(async move {
        there.write_all(b"SSH-1.5-OpenSSH_1.0\n").await.unwrap();
        let mut read = Vec::new();
        let _ = there.read_to_end(&mut read).await;
    });
    assert!(matches!(run(here).await, Some(SshError::Protocol(_) | SshError::TimedOut)), "version 1");
    old.await.unwrap();

    // A packet of 4 GiB.
    let (here, mut there) = tokio::io::duplex(1024);
    let large = tokio::spawn(async move {
        there.write_all(b"SSH-2.0-x\r\n\xff\xff\xff\xff").await.unwrap();
        let mut read = Vec::new();
        let _ = there.read_to_end(&mut read).await;
    });
    assert_eq!(run(here).await, Some(SshError::Protocol("violates the SSH protocol")));
    large.await.unwrap();
}
