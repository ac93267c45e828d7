//! Reasons for which a BundleDeployment would be refused that is about to be created or changed. The members of a set are all checked
//! before the first of them is written. Nothing is written here.

use std::sync::Arc;

use chandler_api::BundleDeployment;
use chandler_core::Release;
use chandler_decisions::{drift, owner};
use chandler_engine::CallError;
use chandler_records::Record;
use chandler_rollout::{DefinedKinds, Preview, RolloutRequest};
use chandler_runtime::Share;
use kube::ResourceExt as _;

use super::{
    installer::Installer,
    steps::{
        certificates,
        prepare::{self, PrepareError},
        render::RenderError,
    },
};

/// The UID of a BundleDeployment that does not exist yet. No object has it, so that none counts as owned.
const NOT_STORED: &str = "00000000-0000-0000-0000-000000000000";

/// A BundleDeployment as it is to be, with the release that it would have.
pub(crate) struct Planned {
    deployment: BundleDeployment,
    /// The release.
    pub(crate) release: Arc<Release>,
    /// Its memory.
    _shares: Vec<Share>,
}

/// What its provisioner reports about a bundle that needs a newer Kubernetes than the cluster has.
const KUBERNETES_TOO_OLD: &str = "KubernetesTooOld";

/// There is no release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotPlanned {
    /// Why, with the cause.
    pub(crate) message: String,
    /// Why another version of the bundle may be possible on this cluster, although this one is not.
    pub(crate) excludes: Option<String>,
}

impl NotPlanned {
    fn of(error: &PrepareError) -> Self {
        let unsupported = match error {
            PrepareError::Render(RenderError::Call(CallError::UnsupportedContent(findings))) => findings.as_slice(),
            _ => &[],
        };
        let too_old = unsupported.iter().find(|finding| finding.code == KUBERNETES_TOO_OLD);
        Self { message: error.to_string(), excludes: too_old.map(|finding| finding.message.clone()) }
    }
}

impl Planned {
    /// Fetches and renders a planned BundleDeployment.
    pub(crate) async fn render(installer: &Arc<Installer>, wanted: BundleDeployment) -> Result<Self, NotPlanned> {
        let name = wanted.name_any();
        let mut deployment = planned(wanted, installer.deployments.get(&name));
        // As in a reconcile, the record's history is used: a client that may write the status does not choose a class.
        let record = installer.records.known(&name).map(|record| record.state());
        if let Some(status) = &mut deployment.status {
            status.history = record.map(|state| state.history.clone()).unwrap_or_default();
        }
        let prepared = Box::pin(prepare::described_now(deployment.clone(), Arc::clone(&installer.preparer))).await;
        let (release, shares) = prepared.map_err(|failure| NotPlanned::of(&failure.error))?;
        Ok(Self { deployment, release, _shares: shares })
    }

    /// What the rollout would change for the set of a Resolution, and every reason for which it would be refused, once the kinds `before`
    /// it are served.
    pub(crate) async fn preview(
        &self,
        installer: &Installer,
        before: &DefinedKinds,
        resolution: &str,
    ) -> Result<Preview, String> {
        let Self { deployment, release, .. } = self;
        let (name, namespace) = (deployment.name_any(), deployment.spec.install_namespace.as_str());
        let owner = owner::owner(deployment, namespace, &installer.cluster.options.accounts)
            .map_err(|error| error.to_string())?;
        let ignored = drift::ignored_fields(&deployment.spec).map_err(|error| error.to_string())?;
        let owner = owner.with_approved_upgrades(installer.approvals.upgrades(deployment)).ignoring(ignored);
        let owner = owner.granted_by(installer.preparer.grants.member(deployment, resolution));
        let owner = match installer.records.known(&name) {
            Some(record) => owner.recorded_in(Arc::<Record>::clone(&record)),
            None => owner,
        };
        let handles = installer.certificates(&installer.rollout);
        let completed = certificates::complete(handles, deployment, &owner, release).await;
        let completed = completed.map_err(|error| error.to_string())?;
        let request = RolloutRequest::new(&owner, &completed.release).after(before);
        let request = request.drift(drift::policy_now(deployment));
        installer.rollout.preview(&request).await.map_err(|error| error.to_string())
    }
}

/// Whether applying the wanted BundleDeployment would change the stored one.
pub(crate) fn changes(wanted: &BundleDeployment, stored: &BundleDeployment) -> bool {
    planned(wanted.clone(), Some(stored.clone())).spec != stored.spec
}

/// The stored BundleDeployment with the fields of the wanted one. Without a generation, no earlier finding about the stored one counts.
fn planned(wanted: BundleDeployment, stored: Option<BundleDeployment>) -> BundleDeployment {
    let Some(mut stored) = stored else {
        let mut wanted = wanted;
        wanted.metadata.uid = Some(NOT_STORED.to_owned());
        return wanted;
    };
    stored.metadata.generation = None;
    stored.spec.install_namespace = wanted.spec.install_namespace;
    stored.spec.provisioner_class_name = wanted.spec.provisioner_class_name;
    stored.spec.source = wanted.spec.source;
    stored.spec.config = wanted.spec.config;
    stored.spec.service_account = wanted.spec.service_account;
    stored.spec.collision_protection = wanted.spec.collision_protection;
    stored
}

#[cfg(test)]
mod tests {
    use chandler_api::{BundleDeploymentSpec, BundleSource, ImageSource};
    use chandler_core::{Diagnostic, Severity};

    use super::*;

    fn deployment(image: &str) -> BundleDeployment {
        let image = ImageSource { reference: image.to_owned(), ..ImageSource::default() };
        let spec = BundleDeploymentSpec { source: BundleSource::image(image), ..BundleDeploymentSpec::default() };
        BundleDeployment::new("one", spec)
    }

    #[test]
    fn only_an_old_kubernetes_excludes_a_version() {
        let finding = |code: &str| vec![Diagnostic::new(Severity::Error, code, "the operator needs Kubernetes 1.40.0")];
        let of = |error| NotPlanned::of(&PrepareError::Render(RenderError::Call(error))).excludes;
        let too_old = of(CallError::UnsupportedContent(finding("KubernetesTooOld")));
        assert_eq!(too_old.as_deref(), Some("the operator needs Kubernetes 1.40.0"));
        assert_eq!(of(CallError::UnsupportedContent(finding("Other"))), None);
        assert_eq!(of(CallError::InvalidContent(finding("KubernetesTooOld"))), None);
    }

    #[test]
    fn what_others_set_on_a_member_stays() {
        let mut stored = deployment("example.com/a:1");
        stored.metadata.uid = Some("uid".to_owned());
        stored.metadata.generation = Some(3);
        stored.spec.suspend = true;
        let planned = planned(deployment("example.com/a:2"), Some(stored));
        assert_eq!(planned.spec.source, deployment("example.com/a:2").spec.source);
        assert!(planned.spec.suspend);
        assert_eq!((planned.uid().as_deref(), planned.metadata.generation), (Some("uid"), None));
    }

    #[test]
    fn a_new_member_owns_nothing() {
        assert_eq!(planned(deployment("example.com/a:1"), None).uid().as_deref(), Some(NOT_STORED));
    }
}
