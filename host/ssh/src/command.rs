//! A command on a server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use russh::{
    Channel, ChannelMsg, SshId,
    client::{self, AuthResult, Handle, Msg},
    keys::{HashAlg, PrivateKeyWithHashAlg},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    Identity, Known, SshError,
    bounded::Bounded,
    host_keys::{Checks, Ended, Failure, preferred},
};

/// How much of the standard error of a command is kept, and how much it may be, in bytes.
const STANDARD_ERROR_KEPT: usize = 4 << 10;
const STANDARD_ERROR: usize = 256 << 10;
/// The type of extended data that is standard error (RFC 4254, section 5.2).
const EXTENDED_STANDARD_ERROR: u32 = 1;
/// The messages of a channel that wait for a reader; each is a packet of 32 KiB at most from an honest server.
const WAITING: usize = 16;

/// A connection, and its limits.
#[derive(Clone, Debug)]
pub struct Options {
    /// The host keys of the server.
    pub known: Known,
    /// The user.
    pub user: String,
    /// The key of the user.
    pub identity: Identity,
    /// How long it may take until the command runs.
    pub begin_timeout: Duration,
    /// The longest time without output of the command.
    pub idle_timeout: Duration,
    /// The most bytes that the server sends, including the protocol.
    pub bytes: u64,
}

/// A command that runs on a server. The connection is closed when it is dropped.
pub struct Command {
    channel: Channel<Msg>,
    limits: Limits,
    standard_error: Vec<u8>,
    standard_error_bytes: usize,
    has_ended: bool,
    _handle: Handle<Checks>,
    _close: DropGuard,
}

struct Limits {
    idle_timeout: Duration,
    is_exceeded: Arc<AtomicBool>,
    ended: Ended,
}

/// What a command prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Bytes of its standard output.
    Bytes(Bytes),
    /// Its standard output ended.
    End,
}

impl Command {
    /// Runs a command with variables of its environment, which many servers ignore. A shell of the server reads the command: the
    /// caller quotes its arguments.
    ///
    /// # Errors
    /// The host key is not trusted, the server does not accept the user or does not run the command, it is too slow, or the
    /// connection breaks.
    pub async fn run(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        options: Options,
        command: &str,
        environment: &[(&str, &str)],
    ) -> Result<Self, SshError> {
        let begin_timeout = options.begin_timeout;
        let begun = timeout(begin_timeout, Box::pin(begin(stream, options, command, environment))).await;
        begun.unwrap_or(Err(SshError::TimedOut))
    }

    /// Writes to the standard input of the command.
    ///
    /// # Errors
    /// The connection broke, or the server does not read.
    pub async fn write(&mut self, bytes: Vec<u8>) -> Result<(), SshError> {
        match timeout(self.limits.idle_timeout, self.channel.data_bytes(bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.limits.reason(SshError::Closed)),
            Err(_) => Err(SshError::TimedOut),
        }
    }

    /// The next piece of the standard output.
    ///
    /// # Errors
    /// The connection broke, the server sends nothing for too long, or too much.
    pub async fn read(&mut self) -> Result<Output, SshError> {
        // Standard error does not extend the timeout: it is not an answer.
        timeout(self.limits.idle_timeout, self.next()).await.unwrap_or(Err(SshError::TimedOut))
    }

    async fn next(&mut self) -> Result<Output, SshError> {
        while !self.has_ended {
            match self.channel.wait().await {
                Some(ChannelMsg::Data { data }) if data.is_empty() => {}
                Some(ChannelMsg::Data { data }) => return Ok(Output::Bytes(data)),
                Some(ChannelMsg::ExtendedData { data, ext: EXTENDED_STANDARD_ERROR }) => self.keep(&data)?,
                Some(ChannelMsg::Eof | ChannelMsg::Close) => self.has_ended = true,
                Some(_) => {}
                None => return Err(self.limits.reason(SshError::Closed)),
            }
        }
        Ok(Output::End)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), SshError> {
        self.standard_error_bytes = self.standard_error_bytes.saturating_add(bytes.len());
        let room = STANDARD_ERROR_KEPT.saturating_sub(self.standard_error.len());
        self.standard_error.extend(bytes.iter().take(room));
        if self.standard_error_bytes > STANDARD_ERROR { Err(SshError::TooMuch) } else { Ok(()) }
    }

    /// The beginning of its standard error, complete once the command ended. Servers say there why it failed.
    pub async fn into_standard_error(mut self) -> Vec<u8> {
        // Standard error may arrive after the end of standard output.
        let most = self.limits.idle_timeout;
        let _ = timeout(most, self.rest()).await;
        self.standard_error
    }

