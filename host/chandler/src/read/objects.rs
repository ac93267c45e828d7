//! Reads the objects of a BundleDeployment as they are in the cluster.

use chandler_api::BundleDeployment;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams, TypeMeta},
    discovery,
};
use serde_json::Value;

use super::cluster::{ELSEWHERE, GROUP_KINDS, ID, PAGE, PART_OF, cause, group_kind, group_kinds};

/// The objects, and the kinds that could not be read.
#[derive(Debug, Default)]
pub struct LiveObjects {
    /// The objects, by kind.
    pub objects: Vec<Value>,
    /// Kinds that could not be listed, with the reason.
    pub unreadable: Vec<String>,
}

/// Reads the members of the ApplySet of a BundleDeployment.
pub async fn live(client: &Client, deployment: &BundleDeployment) -> LiveObjects {
    let mut live = LiveObjects::default();
    if deployment.spec.kube_config.is_some() {
        live.unreadable.push(ELSEWHERE.to_owned());
        return live;
    }
    let Some(id) = deployment.labels().get(ID) else { return live };
    for (group, kinds) in group_kinds(deployment.annotations().get(GROUP_KINDS).map_or("", String::as_str)) {
        let served = match discovery::oneshot::group(client, group).await {
            Ok(served) => served,
            Err(error) => {
                live.unreadable
                    .extend(kinds.iter().map(|kind| format!("{}: {}", group_kind(kind, group), cause(&error))));
                continue;
            }
        };
        for kind in kinds {
            let read = match served.recommended_kind(kind) {
                Some((resource, _)) => list(client, &resource, id, &mut live.objects).await,
                None => Err("the cluster does not serve this kind".to_owned()),
            };
            if let Err(reason) = read {
                live.unreadable.push(format!("{}: {reason}", group_kind(kind, group)));
            }
        }
    }
    live
}

async fn list(client: &Client, resource: &ApiResource, id: &str, objects: &mut Vec<Value>) -> Result<(), String> {
    let api = Api::<DynamicObject>::all_with(client.clone(), resource);
    let mut parameters = ListParams::default().labels(&format!("{PART_OF}={id}")).limit(PAGE);
    loop {
        let page = api.list(&parameters).await.map_err(|error| cause(&error))?;
        for mut object in page.items {
            // The items of a list have neither apiVersion nor kind.
            object.types = Some(TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() });
            objects.push(serde_json::to_value(&object).map_err(|error| error.to_string())?);
        }
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => parameters.continue_token = Some(token),
            _ => return Ok(()),
        }
    }
}
