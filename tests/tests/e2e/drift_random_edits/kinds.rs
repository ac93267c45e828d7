//! The kinds whose objects are edited.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use chandler_devcluster_apimachinery::schema::{Builtins, CustomResourceDefinition, Schema, Shape};
use chandler_tests::{World, wait};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams},
};

use serde_json::Value;

use super::samples;
use crate::random::Random;

/// How many CRDs one run installs.
const CRDS: usize = 10;

/// A kind whose objects are edited.
#[derive(Clone)]
pub(super) struct Kind {
    pub(super) resource: ApiResource,
    pub(super) namespaced: bool,
    pub(super) schema: Schema,
}

/// The built-in kinds that the API server serves.
pub(super) async fn built_in(client: &Client) -> Vec<Kind> {
    let served = served(client).await;
    let left_out: BTreeSet<&str> = samples::LEFT_OUT.iter().map(|(kind, _)| *kind).collect();
    let mut kinds = Vec::new();
    for resource in Builtins::get().resources() {
        let kind = &resource.group_version_kind;
        // The other test covers CRDs.
        if resource.virtual_resource || left_out.contains(kind.kind.as_str()) || kind.kind == "CustomResourceDefinition"
        {
            continue;
        }
        if !served.contains(&(kind.api_version(), resource.plural.clone())) {
            eprintln!("skipped: {kind} is not served");
            continue;
        }
        assert!(
            samples::sample(&kind.kind, &kind.version).is_some(),
            "{kind} has neither a sample nor a reason to skip it"
        );
        kinds.push(Kind {
            resource: ApiResource {
                group: kind.group.clone(),
                version: kind.version.clone(),
                api_version: kind.api_version(),
                kind: kind.kind.clone(),
                plural: resource.plural.clone(),
            },
            namespaced: resource.namespaced,
            schema: resource.schema.clone(),
        });
    }
    kinds
}

/// The versions and plurals that the API server serves.
async fn served(client: &Client) -> BTreeSet<(String, String)> {
    let discovery =
        kube::Discovery::new(client.clone()).run_aggregated().await.expect("the API server serves discovery");
    let groups = discovery
        .groups()
        .flat_map(|group| group.versions().flat_map(|version| group.versioned_resources(version)).collect::<Vec<_>>());
    groups.map(|(resource, _)| (resource.api_version, resource.plural)).collect()
}

/// Installs some CRDs of a directory. Returns their kinds and names.
pub(super) async fn custom(world: &World, corpus: &Path, random: &mut Random) -> (Vec<Kind>, Vec<String>) {
    let mut files = Vec::new();
    manifests(corpus, &mut files);
    files.sort();
    let (mut kinds, mut names) = (Vec::new(), Vec::new());
    while kinds.len() < CRDS && !files.is_empty() {
        let file = files.swap_remove(random.below(files.len()));
        if let Some((kind, name)) = install(world, &file).await {
            kinds.push(kind);
            names.push(name);
        }
    }
    (kinds, names)
}

/// Deletes CRDs.
pub(super) async fn remove(client: &Client, names: &[String]) {
    for name in names {
        let _ = crds(client).delete(name, &DeleteParams::background()).await;
    }
}

fn crds(client: &kube::Client) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "apiextensions.k8s.io".into(),
        version: "v1".into(),
        api_version: "apiextensions.k8s.io/v1".into(),
        kind: "CustomResourceDefinition".into(),
        plural: "customresourcedefinitions".into(),
    };
    Api::all_with(client.clone(), &resource)
}

/// The files of bundles.
fn manifests(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            manifests(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
            files.push(path);
        }
    }
}

/// Installs the CRD in a file, if it is one and has fields to edit, and waits until it is served.
async fn install(world: &World, file: &Path) -> Option<(Kind, String)> {
    let text = fs::read_to_string(file).ok()?;
    if !text.contains("CustomResourceDefinition") {
        return None;
    }
    let mut object: Value = serde_saphyr::from_str(&text).ok()?;
    if object["kind"] != "CustomResourceDefinition" || object["apiVersion"] != "apiextensions.k8s.io/v1" {
        return None;
    }
    // No conversion webhook runs in this test.
    object["spec"].as_object_mut()?.remove("conversion");
    object.as_object_mut()?.remove("status");
    let parsed = CustomResourceDefinition::parse(&object).ok()?;
    let version = parsed.versions.iter().find(|version| version.served && version.storage)?;
    let Shape::Object { properties, .. } = &version.resource.schema.shape else { return None };
    properties.keys().find(|name| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status"))?;
    let name = object["metadata"]["name"].as_str()?.to_owned();
    let crd: DynamicObject = serde_json::from_value(object).ok()?;
    let api = crds(&world.client);
    api.create(&PostParams::default(), &crd).await.ok()?;
    let kind = Kind {
        resource: ApiResource {
            group: parsed.group.clone(),
            version: version.name.clone(),
            api_version: format!("{}/{}", parsed.group, version.name),
            kind: parsed.kind.clone(),
            plural: parsed.plural.clone(),
        },
        namespaced: parsed.namespaced,
        schema: version.resource.schema.clone(),
    };
    let objects: Api<DynamicObject> = Api::all_with(world.client.clone(), &kind.resource);
    wait::eventually(&format!("{name} is served"), || async { objects.list(&ListParams::default()).await.is_ok() })
        .await;
    eprintln!("{}: {}", name, file.display());
    Some((kind, name))
}
