//! The hostile tenants and their attacks.

use std::{
    collections::BTreeSet,
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use chandler_api::{ProvisionerClass, names::PLAIN_CLASS};
use chandler_test_support::git::GitServer;
use chandler_tests::{
    World,
    bundles::{self, Bundle},
    hostile_registry::HostileRegistry,
    wait,
};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{beside, deployment_watch::DeploymentWatch, namespace};

/// The attacks, and their names on the command line. They are assigned to BundleDeployments in turn.
const ATTACKS: [(&str, Attack); 16] = [
    ("silent-registry", Attack::SilentRegistry),
    ("trickling-registry", Attack::TricklingRegistry),
    ("redirect", Attack::RedirectToMetadata),
    ("digest-of-others", Attack::DigestOfOthers),
    ("spin", Attack::Behaves("spin")),
    ("allocate", Attack::Behaves("allocate")),
    ("many-objects", Attack::Behaves("emit-million")),
    ("many-findings", Attack::Behaves("report-million")),
    ("patterns", Attack::Patterns),
    ("ignored-fields", Attack::IgnoredFields),
    ("schema", Attack::Schema),
    ("many-versions", Attack::ManyVersions),
    ("nested-component", Attack::NestedComponent),
    ("vanishing-class", Attack::VanishingClass),
    ("updated-class", Attack::UpdatedClass),
    ("git", Attack::Git),
];

/// The time between two edits of hostile BundleDeployments, so that each of them is tried again and again.
const BETWEEN_EDITS: Duration = Duration::from_millis(500);
/// After this many edits the class of [`Attack::VanishingClass`] is deleted and created again, and the class of [`Attack::UpdatedClass`] is
/// updated.
const EDITS_PER_CLASS: u64 = 20;
/// The directories of the repository of [`Attack::Git`], each in the one before, and the length of their names.
const DIRECTORIES: usize = 150;
const NAME_BYTES: usize = 200;

#[derive(Clone, Copy)]
enum Attack {
    /// The registry never answers.
    SilentRegistry,
    /// The registry responds byte by byte.
    TricklingRegistry,
    /// The registry redirects to the metadata service of a cloud, which serves credentials.
    RedirectToMetadata,
    /// The digest of content that honest tenants have pulled, on a registry that never answers.
    DigestOfOthers,
    /// The behaviour with this name in the hostile guest.
    Behaves(&'static str),
    /// An installed CRD gets thousands of costly patterns.
    Patterns,
    /// Thousands of ignored differences against a large object.
    IgnoredFields,
    /// A configuration schema of thousands of costly patterns.
    Schema,
    /// A CRD with ten thousand versions.
    ManyVersions,
    /// A component of a few kilobytes that declares millions of instances.
    NestedComponent,
    /// A class that is deleted and created again while it is in use.
    VanishingClass,
    /// A class that gets another component while it is in use, so that all of its releases are rendered again.
    UpdatedClass,
    /// A repository of nested directories with long names.
    Git,
}

/// One hostile BundleDeployment.
struct HostileDeployment {
    attack: &'static str,
    name: String,
    /// The specs that it alternates between.
    specs: [Value; 2],
    /// Whether the first spec must be installed before the second one is applied.
    first_installs: bool,
}

/// The hostile BundleDeployments, and the task that edits them.
pub(crate) struct HostileTenants {
    all: Arc<Vec<HostileDeployment>>,
    classes: Arc<Classes>,
    edits: Arc<AtomicU64>,
    editor: JoinHandle<()>,
    _servers: Servers,
}

/// What hostile sources name.
struct Servers {
    silent: HostileRegistry,
    trickling: HostileRegistry,
    redirecting: HostileRegistry,
    git: GitServer,
}

impl Servers {
    async fn start() -> Self {
        let git = GitServer::start().await.expect("git is installed");
        let repository = git.repository("nested");
        let path = vec!["n".repeat(NAME_BYTES); DIRECTORIES].join("/");
        for branch in ["a", "b"] {
            repository.commit(branch, &[("100644", &format!("{path}/{branch}"), b"deep")]);
        }
        Self {
            silent: HostileRegistry::silent().await,
            trickling: HostileRegistry::trickling(Duration::from_secs(9)).await,
            redirecting: HostileRegistry::redirecting("http://169.254.169.254/latest/meta-data/").await,
            git,
        }
    }
}

impl HostileTenants {
    /// Creates the BundleDeployments, and edits one after another until [`HostileTenants::stop`]. `honest` is an honest tenant's image by
    /// digest. `only` names the attacks to use; empty means all.
    pub(crate) async fn start(
        world: &Arc<World>,
        watch: &DeploymentWatch,
        count: usize,
        honest: &str,
        only: &[String],
    ) -> Self {
        let servers = Servers::start().await;
        let classes = Arc::new(Classes::create(world).await);
        let mut all = Vec::new();
        let attacks =
            ATTACKS.into_iter().filter(|(name, _)| only.is_empty() || only.iter().any(|wanted| wanted == name));
        let attacks: Vec<(&str, Attack)> = attacks.collect();
        let known = || ATTACKS.iter().map(|attack| attack.0).chain(beside::NAMES);
        let unknown: Vec<&String> = only.iter().filter(|name| !known().any(|it| it == *name)).collect();
        assert!(unknown.is_empty(), "{unknown:?} is not an attack; these are {:?}", known().collect::<Vec<_>>());
        for (index, attack) in attacks.into_iter().cycle().take(count).enumerate() {
            all.push(hostile_deployment(world, &servers, &classes, honest, attack, index).await);
        }
        for one in &all {
            world.apply(&one.name, one.specs[0].clone()).await;
        }
        for one in all.iter().filter(|one| one.first_installs) {
            watch.until(&one.name, |found| found.is_some_and(|found| found.ready)).await;
        }
        let (all, edits) = (Arc::new(all), Arc::new(AtomicU64::new(0)));
        let editor =
            tokio::spawn(edit_all(Arc::clone(world), Arc::clone(&all), Arc::clone(&classes), Arc::clone(&edits)));
        Self { all, classes, edits, editor, _servers: servers }
    }

    /// Deletes everything. Returns how often the BundleDeployments were edited.
    pub(crate) async fn stop(self, world: &World, watch: &DeploymentWatch) -> u64 {
        self.editor.abort();
        let _ = self.editor.await;
        // What an attack reached shows whether it was one.
        let mut reached = BTreeSet::new();
        for one in &*self.all {
            reached.insert(format!("{}: {:.160}", one.attack, watch.ready(&one.name)));
        }
        for line in reached {
            println!("  {line}");
        }
        for one in &*self.all {
            world.deployments().delete(&one.name, &DeleteParams::default()).await.expect("the object exists");
        }
        for one in &*self.all {
            watch.until(&one.name, |found| found.is_none()).await;
        }
        self.classes.delete(world).await;
        self.edits.load(Ordering::Relaxed)
    }
}

/// Edits one BundleDeployment after another, forever.
async fn edit_all(world: Arc<World>, all: Arc<Vec<HostileDeployment>>, classes: Arc<Classes>, edits: Arc<AtomicU64>) {
    if all.is_empty() {
        return;
    }
    let mut ticks = tokio::time::interval(BETWEEN_EDITS);
    let mut replaced = 0;
    for round in 1.. {
        for one in &*all {
            ticks.tick().await;
            let patch = Patch::Merge(json!({"spec": one.specs[round % 2]}));
            world.deployments().patch(&one.name, &PatchParams::default(), &patch).await.expect("a spec");
            if edits.fetch_add(1, Ordering::Relaxed).is_multiple_of(EDITS_PER_CLASS) {
                replaced += 1;
                classes.replace(&world, replaced).await;
            }
        }
    }
}

async fn hostile_deployment(
    world: &World,
    servers: &Servers,
    classes: &Classes,
    honest: &str,
    (label, attack): (&'static str, Attack),
    index: usize,
) -> HostileDeployment {
    let Servers { silent, trickling, redirecting, git } = servers;
    let name = format!("{}-hostile-{index}", world.name());
    // Every bundle differs, so that the controller cannot share pulls or renders.
    let both = async |make: &dyn Fn(&str) -> Bundle| {
        [world.push(&make(&format!("{name}-a"))).await, world.push(&make(&format!("{name}-b"))).await]
    };
    let behaves =
        |behaviour: &'static str| move |note: &str| Bundle::empty().with("provision", behaviour).with("note", note);
    let at = |registry: &HostileRegistry| ["a", "b"].map(|variant| registry.image(&format!("x-{index}-{variant}")));
    let (class, images) = match attack {
        Attack::SilentRegistry => (PLAIN_CLASS, at(silent)),
        Attack::TricklingRegistry => (PLAIN_CLASS, at(trickling)),
        Attack::RedirectToMetadata => (PLAIN_CLASS, at(redirecting)),
        Attack::DigestOfOthers => {
            let digest = honest.split_once('@').map_or(honest, |(_, digest)| digest);
            (PLAIN_CLASS, ["a", "b"].map(|variant| silent.image_at(&format!("x-{index}-{variant}"), digest)))
        }
        Attack::Behaves(behaviour) => (classes.hostile.as_str(), both(&behaves(behaviour)).await),
        Attack::NestedComponent => (classes.nested.as_str(), both(&behaves("")).await),
        Attack::VanishingClass => (classes.vanishing.as_str(), both(&behaves("")).await),
        Attack::UpdatedClass => (classes.updated.as_str(), both(&behaves("")).await),
        Attack::Git => (PLAIN_CLASS, ["a", "b"].map(str::to_owned)),
        Attack::Schema => (classes.hostile.as_str(), both(&costly_schema).await),
        Attack::Patterns => (PLAIN_CLASS, patterns(world, &name).await),
        Attack::ManyVersions => (PLAIN_CLASS, both(&|note| many_versions(&name, note)).await),
        Attack::IgnoredFields => (PLAIN_CLASS, both(&large).await),
    };
    let mut specs = images.map(|image| world.spec(class, &image));
    for spec in &mut specs {
        spec["installNamespace"] = json!(namespace(world, 100_000 + index).await);
        match attack {
            Attack::IgnoredFields => spec["ignoreDifferences"] = ignored_fields(),
            Attack::Git => {
                let branch = spec["source"]["image"]["ref"].take();
                let git = json!({"repository": git.url("nested"), "ref": {"branch": branch}});
                spec["source"] = json!({"type": "git", "git": git});
            }
            _ => {}
        }
    }
    HostileDeployment {
        attack: label,
        name,
        specs,
        first_installs: matches!(attack, Attack::Patterns | Attack::IgnoredFields),
    }
}

fn crd(name: &str, versions: &[Value]) -> Value {
    let group = format!("{name}.example.com");
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
           "metadata": {"name": format!("oxen.{group}")},
           "spec": {"group": group, "scope": "Namespaced", "versions": versions,
                    "names": {"kind": "Ox", "listKind": "OxList", "plural": "oxen", "singular": "ox"}}})
}

/// A harmless CRD, and the same CRD with thousands of costly patterns.
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

/// An object with thousands of fields.
fn large(note: &str) -> Bundle {
    let mut data: serde_json::Map<String, Value> =
        (0..8000).map(|n| (format!("key-{n}"), json!("x".repeat(60)))).collect();
    data.insert("note".into(), json!(note));
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": data});
    Bundle::empty().with("manifests/large.yaml", &object.to_string())
}

/// As many rules as the API accepts.
fn ignored_fields() -> Value {
    let pointers = |rule: usize| (0..64).map(|n| format!("/data/key-{}", rule * 64 + n)).collect::<Vec<_>>();
    (0..64).map(|rule| json!({"kind": "ConfigMap", "jsonPointers": pointers(rule)})).collect()
}

/// The provisioner that misbehaves as its configuration says. Panics if it is not built, so call it before a measurement.
pub(crate) fn hostile_component() -> Vec<u8> {
    let guest = bundles::workspace().join("target/plugins/test/hostile.wasm");
    fs::read(guest).expect("`cargo xtask plugins` builds target/plugins/test/hostile.wasm")
}

/// The hostile component with a custom section that differs, so that it is another component.
fn marked(version: u8) -> Vec<u8> {
    let mut wasm = hostile_component();
    // Section 0 of three bytes: the length of its name, the name, and a byte.
    wasm.extend([0, 3, 1, b'v', version]);
    wasm
}

/// The classes of the hostile BundleDeployments.
struct Classes {
    hostile: String,
    nested: String,
    vanishing: String,
    updated: String,
    /// Two versions of the hostile component.
    components: [String; 2],
}

impl Classes {
    async fn create(world: &World) -> Self {
        let push = |name: &str, wasm: Vec<u8>| {
            world.registry.push_component(name, "v1", wasm).expect("the registry takes it").reference
        };
        let components = [0, 1].map(|version| push(&format!("provisioners/hostile-{version}"), marked(version)));
        let nested = push("provisioners/nested", chandler_test_components::instance_bomb());
        let name = |suffix: &str| format!("{}-{suffix}", world.name());
        let (hostile, nested_class) = (name("hostile"), name("nested"));
        let (vanishing, updated) = (name("vanishing"), name("updated"));
        create_class(world, &nested_class, &nested).await;
        for class in [&hostile, &vanishing, &updated] {
            create_class(world, class, &components[0]).await;
        }
        Self { hostile, nested: nested_class, vanishing, updated, components }
    }

    /// Deletes the vanishing class and creates it again, and gives the updated one the other component.
    async fn replace(&self, world: &World, round: usize) {
        Self::remove(world, &self.vanishing).await;
        create_class(world, &self.vanishing, &self.components[0]).await;
        let classes: kube::Api<ProvisionerClass> = kube::Api::all(world.client.clone());
        let patch = Patch::Merge(json!({"spec": {"image": self.components[round % 2]}}));
        classes.patch(&self.updated, &PatchParams::default(), &patch).await.expect("a spec");
    }

    async fn delete(&self, world: &World) {
        for class in [&self.hostile, &self.nested, &self.vanishing, &self.updated] {
            Self::remove(world, class).await;
        }
    }

    async fn remove(world: &World, class: &str) {
        let classes: kube::Api<ProvisionerClass> = kube::Api::all(world.client.clone());
        classes.delete(class, &DeleteParams::default()).await.expect("the object exists");
        wait::until(&classes, class, "gone", |class| class.is_none()).await;
    }
}

async fn create_class(world: &World, class: &str, image: &str) {
    let limits = json!({"timeout": "5s", "memory": "64Mi"});
    let object = json!({"metadata": {"name": class}, "spec": {"image": image, "limits": limits}});
    let _: ProvisionerClass = world.create(object).await;
}
