//! The fields of each kind that are shown.

use chandler_api::{
    Alert, BundleSource, Catalog, CatalogContents, ClassCalls, ClassUses, Component, LastDelivery, PlatformOperator,
    PlatformPolicy, ProviderType, ProvisionerClass, Receiver, provisioner_class::UpdatePolicy,
};
use serde::Serialize;

use super::super::{invocation::quoted, text::count};

/// The most packages of a policy that a line names.
const NAMED: usize = 5;
/// The most kinds of a class that a line names.
const KINDS: usize = 12;

/// The fields of an object, by its kind.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum Details {
    /// A Catalog.
    Catalog {
        /// The source in the spec.
        source: Box<BundleSource>,
        /// Its priority.
        priority: i32,
        /// The interval of polls in the spec.
        #[serde(skip_serializing_if = "Option::is_none")]
        poll_interval: Option<String>,
        /// Whether the source is left alone.
        suspend: bool,
        /// The source of exactly the content that is in use.
        #[serde(skip_serializing_if = "Option::is_none")]
        resolved_source: Option<Box<BundleSource>>,
        /// The digest of the files that are in use.
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        /// How much the catalog has.
        #[serde(skip_serializing_if = "Option::is_none")]
        contents: Option<CatalogContents>,
        /// When the files that are in use were unpacked.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_unpacked: Option<String>,
    },
    /// A ProvisionerClass.
    Class {
        /// The image in the spec.
        image: String,
        /// Its priority for detection.
        priority: i32,
        /// Whether newer components wait for approval.
        update_policy: UpdatePolicy,
        /// Whether its component and the components of the installed releases stay as they are.
        suspend: bool,
        /// How many BundleDeployments use it.
        #[serde(skip_serializing_if = "Option::is_none")]
        uses: Option<ClassUses>,
        /// What calls of the component showed.
        #[serde(skip_serializing_if = "Option::is_none")]
        calls: Option<Box<ClassCalls>>,
        /// The component that is in use.
        #[serde(skip_serializing_if = "Option::is_none")]
        component: Option<Component>,
    },
    /// A PlatformOperator.
    Operator {
        /// The package.
        package: String,
        /// The versions that are wanted.
        #[serde(skip_serializing_if = "Option::is_none")]
        version_range: Option<String>,
        /// The version that was chosen.
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// The namespace of the package.
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        /// The BundleDeployment that installs the package.
        #[serde(skip_serializing_if = "Option::is_none")]
        bundle_deployment: Option<String>,
        /// The Resolution that chose the version.
        #[serde(skip_serializing_if = "Option::is_none")]
        resolution: Option<String>,
    },
    /// A PlatformPolicy.
    Policy {
        /// The packages that may be wanted; absent where all may.
        #[serde(skip_serializing_if = "Option::is_none")]
        packages: Option<Vec<String>>,
        /// Whether only platform operators may be wanted.
        require_platform_property: bool,
        /// The number of constraints.
        constraints: usize,
    },
    /// A Receiver.
    Receiver {
        /// Who sends the requests.
        sender: &'static str,
        /// The events that count; empty for all.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        events: Vec<String>,
        /// The Secret with the token.
        secret: String,
        /// Whether requests are refused.
        suspend: bool,
        /// The path of the requests.
        #[serde(skip_serializing_if = "Option::is_none")]
        webhook_path: Option<String>,
    },
    /// An Alert.
    Alert {
        /// The form of the notifications.
        provider: ProviderType,
        /// The Secret with the URL and the credentials.
        #[serde(skip_serializing_if = "Option::is_none")]
        secret: Option<String>,
        /// Whether nothing is sent.
        suspend: bool,
        /// The last delivery that the status knows of.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_delivery: Option<LastDelivery>,
        /// The notifications that were dropped.
        #[serde(skip_serializing_if = "Option::is_none")]
        dropped: Option<i64>,
    },
}

pub(super) fn of_catalog(catalog: &Catalog) -> Details {
    let (spec, status) = (catalog.spec.clone(), catalog.status.clone().unwrap_or_default());
    Details::Catalog {
        source: Box::new(spec.source),
        priority: spec.priority,
        poll_interval: spec.poll_interval,
        suspend: spec.suspend,
        resolved_source: status.resolved_source.map(Box::new),
        digest: status.digest,
        contents: status.contents,
        last_unpacked: status.last_unpacked.map(|time| format!("{:.0}", time.0)),
    }
}

