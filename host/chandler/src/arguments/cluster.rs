//! The API server of `chandler dev`: where it listens and where it stores its state.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use crate::write::control_plane::ControlPlaneOptions;

/// Where the API server listens and where it stores its state.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "API server")]
pub struct ClusterArguments {
    /// Store the API server's state in this directory, and continue with the state that it already holds
    ///
    /// Objects, keys, certificates, the token, the ports and the content of the registry survive a restart. The directory also receives the kubeconfig. It holds
    /// secrets and is readable by its owner only. Only one process can use it at a time.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,

    /// Address to listen on, with or without a port
    ///
    /// An address that is not a loopback address requires --token-file. Port 0 chooses a free port; with --data, the port of the
    /// previous run.
    #[arg(long, value_name = "ADDRESS[:PORT]", default_value = "127.0.0.1:0", value_parser = address)]
    pub bind: SocketAddr,

    /// File with the administrator's bearer token [default: a random token]
    ///
    /// The file must be writable only by you (`chmod 600 FILE`), and no other user may be able to replace it in its directory.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

impl ClusterArguments {
    /// The options.
    pub fn options(&self) -> ControlPlaneOptions {
        ControlPlaneOptions { data: self.data.clone(), bind: self.bind, token_file: self.token_file.clone() }
    }
}

/// An address with or without a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let with_any_port = |address: IpAddr| SocketAddr::new(address, 0);
    text.parse()
        .or_else(|_| text.parse().map(with_any_port))
        .map_err(|_| format!("{text:?} is not an address: write `127.0.0.1`, `127.0.0.1:6443` or `[::1]:6443`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_an_optional_port() {
        for (text, expected) in
            [("127.0.0.1", "127.0.0.1:0"), ("0.0.0.0:6443", "0.0.0.0:6443"), ("::1", "[::1]:0"), ("[::1]:1", "[::1]:1")]
        {
            assert_eq!(address(text).unwrap().to_string(), expected);
        }
        for text in ["", "localhost", "127.0.0.1:", ":6443", "127.0.0.1:70000"] {
            assert!(address(text).unwrap_err().contains("is not an address"), "{text}");
        }
    }
}
