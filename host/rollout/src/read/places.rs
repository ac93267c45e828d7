//! The places where members of a set may be: kinds and, for namespaced kinds, namespaces.
//!
//! With the controller's rights one list covers all namespaces. For a ServiceAccount each namespace is listed by itself, so
//! that the account needs no permission in other namespaces (KEP-3659 lists the namespaces for this purpose).

use std::collections::{BTreeMap, BTreeSet};

use kube::api::ApiResource;
use serde_json::Value;

use crate::{
    pure::{
        desired::{Desired, Served},
        error::{ApiError, RolloutError},
        inventory::{self, Inventory},
        live,
        owner::{GROUP_KINDS, NAMESPACES, Owner, SET_ID},
    },
    read::{discovery::Discovery, resolve::cannot_discover},
};

/// How many places are searched by what the parent lists, while the record is lost: users may write these annotations. A search of all kinds of a
/// cluster in the namespaces of a large release takes a fifth of that.
const SEARCHED: usize = 20_000;

/// A place where members may be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    /// The kind.
    pub(crate) resource: ApiResource,
    /// The namespace; none for cluster-scoped kinds and for all namespaces.
    pub(crate) namespace: Option<String>,
    /// Whether the release, the record or the parent lists it. Other places are searched only because both record and parent
    /// are lost. A ServiceAccount need not have permission to list them: it installed nothing of the kind.
    pub(crate) certain: bool,
}

/// Group and kind.
type GroupKind = (String, String);

/// Every place where the owner may have objects.
pub(crate) async fn of(
    discovery: &Discovery,
    owner: &Owner,
    parent: &Value,
    desired: &[Desired],
) -> Result<Vec<Place>, RolloutError> {
    let mut kinds: BTreeMap<GroupKind, (Served, bool)> = BTreeMap::new();
    for desired in desired.iter().filter(|desired| desired.served) {
        let served = Served { resource: desired.resource.clone(), namespaced: desired.key.namespace.is_some() };
        kinds.entry(group_kind(&served)).or_insert((served, true));
    }
    let trusted = owner.holdings().is_some_and(|holdings| !holdings.inherits());
    let recorded = recorded(owner, parent);
    if !trusted {
        check_searched(owner, parent, recorded.len())?;
    }
    for (group, kind) in recorded {
        if kinds.contains_key(&(group.clone(), kind.clone())) {
            continue;
        }
        // A kind that is no longer served has no objects.
        if let Some(served) = discovery.any_version(&group, &kind).await.map_err(cannot_discover)? {
            kinds.insert((group, kind), (served, true));
        }
    }
    // A user removed the annotation of the parent, so only a search of all kinds is safe.
    if !trusted && inventory::group_kinds(parent).is_none() && live::label(parent, SET_ID).is_some() {
        for served in discovery.every_kind().await.map_err(cannot_discover)? {
            kinds.entry(group_kind(&served)).or_insert((served, false));
        }
        check_searched(owner, parent, kinds.len())?;
    }
    let namespaces = owner.lists_namespaces().then(|| namespaces(owner, parent, desired));
    Ok(spread(kinds.into_values(), namespaces.as_ref()))
}

/// Refuses to search for so many kinds in each namespace that the parent lists.
fn check_searched(owner: &Owner, parent: &Value, kinds: usize) -> Result<(), RolloutError> {
    let namespaces = if owner.lists_namespaces() { Inventory::read(parent).namespaces().len() } else { 0 };
    let searched = kinds.saturating_mul(namespaces.max(1));
    if searched <= SEARCHED {
        return Ok(());
    }
    let (kind, name) = (&owner.kind, &owner.name);
    Err(RolloutError::Request {
        action: format!("find the objects of {name}, whose record is lost"),
        error: ApiError::Refused(format!(
            "the annotations {GROUP_KINDS} and {NAMESPACES} of {kind} {name} list too many kinds and namespaces ({searched} places, at most \
             {SEARCHED} are searched): remove those that have no objects of it, with `kubectl edit {kind} {name}`"
        )),
    })
}

/// The kinds that may have objects: by the record, else by the parent.
fn recorded(owner: &Owner, parent: &Value) -> BTreeSet<GroupKind> {
    match owner.holdings() {
        Some(holdings) if !holdings.inherits() => {
            holdings.known().map(|id| (id.group.clone(), id.kind.clone())).collect()
        }
        _ => inventory::group_kinds(parent).into_iter().flatten().collect(),
    }
}

fn group_kind(served: &Served) -> GroupKind {
    (served.resource.group.clone(), served.resource.kind.clone())
}

