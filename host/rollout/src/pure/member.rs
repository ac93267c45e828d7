//! An object of the owner, as it was read. Pure.

use chandler_core::ObjectKey;
use kube::api::ApiResource;
use serde_json::Value;

use crate::pure::{deletion_plan::Unwanted, live};

/// An object of the owner.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) key: ObjectKey,
    pub(crate) resource: ApiResource,
    pub(crate) object: Value,
}

impl Unwanted for Member {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn is_terminating(&self) -> bool {
        live::is_terminating(&self.object)
    }
}
