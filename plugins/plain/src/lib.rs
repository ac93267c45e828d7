//! The plain+v0 provisioner: installs a directory of Kubernetes manifests unchanged.
//!
//! The rules come from rukpak (`rukpak/pkg/provisioner/plain` and its `docs/bundles/plain.md`): all objects are in
//! files directly in `manifests/`, whatever their names; at least one object; no templating. Objects without a
//! namespace are emitted without one, since only the host knows which kinds are namespaced.
//!
//! Differences from rukpak, and additions:
//! - All findings are reported at once, with positions; rukpak stops at the first.
//! - Files whose names begin with a dot are ignored, with a warning.
//! - Of two equal objects with one identity one is kept, with a warning; two different ones are refused, since one
//!   would silently win.
//! - An OpenShift `image-references` file is not installed. It names the images of the bundle, and the configuration
//!   may replace them, as well as the version placeholders of OpenShift's manifests.
//! - Run levels in file names become stages: [`stage`].
//! - With `release` in the configuration, manifests are selected and ordered as in an OpenShift release; a release image has them in two
//!   directories, one of them with templates.
//!
//! | module | holds |
//! |---|---|
//! | `detect` | format detection |
//! | `load` | parsing files into values |
//! | `payload` | release images: trees with `release-manifests/` |
//! | `template`, `template_lexer` | the templates in `manifests/` of a release image |
//! | `manifest` | a value of a manifest |
//! | `check` | validation of objects and their identities |
//! | `config` | the configuration and its schema |
//! | `references` | the file `image-references` |
//! | `images`, `versions` | replacement in strings |
//! | `substitute` | replacement in objects |
//! | [`stage`] | run levels, components |
//! | `release` | which manifests of an OpenShift release are for a cluster |
//! | `prerequisites` | objects of a release that need what a later run level creates |
//! | `release_config` | the cluster, in the configuration |

mod check;
mod config;
mod detect;
mod images;
mod load;
mod manifest;
mod payload;
mod prerequisites;
mod references;
mod release;
mod release_config;
pub mod stage;
mod substitute;
mod template;
mod template_lexer;
mod versions;

use chandler_sdk::{Content, Diagnostic, Facts, Failure, Location, Output, Provisioner, Request, Severity};
use serde_json::Value;

use self::{
    load::Layout,
    manifest::Manifest,
    references::References,
    release_config::Cluster,
    substitute::{Findings, Substitution},
    template::Fields,
};

/// The name of the format.
pub const FORMAT: &str = "plain+v0";

/// The directory of the manifests.
const MANIFESTS: &str = "manifests/";

/// The provisioner.
#[derive(Debug)]
pub struct Plain;

impl Provisioner for Plain {
    const FACTS: Facts = Facts::new("plain", env!("CARGO_PKG_VERSION")).formats(&[FORMAT]);

    fn detect(content: &dyn Content) -> Option<String> {
        detect::is_plain(content).then(|| FORMAT.to_owned())
    }

    fn config_schema(content: &dyn Content) -> Result<Option<String>, Failure> {
        Ok(Some(config::schema(content).to_string()))
    }

