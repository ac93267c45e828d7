//! What hostile tenants do.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use chandler_api::{ProvisionerClass, names::PLAIN_CLASS};
use chandler_tests::{
    World,
    bundles::{self, Bundle},
    hostile_registry::HostileRegistry,
    wait,
};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{namespace, seen::Seen};

/// The ways of being hostile, and their names on the command line; BundleDeployments take them in turn.
const WAYS: [(&str, Way); 14] = [
    ("silent-registry", Way::SilentRegistry),
    ("trickling-registry", Way::TricklingRegistry),
    ("redirect", Way::RedirectToMetadata),
    ("digest-of-others", Way::DigestOfOthers),
    ("spin", Way::Behaves("spin")),
    ("allocate", Way::Behaves("allocate")),
    ("many-objects", Way::Behaves("emit-million")),
    ("many-findings", Way::Behaves("report-million")),
    ("patterns", Way::Patterns),
    ("ignored-fields", Way::IgnoredFields),
    ("schema", Way::Schema),
    ("many-versions", Way::ManyVersions),
    ("nested-component", Way::NestedComponent),
    ("vanishing-class", Way::VanishingClass),
];

/// The time between two edits of a hostile BundleDeployment, so that each of them is tried again and again.
const BETWEEN_EDITS: Duration = Duration::from_millis(500);
/// After so many edits the class that vanishes is deleted and made again.
const EDITS_PER_CLASS: u64 = 20;

#[derive(Clone, Copy)]
enum Way {
    /// The registry never answers.
    SilentRegistry,
    /// It answers a byte at a time.
    TricklingRegistry,
    /// It redirects to the address where clouds keep credentials.
    RedirectToMetadata,
    /// Content that honest tenants have fetched, by its digest, named on a registry that never answers.
    DigestOfOthers,
    /// What the hostile guest calls this.
    Behaves(&'static str),
    /// An installed CRD gets thousands of costly patterns.
    Patterns,
    /// Thousands of ignored differences against a large object.
    IgnoredFields,
    /// A configuration schema of thousands of costly patterns.
    Schema,
    /// A CRD with ten thousand versions.
    ManyVersions,
    /// A component of a few kilobytes that stands for millions of instances.
    NestedComponent,
    /// A class that is deleted and made again while it is in use.
    VanishingClass,
}

/// One hostile BundleDeployment.
struct One {
    name: String,
    /// What it alternates between.
    specs: [Value; 2],
    /// Whether the first of them is to be installed before the second.
    begins_well: bool,
}

/// The hostile BundleDeployments, and what keeps them going.
pub(crate) struct Menace {
    all: Arc<Vec<One>>,
    classes: Arc<Classes>,
    edits: Arc<AtomicU64>,
    agitator: JoinHandle<()>,
    _registries: [HostileRegistry; 3],
}

impl Menace {
    /// Creates the BundleDeployments, and edits one after the other until the end. `honest` is an image by digest of others; `only`
    /// names the ways of being hostile, all where it is empty.
    pub(crate) async fn unleash(world: &Arc<World>, seen: &Seen, count: usize, honest: &str, only: &[String]) -> Self {
        let registries = [
            HostileRegistry::silent().await,
            HostileRegistry::trickling(Duration::from_secs(9)).await,
            HostileRegistry::redirecting("http://169.254.169.254/latest/meta-data/").await,
        ];
        let classes = Arc::new(Classes::create(world).await);
        let mut all = Vec::new();
        let ways = WAYS.into_iter().filter(|(name, _)| only.is_empty() || only.iter().any(|wanted| wanted == name));
        let ways: Vec<Way> = ways.map(|(_, way)| way).collect();
        assert!(
            !ways.is_empty(),
            "none of these is a way of being hostile: {only:?}; there are {:?}",
            WAYS.map(|way| way.0)
        );
        for (index, way) in ways.iter().cycle().take(count).enumerate() {
            all.push(one(world, &registries, &classes, honest, *way, index).await);
        }
        for one in &all {
            world.apply(&one.name, one.specs[0].clone()).await;
        }
        for one in all.iter().filter(|one| one.begins_well) {
            seen.until(&one.name, |found| found.is_some_and(|found| found.ready)).await;
        }
        let (all, edits) = (Arc::new(all), Arc::new(AtomicU64::new(0)));
        let agitator =
            tokio::spawn(agitate(Arc::clone(world), Arc::clone(&all), Arc::clone(&classes), Arc::clone(&edits)));
        Self { all, classes, edits, agitator, _registries: registries }
    }

