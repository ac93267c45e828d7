//! Packages that Resolutions choose from a catalog and install.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    time::{Duration, Instant},
};

use chandler_api::{BundleDeployment, Catalog, ConditionType, Resolution, find_condition};
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::{Error, controller::Controller, packages::Package, plane::Plane};

/// The label of an image that names the directory of the files of the catalog.
const LABEL: &str = "operators.operatorframework.io.index.configs.v1";

/// How long published packages may stay as they are.
const STUCK: Duration = Duration::from_secs(45);

impl Plane {
    /// Pushes the packages and a catalog of them, and waits until the catalog is ready.
    pub(crate) async fn publish(&self, packages: &[Package]) -> Result<(), Error> {
        let mut documents = String::new();
        for package in packages {
            let pushed = package.with_directory(async |directory| {
                let name = format!("packages/{}", package.name);
                Ok(self.registry().push_bundle_directory(&name, "v1", directory, &BTreeMap::new()).await?)
            });
            let pushed = pushed.await?;
            let (repository, _) = pushed.reference.rsplit_once(':').ok_or("the image has no tag")?;
            for document in package.documents(&format!("{repository}@{}", pushed.digest))? {
                let _ = writeln!(documents, "---\n{document}");
            }
        }
        let directory = tempfile::tempdir()?;
        fs::create_dir(directory.path().join("configs"))?;
        fs::write(directory.path().join("configs/catalog.yaml"), documents)?;
        let labels = BTreeMap::from([(LABEL.to_owned(), "/configs".to_owned())]);
        let pushed = self.registry().push_bundle_directory("catalog", "v1", directory.path(), &labels).await?;
        let source = json!({"type": "image", "image": {"ref": pushed.reference}});
        let catalog: Catalog = object("chandler.dev/v1alpha1", "Catalog", "bench", json!({"source": source}))?;
        let catalogs: Api<Catalog> = Api::all(self.client());
        catalogs.create(&PostParams::default(), &catalog).await?;
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let catalog = catalogs.get("bench").await?;
            let conditions = catalog.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default();
            if find_condition(conditions, ConditionType::Ready).is_some_and(|ready| ready.status == "True") {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("the catalog is not ready: {conditions:?}").into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Creates Resolutions, each of which asks for a part of the packages. Each package gets a namespace of its own. `optional` ones
    /// are left out if they cannot be installed.
    pub(crate) async fn resolve(&self, packages: &[Package], count: usize, optional: bool) -> Result<(), Error> {
        for package in packages {
            self.namespace(&package.name).await?;
        }
        for number in 0..count {
            let own: Vec<&str> =
                packages.iter().skip(number).step_by(count).map(|package| package.name.as_str()).collect();
            let requests: Vec<Value> = own.iter().map(|name| json!({"name": name, "optional": optional})).collect();
            let namespaces: BTreeMap<&str, &str> = own.iter().map(|name| (*name, *name)).collect();
            let set = json!({"installNamespace": "chandler-system", "namespaces": namespaces});
            let spec = json!({"packages": requests, "output": {"type": "ResolveSet", "resolveSet": set}});
            let name = format!("resolution-{number}");
            let resolution: Resolution = object("core.deppy.io/v1alpha1", "Resolution", &name, spec)?;
            Api::all(self.client()).create(&PostParams::default(), &resolution).await?;
        }
        Ok(())
    }

    /// Waits until all Resolutions are ready, and prints how long each step took. `STUCK` without a change is enough if `published`: some
    /// published packages need what this cluster does not have.
    pub(crate) async fn all_resolved(
        &self,
        controller: &mut Controller,
        patience: Duration,
        published: bool,
    ) -> Result<(), Error> {
        let api: Api<Resolution> = Api::all(self.client());
        let (start, mut last, mut since) = (Instant::now(), String::new(), Instant::now());
        loop {
            controller.check()?;
            let all = api.list(&ListParams::default()).await?.items;
            let state = Progress::of(&all).to_string();
            if state != last {
                println!("  {:7.1} s: {state}", start.elapsed().as_secs_f64());
                (last, since) = (state, Instant::now());
            }
            if all.iter().all(|it| ready(it) == "Succeeded") {
                return Ok(());
            }
            let is_stuck = published && since.elapsed() > STUCK;
            if is_stuck || start.elapsed() > patience {
                for resolution in &all {
                    self.print_waiting(resolution).await?;
                }
                return if is_stuck { Ok(()) } else { Err("the Resolutions are not ready".into()) };
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// The members that are not healthy, and why.
    async fn print_waiting(&self, resolution: &Resolution) -> Result<(), Error> {
        let Some(status) = &resolution.status else { return Ok(()) };
        let conditions = status.conditions.iter().map(|it| format!("{}={} {}", it.type_, it.status, it.message));
        println!("  {}: {}", resolution.name_any(), conditions.collect::<Vec<_>>().join("; "));
        let deployments: Api<BundleDeployment> = Api::all(self.client());
        for member in status.members.iter().filter(|member| member.state.as_deref() != Some("Succeeded")) {
            let Some(name) = &member.bundle_deployment else { continue };
            let status = deployments.get_opt(name).await?.and_then(|it| it.status).unwrap_or_default();
            let conditions = status.conditions.iter().filter(|it| it.status != "True");
            let messages: Vec<String> = conditions.map(|it| format!("{} {}", it.reason, it.message)).collect();
            println!("  waiting: {} {}: {}", member.package, member.version, messages.join("; "));
        }
        Ok(())
    }

    /// What Resolutions left out, by the first words of the reason.
    pub(crate) async fn print_left_out(&self) -> Result<(), Error> {
        for resolution in Api::<Resolution>::all(self.client()).list(&ListParams::default()).await?.items {
            for left_out in resolution.status.map(|status| status.left_out).unwrap_or_default() {
                let why: String = left_out.explanation.join("; ").chars().take(300).collect();
                println!("  left out: {} ({}): {why}", left_out.package, left_out.reason);
            }
        }
        Ok(())
    }
}

fn object<T: serde::de::DeserializeOwned>(version: &str, kind: &str, name: &str, spec: Value) -> Result<T, Error> {
    let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec});
    Ok(serde_json::from_value(object)?)
}

fn ready(resolution: &Resolution) -> &str {
    let conditions = resolution.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    find_condition(conditions, ConditionType::Ready).map_or("", |ready| ready.reason.as_str())
}

/// How many Resolutions and members are in which state.
struct Progress {
    resolutions: BTreeMap<String, usize>,
    members: usize,
    healthy: usize,
    left_out: usize,
}

impl Progress {
    fn of(all: &[Resolution]) -> Self {
        let mut progress = Self { resolutions: BTreeMap::new(), members: 0, healthy: 0, left_out: 0 };
        for resolution in all {
            *progress.resolutions.entry(ready(resolution).to_owned()).or_default() += 1;
            let Some(status) = &resolution.status else { continue };
            progress.members += status.members.len();
            progress.healthy +=
                status.members.iter().filter(|member| member.state.as_deref() == Some("Succeeded")).count();
            progress.left_out += status.left_out.len();
        }
        progress
    }
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { resolutions, members, healthy, left_out } = self;
        let states: Vec<String> = resolutions.iter().map(|(reason, count)| format!("{count} {reason:?}")).collect();
        write!(f, "Resolutions {}; {members} members, {healthy} healthy, {left_out} left out", states.join(", "))
    }
}
