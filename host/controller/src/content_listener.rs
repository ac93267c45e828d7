//! The address of the content service: this replica serves there while it is the leader, and passes connections on to the leader until then.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    future::Future,
    net::{IpAddr, SocketAddr},
};

use chandler_serve::{Leader, Listener, ServeError, relay};
use tokio::sync::watch;

use crate::Options;

/// The annotation of the Lease with the address at which the leader serves content.
const ADDRESS: &str = "chandler.dev/content-address";

/// The bound address, if content is served.
pub(crate) struct ContentListener {
    listener: Option<Listener>,
    leader: watch::Sender<Leader>,
}

/// Reads from the Lease where the leader is.
pub(crate) struct Follower {
    own: Option<SocketAddr>,
    leader: watch::Sender<Leader>,
}

impl ContentListener {
    /// Binds the address that the options name.
    pub(crate) fn bind(options: &Options) -> Result<Self, ServeError> {
        let content = options.content.clone();
        let listener = content.map(|content| Listener::bind(content, &options.system_namespace)).transpose()?;
        // Without an election, this process serves alone.
        let leader = if options.leader_election.is_some() { Leader::Unknown } else { Leader::Here };
        Ok(Self { listener, leader: watch::Sender::new(leader) })
    }

    /// Passes connections on to the leader while another replica is it. Completes only with a failure.
    pub(crate) fn relay(
        &self,
    ) -> Result<impl Future<Output = Result<Infallible, ServeError>> + Send + use<>, ServeError> {
        let (listener, leader) = (self.listener()?, self.leader.subscribe());
        Ok(async move {
            match listener {
                Some(listener) => listener.relay(leader).await,
                None => std::future::pending().await,
            }
        })
    }

    /// The address, for a server.
    pub(crate) fn listener(&self) -> Result<Option<Listener>, ServeError> {
        self.listener.as_ref().map(Listener::shared).transpose()
    }

    /// What the leader writes to its Lease, so that the other replicas find it.
    pub(crate) fn annotations(
        &self,
        advertised: Option<IpAddr>,
    ) -> Result<BTreeMap<String, Option<String>>, ServeError> {
        let address = self.listener.as_ref().map(Listener::address).transpose()?;
        let published = address.and_then(|address| relay::published(address, advertised));
        Ok(BTreeMap::from([(ADDRESS.to_owned(), published.map(|address| address.to_string()))]))
    }

    /// Reads where the leader is while this replica waits.
    pub(crate) fn follower(&self) -> Follower {
        let own = self.listener.as_ref().and_then(|listener| listener.address().ok());
        Follower { own, leader: self.leader.clone() }
    }

    /// This replica is the leader from now on.
    pub(crate) fn lead(&self) {
        self.leader.send_replace(Leader::Here);
    }
}

impl Follower {
    /// The annotations of the Lease that another replica holds.
    pub(crate) fn read(&self, annotations: &BTreeMap<String, String>) {
        let Some(own) = self.own else { return };
        let found = Leader::published(annotations.get(ADDRESS).map(String::as_str), own);
        self.leader.send_if_modified(|leader| std::mem::replace(leader, found) != found);
    }
}
