//! Requests about objects that may be gone by now.

use std::fmt::Debug;

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Preconditions},
};
use serde::de::DeserializeOwned;

/// The result of a request; `None` if the object is gone.
pub(crate) fn ignore_absent<T>(result: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match result {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        result => result.map(Some),
    }
}

/// Deletes this very object. An object that is already gone is not an error; another object with the same name is a conflict.
pub(crate) async fn delete<K>(api: &Api<K>, object: &K) -> Result<(), kube::Error>
where
    K: ResourceExt + Clone + DeserializeOwned + Debug,
{
    let preconditions = Preconditions { uid: object.uid(), resource_version: None };
    let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    ignore_absent(api.delete(&object.name_any(), &parameters).await.map(drop)).map(drop)
}
