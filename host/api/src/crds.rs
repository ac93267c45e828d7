//! The CRDs that an administrator installs.
//!
//! The types define fields, descriptions and most bounds. This module adds CEL rules that span several fields, so that the
//! API server itself refuses what RukPak refused in webhooks, and no webhook has to be available.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, ValidationRule,
};
use kube::CustomResourceExt as _;

use crate::{
    Alert, BundleDeployment, Catalog, ChangeApproval, OwnKind, PlatformOperator, PlatformPolicy, ProvisionerClass,
    Receiver, Resolution, drift::IGNORED, names::APPLYSET_PARENT_TYPE_LABEL, probe::PROBES,
    rollout_settings::MOST_HISTORY,
};

/// The longest name of a BundleDeployment. It leaves eleven characters for the names of derived objects.
const NAME_LENGTH: i64 = 52;
/// The longest name of a Resolution: resolveset-NAME is the name of a BundleDeployment.
const RESOLUTION_NAME_LENGTH: i64 = NAME_LENGTH - 11;
/// The most ConfigMaps of one bundle. It bounds the cost of the rules on each ConfigMap.
const CONFIG_MAPS: i64 = 256;
/// The most revisions that are kept beyond the limit of the history.
const PROTECTED_REVISIONS: i64 = 4;
/// The longest path. It bounds the cost of the rules on paths.
const PATH_LENGTH: i64 = 1024;

/// A CEL rule, the path of its schema, and the message if it is violated.
struct Rule {
    path: &'static [&'static str],
    expression: &'static str,
    message: &'static str,
}

const SOURCE: &[&str] = &["spec", "source"];
const GIT_DIRECTORY: &[&str] = &["spec", "source", "git", "directory"];
const CONFIG_MAP_PATH: &[&str] = &["spec", "source", "configMaps", "[]", "path"];

const VERIFICATION: &[&str] = &["spec", "source", "image", "verification"];
const ALL_OF: &[&str] = &["spec", "source", "image", "verification", "allOf", "[]"];
const ANY_OF: &[&str] = &["spec", "source", "image", "verification", "anyOf", "signers", "[]"];
const ONE_SIGNER: &str =
    "[has(self.publicKey), has(self.keyless), has(self.githubAction)].exists_one(present, present)";
const ONE_SIGNER_MESSAGE: &str = "exactly one of publicKey, keyless, githubAction must be set";

const RULES: &[Rule] = &[
    Rule {
        path: SOURCE,
        expression: "self.type in ['image', 'git', 'configMaps', 'http', 'upload']",
        message: "type must be one of image, git, configMaps, http, upload",
    },
    Rule {
        path: SOURCE,
        expression: "[has(self.image), has(self.git), has(self.configMaps), has(self.http), has(self.upload)].exists_one(present, present)",
        message: "exactly one of image, git, configMaps, http, upload must be set",
    },
    Rule {
        path: SOURCE,
        expression: "self.type != 'image' || has(self.image)",
        message: "image must be set for source type \"image\"",
    },
    Rule {
        path: SOURCE,
        expression: "self.type != 'git' || has(self.git)",
        message: "git must be set for source type \"git\"",
    },
    Rule {
        path: SOURCE,
        expression: "self.type != 'configMaps' || has(self.configMaps)",
        message: "configMaps must be set for source type \"configMaps\"",
    },
    Rule {
        path: SOURCE,
        expression: "self.type != 'http' || has(self.http)",
        message: "http must be set for source type \"http\"",
    },
    Rule {
        path: SOURCE,
        expression: "self.type != 'upload' || has(self.upload)",
        message: "upload must be set for source type \"upload\"",
    },
    Rule {
        path: &["spec", "source", "git", "ref"],
        expression: "[has(self.branch), has(self.tag), has(self.commit), has(self.semver)].exists_one(present, present)",
        message: "exactly one of branch, tag, commit, semver must be set",
    },
    Rule {
        path: VERIFICATION,
        expression: "has(self.anyOf) || has(self.allOf) && size(self.allOf) > 0",
        message: "at least one of allOf, anyOf must be set",
    },
    Rule {
        path: &["spec", "source", "image", "verification", "anyOf"],
        // The default, 1, is never too many.
        expression: "!has(self.minimumMatches) || self.minimumMatches <= size(self.signers)",
        message: "minimumMatches must not be more than the number of signers",
    },
    Rule { path: ALL_OF, expression: ONE_SIGNER, message: ONE_SIGNER_MESSAGE },
    Rule { path: ANY_OF, expression: ONE_SIGNER, message: ONE_SIGNER_MESSAGE },
    Rule { path: GIT_DIRECTORY, expression: INSIDE, message: "directory must define a path within the repository" },
    Rule { path: CONFIG_MAP_PATH, expression: INSIDE, message: "path is outside the bundle root" },
];

