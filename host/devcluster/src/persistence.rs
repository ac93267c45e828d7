//! The persistent state of a development cluster: objects, secrets, and the address that saved kubeconfigs name.

use std::{
    io::{Error, ErrorKind},
    net::SocketAddr,
    path::Path,
};

use tokio::net::TcpListener;

use crate::store::{DataDirectory, Limits, OpenError, Secrets, Store};

/// The name under which the address is kept.
const ADDRESS: &str = "address";

/// Where a cluster has its state.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) store: Store,
    pub(crate) secrets: Secrets,
    directory: Option<DataDirectory>,
}

impl Kept {
    /// Opens a directory, or starts empty in memory.
    pub(crate) fn open(directory: Option<&Path>, history: Limits) -> Result<Self, OpenError> {
        let Some(path) = directory else {
            return Ok(Self { store: Store::new(history), secrets: Secrets::Fresh, directory: None });
        };
        let directory = DataDirectory::open(path)?;
        // Before anything else is read: who has the store has the directory.
        let store = directory.store(history)?;
        if let Some(recovered) = store.recovered() {
            tracing::warn!("{recovered}");
        }
        Ok(Self { store, secrets: Secrets::Kept(directory.clone()), directory: Some(directory) })
    }

    /// Listens at an address; where any port will do, at the one of the last time if it is free.
    pub(crate) async fn listen(&self, bind: SocketAddr) -> Result<TcpListener, Error> {
        if let Some(last) = self.last_address().filter(|last| bind.port() == 0 && last.ip() == bind.ip()) {
            match TcpListener::bind(last).await {
                Err(error) if error.kind() == ErrorKind::AddrInUse => {
                    tracing::warn!(address = %last, "the last address is taken: saved kubeconfigs have to be written anew");
                }
                result => return result,
            }
        }
        TcpListener::bind(bind).await
    }

    fn last_address(&self) -> Option<SocketAddr> {
        // Otherwise another port is used, which must not keep the server from starting.
        self.directory.as_ref()?.secret(ADDRESS).ok()??.trim().parse().ok()
    }

    /// Keeps the address.
    pub(crate) fn keep_address(&self, address: SocketAddr) -> Result<(), OpenError> {
        self.directory.as_ref().map_or(Ok(()), |directory| directory.keep_secret(ADDRESS, &address.to_string()))
    }
}
