//! The decisions that are kept: for each one an immutable ConfigMap of the system namespace, from which the set is installed.

use std::collections::BTreeMap;

use chandler_api::{BundleDeployment, DecisionSummary, Resolution, ResolveSetOutput, conditions::whole_seconds};
use chandler_resolution::{Manifests, PlannedMember};
use k8s_openapi::{
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time},
};
use kube::{
    Api, Resource as _, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{set, teardown::has_finalizer};
use crate::absent::ignore_absent;

/// The name of the Resolution.
pub(super) const NAME_LABEL: &str = "resolution.chandler.dev/name";
/// The UID of the Resolution: a later one of the same name has other decisions.
const UID: &str = "resolution.chandler.dev/uid";
/// The number of the decision. It marks the ConfigMap as a decision.
const NUMBER: &str = "resolution.chandler.dev/decision";
/// The last generation of the spec that the decision is an answer to.
const GENERATION: &str = "resolution.chandler.dev/generation";
/// The digest of the PlatformPolicy within which the decision was made, if there was one.
const POLICY: &str = "resolution.chandler.dev/policy";
/// The UID of the BundleDeployment of the set that this controller created.
const SET: &str = "resolution.chandler.dev/set";
/// The BundleDeployments that may use a ConfigMap.
const GRANT: &str = "chandler.dev/bundledeployments";
/// The most members that a summary lists.
const LISTED: usize = 100;

/// A decision.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    pub(super) number: i64,
    /// The name of the ConfigMap.
    pub(super) name: String,
    pub(super) generation: i64,
    /// The digest of the policy that it was last confirmed for.
    pub(super) policy: Option<String>,
    time: Option<Time>,
    /// The UID of the BundleDeployment of the set, if this controller has created it.
    set: Option<String>,
    pub(super) manifests: Manifests,
}

/// The decisions of a Resolution that are kept, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Decisions(Vec<Decision>);

impl Decision {
    /// `None` if the ConfigMap is not a decision of this Resolution.
    fn of(map: ConfigMap, resolution: &Resolution) -> Option<Self> {
        let annotation = |name: &str| map.annotations().get(name).cloned();
        if annotation(UID)? != resolution.uid()? || map.immutable != Some(true) {
            return None;
        }
        Some(Self {
            number: annotation(NUMBER)?.parse().ok()?,
            name: map.name_any(),
            generation: annotation(GENERATION).and_then(|text| text.parse().ok()).unwrap_or_default(),
            policy: annotation(POLICY),
            time: map.metadata.creation_timestamp.clone().map(|time| whole_seconds(time.0)),
            set: annotation(SET),
            manifests: Manifests(map.data.unwrap_or_default()),
        })
    }

    /// The packages and versions.
    pub(super) fn members(&self) -> Vec<PlannedMember> {
        self.manifests.members()
    }

    fn summary(&self) -> DecisionSummary {
        let members = self.members().into_iter().map(|member| format!("{} {}", member.package, member.version));
        DecisionSummary { number: self.number, time: self.time.clone(), members: members.take(LISTED).collect() }
    }
}

impl Decisions {
    /// Reads them.
    ///
    /// If the Resolution was restored from a backup, its decisions name its earlier UID, and the tool that restored them removed their owner
    /// references: they are linked to the Resolution again. Decisions of a deleted Resolution keep these references, with which they are
    /// deleted.
    pub(super) async fn read(api: &Api<ConfigMap>, resolution: &Resolution) -> Result<Self, kube::Error> {
        let selected = ListParams::default().labels(&format!("{NAME_LABEL}={}", resolution.name_any()));
        let mut maps = api.list(&selected).await?.items;
        let is_current = |map: &ConfigMap| map.annotations().get(UID) == resolution.uid().as_ref();
        if has_finalizer(resolution) && !maps.iter().any(is_current) {
            for map in maps.iter_mut().filter(|map| map.owner_references().is_empty()) {
                let metadata = json!({"annotations": {UID: resolution.uid()}, "ownerReferences": [owner(resolution)]});
                let patch = Patch::Merge(json!({"metadata": metadata}));
                *map = api.patch(&map.name_any(), &PatchParams::default(), &patch).await?;
            }
        }
        let mut decisions: Vec<Decision> = maps.into_iter().filter_map(|map| Decision::of(map, resolution)).collect();
        decisions.sort_by_key(|decision| decision.number);
        Ok(Self(decisions))
    }

    pub(super) fn newest(&self) -> Option<&Decision> {
        self.0.last()
    }