const NOT_UPLOADED: Rule =
    Rule { path: SOURCE, expression: "self.type != 'upload'", message: "a Catalog cannot be uploaded" };

const RESOLUTION_RULES: &[Rule] = &[
    Rule {
        path: &["spec", "output"],
        expression: "has(self.resolveSet) == (self.type == 'ResolveSet')",
        message: "resolveSet must be set for output type \"ResolveSet\", and for no other",
    },
    Rule {
        path: &["spec"],
        expression: "!has(oldSelf.output) || oldSelf.output.type != 'ResolveSet' || (has(self.output) && self.output.type == 'ResolveSet')",
        message: "a set that is installed stays: delete the Resolution to remove it",
    },
];

const PROVIDER: &[&str] = &["spec", "provider"];
const ALERT_RULES: &[Rule] = &[
    Rule {
        path: PROVIDER,
        expression: "has(self.url) != has(self.secretRef)",
        message: "exactly one of url, secretRef must be set",
    },
    Rule {
        path: PROVIDER,
        expression: "!has(self.secretRef) || size(self.secretRef.name) > 0",
        message: "secretRef.name must be set",
    },
    Rule {
        path: PROVIDER,
        expression: "self.type != 'Slack' || has(self.secretRef)",
        message: "secretRef must be set for type \"Slack\": its URL is a secret",
    },
    Rule {
        path: PROVIDER,
        expression: "self.type == 'Slack' || !has(self.channel)",
        message: "channel may be set for type \"Slack\" only",
    },
];

const POLL_INTERVAL: Rule = Rule {
    path: &["spec", "pollInterval"],
    expression: "duration(self) >= duration('1s')",
    message: "pollInterval must be at least 1s",
};

/// A relative path without a `..` part.
const INSIDE: &str = r"!self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')";

/// The CRDs of this version, in installation order.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let crd = |own: &OwnKind| match own {
        OwnKind::BundleDeployment => bundle_deployments(),
        OwnKind::ProvisionerClass => provisioner_classes(),
        OwnKind::ChangeApproval => change_approvals(),
        OwnKind::Catalog => catalogs(),
        OwnKind::Resolution => resolutions(),
        OwnKind::PlatformOperator => platform_operators(),
        OwnKind::PlatformPolicy => platform_policies(),
        OwnKind::Receiver => receivers(),
        OwnKind::Alert => alerts(),
    };
    OwnKind::ALL.iter().map(crd).collect()
}

/// The CRDs as one YAML stream. The output is deterministic.
pub fn crds_yaml() -> Result<String, serde_json::Error> {
    let mut yaml = String::new();
    for crd in crds() {
        // The members of a JSON value are sorted.
        let value = serde_json::to_value(&crd)?;
        yaml.push_str("---\n");
        yaml.push_str(&serde_saphyr::to_string(&value).map_err(serde::ser::Error::custom)?);
    }
    Ok(yaml)
}

fn bundle_deployments() -> CustomResourceDefinition {
    let mut crd = BundleDeployment::crd();
    crd.metadata.labels = Some([(APPLYSET_PARENT_TYPE_LABEL.to_owned(), "true".to_owned())].into());
    refine(&mut crd, |root| {
        name_length(root, NAME_LENGTH);
        not_observed_yet(root);
        if let Some(probes) = at(root, &["spec", "probes"]) {
            probes.max_items = i64::try_from(PROBES).ok();
        }
        if let Some(ignored) = at(root, &["spec", "ignoreDifferences"]) {
            ignored.max_items = i64::try_from(IGNORED).ok();
        }
        if let Some(history) = at(root, &["status", "history"]) {
            history.max_items = Some(i64::from(MOST_HISTORY) + PROTECTED_REVISIONS);
        }
        source(root);
    });
    crd
}

/// Bounds the length of `metadata.name`.
fn name_length(root: &mut JSONSchemaProps, longest: i64) {
    let name =
        JSONSchemaProps { type_: Some("string".into()), max_length: Some(longest), ..JSONSchemaProps::default() };
    let metadata = JSONSchemaProps {
        type_: Some("object".into()),
        properties: Some([("name".to_owned(), name)].into()),
        ..JSONSchemaProps::default()
    };
    root.properties.get_or_insert_default().insert("metadata".into(), metadata);
}

/// The bounds and rules of `spec.source`.
fn source(root: &mut JSONSchemaProps) {
    if let Some(config_maps) = at(root, &["spec", "source", "configMaps"]) {
        config_maps.max_items = Some(CONFIG_MAPS);
    }
    for path in [GIT_DIRECTORY, CONFIG_MAP_PATH] {
        if let Some(path) = at(root, path) {
            path.max_length = Some(PATH_LENGTH);
        }
    }
    for rule in RULES {
        add(root, rule);
    }
}