    fn provision(request: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
        let mut config = config::parse(request.config());
        let is_payload = payload::is_payload(content);
        let references = references::references(content, is_payload);
        if is_payload && config.as_ref().is_ok_and(|config| config.release.is_none()) {
            return Err(Failure::InvalidConfig(vec![payload::not_configured()]));
        }
        let mut invalid = Vec::new();
        let conflict = match &mut config {
            Ok(config) if is_payload => payload::version(content, &references, &mut invalid)
                .and_then(|version| payload::adopt_version(config, version)),
            _ => None,
        };
        let cluster = config.as_ref().ok().and_then(|config| config.release.as_ref().map(|it| (it, &config.versions)));
        let fields = cluster.map(|(cluster, _)| fields(cluster, &references));
        let layout = match &fields {
            Some(fields) if is_payload => Layout::Payload(fields),
            Some(_) => Layout::Release,
            // Of a release image, what is wrong in its configuration.
            None if is_payload => return config.map(drop),
            None => Layout::Plain,
        };
        let load::Loaded { mut objects, mut errors, mut configuration, mut warnings } = load::load(content, layout);
        errors.splice(0..0, invalid);
        if matches!(layout, Layout::Release) {
            // It is not read as a manifest.
            errors.extend(references.unreadable.clone().map(|finding| finding.help("correct the file, or remove it")));
        }
        let is_whole = configuration.is_empty();
        configuration.extend(conflict);
        if let Some((cluster, versions)) = cluster {
            let has_manifests = !objects.is_empty();
            objects = release::select(objects, cluster, versions.release.as_deref(), &mut errors);
            prerequisites::defer(&mut objects);
            if objects.is_empty() && has_manifests && errors.is_empty() && is_whole {
                errors.push(release::none_for(cluster));
            }
            if !is_payload && cluster.release_image.is_some() {
                warnings.push(payload::release_image_ignored());
            }
        }
        let objects = check::check(objects, &mut errors, &mut warnings);
        if objects.is_empty() && errors.is_empty() && is_whole {
            errors.push(no_objects());
        }
        // Errors in the names of images matter only if images are replaced.
        let replaces = config.as_ref().is_ok_and(|config| !config.images.is_empty());
        let as_warning = |finding: &Diagnostic| Diagnostic { severity: Severity::Warning, ..finding.clone() };
        if replaces {
            errors.extend(references.findings.iter().cloned());
        } else if !is_payload {
            warnings.extend(references.findings.iter().map(as_warning));
        }
        if !errors.is_empty() {
            errors.extend(config.err().iter().flat_map(Failure::diagnostics).cloned());
            errors.extend(configuration);
            return Err(Failure::InvalidContent(errors));
        }
        let config = config?;
        if !configuration.is_empty() {
            return Err(Failure::InvalidConfig(configuration));
        }
        warnings.extend(references.advice(&config.images));
        let images = references.replacements(&config.images);
        let values = substitute(&objects, &Substitution { images, versions: &config.versions }, &mut warnings)?;
        for warning in &warnings {
            output.report(warning);
        }
        emit(&objects, values, output)
    }
}

/// The values of the templates of a release image.
fn fields<'a>(cluster: &'a Cluster, references: &'a References) -> Fields<'a> {
    let images = references.stream.iter().flat_map(|stream| &stream.images);
    Fields {
        release_image: cluster.release_image.as_deref(),
        cluster_profile: &cluster.profile,
        images: images.map(|(name, image)| (name.as_str(), image.as_str())).collect(),
    }
}

fn no_objects() -> Diagnostic {
    let message = "invalid bundle: found zero objects: plain+v0 bundles are required to contain at least one object";
    let help = "put at least one file with a Kubernetes object directly into manifests/";
    Diagnostic::error("NoObjects", message).at(MANIFESTS).help(help)
}

/// The objects after replacement. Empty if nothing is replaced; then the objects stay unchanged.
fn substitute(
    objects: &[Manifest],
    substitution: &Substitution<'_>,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Vec<Value>, Failure> {
    if substitution.is_empty() {
        return Ok(Vec::new());
    }
    let mut findings = Findings::default();
    let values = objects.iter().map(|object| substitution.apply(object, &mut findings)).collect();
    let Findings { mut content, configuration, warnings: found } = findings;
    warnings.extend(found);
    if !content.is_empty() {
        content.extend(configuration);
        return Err(Failure::InvalidContent(content));
    }
    if configuration.is_empty() { Ok(values) } else { Err(Failure::InvalidConfig(configuration)) }
}

/// Adds the annotations that tell the host how to apply an object.
fn instruct(object: &mut Value, instructions: &[(&'static str, String)]) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let annotations = metadata.entry("annotations").or_insert(Value::Null);
    if annotations.is_null() {
        *annotations = Value::Object(serde_json::Map::new());
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.extend(instructions.iter().map(|(name, value)| ((*name).to_owned(), value.as_str().into())));
    }
}

fn emit(objects: &[Manifest], values: Vec<Value>, output: &mut dyn Output) -> Result<(), Failure> {
    let mut values = values.into_iter();
    for object in objects {
        match values.next().or_else(|| (!object.instructions.is_empty()).then(|| object.node.to_json())) {
            Some(mut value) => {
                instruct(&mut value, &object.instructions);
                if object.instructions.iter().any(|(name, _)| *name == release::SEQUENCE) {
                    release::complete(&mut value);
                }
                output.emit_value(&value, object.stage, Some(Location::of(&object.path, &object.node)))?
            }
            None => output.emit_node(&object.node, object.stage, &object.path)?,
        };
    }
    Ok(())
}

chandler_sdk::export!(Plain);
