//! The members of a set as BundleDeployments, and back.

use std::collections::{BTreeMap, BTreeSet};

use chandler_api::{
    BundleDeployment, BundleDeploymentSpec, BundleSource, ImageSource, ResolveSetOutput, ServiceAccountReference,
    names::DEPENDS_ON_ANNOTATION,
};
use kube::ResourceExt as _;

use crate::{
    PlannedMember,
    installation::Placement,
    names::{deployment_name, names},
};

/// The most bytes of the manifests of a set: what fits into a ConfigMap, with room for its metadata.
pub const BYTES: usize = 900 * 1024;

const PACKAGE: &str = "resolution.chandler.dev/package";
const BUNDLE: &str = "resolution.chandler.dev/bundle";
const VERSION: &str = "resolution.chandler.dev/version";
const CATALOG: &str = "resolution.chandler.dev/catalog";
const CHANNEL: &str = "resolution.chandler.dev/channel";
/// Packages that the member needs and that BundleDeployments outside of the set have.
const RESTS_ON: &str = "resolution.chandler.dev/rests-on";
/// Another Resolution placed the member.
const TAKEN_OVER: &str = "resolution.chandler.dev/taken-over";

/// The manifests of a set: the files of its bundle, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifests(pub BTreeMap<String, String>);

/// A set cannot be written as manifests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// The manifests do not fit into a ConfigMap.
    #[error(
        "the manifests of the set have {0} bytes, and {BYTES} at most fit into a ConfigMap: divide the packages among several Resolutions"
    )]
    Size(usize),
    /// A manifest cannot be written.
    #[error("failed to write the manifest of package {package}: {message}")]
    Write {
        /// The package.
        package: String,
        /// Why.
        message: String,
    },
}

impl Manifests {
    /// The manifests of the members of a set. They have the labels of the Resolution. `current` are the manifests of the set as it is: a
    /// member keeps the name of its BundleDeployment. `others` are the packages that other sets have, by the names of their
    /// BundleDeployments.
    ///
    /// # Errors
    /// They do not fit into a ConfigMap.
    pub fn of<'a>(
        members: impl Iterator<Item = &'a PlannedMember>,
        output: &ResolveSetOutput,
        labels: &BTreeMap<String, String>,
        current: Option<&Self>,
        others: &BTreeMap<String, String>,
    ) -> Result<Self, SetError> {
        let members: Vec<&PlannedMember> = members.collect();
        let mut current = current.map(Self::names).unwrap_or_default();
        let taken_over = members.iter().filter(|member| member.placement.is_some());
        for (package, name) in taken_over.filter_map(|member| Some((&member.package, member.deployment.as_ref()?))) {
            current.entry(package.clone()).or_insert_with(|| name.clone());
        }
        let names = names(members.iter().map(|member| member.package.as_str()), &output.names, &current, others);
        let mut files = BTreeMap::new();
        for member in members {
            let written = serde_json::to_value(bundle_deployment(member, &names, output, labels))
                .map_err(|error| error.to_string())
                .and_then(|value| serde_saphyr::to_string(&value).map_err(|error| error.to_string()));
            let text = written.map_err(|message| SetError::Write { package: member.package.clone(), message })?;
            files.insert(file_name(&member.package), text);
        }
        let bytes = files.iter().map(|(name, text)| name.len() + text.len()).sum();
        if bytes > BYTES { Err(SetError::Size(bytes)) } else { Ok(Self(files)) }
    }

    /// Replaces the manifest of a package by its manifest in `other`, if there is one.
    pub fn keep(&mut self, package: &str, others: &Self) {
        let file = file_name(package);
        if let Some(text) = others.0.get(&file) {
            self.0.insert(file, text.clone());
        }
    }

    /// The BundleDeployments of the members. A file that is none is left out.
    pub fn deployments(&self) -> Vec<BundleDeployment> {
        self.0.values().filter_map(|text| serde_saphyr::from_str(text).ok()).collect()
    }

    /// The names of the BundleDeployments, by package.
    fn names(&self) -> BTreeMap<String, String> {
        self.deployments().iter().map(|deployment| (package(deployment), deployment.name_any())).collect()
    }

    /// The members that the manifests describe. A file that is none is left out.
    pub fn members(&self) -> Vec<PlannedMember> {
        let deployments = self.deployments();
        let packages: BTreeMap<String, String> = deployments.iter().map(|it| (it.name_any(), package(it))).collect();
        let needs = |deployment: &BundleDeployment| {
            let names = deployment.annotations().get(DEPENDS_ON_ANNOTATION).map(String::as_str).unwrap_or_default();
            names.split(',').filter_map(|name| packages.get(name).cloned()).collect()
        };
        let read = deployments.iter().filter_map(|it| Some(PlannedMember { needs: needs(it), ..member(it)? }));
        let mut members: Vec<PlannedMember> = read.collect();
        members.sort_by(|one, other| one.package.cmp(&other.package));
        members
    }
}

