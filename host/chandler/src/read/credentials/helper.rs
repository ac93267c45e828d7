//! Programs that keep credentials: `docker-credential-NAME`, which docker and podman call alike.

use std::{ffi::OsString, io, path::PathBuf, process::Stdio, str::FromStr, time::Duration};

use chandler_content::{AccessError, Credentials};
use chandler_core::text::one_line;
use serde::Deserialize;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
};

/// The longest answer, in bytes.
const ANSWER_BYTES: u64 = 64 << 10;
/// How long a helper may take: some ask the user.
const TIMEOUT: Duration = Duration::from_mins(1);
/// What a helper prints that has no credentials for a registry.
const NOT_FOUND: &str = "credentials not found in native keychain";
/// The user whose secret is a token.
const TOKEN: &str = "<token>";

/// A helper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Helper {
    program: OsString,
}

/// A helper gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// There is no such program.
    #[error("{0} is not installed")]
    NotInstalled(String),
    /// It failed.
    #[error("{program}: {problem}")]
    Other {
        /// The program.
        program: String,
        /// What went wrong. Without the answer, which may hold the secret.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

impl FromStr for Helper {
    type Err = AccessError;

    /// The name becomes part of a program's name, and nothing else.
    fn from_str(name: &str) -> Result<Self, AccessError> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric();
        let is_name = name.bytes().next().is_some_and(is_word)
            && name.len() <= 64
            && name.bytes().all(|byte| is_word(byte) || matches!(byte, b'-' | b'_' | b'.'));
        if !is_name {
            let shown: String = name.chars().take(64).collect();
            return Err(AccessError::Helper(format!("{shown:?} is not the name of a credential helper")));
        }
        Ok(Self { program: format!("docker-credential-{name}").into() })
    }
}

impl Helper {
    /// The program in this file.
    #[cfg(test)]
    pub(super) fn at(path: PathBuf) -> Self {
        Self { program: path.into() }
    }

    /// The credentials for a registry, if the helper has some.
    pub(super) async fn get(&self, registry: &str) -> Result<Option<Credentials>, Failed> {
        let failed = |problem: String| Failed::Other { program: self.name(), problem };
        let answered = tokio::time::timeout(TIMEOUT, self.run(registry));
        let late = |_| failed(format!("it did not end within {} s", TIMEOUT.as_secs()));
        let (succeeded, answer) = answered.await.map_err(late)??;
        if answer.len() as u64 > ANSWER_BYTES {
            return Err(failed(format!("its answer is longer than {ANSWER_BYTES} bytes")));
        }
        if !succeeded {
            let text = String::from_utf8_lossy(&answer);
            let text = text.trim();
            if text == NOT_FOUND {
                return Ok(None);
            }
            let text: String = one_line(text).chars().take(200).collect();
            return Err(failed(format!("it failed: {text}")));
        }
        let answer: Answer =
            serde_json::from_slice(&answer).map_err(|_| failed("its answer is not credentials in JSON".to_owned()))?;
        Ok(match (answer.username, answer.secret) {
            (_, secret) if secret.is_empty() => None,
            (username, secret) if username == TOKEN => Some(Credentials::IdentityToken(secret)),
            (username, password) => Some(Credentials::Basic { username, password }),
        })
    }

    /// Whether the helper succeeded, and what it wrote, or one byte more than is allowed.
    async fn run(&self, registry: &str) -> Result<(bool, Vec<u8>), Failed> {
        let failed = |error: io::Error| Failed::Other { program: self.name(), problem: error.to_string() };
        let mut command = Command::new(&self.program);
        command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failed::NotInstalled(self.name()),
            _ => failed(error),
        })?;
        let (mut answer, stdin, stdout) = (Vec::new(), child.stdin.take(), child.stdout.take());
        if let Some(mut stdin) = stdin {
            match stdin.write_all(format!("{registry}\n").as_bytes()).await {
                // It knows the answer without the question.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                written => written.map_err(failed)?,
            }
        }
        if let Some(stdout) = stdout {
            let limit = ANSWER_BYTES.saturating_add(1);
            stdout.take(limit).read_to_end(&mut answer).await.map_err(failed)?;
        }
        if answer.len() as u64 > ANSWER_BYTES {
            return Ok((false, answer));
        }
        Ok((child.wait().await.map_err(failed)?.success(), answer))
    }

    fn name(&self) -> String {
        PathBuf::from(&self.program).file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}