/// The namespaces where members may be.
fn namespaces(owner: &Owner, parent: &Value, desired: &[Desired]) -> BTreeSet<String> {
    let mut namespaces = match owner.holdings() {
        Some(holdings) if !holdings.inherits() => holdings.known().filter_map(|id| id.namespace.clone()).collect(),
        _ => Inventory::read(parent).namespaces().clone(),
    };
    namespaces.extend(desired.iter().filter_map(|desired| desired.key.namespace.clone()));
    namespaces.insert(owner.install_namespace.clone());
    namespaces
}

/// Each namespaced kind in each of the namespaces, if namespaces are listed individually.
fn spread(kinds: impl Iterator<Item = (Served, bool)>, namespaces: Option<&BTreeSet<String>>) -> Vec<Place> {
    let mut places = Vec::new();
    for (Served { resource, namespaced }, certain) in kinds {
        let place = |namespace| Place { resource: resource.clone(), namespace, certain };
        match namespaces {
            Some(namespaces) if namespaced => {
                places.extend(namespaces.iter().map(|namespace| place(Some(namespace.clone()))));
            }
            // Without a ServiceAccount a refusal concerns the controller, and is reported.
            None => places.push(Place { certain: true, ..place(None) }),
            Some(_) => places.push(place(None)),
        }
    }
    places
}

/// A resource with its group, as the API server writes it: `deployments.apps`, and `configmaps` of the core group.
pub(crate) fn qualified(resource: &ApiResource) -> String {
    let ApiResource { plural, group, .. } = resource;
    if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::pure::{
        holdings::{Holdings, ObjectId, Settlement},
        ledger::InMemory,
        live::tests::owner,
        seal::Seal,
    };

    fn kind(kind: &str, namespaced: bool) -> Served {
        let resource = ApiResource {
            group: String::new(),
            version: "v1".into(),
            api_version: "v1".into(),
            kind: kind.into(),
            plural: format!("{}s", kind.to_lowercase()),
        };
        Served { resource, namespaced }
    }

    #[test]
    fn only_service_accounts_list_each_namespace() {
        let kinds =
            || [(kind("Pod", true), true), (kind("Node", false), true), (kind("Event", true), false)].into_iter();
        let shown = |places: Vec<Place>| -> Vec<String> {
            let line = |place: Place| {
                let namespace = place.namespace.unwrap_or_else(|| "-".to_owned());
                format!("{} {namespace}{}", place.resource.kind, if place.certain { "" } else { "?" })
            };
            places.into_iter().map(line).collect()
        };
        assert_eq!(shown(spread(kinds(), None)), ["Pod -", "Node -", "Event -"]);
        let namespaces = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        assert_eq!(shown(spread(kinds(), Some(&namespaces))), ["Pod a", "Pod b", "Node -", "Event a?", "Event b?"]);
    }

    #[test]
    fn annotations_that_a_user_wrote_do_not_have_the_whole_cluster_searched() {
        let parent = |namespaces: usize| {
            let listed: Vec<String> = (0..namespaces).map(|number| number.to_string()).collect();
            json!({"metadata": {"annotations": {NAMESPACES: listed.join(",")}}})
        };
        let account = chandler_permissions::Account { namespace: "n".into(), name: "a".into() };
        let with_account = Owner { account: Some(account), ..owner() };
        for (owner, kinds, namespaces, is_searched) in [
            (&with_account, 400, 50, true),
            (&with_account, 400, 51, false),
            (&with_account, 20_000, 0, true),
            (&with_account, 20_001, 0, false),
            // With the permissions of the controller, one list has all namespaces.
            (&owner(), 400, 1000, true),
            (&owner(), 20_001, 0, false),
        ] {
            let checked = check_searched(owner, &parent(namespaces), kinds);
            assert_eq!(checked.is_ok(), is_searched, "{kinds} {namespaces}");
            if let Err(error) = checked {
                assert!(!error.is_transient() && error.to_string().contains("kubectl edit"), "{error}");
            }
        }
    }

    #[test]
    fn namespaces_come_from_the_record_or_without_one_from_the_parent() {
        let id = ObjectId {
            group: String::new(),
            kind: "ConfigMap".into(),
            namespace: Some("recorded".into()),
            name: "x".into(),
        };
        let held = Settlement { held: [(id, "u".to_owned())].into(), ..Settlement::default() };
        let holdings = Holdings::new("uid-a", Seal::new([1; 32])).settled(&held);
        let recorded_in = |holdings| owner().recorded_in(Arc::new(InMemory::with(holdings)));
        let parent = json!({"metadata": {"annotations": {NAMESPACES: "listed"}}});
        for (owner, expected) in [
            (owner(), ["install", "listed"]),
            (recorded_in(holdings.clone()), ["install", "recorded"]),
            (recorded_in(holdings.inheriting()), ["install", "listed"]),
        ] {
            assert_eq!(namespaces(&owner, &parent, &[]), expected.map(str::to_owned).into());
        }
    }
}
