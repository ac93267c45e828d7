//! On whose behalf a BundleDeployment may be installed, according to the ServiceAccounts. This is the second line of defense behind the
//! admission policies, which not every cluster has, and which see only requests that are made after they were applied.
//!
//! The annotations `chandler.dev/bundledeployments` and `chandler.dev/resolutions` of a ServiceAccount list who may use it. The set of a
//! Resolution, and its members, count as that Resolution (`resolution::decided`).

use std::{collections::BTreeMap, fmt, sync::Arc};

use chandler_api::BundleDeployment;
use chandler_rollout::AccountGrant;
use chandler_source::Grantee;
use futures::{FutureExt as _, future::BoxFuture};
use kube::ResourceExt as _;

use crate::resolution::Sets;

/// The identity that asks for an account.
pub(crate) struct Asker {
    deployment: String,
    /// The Resolution whose set it belongs to.
    resolution: Membership,
    /// Whether a ServiceAccount must list who may use it.
    required: bool,
}

/// How it is known to which Resolution a BundleDeployment belongs.
enum Membership {
    /// The controller is about to write it for this one.
    Planned(String),
    /// It is stored; the Resolution is looked up when it matters.
    Stored(Arc<Sets>, Box<BundleDeployment>),
}

/// Makes askers.
pub(crate) struct AccountGrants {
    sets: Arc<Sets>,
    required: bool,
}

impl AccountGrants {
    /// With `required`, a ServiceAccount must list who may use it.
    pub(crate) fn new(sets: Arc<Sets>, required: bool) -> Self {
        Self { sets, required }
    }

    /// A BundleDeployment as it is stored.
    pub(crate) fn asker(&self, deployment: &BundleDeployment) -> Arc<Asker> {
        // The status, whose history is most of the object, proves nothing.
        let (metadata, spec) = (deployment.metadata.clone(), deployment.spec.clone());
        let stored = BundleDeployment { metadata, spec, status: None };
        self.of(deployment, Membership::Stored(Arc::clone(&self.sets), Box::new(stored)))
    }

    /// A member of the set of a Resolution, before it is written.
    pub(crate) fn member(&self, deployment: &BundleDeployment, resolution: &str) -> Arc<Asker> {
        self.of(deployment, Membership::Planned(resolution.to_owned()))
    }

    fn of(&self, deployment: &BundleDeployment, resolution: Membership) -> Arc<Asker> {
        Arc::new(Asker { deployment: deployment.name_any(), resolution, required: self.required })
    }
}

impl AccountGrant for Asker {
    fn allows<'a>(&'a self, annotations: &'a BTreeMap<String, String>) -> BoxFuture<'a, bool> {
        async move {
            if Grantee::BundleDeployment(&self.deployment).is_granted(Some(annotations), self.required) {
                return true;
            }
            let granted =
                |resolution: &str| Grantee::Resolution(resolution).is_granted(Some(annotations), self.required);
            match &self.resolution {
                Membership::Planned(resolution) => granted(resolution),
                Membership::Stored(sets, deployment) => {
                    // Most accounts list none, and then nothing has to be looked up.
                    Grantee::lists_resolutions(annotations)
                        && sets.resolution_of(deployment).await.is_some_and(|it| granted(&it))
                }
            }
        }
        .boxed()
    }

    fn wanted(&self) -> String {
        let grantee = match &self.resolution {
            Membership::Planned(resolution) => Grantee::Resolution(resolution),
            Membership::Stored(..) => Grantee::BundleDeployment(&self.deployment),
        };
        format!("{}: {}", grantee.annotation(), grantee.name())
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resolution = match &self.resolution {
            Membership::Planned(resolution) => Some(resolution),
            Membership::Stored(..) => None,
        };
        f.debug_struct("Asker")
            .field("deployment", &self.deployment)
            .field("resolution", &resolution)
            .field("required", &self.required)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(asker: &Asker, annotations: &[(&str, &str)]) -> bool {
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let annotations = annotations.iter().map(text).collect();
        asker.allows(&annotations).now_or_never().unwrap()
    }

    #[test]
    fn an_account_lists_who_may_use_it() {
        let deployments = |names| ("chandler.dev/bundledeployments", names);
        let resolutions = |names| ("chandler.dev/resolutions", names);
        let member = |required| Asker {
            deployment: "harbour".into(),
            resolution: Membership::Planned("platform".into()),
            required,
        };
        assert!(allows(&member(false), &[]), "without annotations all may");
        assert!(!allows(&member(true), &[]), "unless a grant is required");
        for required in [false, true] {
            let member = member(required);
            assert!(allows(&member, &[deployments("harbour")]));
            assert!(allows(&member, &[resolutions("platform")]));
            assert!(allows(&member, &[deployments("shop"), resolutions("plat*")]));
            assert!(!allows(&member, &[deployments("shop")]) && !allows(&member, &[resolutions("shop")]));
        }
        assert_eq!(member(true).wanted(), "chandler.dev/resolutions: platform");
    }
}
