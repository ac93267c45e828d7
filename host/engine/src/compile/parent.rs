//! Starts the compiler process and interprets its exit status.

use std::{ffi::OsString, os::unix::process::ExitStatusExt as _, path::PathBuf, process::ExitStatus, process::Stdio};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
    time::timeout,
};

use super::child::{OUT_OF_MEMORY, REFUSED};
use crate::{CompileError, CompileLimits, text::sanitize};

/// How many bytes of the compiler's standard error are read.
const MESSAGE_BYTES: u64 = 4096;

/// How many of those bytes the message about a crashed compiler shows.
const SHOWN_BYTES: usize = 1024;

/// The number of compiler threads.
const THREADS: &str = "4";

/// Signals that identify a cause.
const SIGABRT: i32 = 6;
const SIGXCPU: i32 = 24;

pub(super) async fn run(
    program: PathBuf,
    arguments: Vec<OsString>,
    limits: CompileLimits,
    wasm: Vec<u8>,
) -> Result<Vec<u8>, CompileError> {
    let unavailable = |error: std::io::Error| CompileError::Unavailable(format!("{}: {error}", program.display()));
    let mut child = Command::new(&program)
        .args(&arguments)
        .arg(limits.memory.to_string())
        .arg(limits.cpu_time.as_secs().max(1).to_string())
        .env_clear()
        // Bounds the number of threads and thus the address space, which is limited.
        .env("RAYON_NUM_THREADS", THREADS)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(unavailable)?;
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(CompileError::Unavailable(format!("{}: it has no pipes", program.display())));
    };
    let feed = async move {
        // A child that exits early breaks the pipe; its exit status is the better error.
        let _ = stdin.write_all(&wasm).await;
        drop(stdin);
    };
    let work = async {
        let code_limit = limits.code_bytes.saturating_add(1);
        let ((), code, message) = tokio::join!(feed, collect(stdout, code_limit), collect(stderr, MESSAGE_BYTES));
        let (code, message) = (code.map_err(unavailable)?, message.map_err(unavailable)?);
        if code.len() as u64 > limits.code_bytes {
            return Err(CompileError::TooMuchCode(limits.code_bytes));
        }
        let status = child.wait().await.map_err(unavailable)?;
        check_status(status, &String::from_utf8_lossy(&message), &limits).map(|()| code)
    };
    // Dropping the child kills it.
    timeout(limits.time, work).await.unwrap_or(Err(CompileError::Timeout(limits.time)))
}

/// Reads at most `limit` bytes, then closes the pipe.
async fn collect(pipe: impl AsyncRead + Unpin, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(limit).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// The exit status with the child's message on one line; of a panic only the location and the text.
fn with_message(end: String, message: &str) -> String {
    let said = message.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("note: "));
    let said = said.collect::<Vec<_>>().join(" ");
    // Thread numbers differ in every run.
    let said = said.split_once(" panicked at ").map_or(said.clone(), |(_, panic)| format!("panicked at {panic}"));
    if said.is_empty() { end } else { format!("{end}: {}", sanitize(said, SHOWN_BYTES)) }
}

fn check_status(status: ExitStatus, message: &str, limits: &CompileLimits) -> Result<(), CompileError> {
    let message = message.trim();
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) if code == i32::from(REFUSED) => Err(CompileError::Refused(sanitize(message.to_owned(), 2048))),
        (Some(code), _) if code == i32::from(OUT_OF_MEMORY) => Err(CompileError::OutOfMemory(limits.memory)),
        (Some(code), _) => Err(CompileError::Crashed(with_message(format!("exit code {code}"), message))),
        (_, Some(SIGXCPU)) => Err(CompileError::CpuTime(limits.cpu_time)),
        // The standard library aborts in two cases: out of memory and stack overflow. Its message distinguishes them,
        // but several threads may write at once, so only the rarer text is searched for.
        (_, Some(SIGABRT)) if !message.contains("overflowed its stack") => {
            Err(CompileError::OutOfMemory(limits.memory))
        }
        (_, Some(signal)) => Err(CompileError::Crashed(with_message(format!("signal {signal}"), message))),
        (None, None) => Err(CompileError::Crashed("an unknown status".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_shows_the_message_of_a_crashed_compiler() {
        let checked = |raw: i32, message: &str| {
            check_status(ExitStatus::from_raw(raw), message, &CompileLimits::default()).unwrap_err().to_string()
        };
        let panic = "\nthread 'main' (261) panicked at trans.rs:7:\nonly one \u{1b}[1mmemory\nnote: run with `RUST_BACKTRACE=1`\n";
        let text = checked(101 << 8, panic);
        assert_eq!(text, "the compiler ended with exit code 101: panicked at trans.rs:7: only one \\u{001B}[1mmemory");
        assert_eq!(checked(101 << 8, ""), "the compiler ended with exit code 101");
        assert_eq!(checked(11, "x"), "the compiler ended with signal 11: x");
        assert!(checked(101 << 8, &"x".repeat(100_000)).len() < 1200);
        let overflow = "thread 'main' has overflowed its stack";
        assert_eq!(checked(6, overflow), format!("the compiler ended with signal 6: {overflow}"));
    }
}