fn add(root: &mut JSONSchemaProps, rule: &Rule) {
    if let Some(schema) = at(root, rule.path) {
        schema.x_kubernetes_validations.get_or_insert_default().push(ValidationRule {
            rule: rule.expression.to_owned(),
            message: Some(rule.message.to_owned()),
            ..ValidationRule::default()
        });
    }
}

fn catalogs() -> CustomResourceDefinition {
    let mut crd = Catalog::crd();
    refine(&mut crd, |root| {
        not_observed_yet(root);
        source(root);
        add(root, &NOT_UPLOADED);
        add(root, &POLL_INTERVAL);
    });
    crd
}

fn resolutions() -> CustomResourceDefinition {
    let mut crd = Resolution::crd();
    refine(&mut crd, |root| {
        name_length(root, RESOLUTION_NAME_LENGTH);
        not_observed_yet(root);
        for rule in RESOLUTION_RULES {
            add(root, rule);
        }
    });
    crd
}

fn platform_operators() -> CustomResourceDefinition {
    let mut crd = PlatformOperator::crd();
    refine(&mut crd, not_observed_yet);
    crd
}

fn platform_policies() -> CustomResourceDefinition {
    let mut crd = PlatformPolicy::crd();
    refine(&mut crd, not_observed_yet);
    crd
}

fn receivers() -> CustomResourceDefinition {
    let mut crd = Receiver::crd();
    refine(&mut crd, not_observed_yet);
    crd
}

fn alerts() -> CustomResourceDefinition {
    let mut crd = Alert::crd();
    refine(&mut crd, |root| {
        not_observed_yet(root);
        for rule in ALERT_RULES {
            add(root, rule);
        }
    });
    crd
}

fn provisioner_classes() -> CustomResourceDefinition {
    let mut crd = ProvisionerClass::crd();
    refine(&mut crd, not_observed_yet);
    crd
}

/// A new object has a status that no controller has observed. Without it, kstatus takes an object without conditions for complete, and
/// its clients (Flux, `kubectl wait`) would continue before the controller has seen it.
fn not_observed_yet(root: &mut JSONSchemaProps) {
    if let Some(status) = at(root, &["status"]) {
        status.default = Some(JSON(serde_json::json!({"observedGeneration": -1})));
    }
}

fn change_approvals() -> CustomResourceDefinition {
    let mut crd = ChangeApproval::crd();
    refine(&mut crd, |root| {
        if let Some(spec) = at(root, &["spec"]) {
            spec.x_kubernetes_validations.get_or_insert_default().push(ValidationRule {
                rule: "self == oldSelf".to_owned(),
                message: Some("an approval cannot be changed: delete it and approve again".to_owned()),
                ..ValidationRule::default()
            });
        }
    });
    crd
}

/// Converts the schemas to the form that controller-gen writes, then applies further changes.
fn refine(crd: &mut CustomResourceDefinition, change: impl Fn(&mut JSONSchemaProps)) {
    for version in &mut crd.spec.versions {
        if let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            plain(root);
            let properties = root.properties.get_or_insert_default();
            for (name, description) in
                [("apiVersion", "The API group and version of this object."), ("kind", "The kind of this object.")]
            {
                properties.insert(
                    name.to_owned(),
                    JSONSchemaProps {
                        description: Some(description.to_owned()),
                        type_: Some("string".to_owned()),
                        ..JSONSchemaProps::default()
                    },
                );
            }
            change(root);
        }
    }
}

/// Rust does not distinguish absent from null, but a schema does. Null is not accepted: RukPak did not accept it, and rules on
/// presence would count it. Defaults of Rust flags are not written into stored objects.
fn plain(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    if schema.type_.as_deref() != Some("string") {
        schema.default = None;
    }
    if schema.type_.as_deref() == Some("integer") {
        schema.minimum = schema.minimum.filter(|minimum| *minimum > f64::from(i32::MIN));
        schema.maximum = schema.maximum.filter(|maximum| *maximum < f64::from(i32::MAX));
    }
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        plain(property);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        plain(items);
    }
}

/// The schema below `root` at this path; `[]` stands for the items of a list.
fn at<'a>(root: &'a mut JSONSchemaProps, path: &[&str]) -> Option<&'a mut JSONSchemaProps> {
    path.iter().try_fold(root, |schema, step| match (*step, &mut schema.items) {
        ("[]", Some(JSONSchemaPropsOrArray::Schema(items))) => Some(items.as_mut()),
        (name, _) => schema.properties.as_mut()?.get_mut(name),
    })
}
