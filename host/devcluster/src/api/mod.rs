//! The verbs of the Kubernetes API over the store, without HTTP's sockets.
//!
//! | module | holds |
//! |---|---|
//! | [`read`] | get and list |
//! | [`watch`] | watch |
//! | `write` | create and update, the pipeline of every write |
//! | [`patch`] | the patch formats and server-side apply |
//! | [`delete`] | delete, deletecollection, finalizers |
//! | [`scale`] | the scale subresource |
//! | `bind` | the binding subresource of Pods |
//! | [`review`] | review kinds, which are answered and not stored |
//! | [`tokens`] | tokens for ServiceAccounts |
//! | `grants` | privilege escalation checks |
//! | `policies` | admission policies |
//! | [`admission`] | namespaces must exist; cluster addresses are allocated |
//! | `addresses` | which cluster IPs and node ports are free |
//! | `expiry` | objects with a limited lifetime |
//! | [`view`] | objects in the requested version and representation |

mod addresses;
pub mod admission;
mod bind;
pub mod delete;
mod expiry;
mod grants;
pub mod patch;
mod policies;
pub mod read;
pub mod review;
pub mod scale;
pub mod tokens;
pub mod view;
pub mod watch;
pub mod write;

use std::sync::Arc;

use bytes::Bytes;
use chandler_devcluster_apimachinery::access::User;

use crate::{
    authentication::Authenticator,
    authorization::Authorizer,
    clock::Clock,
    faults::Faults,
    http::heavy::Places,
    identity::Identities,
    policies::Policies,
    registry::{Registry, Resource},
    request::{negotiate::Representation, query::Query},
    store::{Key, Scope, Store},
};

/// The API over a store. Shared by all connections and by the controllers.
#[derive(Debug, Default)]
pub struct Api {
    /// The objects.
    pub store: Store,
    /// The served resources.
    pub registry: Registry,
    /// The clock.
    pub clock: Clock,
    /// Where uids and generated names come from.
    pub identities: Identities,
    /// The user of a request.
    pub authenticator: Authenticator,
    /// The authorizer.
    pub authorizer: Authorizer,
    /// The admission policies.
    pub policies: Policies,
    /// The injected faults.
    pub faults: Faults,
    /// Where requests are worked on that take long.
    pub(crate) places: Places,
    /// Cluster IPs and node ports.
    pub(crate) addresses: addresses::Addresses,
}

/// The resource of a request, and the requested representation.
#[derive(Clone, Debug)]
pub struct Target {
    /// Whose request it is.
    pub user: Arc<User>,
    /// The resource.
    pub resource: Arc<Resource>,
    /// The namespace; empty for cluster-scoped objects and for all namespaces.
    pub namespace: String,
    /// The name; empty for collections.
    pub name: String,
    /// The subresource.
    pub subresource: Option<String>,
    /// The query.
    pub query: Query,
    /// The representation of objects in responses.
    pub representation: Representation,
    /// How many revisions ago a watch cache that answers is; see [`Effect::Stale`](crate::faults::Effect::Stale).
    pub lag: u64,
    /// The client's name for itself.
    pub user_agent: String,
}

impl Target {
    /// An object that a controller of Kubernetes changes or deletes.
    fn of_controller(user: &Arc<User>, resource: &Arc<Resource>, key: &Key) -> Self {
        Self {
            user: Arc::clone(user),
            resource: Arc::clone(resource),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            subresource: None,
            query: Query::default(),
            representation: Representation::Object,
            lag: 0,
            user_agent: String::new(),
        }
    }

    /// The place of the object.
    pub fn key(&self) -> Key {
        Key::new(Arc::clone(&self.resource.table), self.namespace.clone(), self.name.clone())
    }

    /// The objects of the collection.
    pub fn scope(&self) -> Scope {
        let namespace = (!self.namespace.is_empty()).then(|| self.namespace.clone());
        Scope { resource: Some(Arc::clone(&self.resource.table)), namespace }
    }
}

/// A body and how it is written.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// The bytes.
    pub body: Bytes,
    /// `Content-Type` without parameters; empty when absent.
    pub content_type: String,
}
