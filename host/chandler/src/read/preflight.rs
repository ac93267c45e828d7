//! Renders BundleDeployments with the provisioners of this command and of another version, and compares the releases.

use std::{path::Path, sync::Arc};

use chandler_api::BundleDeployment;
use chandler_builtin::Provisioners;
use chandler_core::{Content, Release};
use chandler_engine::{CallError, Limits, Provisioner};
use chandler_values::Redactor;
use futures::{StreamExt as _, stream};
use kube::{Api, Client, ResourceExt as _, api::ListParams, core::PartialObjectMeta};

use super::{
    cluster,
    cluster_facts::ClusterFacts,
    deployed::{self, Place},
    provisioner,
    release_files::ReleaseFiles,
    rendering::BundleOptions,
};
use crate::{
    CommandError,
    view::{
        difference,
        preflight::{Checked, Outcome, Report},
        summary,
    },
};

/// How many BundleDeployments are fetched and rendered at once.
const AT_ONCE: usize = 4;

/// The provisioners of another version, in the order in which they detect formats.
pub struct NextProvisioners(Vec<(String, Result<Provisioner, String>)>);

impl NextProvisioners {
    /// Loads the components. One that cannot be loaded is an error of each BundleDeployment that needs it.
    pub async fn load(provisioners: &Provisioners, files: &ReleaseFiles) -> Self {
        let mut loaded = Vec::new();
        for (listed, component) in &files.provisioners {
            let provisioner = provisioners.engine().load(component).await.map_err(|error| {
                format!(
                    "this command cannot load the provisioner {} of version {}, which has contract {}: {error}; use the command of the new \
                     version",
                    listed.class, files.version, listed.contract
                )
            });
            loaded.push((listed.class.clone(), provisioner));
        }
        Self(loaded)
    }

    fn named(&self, class: &str) -> Option<&Result<Provisioner, String>> {
        self.0.iter().find(|(known, _)| known == class).map(|(_, provisioner)| provisioner)
    }

    /// The first one that detects the format of the content.
    async fn detect(&self, content: &Arc<dyn Content>) -> Result<Option<(&str, &Provisioner)>, String> {
        for (class, provisioner) in &self.0 {
            let provisioner = provisioner.as_ref().map_err(Clone::clone)?;
            let format = provisioner.detect(Arc::clone(content), &Limits::default()).await;
            if format.map_err(|error| format!("provisioner {class} failed to detect the format: {error}"))?.is_some() {
                return Ok(Some((class, provisioner)));
            }
        }
        Ok(None)
    }
}

/// The two versions that are compared, and the cluster.
pub struct Preflight<'a> {
    /// The cluster.
    pub client: &'a Client,
    /// Where ConfigMaps with files are.
    pub system_namespace: &'a str,
    /// How registries are reached.
    pub options: &'a BundleOptions,
    /// The provisioners of this command.
    pub current: &'a Provisioners,
    /// The provisioners of the other version.
    pub next: &'a NextProvisioners,
    /// The cache.
    pub cache: &'a Path,
}

/// The names of the BundleDeployments that a selector selects, sorted.
///
/// # Errors
/// They cannot be listed.
pub async fn names(client: &Client, selector: Option<&str>) -> Result<Vec<String>, CommandError> {
    let deployments: Api<BundleDeployment> = Api::all(client.clone());
    let selected = selector.map_or_else(ListParams::default, |selector| ListParams::default().labels(selector));
    // Only names are kept: a page of whole objects would expire while bundles are fetched.
    let list = async |page: &ListParams| deployments.list_metadata(page).await;
    let found: Vec<PartialObjectMeta<BundleDeployment>> =
        cluster::pages(selected, list).await.map_err(|error| cluster::not_listed(&error))?;
    let mut names: Vec<String> = found.iter().map(kube::ResourceExt::name_any).collect();
    names.sort_unstable();
    Ok(names)
}

/// A BundleDeployment; `None` if it was deleted meanwhile or is being deleted.
///
/// # Errors
/// It cannot be read, as a report says it.
pub(super) async fn existing(client: &Client, name: &str) -> Result<Option<BundleDeployment>, Box<Checked>> {
    let found = Api::<BundleDeployment>::all(client.clone()).get_opt(name).await.map_err(|error| {
        let reason = format!("it cannot be read: {}", cluster::cause(&error));
        Box::new(Checked::new(name, "", Outcome::Unchecked).because([reason]))
    })?;
    Ok(found.filter(|deployment| deployment.metadata.deletion_timestamp.is_none()))
}

