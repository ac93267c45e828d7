//! Errors that mean that no file descriptor is left.
//!
//! A process without free descriptors can open no connection, so the error looks as if the other side did not answer. The fix is on this
//! side.

use std::{error::Error, fmt, io};

use rustix::{
    io::Errno,
    process::{Resource, getrlimit},
};

use crate::causes;

/// All file descriptors are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorsExhausted {
    /// This process has as many open as it may (`EMFILE`).
    Process {
        /// The soft limit, `RLIMIT_NOFILE`. `None` if it was raised since.
        limit: Option<u64>,
    },
    /// All processes of this machine together have (`ENFILE`).
    Machine,
}

/// How the standard library reports a host name that was not resolved.
const NOT_RESOLVED: &str = "failed to lookup address information";

/// Whether the cause of an error is that no file descriptor was left.
pub fn descriptors_exhausted(error: &(dyn Error + 'static)) -> Option<DescriptorsExhausted> {
    causes(error).find_map(|cause| {
        let error = cause.downcast_ref::<io::Error>()?;
        match error.raw_os_error() {
            Some(code) => of_code(code),
            // The resolver of the C library reports a temporary failure, whatever the cause.
            None if error.to_string().starts_with(NOT_RESOLVED) => exhausted_now(),
            None => None,
        }
    })
}

/// Whether no descriptor is free now.
fn exhausted_now() -> Option<DescriptorsExhausted> {
    of_code(rustix::io::dup(io::stderr()).err()?.raw_os_error())
}

fn of_code(code: i32) -> Option<DescriptorsExhausted> {
    match Errno::from_raw_os_error(code) {
        Errno::MFILE => Some(DescriptorsExhausted::Process { limit: getrlimit(Resource::Nofile).current }),
        Errno::NFILE => Some(DescriptorsExhausted::Machine),
        _ => None,
    }
}

impl fmt::Display for DescriptorsExhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { limit } => {
                f.write_str("this process has used all of its ")?;
                if let Some(limit) = limit {
                    write!(f, "{limit} ")?;
                }
                f.write_str(
                    "file descriptors: raise its limit of open files (RLIMIT_NOFILE: `ulimit -n`, LimitNOFILE of systemd or the container \
                     runtime)",
                )
            }
            Self::Machine => f.write_str(
                "all file descriptors of this machine are in use: raise the kernel's limit (`sysctl fs.file-max`)",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_cause_is_found_however_deep_it_is() {
        let shared: Arc<dyn Error + Send + Sync> = Arc::new(io::Error::from(Errno::MFILE));
        for error in [
            io::Error::from(Errno::MFILE),
            io::Error::other(io::Error::other(io::Error::from(Errno::MFILE))),
            io::Error::other(shared),
        ] {
            let found = descriptors_exhausted(&error).unwrap().to_string();
            let limit = getrlimit(Resource::Nofile).current.unwrap();
            assert!(
                found.contains(&format!("all of its {limit} file descriptors")) && found.contains("ulimit -n"),
                "{found}"
            );
        }
        let machine = descriptors_exhausted(&io::Error::from(Errno::NFILE)).unwrap();
        assert!(machine.to_string().contains("fs.file-max"));
        for other in [io::Error::from(Errno::CONNREFUSED), io::Error::other("Too many open files")] {
            assert_eq!(descriptors_exhausted(&other), None, "{other}");
        }
    }
}
