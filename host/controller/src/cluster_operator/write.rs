//! Creates, writes and deletes a ClusterOperator.

use std::collections::BTreeMap;

use chandler_api::{ClusterOperator, ClusterOperatorStatus};
use chandler_records::MANAGED_BY;
use chandler_runtime::status_patch;
use kube::{
    Api, ResourceExt as _,
    api::{ObjectMeta, PostParams},
};

use crate::absent;

/// The label of the ClusterOperators that a controller created. Its value is the namespace of the controller.
pub(super) const CONTROLLER_LABEL: &str = "chandler.dev/cluster-operator-of";

/// What writes ClusterOperators.
pub(super) struct Writer {
    pub(super) api: Api<ClusterOperator>,
    pub(super) system_namespace: String,
    /// Labels that new objects get.
    pub(super) labels: BTreeMap<String, String>,
}

impl Writer {
    /// Creates a ClusterOperator. `None` if it exists: the watch will deliver it.
    pub(super) async fn create(&self, name: &str) -> Result<Option<ClusterOperator>, kube::Error> {
        let mut labels = self.labels.clone();
        labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
        labels.insert(CONTROLLER_LABEL.to_owned(), self.system_namespace.clone());
        let metadata = ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
        let object = ClusterOperator { metadata, ..ClusterOperator::default() };
        match self.api.create(&PostParams::default(), &object).await {
            Ok(created) => Ok(Some(created)),
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the status in one request, if it differs, and then returns the object.
    pub(super) async fn status(
        &self,
        live: &ClusterOperator,
        status: &ClusterOperatorStatus,
    ) -> Result<Option<ClusterOperator>, kube::Error> {
        status_patch::write(&self.api, &live.name_any(), live.status.as_ref(), status).await
    }

    /// Whether this controller created a ClusterOperator.
    pub(super) fn created(&self, object: &ClusterOperator) -> bool {
        let label = |key: &str| object.labels().get(key).map(String::as_str);
        label(CONTROLLER_LABEL) == Some(&self.system_namespace) && label(MANAGED_BY.0) == Some(MANAGED_BY.1)
    }

    /// Deletes this very ClusterOperator.
    pub(super) async fn delete(&self, object: &ClusterOperator) -> Result<(), kube::Error> {
        match absent::delete(&self.api, object).await {
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(()),
            deleted => deleted,
        }
    }
}
