//! A BundleDeployment that is being reconciled, with its record.

use std::{collections::BTreeMap, sync::Arc};

use chandler_api::{BundleDeployment, BundleDeploymentStatus, Revision, names::TEARDOWN_FINALIZER};
use chandler_decisions::{
    approval, drift, owner,
    revisions::{self, Candidate},
    spec_error::SpecError,
};
use chandler_permissions::AccountPolicy;
use chandler_records::Record;
use chandler_rollout::{Owner, Parent, Rollout};
use kube::ResourceExt as _;

use super::{failed_candidates::ChangeCount, installer::Installer};
use crate::{account_grant::Asker, targets::Target};

/// A BundleDeployment that is being reconciled.
pub(super) struct Subject {
    /// As the watch delivered it, but with the revisions of the record: a client that may write the status decides nothing.
    pub(super) deployment: BundleDeployment,
    /// The status as it is stored.
    pub(super) stored: Option<BundleDeploymentStatus>,
    /// The record that only the controller writes.
    pub(super) record: Arc<Record>,
    /// What had changed when the reconcile began.
    pub(super) began: ChangeCount,
    /// The users who approved unsafe upgrades of its CRDs, by the digest of the findings.
    approved_upgrades: BTreeMap<String, String>,
    /// Whom it is installed for, as ServiceAccounts list it.
    asker: Arc<Asker>,
    /// The other cluster that its objects are in; `None` for this one, and while the other one is unavailable.
    pub(super) target: Option<Arc<Target>>,
}

impl Subject {
    pub(super) fn new(
        deployment: BundleDeployment,
        record: Arc<Record>,
        began: ChangeCount,
        asker: Arc<Asker>,
    ) -> Self {
        let (stored, approved_upgrades) = (deployment.status.clone(), BTreeMap::new());
        let mut subject = Self { deployment, stored, record, began, approved_upgrades, asker, target: None };
        subject.read_record();
        subject
    }

    /// Adds approvals of upgrades of its CRDs.
    pub(super) fn with_approved_upgrades(self, approved_upgrades: BTreeMap<String, String>) -> Self {
        Self { approved_upgrades, ..self }
    }

    /// Whether its objects are, or will be, in another cluster.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.deployment.spec.kube_config.is_some() || self.record.state().target.is_some()
    }

    /// What rolls its releases out. While the other cluster is unavailable, the rollout of this cluster, which refuses its objects.
    pub(super) fn rollout<'a>(&'a self, installer: &'a Installer) -> &'a Rollout {
        self.target.as_ref().map_or(&installer.rollout, |target| &target.rollout)
    }

    /// Takes the revisions from the record.
    pub(super) fn read_record(&mut self) {
        let state = self.record.state();
        if self.deployment.status.is_none() && state.history.is_empty() {
            return;
        }
        let status = self.deployment.status.get_or_insert_default();
        status.revision = state.history.last().map(|current| current.number);
        status.history.clone_from(&state.history);
    }

    pub(super) fn name(&self) -> String {
        self.deployment.name_any()
    }

    pub(super) fn history(&self) -> &[Revision] {
        self.deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default()
    }

    /// The owner of the objects of a candidate, which the rollout notes in the record.
    pub(super) fn owner(&self, candidate: &Candidate, accounts: &AccountPolicy) -> Result<Owner, SpecError> {
        self.owner_for(&self.deployment, candidate, accounts)
    }

    fn owner_for(
        &self,
        deployment: &BundleDeployment,
        candidate: &Candidate,
        accounts: &AccountPolicy,
    ) -> Result<Owner, SpecError> {
        let rollback = revisions::is_rollback(&self.deployment, candidate);
        let owner = owner::owner(deployment, &candidate.install_namespace, accounts)?;
        let owner = owner
            .with_parent(Parent::of(&self.deployment))
            .held_by(TEARDOWN_FINALIZER)
            .rollback(rollback)
            .with_approved_upgrades(self.approved_upgrades.clone())
            .granted_by(Arc::<Asker>::clone(&self.asker))
            .ignoring(drift::ignored_fields(&self.deployment.spec)?);
        Ok(owner.recorded_in(Arc::<Record>::clone(&self.record)))
    }

    /// Like [`owner`](Self::owner), for a rollout: if approval is required, unapproved settings have their defaults.
    pub(super) fn owner_as_approved(
        &self,
        candidate: &Candidate,
        accounts: &AccountPolicy,
    ) -> Result<Owner, SpecError> {
        if approval::covers_terms(&self.deployment, candidate, self.target_uid()) {
            return self.owner(candidate, accounts);
        }
        self.owner_for(&approval::on_default_terms(&self.deployment), candidate, accounts)
    }

    /// The UID of the other cluster that its objects are in, as far as it has one and it is available.
    pub(super) fn target_uid(&self) -> Option<&str> {
        self.target.as_ref().map(|target| target.uid.as_str())
    }

    /// The owner of the objects that are about to be deleted.
    pub(super) fn owner_at_deletion(&self, accounts: &AccountPolicy) -> Result<Owner, SpecError> {
        let owner = owner::owner_at_deletion(&self.deployment, accounts)?.with_parent(Parent::of(&self.deployment));
        Ok(owner.recorded_in(Arc::<Record>::clone(&self.record)))
    }
}
