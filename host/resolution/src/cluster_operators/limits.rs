//! What installed bundles forbid the platform.
//!
//! `olm.maxOpenShiftVersion` has one value, `major.minor`, which may be quoted twice; without it, a bundle runs on every version. It is
//! compared with the next minor version of OpenShift. Where it cannot be read, the upgrade is forbidden.

use chandler_api::{BundleDescription, BundleProperty};
use chandler_resolver::platform::{OpenShift, kubernetes};

use super::{
    Package,
    report::{AS_EXPECTED, Verdict},
};

const INCOMPATIBLE: &str = "IncompatibleOperatorsInstalled";
const DEPRECATED: &str = "DeprecatedOperatorsInstalled";
const ERROR: &str = "ErrorCheckingOperatorCompatibility";
const MAX_OPENSHIFT: &str = "olm.maxOpenShiftVersion";
const CSV_METADATA: &str = "olm.csv.metadata";

/// What is known of the platform.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Platform {
    /// Whether the cluster serves ClusterVersions: then it is OpenShift.
    pub is_openshift: bool,
    /// The version of OpenShift, or `None` if it is not known.
    pub openshift: Option<String>,
    /// The version of Kubernetes, or `None` if it is not known.
    pub kubernetes: Option<String>,
    /// Whether OpenShift itself is being installed: no version of it was ever complete.
    pub is_installing: bool,
    /// Whether installed bundles that are deprecated forbid the next minor version. Default: no.
    pub deprecated_blocks: bool,
}

/// What one bundle forbids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The highest version of OpenShift; an error if it cannot be read.
    max_openshift: Option<Result<(OpenShift, String), String>>,
    /// The lowest version of Kubernetes, as the bundle has it.
    min_kubernetes: Option<String>,
    /// The message of its deprecation.
    deprecated: Option<String>,
}

impl Limits {
    /// What the metadata of an installed bundle forbids.
    pub(crate) fn of(bundle: Option<&BundleDescription>, deprecated: Option<&str>) -> Self {
        let Some(bundle) = bundle else { return Self::default() };
        let of_kind = |kind: &'static str| bundle.properties.iter().filter(move |it| it.kind == kind);
        let metadata = of_kind(CSV_METADATA).find_map(|it| it.value.get("minKubeVersion")?.as_str());
        Self {
            max_openshift: max_openshift(&of_kind(MAX_OPENSHIFT).collect::<Vec<_>>()),
            min_kubernetes: metadata.filter(|text| !text.is_empty()).map(str::to_owned),
            deprecated: deprecated.map(str::to_owned),
        }
    }

    /// Why the next minor version of the platform cannot be read off.
    fn error(&self, platform: &Platform) -> Option<String> {
        let max = match self.max_openshift.as_ref()? {
            Ok(_) if next(platform).is_some() || !platform.is_openshift => return None,
            Ok((_, text)) => format!("runs up to OpenShift {text}, and the version of OpenShift is not known"),
            Err(error) => format!("has an invalid property {MAX_OPENSHIFT}: {error}"),
        };
        Some(max)
    }

    /// Why the bundle does not run on the next minor version of the platform.
    fn incompatible(&self, name: &str, platform: &Platform) -> Vec<String> {
        let mut found = Vec::new();
        if let (Some(Ok((most, text))), Some(next)) = (&self.max_openshift, next(platform))
            && *most < next
        {
            found.push(format!("maximum supported OCP version for {name} is {text}"));
        }
        let needed = self.min_kubernetes.as_deref().and_then(kubernetes);
        let running = platform.kubernetes.as_deref().and_then(kubernetes);
        if let (Some(needed), Some(running)) = (needed, running)
            // Each minor version of OpenShift has the next one of Kubernetes.
            && (needed.major, needed.minor) > (running.major, running.minor + 1)
        {
            found.push(format!("minimum Kubernetes version for {name} is {needed}"));
        }
        found
    }
}

/// The property, of which a bundle has at most one.
fn max_openshift(properties: &[&BundleProperty]) -> Option<Result<(OpenShift, String), String>> {
    match properties {
        [] => None,
        [one] => {
            let text = one.value.as_str().unwrap_or_default().trim_matches('"').to_owned();
            Some(OpenShift::from_property(&one.value).map(|most| (most, text)))
        }
        several => Some(Err(format!("it is there {} times", several.len()))),
    }
}

/// The next minor version of OpenShift.
fn next(platform: &Platform) -> Option<OpenShift> {
    OpenShift::parse(platform.openshift.as_deref()?).map(OpenShift::next_minor)
}

/// Whether the packages permit the next minor version.
pub(crate) fn upgradeable(packages: &[&Package], platform: &Platform) -> Verdict {
    let name = |package: &Package| format!("platform operator {}", package.operator);
    let listed = |lines: Vec<String>| {
        let each: Vec<String> = lines.iter().map(|line| format!("\n- {line}")).collect();
        each.concat()
    };
    let errors: Vec<String> = packages
        .iter()
        .filter_map(|package| Some(format!("{} {}", name(package), package.limits.error(platform)?)))
        .collect();
    let incompatible: Vec<String> =
        packages.iter().flat_map(|package| package.limits.incompatible(&name(package), platform)).collect();
    let deprecated: Vec<String> = packages
        .iter()
        .filter_map(|package| Some(format!("{} is deprecated: {}", name(package), package.limits.deprecated.as_ref()?)))
        .collect();
    let next = next(platform).map_or_else(|| "the next minor version".to_owned(), |next| next.to_string());
    let mut blocks = incompatible.clone();
    if platform.deprecated_blocks {
        blocks.extend(deprecated.clone());
    }
    let blocking = format!("Platform operators blocking minor version upgrades to {next}:{}", listed(blocks.clone()));
    if !errors.is_empty() {
        let blocked = if blocks.is_empty() { String::new() } else { format!("\n{blocking}") };
        let message =
            format!("Encountered errors while checking compatibility with {next}:{}{blocked}", listed(errors));
        return Verdict::no(ERROR, message);
    }
    if !blocks.is_empty() {
        return Verdict::no(if incompatible.is_empty() { DEPRECATED } else { INCOMPATIBLE }, blocking);
    }
    let permits = "No platform operator prevents an upgrade of the cluster.";
    match deprecated.as_slice() {
        [] => Verdict::yes(AS_EXPECTED, permits),
        _ => Verdict::yes(AS_EXPECTED, format!("{permits} Deprecated:{}", listed(deprecated))),
    }
}

#[cfg(test)]
mod tests;