    /// All of them, the newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &Decision> {
        self.0.iter().rev()
    }

    pub(super) fn find(&self, number: i64) -> Option<&Decision> {
        self.0.iter().find(|decision| decision.number == number)
    }

    /// The decision whose ConfigMap has this name.
    pub(super) fn named(&self, name: &str) -> Option<&Decision> {
        self.0.iter().find(|decision| decision.name == name)
    }

    pub(super) fn numbers(&self) -> Vec<i64> {
        self.0.iter().map(|decision| decision.number).collect()
    }

    pub(super) fn summaries(&self) -> Vec<DecisionSummary> {
        self.0.iter().map(Decision::summary).collect()
    }

    /// Adds a decision. Fails with a conflict if another one got its number: the decisions are read again next time.
    pub(super) async fn add(
        &mut self,
        api: &Api<ConfigMap>,
        resolution: &Resolution,
        (manifests, policy): (Manifests, Option<String>),
    ) -> Result<i64, kube::Error> {
        let number = self.newest().map_or(0, |newest| newest.number) + 1;
        let mut map = config_map(resolution, number, manifests);
        let set = self.newest().and_then(|newest| newest.set.clone());
        let more =
            [(SET, set), (POLICY, policy)].into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        map.annotations_mut().extend(more);
        let created = api.create(&PostParams::default(), &map).await?;
        self.0.extend(Decision::of(created, resolution));
        Ok(number)
    }

    /// Notes that the newest decision is also the answer to a newer spec, or within another policy.
    pub(super) async fn confirm(
        &mut self,
        api: &Api<ConfigMap>,
        generation: i64,
        policy: Option<String>,
    ) -> Result<(), kube::Error> {
        let differs = |newest: &&mut Decision| newest.generation != generation || newest.policy != policy;
        let Some(newest) = self.0.last_mut().filter(differs) else { return Ok(()) };
        let annotations = json!({GENERATION: generation.to_string(), POLICY: policy});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        api.patch(&newest.name, &PatchParams::default(), &patch).await?;
        (newest.generation, newest.policy) = (generation, policy);
        Ok(())
    }

    /// Whether this controller has created the BundleDeployment of the set with this UID. Its owner reference does not prove that: its author
    /// writes it.
    pub(super) fn has_created(&self, uid: Option<&str>) -> bool {
        uid.is_some() && self.0.iter().any(|decision| decision.set.as_deref() == uid)
    }

    /// Whether a BundleDeployment without an owner is the restored one of the set: the controller has created one, and this one installs a
    /// decision with the account of the Resolution, as the controller wrote it.
    pub(super) fn had_created(
        &self,
        deployment: &BundleDeployment,
        resolution: &Resolution,
        output: &ResolveSetOutput,
    ) -> bool {
        let decision = set::config_map(deployment).and_then(|map| self.named(map));
        deployment.owner_references().is_empty()
            && has_finalizer(resolution)
            && self.0.iter().any(|decision| decision.set.is_some())
            && decision.is_some_and(|decision| set::is_as_written(deployment, resolution, output, decision))
    }

    /// Notes the UID of the BundleDeployment of the set.
    pub(super) async fn note_created(&mut self, api: &Api<ConfigMap>, uid: &str) -> Result<(), kube::Error> {
        let Some(newest) = self.0.last_mut() else { return Ok(()) };
        let patch = Patch::Merge(json!({"metadata": {"annotations": {SET: uid}}}));
        api.patch(&newest.name, &PatchParams::default(), &patch).await?;
        newest.set = Some(uid.to_owned());
        Ok(())
    }

    /// Deletes the oldest decisions beyond the limit, except the one in use.
    pub(super) async fn prune(&mut self, api: &Api<ConfigMap>, limit: usize, in_use: i64) -> Result<(), kube::Error> {
        let surplus = self.0.len().saturating_sub(limit);
        let old: Vec<Decision> = self.0.iter().take(surplus).filter(|it| it.number != in_use).cloned().collect();
        for decision in old {
            ignore_absent(api.delete(&decision.name, &DeleteParams::default()).await)?;
            self.0.retain(|kept| kept.number != decision.number);
        }
        Ok(())
    }
}

fn config_map(resolution: &Resolution, number: i64, manifests: Manifests) -> ConfigMap {
    let name = resolution.name_any();
    let annotations = BTreeMap::from([
        (UID.to_owned(), resolution.uid().unwrap_or_default()),
        (NUMBER.to_owned(), number.to_string()),
        (GENERATION.to_owned(), resolution.metadata.generation.unwrap_or_default().to_string()),
        (GRANT.to_owned(), set::deployment_name(&name)),
    ]);
    let mut labels = resolution.labels().clone();
    labels.insert(NAME_LABEL.to_owned(), name.clone());
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(format!("{}-{number}", set::deployment_name(&name))),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: Some(vec![owner(resolution)]),
            ..ObjectMeta::default()
        },
        immutable: Some(true),
        data: Some(manifests.0),
        ..ConfigMap::default()
    }
}

/// The reference to a Resolution, for objects that it owns.
pub(super) fn owner(resolution: &Resolution) -> OwnerReference {
    OwnerReference {
        api_version: Resolution::api_version(&()).into_owned(),
        kind: Resolution::kind(&()).into_owned(),
        name: resolution.name_any(),
        uid: resolution.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}
