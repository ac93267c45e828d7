//! How the API server of `chandler dev` is to be: where it listens, where it keeps its state.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use chandler_devcluster::{StartError, store::OpenError};

use crate::{CommandError, file};

/// The longest token that is read, in bytes.
const TOKEN_LIMIT: u64 = 4096;

/// Where the API server listens and what it keeps.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "API server")]
pub struct ClusterArguments {
    /// Keep its state in this directory, and go on with what is there
    ///
    /// Objects, keys, certificates, the token and the port are the same after a restart; the kubeconfig is written there, too.
    /// The directory holds secrets and is for its owner only. One process at a time can use it.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,

    /// Where to listen: an address, or an address and a port
    ///
    /// Anything but a loopback address needs --token-file. Port 0 is any free one, with --data that of the last time.
    #[arg(long, value_name = "ADDRESS[:PORT]", default_value = "127.0.0.1:0", value_parser = address)]
    pub bind: SocketAddr,

    /// A file that holds the administrator's bearer token [default: a random one]
    ///
    /// Nobody but you may be able to write it (`chmod 600 FILE`), nor to replace it in its directory.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

impl Default for ClusterArguments {
    fn default() -> Self {
        Self { data: None, bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), token_file: None }
    }
}

impl ClusterArguments {
    /// What they mean to the API server.
    pub fn options(&self) -> Result<chandler_devcluster::Options, CommandError> {
        if !self.bind.ip().is_loopback() && self.token_file.is_none() {
            return Err(CommandError::usage(format!("{} can be reached by others", self.bind.ip()))
                .hint("--token-file chooses the token that they need"));
        }
        Ok(chandler_devcluster::Options {
            bind: self.bind,
            token: self.token_file.as_deref().map(token).transpose()?,
            data: self.data.clone(),
            ..chandler_devcluster::Options::default()
        })
    }
}

/// An address with or without a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let with_any_port = |address: IpAddr| SocketAddr::new(address, 0);
    text.parse()
        .or_else(|_| text.parse().map(with_any_port))
        .map_err(|_| format!("{text:?} is not an address: write `127.0.0.1`, `127.0.0.1:6443` or `[::1]:6443`"))
}

fn token(path: &Path) -> Result<String, CommandError> {
    let bytes = file::read_token(path, TOKEN_LIMIT)?;
    let token = std::str::from_utf8(&bytes).unwrap_or_default().trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CommandError::usage(format!("{} holds no token", path.display()))
            .hint("a token is one word of visible ASCII characters, e.g. from `openssl rand -hex 32`"));
    }
    Ok(token.to_owned())
}

/// Says why the API server did not start: what the user can change is wrong usage.
pub fn not_started(error: &StartError) -> CommandError {
    match error {
        StartError::NotLoopback(_) | StartError::Token => CommandError::usage(error.to_string()),
        StartError::Data(error) => unusable(error),
        error => CommandError::failed("failed to start the API server").because(error),
    }
}

/// Says why the kept state cannot be used.
pub fn unusable(error: &OpenError) -> CommandError {
    CommandError::failed("failed to open the kept state").because(error)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn addresses_come_with_and_without_a_port() {
        for (text, expected) in
            [("127.0.0.1", "127.0.0.1:0"), ("0.0.0.0:6443", "0.0.0.0:6443"), ("::1", "[::1]:0"), ("[::1]:1", "[::1]:1")]
        {
            assert_eq!(address(text).unwrap().to_string(), expected);
        }
        for text in ["", "localhost", "127.0.0.1:", ":6443", "127.0.0.1:70000"] {
            assert!(address(text).unwrap_err().contains("is not an address"), "{text}");
        }
    }

    #[test]
    fn who_can_be_reached_by_others_needs_a_token() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = ClusterArguments { bind: ([0, 0, 0, 0], 0).into(), ..ClusterArguments::default() };
        assert!(open.options().is_err());
        let guarded = ClusterArguments { token_file: Some(file.path().to_owned()), ..open };
        for wrong in ["", " \n", "two words", "\u{e9}"] {
            fs::write(file.path(), wrong).unwrap();
            assert!(guarded.options().is_err(), "{wrong:?}");
        }
        fs::write(file.path(), "0123abc\n").unwrap();
        assert_eq!(guarded.options().unwrap().token.as_deref(), Some("0123abc"));
        fs::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o620)).unwrap();
        let refused = guarded.options().unwrap_err().to_string();
        assert!(refused.contains("mode 0620") && refused.contains("`chmod 600 "), "{refused}");
    }
}
