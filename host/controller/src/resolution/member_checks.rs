//! Renders and previews the members of a decision.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use chandler_api::BundleDeployment;
use chandler_core::ObjectKey;
use chandler_resolution::{
    Manifests,
    checks::Refusal,
    installation::{Placement, is_ready},
    manifests,
};
use chandler_rollout::{ChangeKind, DefinedKinds, Preview};
use futures::StreamExt as _;
use kube::ResourceExt as _;

use crate::bundle_deployment::{Installer, NotPlanned, Planned, changes};

/// How many members are fetched and rendered at once.
const AT_ONCE: usize = 4;
/// The maximum numbers of refusals of one member, and of objects that several members would create.
const REPORTED: usize = 20;

/// A member whose installed state differs from its manifest.
pub(super) struct Unsettled {
    pub(super) member: BundleDeployment,
    /// Whether its BundleDeployment has to be written. A member that has been written and is not ready yet is only rendered: its kinds
    /// count as served.
    is_changed: bool,
}

/// The members whose installed state differs from their manifests, and the members that are taken over. Empty if nothing has to be written
/// or taken over.
pub(super) fn unsettled(
    installer: &Installer,
    manifests: &Manifests,
    taken_over: &BTreeMap<String, Placement>,
) -> Vec<Unsettled> {
    let unsettled = |member: BundleDeployment| match installer.deployments.get(&member.name_any()) {
        Some(stored) if !taken_over.contains_key(&stored.name_any()) && !changes(&member, &stored) => {
            (!is_ready(&stored)).then_some(Unsettled { member, is_changed: false })
        }
        _ => Some(Unsettled { member, is_changed: true }),
    };
    let members: Vec<Unsettled> = manifests.deployments().into_iter().filter_map(unsettled).collect();
    if members.iter().any(|it| it.is_changed) { members } else { Vec::new() }
}

/// Why members of the set of a Resolution would be refused. Each is rendered twice, the second time from the cache: the releases of a large
/// set do not fit into memory together.
pub(super) async fn refusals(installer: Arc<Installer>, resolution: String, members: Vec<Unsettled>) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let (kinds, members) = defined_kinds(&installer, members, &mut refusals).await;
    let created = created(&installer, &resolution, members, &Arc::new(kinds), &mut refusals).await;
    refusals.extend(shared(&created));
    refusals
}

/// The kinds that the members define, and the members that can be rendered and have to be written.
async fn defined_kinds(
    installer: &Arc<Installer>,
    members: Vec<Unsettled>,
    refusals: &mut Vec<Refusal>,
) -> (DefinedKinds, Vec<(Member, BundleDeployment)>) {
    let rendered = members.into_iter().map(|Unsettled { member, is_changed }| {
        let installer = Arc::clone(installer);
        async move {
            let result = Box::pin(Planned::render(&installer, member.clone())).await;
            // The release is dropped here, with its share of the memory: results wait for the results of earlier members, which may need
            // it.
            let result = result.map(|planned| {
                let mut kinds = DefinedKinds::default();
                kinds.add(&planned.release);
                kinds
            });
            (Member::of(&member), member, is_changed, result)
        }
    });
    let mut rendered = futures::stream::iter(rendered).buffered(AT_ONCE);
    let (mut kinds, mut changed) = (DefinedKinds::default(), Vec::new());
    while let Some((member, deployment, is_changed, result)) = rendered.next().await {
        match result {
            Ok(defined) => {
                kinds.extend(defined);
                changed.extend(is_changed.then_some((member, deployment)));
            }
            Err(NotPlanned { message, excludes }) => {
                refusals.extend(is_changed.then(|| Refusal { excludes, ..member.refused(&message) }));
            }
        }
    }
    (kinds, changed)
}

/// The objects that each member would create. The kinds of all members count as served: a member that needs such a kind is installed later.
async fn created(
    installer: &Arc<Installer>,
    resolution: &str,
    members: Vec<(Member, BundleDeployment)>,
    kinds: &Arc<DefinedKinds>,
    refusals: &mut Vec<Refusal>,
) -> Vec<(Member, Vec<ObjectKey>)> {
    let previews = members.into_iter().map(|(member, deployment)| {
        let (installer, kinds) = (Arc::clone(installer), Arc::clone(kinds));
        async move { (member, preview(&installer, resolution, deployment, &kinds).await) }
    });
    let mut previews = futures::stream::iter(previews).buffered(AT_ONCE);
    let mut created = Vec::new();
    while let Some((member, preview)) = previews.next().await {
        match preview {
            Ok(preview) => {
                refusals.extend(preview.refusals.into_iter().take(REPORTED).map(|refusal| member.refused(&refusal)));
                let new = preview.changes.into_iter().filter(|change| change.kind == ChangeKind::Create);
                created.push((member, new.map(|change| change.object).collect()));
            }
            Err(message) => refusals.push(member.refused(&message)),
        }
    }
    created
}

async fn preview(
    installer: &Arc<Installer>,
    resolution: &str,
    deployment: BundleDeployment,
    kinds: &DefinedKinds,
) -> Result<Preview, String> {
    let planned = Box::pin(Planned::render(installer, deployment)).await.map_err(|error| error.message)?;
    Box::pin(planned.preview(installer, kinds, resolution)).await
}

/// A member of the set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    /// The name of its BundleDeployment.
    name: String,
    package: String,
}

impl Member {
    fn of(deployment: &BundleDeployment) -> Self {
        Self { name: deployment.name_any(), package: manifests::package(deployment) }
    }

    fn refused(&self, message: &impl std::fmt::Display) -> Refusal {
        let (packages, message) = (vec![self.package.clone()], format!("{}: {message}", self.name));
        Refusal { packages, message, excludes: None }
    }
}

/// Objects that several members would create: only one of them can own each.
fn shared(created: &[(Member, Vec<ObjectKey>)]) -> Vec<Refusal> {
    let mut owners: BTreeMap<&ObjectKey, BTreeSet<&Member>> = BTreeMap::new();
    for (member, object) in created.iter().flat_map(|(it, objects)| objects.iter().map(move |object| (it, object))) {
        owners.entry(object).or_default().insert(member);
    }
    let several = owners.into_iter().filter(|(_, members)| members.len() > 1);
    let refusal = |(object, members): (&ObjectKey, BTreeSet<&Member>)| {
        let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
        let message = format!("{object} is in {}, and can belong to one only", names.join(" and "));
        let packages = members.into_iter().map(|member| member.package.clone()).collect();
        Refusal { packages, message, excludes: None }
    };
    several.map(refusal).take(REPORTED).collect()
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
        let member = |name: &str| Member { name: name.to_owned(), package: format!("package-{name}") };
        let (one, two) = (member("one"), member("two"));
        let created = [(one, vec![key("a"), key("b")]), (two, vec![key("c"), key("b")])];
        let message = "ConfigMap shop/b is in one and two, and can belong to one only".to_owned();
        let packages = vec!["package-one".to_owned(), "package-two".to_owned()];
        assert_eq!(shared(&created), [Refusal { packages, message, excludes: None }]);
    }
}