/// The BundleDeployment of a member. This is the only lookup from what was chosen to what is installed. It names no class: the
/// provisioner is the one that recognises the content.
fn bundle_deployment(
    member: &PlannedMember,
    names: &BTreeMap<String, String>,
    output: &ResolveSetOutput,
    labels: &BTreeMap<String, String>,
) -> BundleDeployment {
    let package = &member.package;
    let placement = member.placement.as_ref();
    let namespace = output.namespaces.get(package).or(placement.map(|it| &it.install_namespace));
    let config = output.config.get(package).or(placement.and_then(|it| it.config.as_ref()));
    let account = output.service_account.as_ref().map(|account| ServiceAccountReference {
        name: account.name.clone(),
        // Members in other namespaces use the same account.
        namespace: Some(account.namespace.as_ref().unwrap_or(&output.install_namespace).clone()),
    });
    let image = ImageSource { reference: member.image.clone(), ..ImageSource::default() };
    let name = |package: &String| names.get(package).cloned().unwrap_or_else(|| deployment_name(package));
    let mut deployment = BundleDeployment::new(
        &name(package),
        BundleDeploymentSpec {
            install_namespace: namespace.unwrap_or(&output.install_namespace).clone(),
            source: BundleSource::image(image),
            config: config.filter(|config| !config.is_empty()).cloned(),
            service_account: account,
            collision_protection: output.collision_protection,
            ..BundleDeploymentSpec::default()
        },
    );
    let depends_on: Vec<String> = member.needs.iter().map(name).collect();
    let annotations = [
        (PACKAGE, Some(package.clone())),
        (BUNDLE, Some(member.bundle.clone())),
        (VERSION, Some(member.version.clone())),
        (CATALOG, member.catalog.clone()),
        (CHANNEL, member.channel.clone()),
        (RESTS_ON, Some(join(&member.rests_on)).filter(|names| !names.is_empty())),
        (TAKEN_OVER, placement.map(|_| "true".to_owned())),
        (DEPENDS_ON_ANNOTATION, Some(depends_on.join(",")).filter(|names| !names.is_empty())),
    ];
    let present = annotations.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    deployment.metadata.annotations = Some(present.collect());
    deployment.metadata.labels = Some(labels.clone()).filter(|labels| !labels.is_empty());
    deployment
}

fn join(packages: &BTreeSet<String>) -> String {
    packages.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

/// The member that a BundleDeployment of a set installs.
fn member(deployment: &BundleDeployment) -> Option<PlannedMember> {
    let annotation = |name: &str| deployment.annotations().get(name).cloned();
    Some(PlannedMember {
        package: annotation(PACKAGE)?,
        bundle: annotation(BUNDLE)?,
        version: annotation(VERSION)?,
        catalog: annotation(CATALOG),
        channel: annotation(CHANNEL),
        image: deployment.spec.source.image.as_ref()?.reference.clone(),
        rests_on: annotation(RESTS_ON).iter().flat_map(|it| it.split(',')).map(str::to_owned).collect(),
        placement: annotation(TAKEN_OVER).map(|_| Placement::of(deployment)),
        deployment: Some(deployment.name_any()),
        ..PlannedMember::default()
    })
}

/// Whether a BundleDeployment says which package it has, as all members of sets do.
pub fn is_named(deployment: &BundleDeployment) -> bool {
    deployment.annotations().contains_key(PACKAGE)
}

/// Whether a BundleDeployment says that its set took it over from another set.
pub fn is_taken_over(deployment: &BundleDeployment) -> bool {
    deployment.annotations().contains_key(TAKEN_OVER)
}

/// The package of a member; its name if nothing says more.
pub fn package(deployment: &BundleDeployment) -> String {
    deployment.annotations().get(PACKAGE).cloned().unwrap_or_else(|| deployment.name_any())
}

fn file_name(package: &str) -> String {
    format!("{}.yaml", deployment_name(package))
}