    /// Takes all of it away; the number of edits that there were.
    pub(crate) async fn end(self, world: &World, seen: &Seen) -> u64 {
        self.agitator.abort();
        let _ = self.agitator.await;
        for one in &*self.all {
            world.deployments().delete(&one.name, &DeleteParams::default()).await.expect("it is there");
        }
        for one in &*self.all {
            seen.until(&one.name, |found| found.is_none()).await;
        }
        self.classes.delete(world).await;
        self.edits.load(Ordering::Relaxed)
    }
}

/// Edits one BundleDeployment after the other, without an end.
async fn agitate(world: Arc<World>, all: Arc<Vec<One>>, classes: Arc<Classes>, edits: Arc<AtomicU64>) {
    let mut ticks = tokio::time::interval(BETWEEN_EDITS);
    for round in 1.. {
        for one in &*all {
            ticks.tick().await;
            let patch = Patch::Merge(json!({"spec": one.specs[round % 2]}));
            world.deployments().patch(&one.name, &PatchParams::default(), &patch).await.expect("a spec");
            if edits.fetch_add(1, Ordering::Relaxed).is_multiple_of(EDITS_PER_CLASS) {
                classes.replace(&world).await;
            }
        }
    }
}

async fn one(
    world: &World,
    registries: &[HostileRegistry; 3],
    classes: &Classes,
    honest: &str,
    way: Way,
    index: usize,
) -> One {
    let [silent, trickling, redirecting] = registries;
    let name = format!("{}-hostile-{index}", world.name());
    // Each differs, so that nothing is rendered or fetched once for all.
    let both = async |make: &dyn Fn(&str) -> Bundle| {
        [world.push(&make(&format!("{name}-a"))).await, world.push(&make(&format!("{name}-b"))).await]
    };
    let behaves =
        |behaviour: &'static str| move |note: &str| Bundle::empty().with("provision", behaviour).with("note", note);
    let at = |registry: &HostileRegistry| ["a", "b"].map(|variant| registry.image(&format!("x-{index}-{variant}")));
    let (class, images) = match way {
        Way::SilentRegistry => (PLAIN_CLASS, at(silent)),
        Way::TricklingRegistry => (PLAIN_CLASS, at(trickling)),
        Way::RedirectToMetadata => (PLAIN_CLASS, at(redirecting)),
        Way::DigestOfOthers => {
            let digest = honest.split_once('@').map_or(honest, |(_, digest)| digest);
            (PLAIN_CLASS, ["a", "b"].map(|variant| silent.image_at(&format!("x-{index}-{variant}"), digest)))
        }
        Way::Behaves(behaviour) => (classes.hostile.as_str(), both(&behaves(behaviour)).await),
        Way::NestedComponent => (classes.nested.as_str(), both(&behaves("")).await),
        Way::VanishingClass => (classes.vanishing.as_str(), both(&behaves("")).await),
        Way::Schema => (classes.hostile.as_str(), both(&costly_schema).await),
        Way::Patterns => (PLAIN_CLASS, patterns(world, &name).await),
        Way::ManyVersions => (PLAIN_CLASS, both(&|note| many_versions(&name, note)).await),
        Way::IgnoredFields => (PLAIN_CLASS, both(&large).await),
    };
    let mut specs = images.map(|image| world.spec(class, &image));
    for spec in &mut specs {
        spec["installNamespace"] = json!(namespace(world, 100_000 + index).await);
        if matches!(way, Way::IgnoredFields) {
            spec["ignoreDifferences"] = ignored_fields();
        }
    }
    One { name, specs, begins_well: matches!(way, Way::Patterns | Way::IgnoredFields) }
}

fn crd(name: &str, versions: &[Value]) -> Value {
    let group = format!("{name}.example.com");
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
           "metadata": {"name": format!("oxen.{group}")},
           "spec": {"group": group, "scope": "Namespaced", "versions": versions,
                    "names": {"kind": "Ox", "listKind": "OxList", "plural": "oxen", "singular": "ox"}}})
}

