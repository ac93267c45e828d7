//! On whose behalf a BundleDeployment may be installed, as the ServiceAccounts say: the second line behind the admission policies, which
//! not every cluster has, and which see only requests that are made after they were applied.
//!
//! The annotations `chandler.dev/bundledeployments` and `chandler.dev/resolutions` of a ServiceAccount list who may use it. The set of a
//! Resolution, and its members, count as that Resolution: neither by a label nor by an owner reference, which whoever writes a
//! BundleDeployment can set, but by what only the controller writes.

use std::{collections::BTreeMap, sync::Arc};

use chandler_api::{BundleDeployment, names::OWNER_NAME_LABEL};
use chandler_rollout::{AccountGrant, ObjectId};
use chandler_source::Grantee;
use kube::{Resource as _, ResourceExt as _};

use crate::{context::Context, resolution};

/// Who asks for an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    deployment: String,
    /// The Resolution whose set it belongs to.
    resolution: Option<String>,
    /// Whether a ServiceAccount must list who may use it.
    required: bool,
}

impl Asker {
    /// A BundleDeployment as it is stored.
    pub(crate) fn of(context: &Context, deployment: &BundleDeployment) -> Arc<Self> {
        Self::new(context, deployment, resolution_of(context, deployment))
    }

    /// A member of the set of a Resolution, before it is written.
    pub(crate) fn member(context: &Context, deployment: &BundleDeployment, resolution: &str) -> Arc<Self> {
        Self::new(context, deployment, Some(resolution.to_owned()))
    }

    fn new(context: &Context, deployment: &BundleDeployment, resolution: Option<String>) -> Arc<Self> {
        let required = context.options.require_service_account_grant;
        Arc::new(Self { deployment: deployment.name_any(), resolution, required })
    }
}

impl AccountGrant for Asker {
    fn allows(&self, annotations: &BTreeMap<String, String>) -> bool {
        let deployment = Grantee::BundleDeployment(&self.deployment);
        let mut grantees = [deployment].into_iter().chain(self.resolution.as_deref().map(Grantee::Resolution));
        grantees.any(|grantee| grantee.is_granted(Some(annotations), self.required))
    }

    fn wanted(&self) -> String {
        let named = self.resolution.as_deref().map(Grantee::Resolution);
        let grantee = named.unwrap_or(Grantee::BundleDeployment(&self.deployment));
        format!("{}: {}", grantee.annotation(), grantee.name())
    }
}

/// The Resolution that had the controller write a BundleDeployment.
fn resolution_of(context: &Context, deployment: &BundleDeployment) -> Option<String> {
    if let Some(resolution) = resolution::of_set(context, deployment) {
        return Some(resolution);
    }
    let set = context.deployment(deployment.labels().get(OWNER_NAME_LABEL)?)?;
    let resolution = resolution::of_set(context, &set)?;
    let record = context.records.known(&set.name_any())?.state();
    let id = ObjectId {
        group: BundleDeployment::group(&()).into_owned(),
        kind: BundleDeployment::kind(&()).into_owned(),
        namespace: None,
        name: deployment.name_any(),
    };
    let is_of_set = Some(record.holdings.owner()) == set.uid().as_deref();
    (is_of_set && record.holdings.owns(&id, &deployment.metadata)).then_some(resolution)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(asker: &Asker, annotations: &[(&str, &str)]) -> bool {
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        asker.allows(&annotations.iter().map(text).collect())
    }

    #[test]
    fn an_account_lists_who_may_use_it() {
        let deployments = |names| ("chandler.dev/bundledeployments", names);
        let resolutions = |names| ("chandler.dev/resolutions", names);
        let plain = Asker { deployment: "harbour".into(), resolution: None, required: false };
        let member = Asker { resolution: Some("platform".into()), ..plain.clone() };
        assert!(allows(&plain, &[]) && allows(&member, &[]), "without annotations all may");
        for asker in [&plain, &member] {
            let required = Asker { required: true, ..asker.clone() };
            assert!(!allows(&required, &[]), "unless a grant is required");
            assert!(allows(&required, &[deployments("harbour")]), "{asker:?}");
            assert!(!allows(asker, &[deployments("shop")]), "{asker:?}");
        }
        assert!(allows(&member, &[resolutions("platform")]) && !allows(&plain, &[resolutions("*")]));
        assert!(allows(&member, &[deployments("shop"), resolutions("plat*")]));
        assert_eq!(plain.wanted(), "chandler.dev/bundledeployments: harbour");
        assert_eq!(member.wanted(), "chandler.dev/resolutions: platform");
    }
}
