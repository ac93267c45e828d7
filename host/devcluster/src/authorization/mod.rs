//! Authorization.
//!
//! | module | holds |
//! |---|---|
//! | [`request`] | derives the requested access from method, path and query |
//! | [`cache`] | the stored roles and bindings, read once for each change |
//! | this module | decisions, impersonation, and responses to denied requests |

pub mod cache;
pub mod request;

use std::{collections::HashMap, sync::Arc};

use chandler_devcluster_apimachinery::access::{
    Attributes, Decision, PolicySet, User, authorize,
    impersonation::{self, Mode, Refused},
    quote::quote,
    refusal::refusal,
};
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    follow::Followed,
    status::{GroupResource, Status},
    store::Store,
};

/// For how many requestors the mode of their last impersonation is cached.
const REQUESTORS: usize = 1024;

/// Decides what requests may do, by the roles and bindings in a store.
#[derive(Debug)]
pub struct Authorizer {
    cache: Followed<PolicySet>,
    /// By name of the requestor.
    modes: Mutex<HashMap<String, Mode>>,
}

impl Default for Authorizer {
    fn default() -> Self {
        Self { cache: cache::new(), modes: Mutex::default() }
    }
}

impl Authorizer {
    /// The roles and bindings as they are now.
    pub fn policy(&self, store: &Store) -> Arc<PolicySet> {
        self.cache.current(store)
    }

    /// Decides whether a user may do something.
    pub fn decide(&self, store: &Store, user: &User, attributes: &Attributes) -> Decision {
        if user.is_privileged() {
            // They need no lookup, so the policy need not be read.
            return Decision { allowed: true, reason: String::new() };
        }
        authorize(&*self.policy(store), user, attributes)
    }

    /// Lets a user do something, or not.
    ///
    /// # Errors
    /// 403 when the user may not do it.
    pub fn authorize(&self, store: &Store, user: &User, attributes: &Attributes) -> Result<(), Status> {
        let Decision { allowed, reason } = self.decide(store, user, attributes);
        if allowed { Ok(()) } else { Err(refused(user, attributes, &reason)) }
    }

    /// The effective user of a request: the requestor, or the user that the headers `Impersonate-*` name.
    ///
    /// # Errors
    /// 400 when the headers name no user, 403 when the requestor may not act as that user.
    pub fn impersonate(
        &self,
        store: &Store,
        requestor: User,
        headers: &HeaderMap,
        request: &Attributes,
    ) -> Result<User, Status> {
        // Header names are in lower case already. Non-text values name a user that no one may impersonate: if they were left
        // out, the request would be the requestor's own.
        let headers = headers.iter().filter(|(name, _)| name.as_str().starts_with("impersonate-"));
        let headers: Vec<_> =
            headers.map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes()))).collect();
        let wanted = impersonation::wanted(headers.iter().map(|(name, value)| (*name, value.as_ref())));
        let wanted = wanted.map_err(|error| Status::bad_request(error.to_string()))?;
        let Some(wanted) = wanted else { return Ok(requestor) };
        let decide = |user: &User, attributes: &Attributes| self.decide(store, user, attributes);
        let first = self.modes().get(&requestor.name).copied();
        match impersonation::impersonate(&decide, &requestor, &wanted, request, first) {
            Ok((user, mode)) => {
                self.remember(requestor.name, mode);
                Ok(user)
            }
            Err(Refused { attributes, reason }) => Err(refused(&requestor, &attributes, &reason)),
        }
    }

    fn modes(&self) -> parking_lot::MutexGuard<'_, HashMap<String, Mode>> {
        self.modes.lock()
    }

    fn remember(&self, requestor: String, mode: Mode) {
        let mut modes = self.modes();
        if modes.len() >= REQUESTORS && !modes.contains_key(&requestor) {
            modes.clear();
        }
        modes.insert(requestor, mode);
    }
}

/// The response to a request that is not allowed.
fn refused(user: &User, attributes: &Attributes, reason: &str) -> Status {
    let why = refusal(user, attributes, reason);
    match attributes {
        Attributes::Resource(resource) => {
            let about = GroupResource { group: resource.group.clone(), plural: resource.resource.clone() };
            forbidden(&about, &resource.name, &why)
        }
        Attributes::NonResource(_) => Status { details: json!({}), ..forbidden_status(format!("forbidden: {why}")) },
    }
}

/// 403 about an object, or about all when there is no name.
pub fn forbidden(about: &GroupResource, name: &str, why: &str) -> Status {
    let mut details = json!({"kind": about.plural});
    if let Some(details) = details.as_object_mut() {
        for (field, text) in [("name", name), ("group", about.group.as_str())] {
            if !text.is_empty() {
                details.insert(field.to_owned(), text.into());
            }
        }
    }
    let message = if name.is_empty() {
        format!("{about} is forbidden: {why}")
    } else {
        format!("{about} {} is forbidden: {why}", quote(name))
    };
    Status { details, ..forbidden_status(message) }
}

fn forbidden_status(message: String) -> Status {
    Status { code: StatusCode::FORBIDDEN, reason: "Forbidden", message, details: Value::Null, warnings: Vec::new() }
}

#[cfg(test)]
mod tests;