pub(super) fn of_class(class: &ProvisionerClass) -> Details {
    Details::Class {
        image: class.spec.image.clone(),
        priority: class.spec.priority,
        update_policy: class.spec.update_policy.unwrap_or_default(),
        suspend: class.spec.suspend,
        uses: class.status.as_ref().and_then(|status| status.uses),
        calls: class.status.as_ref().and_then(|status| status.calls.clone()).map(Box::new),
        component: class.status.as_ref().and_then(|status| status.component.clone()),
    }
}

pub(super) fn of_operator(operator: &PlatformOperator) -> Details {
    let status = operator.status.clone().unwrap_or_default();
    Details::Operator {
        package: operator.spec.package.name.clone(),
        version_range: operator.spec.version.clone(),
        version: status.version,
        namespace: status.namespace,
        bundle_deployment: status.active_bundle_deployment.map(|active| active.name),
        resolution: None,
    }
}

pub(super) fn of_policy(policy: &PlatformPolicy) -> Details {
    let packages = policy.spec.packages.as_ref();
    Details::Policy {
        packages: packages.map(|packages| packages.iter().map(|package| package.name.clone()).collect()),
        require_platform_property: policy.spec.require_platform_property,
        constraints: policy.spec.constraints.len(),
    }
}

pub(super) fn of_receiver(receiver: &Receiver) -> Details {
    let spec = receiver.spec.clone();
    Details::Receiver {
        sender: spec.kind.as_str(),
        events: spec.events,
        secret: spec.secret_ref.name,
        suspend: spec.suspend,
        webhook_path: receiver.status.as_ref().and_then(|status| status.webhook_path.clone()),
    }
}

pub(super) fn of_alert(alert: &Alert) -> Details {
    let (provider, status) = (&alert.spec.provider, alert.status.clone().unwrap_or_default());
    Details::Alert {
        provider: provider.kind,
        secret: provider.secret_ref.as_ref().map(|secret| secret.name.clone()),
        suspend: alert.spec.suspend,
        last_delivery: status.last_delivery,
        dropped: status.dropped,
    }
}

/// When installed BundleDeployments get a newer component.
const fn updates(policy: UpdatePolicy) -> &'static str {
    match policy {
        UpdatePolicy::Manual => "each BundleDeployment when its update is approved",
        UpdatePolicy::Automatic => "all BundleDeployments at once",
        UpdatePolicy::WhenUnchanged => {
            "each BundleDeployment at once if its release stays the same, else when it is approved"
        }
        UpdatePolicy::Staged => "a few BundleDeployments at a time, until one fails",
    }
}

/// What the BundleDeployments that use a class do with its component.
fn used_by(uses: &ClassUses) -> String {
    let ClassUses { total, updated, waiting, changing, failed } = *uses;
    let has = (total > 0).then(|| format!(": {updated} with this component"));
    let waits = (waiting > 0).then(|| format!(", {waiting} wait for approval, of which {changing} would change"));
    let fails = (failed > 0).then(|| format!(", {failed} failed"));
    let total = count(usize::try_from(total).unwrap_or_default(), "BundleDeployment");
    std::iter::once(total).chain([has, waits, fails].into_iter().flatten()).collect()
}

/// How many calls there were, and what they took.
fn called(calls: &ClassCalls) -> String {
    let ClassCalls { total, failed, median_milliseconds, p99_milliseconds, observed, .. } = calls;
    let fails = if *failed > 0 { format!(", {failed} crashed or exceeded a limit") } else { String::new() };
    format!("{total}{fails}; median {median_milliseconds} ms, 99% within {p99_milliseconds} ms ({:.0})", observed.0)
}

const fn has_schema(schema: bool) -> &'static str {
    if schema { "checked by a schema of the component" } else { "the component has returned no schema" }
}

/// The kinds that a component renders. The status is untrusted: a client may have written more than the controller does.
fn rendered(calls: &ClassCalls) -> Option<String> {
    let named = calls.kinds.iter().take(KINDS).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = calls.kinds.len().saturating_sub(KINDS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!calls.kinds.is_empty()).then(|| named + &more)
}

impl Details {
    /// Adds the Resolution that chose the version of a PlatformOperator.
    pub fn set_resolution(&mut self, name: Option<String>) {
        if let Self::Operator { resolution, .. } = self {
            *resolution = name;
        }
    }