    async fn rest(&mut self) -> Result<(), SshError> {
        loop {
            match self.channel.wait().await {
                Some(ChannelMsg::ExtendedData { data, ext: EXTENDED_STANDARD_ERROR }) => self.keep(&data)?,
                Some(ChannelMsg::Close) | None => return Ok(()),
                Some(_) => {}
            }
        }
    }
}

impl Limits {
    /// Why the connection ended, as far as that is known.
    fn reason(&self, otherwise: SshError) -> SshError {
        if self.is_exceeded.load(Ordering::Relaxed) {
            return SshError::TooMuch;
        }
        self.ended.lock().take().unwrap_or(otherwise)
    }
}

async fn begin(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    options: Options,
    command: &str,
    environment: &[(&str, &str)],
) -> Result<Command, SshError> {
    let Options { known, user, identity, begin_timeout, idle_timeout, bytes } = options;
    let (name, config) = (known.name().to_owned(), config(&known, begin_timeout.max(idle_timeout)));
    let done = CancellationToken::new();
    let close = done.clone().drop_guard();
    let (reader, writer) = tokio::io::split(stream);
    let reader = Bounded::new(reader, bytes, done.cancelled_owned());
    let limits = Limits { idle_timeout, is_exceeded: reader.is_exceeded(), ended: Ended::default() };
    let checks = Checks { known, user: user.clone(), ended: Arc::clone(&limits.ended) };
    let failed = |error: Failure| match error.named(&name, &user) {
        SshError::Closed => limits.reason(SshError::Closed),
        error => error,
    };
    let library = |error: russh::Error| failed(error.into());
    let stream = tokio::io::join(reader, writer);
    let mut handle = client::connect_stream(Arc::new(config), stream, checks).await.map_err(failed)?;
    authenticate(&mut handle, &user, &identity, &limits).await?;
    let mut channel = handle.channel_open_session().await.map_err(library)?;
    for (variable, value) in environment {
        channel.set_env(false, *variable, *value).await.map_err(library)?;
    }
    channel.exec(true, command).await.map_err(library)?;
    loop {
        match channel.wait().await {
            Some(ChannelMsg::Success) => break,
            Some(ChannelMsg::WindowAdjusted { .. } | ChannelMsg::Open { .. }) => {}
            Some(_) => return Err(SshError::NoCommand { user }),
            None => return Err(limits.reason(SshError::Closed)),
        }
    }
    Ok(Command {
        channel,
        limits,
        standard_error: Vec::new(),
        standard_error_bytes: 0,
        has_ended: false,
        _handle: handle,
        _close: close,
    })
}

fn config(known: &Known, inactivity: Duration) -> client::Config {
    client::Config {
        client_id: SshId::Standard(concat!("SSH-2.0-chandler_", env!("CARGO_PKG_VERSION")).into()),
        preferred: preferred(known),
        channel_buffer_size: WAITING,
        inactivity_timeout: Some(inactivity),
        nodelay: true,
        ..client::Config::default()
    }
}

/// Proves to the server that the client has the key of the user.
async fn authenticate(
    handle: &mut Handle<Checks>,
    user: &str,
    identity: &Identity,
    limits: &Limits,
) -> Result<(), SshError> {
    let hash = if identity.is_rsa() { rsa_hash(handle).await? } else { None };
    let key = PrivateKeyWithHashAlg::new(identity.key(), hash);
    let denied = || SshError::Denied { user: user.to_owned() };
    match handle.authenticate_publickey(user, key).await {
        Ok(AuthResult::Success) => Ok(()),
        Ok(AuthResult::Failure { remaining_methods, .. }) if !remaining_methods.is_empty() => Err(denied()),
        // The library answers so too if the connection ended.
        Ok(AuthResult::Failure { .. }) => {
            let _ = handle.await;
            Err(limits.reason(denied()))
        }
        Err(_) => Err(limits.reason(SshError::Closed)),
    }
}

/// The hash for signatures of an RSA key; SHA-512 if the server does not say which it accepts (RFC 8332).
async fn rsa_hash(handle: &Handle<Checks>) -> Result<Option<HashAlg>, SshError> {
    match handle.best_supported_rsa_hash().await {
        Ok(Some(Some(hash))) => Ok(Some(hash)),
        Ok(Some(None)) => Err(SshError::Sha1),
        Ok(None) | Err(_) => Ok(Some(HashAlg::Sha512)),
    }
}
