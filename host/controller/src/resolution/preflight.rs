//! All members of a decision are fetched, rendered and checked before the first of them is written.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use chandler_api::{BundleDeployment, BundleDeploymentSpec};
use chandler_core::{Digest, ObjectKey, Release};
use chandler_resolution::{Manifests, installation::is_ready};
use chandler_rollout::ChangeKind;
use chandler_runtime::Jobs;
use futures::StreamExt as _;
use kube::ResourceExt as _;

use crate::{bundle_deployment::Planned, context::Context};

/// How many members are fetched and rendered at once.
const AT_ONCE: usize = 4;
/// The most refusals that are reported.
const REPORTED: usize = 20;

/// The checks in progress, a job for each Resolution.
#[derive(Default)]
pub(super) struct Preflights(Jobs<Vec<String>>);

/// What is known of the checks of a decision.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Preflight {
    /// Nothing refuses the members.
    Passed,
    /// They are being fetched, rendered and checked.
    Running,
    /// Why members would be refused: at least one line.
    Refused(Vec<String>),
}

impl Preflights {
    /// Checks the members of a decision that are new or changed. While that takes longer, `wake` is called when it ends.
    pub(super) async fn check(
        &self,
        context: &Arc<Context>,
        resolution: &str,
        manifests: &Manifests,
        wake: impl FnOnce() + Send + 'static,
    ) -> Preflight {
        let members: Vec<BundleDeployment> =
            manifests.deployments().into_iter().filter(|member| is_changed(context, member)).collect();
        if members.is_empty() {
            return Preflight::Passed;
        }
        let inputs = Digest::of_json(&manifests.0);
        let context = Arc::clone(context);
        match self.0.outcome(resolution, &inputs, move || refusals(context, members), wake).await {
            None => Preflight::Running,
            Some(Ok(refusals)) if refusals.is_empty() => Preflight::Passed,
            Some(Ok(refusals)) => Preflight::Refused(refusals),
            Some(Err(_)) => Preflight::Refused(vec![
                "the controller panicked while it checked the members: its log says more".into(),
            ]),
        }
    }

    /// Ends the checks of a Resolution.
    pub(super) fn end(&self, resolution: &str) {
        self.0.end(resolution);
    }
}

/// Whether a member is not installed as its manifest says.
fn is_changed(context: &Context, member: &BundleDeployment) -> bool {
    let Some(stored) = context.deployment(&member.name_any()) else { return true };
    let same = |one: &BundleDeploymentSpec, other: &BundleDeploymentSpec| {
        (&one.source, &one.config, &one.install_namespace) == (&other.source, &other.config, &other.install_namespace)
    };
    !(is_ready(&stored) && same(&stored.spec, &member.spec))
}

/// Why members would be refused.
async fn refusals(context: Arc<Context>, members: Vec<BundleDeployment>) -> Vec<String> {
    let rendered = futures::stream::iter(members).map(|member| {
        let (name, context) = (member.name_any(), Arc::clone(&context));
        async move { (name, Box::pin(Planned::render(&context, member)).await) }
    });
    let rendered: Vec<(String, Result<Planned, String>)> = rendered.buffered(AT_ONCE).collect().await;
    let (mut refusals, mut created) = (Vec::new(), Vec::new());
    let mut planned = Vec::new();
    for (name, result) in rendered {
        match result {
            Ok(one) => planned.push((name, one)),
            Err(message) => refusals.push(format!("{name}: {message}")),
        }
    }
    let releases: Vec<Arc<Release>> = planned.iter().map(|(_, one)| Arc::clone(&one.release)).collect();
    for (name, one) in &planned {
        // The kinds of all members count as served: whichever needs another one is installed after it.
        match one.preview(&context, &releases).await {
            Ok(preview) => {
                refusals.extend(preview.refusals.into_iter().map(|refusal| format!("{name}: {refusal}")));
                let new = preview.changes.into_iter().filter(|change| change.kind == ChangeKind::Create);
                created.push((name.as_str(), new.map(|change| change.object).collect::<Vec<ObjectKey>>()));
            }
            Err(message) => refusals.push(format!("{name}: {message}")),
        }
    }
    refusals.extend(shared(&created));
    if refusals.len() > REPORTED {
        let more = refusals.len() - REPORTED + 1;
        refusals.truncate(REPORTED - 1);
        refusals.push(format!("and {more} more"));
    }
    refusals
}

/// Objects that several members would create: only one of them can own each.
fn shared(created: &[(&str, Vec<ObjectKey>)]) -> Vec<String> {
    let mut owners: BTreeMap<&ObjectKey, BTreeSet<&str>> = BTreeMap::new();
    for (name, object) in created.iter().flat_map(|(name, objects)| objects.iter().map(move |object| (name, object))) {
        owners.entry(object).or_default().insert(name);
    }
    let several = owners.into_iter().filter(|(_, names)| names.len() > 1);
    let line = |(object, names): (&ObjectKey, BTreeSet<&str>)| {
        let names: Vec<&str> = names.into_iter().collect();
        format!("{object} is in {}, and can belong to one only", names.join(" and "))
    };
    several.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_of_two_members_is_refused() {
        let key = |name: &str| ObjectKey {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
        };
        let created = [("one", vec![key("a"), key("b")]), ("two", vec![key("c"), key("b")])];
        assert_eq!(shared(&created), ["ConfigMap shop/b is in one and two, and can belong to one only"]);
    }
}