/// A harmless CRD, and the same one with thousands of costly patterns.
async fn patterns(world: &World, name: &str) -> [String; 2] {
    let of = async |properties: Value| {
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": properties}});
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
        world.push(&Bundle::empty().with("manifests/crd.yaml", &crd(name, &[version]).to_string())).await
    };
    let many = (0..4000).map(|n| (format!("p{n}"), json!({"type": "string", "pattern": ".{800}N"}))).collect();
    [of(json!({"p0": {"type": "string"}})).await, of(Value::Object(many)).await]
}

fn many_versions(name: &str, note: &str) -> Bundle {
    let version = |n: usize| {
        json!({"name": format!("v{n}"), "served": n == 1, "storage": n == 1,
               "schema": {"openAPIV3Schema": {"type": "object", "description": note}}})
    };
    let versions: Vec<Value> = (1..=10_000).map(version).collect();
    Bundle::empty().with("manifests/crd.yaml", &crd(name, &versions).to_string())
}

fn costly_schema(note: &str) -> Bundle {
    let many = (0..2000).map(|n| json!({"properties": {format!("p{n}"): {"pattern": format!(".{{800}}N{n}")}}}));
    let schema =
        json!({"type": "object", "properties": {"a": {"pattern": ".{800}N"}}, "allOf": many.collect::<Vec<_>>()});
    Bundle::empty().with("config-schema", &schema.to_string()).with("note", note)
}

/// An object of thousands of fields.
fn large(note: &str) -> Bundle {
    let mut data: serde_json::Map<String, Value> =
        (0..8000).map(|n| (format!("key-{n}"), json!("x".repeat(60)))).collect();
    data.insert("note".into(), json!(note));
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": data});
    Bundle::empty().with("manifests/large.yaml", &object.to_string())
}

/// As many as the API takes.
fn ignored_fields() -> Value {
    let pointers = |rule: usize| (0..64).map(|n| format!("/data/key-{}", rule * 64 + n)).collect::<Vec<_>>();
    (0..64).map(|rule| json!({"kind": "ConfigMap", "jsonPointers": pointers(rule)})).collect()
}

/// The classes that hostile BundleDeployments name.
struct Classes {
    hostile: String,
    nested: String,
    vanishing: String,
    component: String,
}

impl Classes {
    async fn create(world: &World) -> Self {
        let push = |name: &str, wasm: Vec<u8>| {
            world.registry.push_component(name, "v1", wasm).expect("the registry takes it").reference
        };
        let guest = bundles::workspace().join("target/plugins/test/hostile.wasm");
        let component = push("provisioners/hostile", fs::read(guest).expect("built with `cargo xtask plugins`"));
        let nested = push("provisioners/nested", chandler_test_components::instance_bomb());
        let name = |suffix: &str| format!("{}-{suffix}", world.name());
        let classes =
            Self { hostile: name("hostile"), nested: name("nested"), vanishing: name("vanishing"), component };
        define(world, &classes.hostile, &classes.component).await;
        define(world, &classes.nested, &nested).await;
        define(world, &classes.vanishing, &classes.component).await;
        classes
    }

    /// Deletes the class that vanishes and makes it again.
    async fn replace(&self, world: &World) {
        Self::remove(world, &self.vanishing).await;
        define(world, &self.vanishing, &self.component).await;
    }

    async fn delete(&self, world: &World) {
        for class in [&self.hostile, &self.nested, &self.vanishing] {
            Self::remove(world, class).await;
        }
    }

    async fn remove(world: &World, class: &str) {
        let classes: kube::Api<ProvisionerClass> = kube::Api::all(world.client.clone());
        classes.delete(class, &DeleteParams::default()).await.expect("it is there");
        wait::until(&classes, class, "gone", |class| class.is_none()).await;
    }
}

async fn define(world: &World, class: &str, image: &str) {
    let limits = json!({"timeout": "5s", "memory": "64Mi"});
    let object = json!({"metadata": {"name": class}, "spec": {"image": image, "limits": limits}});
    let _: ProvisionerClass = world.create(object).await;
}