impl Preflight<'_> {
    /// Checks these BundleDeployments and adds them to the report. Few are in memory at once. `done` is called after each with their number.
    ///
    /// # Errors
    /// The APIs of the cluster cannot be discovered. Failures of one BundleDeployment are part of the report.
    pub async fn run(&self, names: &[String], report: &mut Report, done: impl Fn(usize)) -> Result<(), CommandError> {
        let facts = &ClusterFacts::of(self.client).await?;
        let checks = names.iter().map(|name| Box::pin(self.named(name, facts)));
        let mut checks = stream::iter(checks).buffer_unordered(AT_ONCE);
        let mut number = 0;
        while let Some(checked) = checks.next().await {
            number += 1;
            done(number);
            if let Some(checked) = checked {
                report.push(checked);
            }
        }
        Ok(())
    }

    /// Checks one; `None` if it was deleted meanwhile or is being deleted.
    async fn named(&self, name: &str, facts: &ClusterFacts) -> Option<Checked> {
        let deployment = match existing(self.client, name).await {
            Ok(found) => found?,
            Err(unchecked) => return Some(*unchecked),
        };
        Some(self.deployment(&deployment, facts).await)
    }

    async fn deployment(&self, deployment: &BundleDeployment, facts: &ClusterFacts) -> Checked {
        let (name, namespace) = (deployment.name_any(), deployment.spec.install_namespace.clone());
        let mut checked = Checked::new(&name, &namespace, Outcome::Unchecked);
        let class = summary::class(deployment).map(str::to_owned);
        let is_named = !deployment.spec.provisioner_class_name.is_empty();
        checked.class = class.clone().unwrap_or_default();
        let is_first_party =
            |class: &String| chandler_builtin::find(class).is_some() || self.next.named(class).is_some();
        if class.as_ref().is_some_and(|class| !is_first_party(class)) {
            checked.outcome = Outcome::NotBuiltIn;
            return checked;
        }
        // Each version detects the class itself where the spec names none.
        let options = BundleOptions { provisioner: class.filter(|_| is_named), ..self.options.clone() };
        let place = Place { provisioners: self.current, cache: self.cache };
        let opened = deployed::open_in(self.client, self.system_namespace, &options, deployment, place).await;
        let mut opened = match opened {
            Ok(opened) => opened,
            Err(error) => return checked.because([error.explained()]),
        };
        facts.describe(&mut opened.request.target);
        checked.class.clone_from(&opened.chosen.name);
        let digest = opened.chosen.provisioner.digest().to_string();
        let installed = deployment.status.as_ref().and_then(|status| Some(&status.history.last()?.provisioner));
        checked.rendered_by_another_version = installed.is_some_and(|installed| installed.digest != digest);

        let old = opened.provision().await;
        let next = if is_named {
            match self.next.named(&checked.class) {
                Some(provisioner) => provisioner.clone().map(Some),
                None => Ok(None),
            }
        } else {
            match self.next.detect(opened.content()).await {
                Ok(Some((class, provisioner))) => {
                    checked.new_class = Some(class.to_owned()).filter(|class| *class != checked.class);
                    Ok(Some(provisioner.clone()))
                }
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let redactor = opened.redactor().clone();
        let next = match next {
            Ok(Some(next)) => next,
            Ok(None) => {
                checked.outcome = Outcome::Refused;
                let reason =
                    format!("the new version has no provisioner for it; this version uses class {}", checked.class);
                return checked.because([reason]);
            }
            Err(error) => return checked.because([redactor.text(&error).into_owned()]),
        };
        opened.chosen.provisioner = next;
        let new = opened.provision().await;
        checked.compared(old, new, &redactor, Sides::Versions)
    }
}

/// Whose provisioners are compared.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sides {
    /// Versions of Chandler.
    Versions,
    /// The component that a class has now, and the one of a BundleDeployment.
    Components,
}

impl Sides {
    /// How a message names the new side and the old one.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Versions => ("the new version", "this version"),
            Self::Components => ("the component of the class", "the component that it has"),
        }
    }
}

impl Checked {
    /// Compares what two provisioners made of a bundle. Values of Secrets are hidden.
    pub(super) fn compared(
        mut self,
        old: Result<Release, CallError>,
        new: Result<Release, CallError>,
        redactor: &Redactor,
        sides: Sides,
    ) -> Self {
        match (old, new) {
            (Ok(old), Ok(new)) => {
                self.compare(&old, &new);
                difference::hide(&mut self.changes, redactor);
                self
            }
            // A machine that is busy says nothing about a version.
            (Err(error @ CallError::Starved { .. }), _) | (_, Err(error @ CallError::Starved { .. })) => {
                self.because(reasons(&error, redactor))
            }
            (Ok(_), Err(error)) => {
                self.outcome = Outcome::Refused;
                self.because(reasons(&error, redactor))
            }
            (Err(error), Ok(_)) => {
                self.outcome = Outcome::Changed;
                let reasons = reasons(&error, redactor).into_iter();
                let (new, old) = sides.names();
                self.because(reasons.map(|reason| format!("{new} renders it; {old}: {reason}")))
            }
            (Err(_), Err(error)) => {
                self.outcome = Outcome::RefusedByBoth;
                self.because(reasons(&error, redactor))
            }
        }
    }
}

/// Why a provisioner refused, without values of Secrets: its findings, or else what failed.
fn reasons(error: &CallError, redactor: &Redactor) -> Vec<String> {
    let findings = error.diagnostics();
    if findings.is_empty() {
        return vec![redactor.text(&error.to_string()).into_owned()];
    }
    findings.iter().map(|finding| redactor.text(&finding.to_string()).into_owned()).collect()
}

/// The provisioners of this command.
///
/// # Errors
/// The engine cannot be started.
pub fn current(cache: &Path) -> Result<Provisioners, CommandError> {
    provisioner::provisioners(cache)
}
