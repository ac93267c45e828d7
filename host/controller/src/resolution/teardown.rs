//! Deletes the set with its Resolution.

use std::time::Duration;

use chandler_api::{BundleDeployment, Resolution, ResolutionStatus, names::TEARDOWN_FINALIZER};
use chandler_resolution::status::{Answer, Found, Set};
use chandler_runtime::{Next, Report, finalizers};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams},
    runtime::controller::Action,
};

use super::{
    decisions::NAME_LABEL,
    handover,
    reconciler::{ReconcileError, Resolutions},
    set,
};
use crate::absent::{self, ignore_absent};

/// When to look again whether the BundleDeployment of a set is gone. The watch usually reports it before.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

impl Resolutions {
    /// Adds the finalizer, without which the set of a Resolution would stay.
    pub(super) async fn finalize(&self, resolution: &Resolution) -> Result<(), ReconcileError> {
        if !has_finalizer(resolution) {
            let mut names = resolution.finalizers().to_vec();
            names.push(TEARDOWN_FINALIZER.to_owned());
            let written = finalizers::write(&self.api(), resolution, &names).await?;
            self.own_writes.finalizers(written);
        }
        Ok(())
    }

    /// Deletes the BundleDeployment of a set, unless another one has its name by now.
    pub(super) async fn delete_set(&self, deployment: &BundleDeployment) -> Result<(), kube::Error> {
        absent::delete(&Api::all(self.cluster.client.clone()), deployment).await
    }

    /// Deletes the BundleDeployment of the set, then the decisions, then the finalizer.
    pub(super) async fn tear_down(&self, resolution: &Resolution) -> Result<Report<ResolutionStatus>, ReconcileError> {
        let name = resolution.name_any();
        if !has_finalizer(resolution) {
            self.forget(&name);
            return Ok(Report::nothing());
        }
        if !self.generations.is_orphaning(resolution) {
            let deployment = set::deployment_name(&name);
            let deployments: Api<BundleDeployment> = Api::all(self.cluster.client.clone());
            let existing = deployments.get_opt(&deployment).await?;
            if let Some(existing) = existing.filter(|existing| set::is_owned(existing, resolution)) {
                let (mut held, mut again) = (None, LOOK_AGAIN);
                if existing.metadata.deletion_timestamp.is_none() {
                    held = handover::notes(&self.hand_over(resolution, |_| true).await?);
                    match &held {
                        Some(_) => again = handover::LOOK_AGAIN,
                        None => self.delete_set(&existing).await?,
                    }
                }
                let set = Set { deployment, observed: Some(&existing), ..Set::default() };
                let found = Found { answer: Answer::None, set: Some(set), held, ..Found::default() };
                return Ok(Self::report(resolution, &found, Next::Decided(Action::requeue(again))));
            }
            let maps: Api<ConfigMap> = self.config_maps();
            let selected = ListParams::default().labels(&format!("{NAME_LABEL}={name}"));
            for map in maps.list_metadata(&selected).await?.items {
                ignore_absent(maps.delete(&map.name_any(), &DeleteParams::default()).await)?;
            }
        }
        let mut names = resolution.finalizers().to_vec();
        names.retain(|finalizer| finalizer != TEARDOWN_FINALIZER);
        ignore_absent(finalizers::write(&self.api(), resolution, &names).await)?;
        self.forget(&name);
        Ok(Report::nothing())
    }
}

pub(super) fn has_finalizer(resolution: &Resolution) -> bool {
    resolution.finalizers().iter().any(|finalizer| finalizer == TEARDOWN_FINALIZER)
}
