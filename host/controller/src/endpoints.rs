//! The addresses of content and of webhooks: this replica serves there while it is the leader, and passes connections on to the leader until then.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    future::Future,
    net::{IpAddr, SocketAddr},
};

use chandler_serve::{Leader, Listener, ReceiverListener, ServeError, relay, relay::Relayed};
use tokio::sync::watch;

use crate::Options;

/// The annotation of the Lease with the address at which the leader serves content.
const CONTENT: &str = "chandler.dev/content-address";
/// The annotation of the Lease with the address at which the leader receives webhooks.
const WEBHOOKS: &str = "chandler.dev/receiver-address";

/// The bound addresses, as far as the options name them.
pub(crate) struct Endpoints {
    content: Endpoint<Listener>,
    webhooks: Endpoint<ReceiverListener>,
}

/// One bound address.
struct Endpoint<L> {
    annotation: &'static str,
    listener: Option<L>,
    leader: watch::Sender<Leader>,
}

/// Reads from the Lease where the leader is.
pub(crate) struct Followers([Follower; 2]);

struct Follower {
    annotation: &'static str,
    own: Option<SocketAddr>,
    /// What this replica publishes while it is the leader.
    published: Option<SocketAddr>,
    leader: watch::Sender<Leader>,
}

impl Endpoints {
    /// Binds the addresses that the options name.
    pub(crate) fn bind(options: &Options) -> Result<Self, ServeError> {
        let namespace = &options.system_namespace;
        let content = options.content.clone().map(|content| Listener::bind(content, namespace)).transpose()?;
        let webhooks =
            options.receiver.clone().map(|receiver| ReceiverListener::bind(receiver, namespace)).transpose()?;
        // Without an election, this process serves alone.
        let leader = if options.leader_election.is_some() { Leader::Unknown } else { Leader::Here };
        Ok(Self {
            content: Endpoint::new(CONTENT, content, leader),
            webhooks: Endpoint::new(WEBHOOKS, webhooks, leader),
        })
    }

    /// Passes connections on to the leader while another replica is it. Completes only with a failure.
    pub(crate) fn relay(
        &self,
    ) -> Result<impl Future<Output = Result<Infallible, ServeError>> + Send + use<>, ServeError> {
        let (content, webhooks) = (self.content.relay()?, self.webhooks.relay()?);
        Ok(async move {
            tokio::select! {
                failed = content => failed,
                failed = webhooks => failed,
            }
        })
    }

    /// The address of content, for a server.
    pub(crate) fn content(&self) -> Result<Option<Listener>, ServeError> {
        self.content.shared()
    }

    /// The address of webhooks, for a server.
    pub(crate) fn webhooks(&self) -> Result<Option<ReceiverListener>, ServeError> {
        self.webhooks.shared()
    }

    /// What the leader writes to its Lease, so that the other replicas find it.
    pub(crate) fn annotations(
        &self,
        advertised: Option<IpAddr>,
    ) -> Result<BTreeMap<String, Option<String>>, ServeError> {
        Ok(BTreeMap::from([self.content.annotation(advertised)?, self.webhooks.annotation(advertised)?]))
    }

    /// Reads where the leader is while this replica waits. `advertised` is as for [`Self::annotations`].
    pub(crate) fn followers(&self, advertised: Option<IpAddr>) -> Result<Followers, ServeError> {
        Ok(Followers([self.content.follower(advertised)?, self.webhooks.follower(advertised)?]))
    }

    /// This replica is the leader from now on.
    pub(crate) fn lead(&self) {
        self.content.leader.send_replace(Leader::Here);
        self.webhooks.leader.send_replace(Leader::Here);
    }
}

impl<L: Relayed + Send + 'static> Endpoint<L> {
    fn new(annotation: &'static str, listener: Option<L>, leader: Leader) -> Self {
        Self { annotation, listener, leader: watch::Sender::new(leader) }
    }

    fn shared(&self) -> Result<Option<L>, ServeError> {
        self.listener.as_ref().map(L::shared).transpose()
    }

    fn relay(&self) -> Result<impl Future<Output = Result<Infallible, ServeError>> + Send + use<L>, ServeError> {
        let (listener, leader) = (self.shared()?, self.leader.subscribe());
        Ok(async move {
            match listener {
                Some(listener) => relay::run(listener, leader).await,
                None => std::future::pending().await,
            }
        })
    }

    fn address(&self) -> Result<Option<SocketAddr>, ServeError> {
        self.listener.as_ref().map(L::address).transpose()
    }

    fn annotation(&self, advertised: Option<IpAddr>) -> Result<(String, Option<String>), ServeError> {
        let published = self.address()?.and_then(|address| relay::published(address, advertised));
        Ok((self.annotation.to_owned(), published.map(|address| address.to_string())))
    }

    fn follower(&self, advertised: Option<IpAddr>) -> Result<Follower, ServeError> {
        let own = self.address()?;
        let published = own.and_then(|address| relay::published(address, advertised));
        Ok(Follower { annotation: self.annotation, own, published, leader: self.leader.clone() })
    }
}

impl Followers {
    /// The annotations of the Lease that another replica holds.
    pub(crate) fn read(&self, annotations: &BTreeMap<String, String>) {
        for Follower { annotation, own, published, leader } in &self.0 {
            let Some(own) = own else { continue };
            let found = Leader::published(annotations.get(*annotation).map(String::as_str), *own, *published);
            leader.send_if_modified(|leader| std::mem::replace(leader, found) != found);
        }
    }
}

#[cfg(test)]
mod tests {
    use chandler_serve::ServiceOptions;

    use super::*;

    /// An address of webhooks alone.
    fn endpoints(address: &str) -> Endpoints {
        let service = ServiceOptions {
            address: address.parse().unwrap(),
            service: "chandler-receiver".to_owned(),
            tls_secret: None,
        };
        let listener = ReceiverListener::bind(service, "chandler-system").unwrap();
        Endpoints {
            content: Endpoint::new(CONTENT, None, Leader::Unknown),
            webhooks: Endpoint::new(WEBHOOKS, Some(listener), Leader::Unknown),
        }
    }

    #[test]
    fn a_replica_that_was_restarted_is_not_its_own_leader() {
        let pod = "10.1.2.3".parse().ok();
        for (bound, advertised) in [("127.0.0.1:0", None), ("0.0.0.0:0", pod)] {
            let endpoints = endpoints(bound);
            let followers = endpoints.followers(advertised).unwrap();
            let leader = endpoints.webhooks.leader.subscribe();
            // The Lease from before the restart.
            let annotations = endpoints.annotations(advertised).unwrap().into_iter();
            let own: BTreeMap<String, String> = annotations.filter_map(|(name, value)| Some((name, value?))).collect();
            let address: SocketAddr = own[WEBHOOKS].parse().unwrap();
            followers.read(&own);
            assert_eq!(*leader.borrow(), Leader::Unknown, "connections to {address} wait for an election");
            // Another replica.
            let other = match address.ip() {
                ip if ip.is_loopback() => SocketAddr::new(ip, 9),
                _ => SocketAddr::new("10.1.2.4".parse().unwrap(), address.port()),
            };
            followers.read(&BTreeMap::from([(WEBHOOKS.to_owned(), other.to_string())]));
            assert_eq!(*leader.borrow(), Leader::At(other));
        }
    }
}