    /// The lines of the text: labels and values.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let rows: Vec<(&'static str, Option<String>)> = match self {
            Self::Catalog {
                source,
                priority,
                poll_interval,
                suspend,
                resolved_source,
                digest,
                contents,
                last_unpacked,
            } => {
                let has = contents.map(|CatalogContents { packages, channels, bundles }| {
                    let count = |number: i64, noun| count(usize::try_from(number).unwrap_or_default(), noun);
                    format!(
                        "{}, {}, {}",
                        count(packages, "package"),
                        count(channels, "channel"),
                        count(bundles, "bundle")
                    )
                });
                vec![
                    ("source", Some(chandler_source::describe(source))),
                    ("in use", resolved_source.as_deref().map(chandler_source::describe)),
                    ("content", digest.clone()),
                    ("has", has),
                    ("unpacked", last_unpacked.clone()),
                    ("priority", Some(priority.to_string()).filter(|_| *priority != 0)),
                    ("poll every", poll_interval.clone()),
                    ("suspended", suspend.then(|| "the source is not resolved any more".to_owned())),
                ]
            }
            Self::Class { image, priority, update_policy, suspend, uses, calls, component } => {
                let shown = component.as_ref().map(|component| {
                    let name = [component.name.as_deref(), component.version.as_deref()];
                    let name: Vec<&str> = name.into_iter().flatten().collect();
                    format!("{} ({})", name.join(" "), component.digest).trim_start().to_owned()
                });
                let formats = component.as_ref().map(|component| component.formats.join(", "));
                vec![
                    ("image", Some(image.clone())),
                    ("in use", component.as_ref().map(|component| component.image.clone())),
                    ("component", shown),
                    ("contract", component.as_ref().map(|component| component.contract_version.clone())),
                    ("formats", formats.filter(|formats| !formats.is_empty())),
                    ("priority", Some(priority.to_string()).filter(|_| *priority != 0)),
                    ("updates", Some(updates(*update_policy).to_owned())),
                    ("used by", uses.as_ref().map(used_by)),
                    ("calls", calls.as_deref().map(called)),
                    ("config", calls.as_deref().map(|calls| has_schema(calls.configuration_schema).to_owned())),
                    ("renders", calls.as_deref().and_then(rendered)),
                    ("suspended", suspend.then(|| "its component stays, and no release is updated".to_owned())),
                ]
            }
            Self::Operator { package, version_range, version, namespace, bundle_deployment, resolution } => {
                let wanted = version_range.as_ref().map(|range| format!(", versions {range}")).unwrap_or_default();
                let deployment = bundle_deployment.as_ref();
                vec![
                    ("package", Some(format!("{package}{wanted}"))),
                    ("version", version.clone()),
                    ("namespace", namespace.clone()),
                    (
                        "installed by",
                        deployment.map(|name| format!("BundleDeployment {name}, `chandler status {}`", quoted(name))),
                    ),
                    (
                        "chosen by",
                        resolution.as_ref().map(|name| {
                            format!("Resolution {name}, `chandler status {}`", quoted(&format!("resolution/{name}")))
                        }),
                    ),
                ]
            }
            Self::Policy { packages, require_platform_property, constraints } => {
                let allowed = match packages {
                    None => "all".to_owned(),
                    Some(packages) if packages.is_empty() => "none".to_owned(),
                    Some(packages) => {
                        let named = packages.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
                        let more = packages.len().saturating_sub(NAMED);
                        if more > 0 { format!("{named} and {more} more") } else { named }
                    }
                };
                vec![
                    ("packages", Some(allowed)),
                    ("only", require_platform_property.then(|| "platform operators".to_owned())),
                    ("constraints", Some(constraints.to_string()).filter(|_| *constraints > 0)),
                ]
            }
            Self::Receiver { sender, events, secret, suspend, webhook_path } => vec![
                ("type", Some((*sender).to_owned())),
                ("events", Some(events.join(", ")).filter(|_| !events.is_empty())),
                ("path", webhook_path.clone()),
                ("token", Some(format!("Secret {secret}"))),
                ("suspended", suspend.then(|| "all requests are refused".to_owned())),
            ],
            Self::Alert { provider, secret, suspend, last_delivery, dropped } => {
                let last = last_delivery.as_ref().map(|last| {
                    let outcome = if last.succeeded { "accepted" } else { "failed" };
                    format!("{outcome} at {:.0}", last.time.0)
                });
                vec![
                    ("sent as", Some(format!("{provider:?}"))),
                    ("secret", secret.clone()),
                    ("last", last),
                    ("dropped", dropped.map(|dropped| dropped.to_string())),
                    ("suspended", suspend.then(|| "nothing is sent".to_owned())),
                ]
            }
        };
        rows.into_iter().filter_map(|(label, value)| Some((label, value?))).collect()
    }
}
