//! The export: a chart as a bundle.
//!
//! Objects come in this order of stages: `crds/`, the hooks before an installation by their weights, the manifests, the hooks after it. Hooks of
//! a deletion or rollback have no place in a release, and tests run on demand: both are left out with a finding. Generated values become requests
//! to the host. If the configuration asks for the tests, only these are rendered.

use std::rc::Rc;

use chandler_go_template::Limits;
use chandler_sdk::{
    Content, Description, Diagnostic, Facts, Failure, Location, Output, Provisioner, Request, secrets::GENERATE,
    yaml::Node,
};
use serde_json::Value as Json;

use crate::{
    chart::File,
    configuration::{self, Configuration, Part},
    functions::Environment,
    manifest::{self, Hook},
    pipeline::{self, Rendered, Stage},
    placeholders::{Emitted, Placeholders, Unresolved},
    render::{ApiVersions, Capabilities, Release},
    test_hooks, yaml,
};

/// The name of the format.
pub const FORMAT: &str = "helm";

/// The version of Kubernetes, where no cluster is known, as in Helm 3.21.
const KUBERNETES: &str = "v1.33.0";

/// What Helm takes as served, where no cluster is known.
const SERVED: &[&str] = &[
    "v1",
    "admissionregistration.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "apiregistration.k8s.io/v1",
    "apps/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "certificates.k8s.io/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1",
    "networking.k8s.io/v1",
    "node.k8s.io/v1",
    "policy/v1",
    "rbac.authorization.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1",
];

/// That the host may recreate an object if an immutable field changes (`ON_IMMUTABLE_ANNOTATION` there).
const ON_IMMUTABLE: &str = "chandler.dev/on-immutable";
/// The value of [`ON_IMMUTABLE`].
const RECREATE: &str = "Recreate";

/// Bytes of notes that a finding shows.
const NOTES: usize = 2000;

/// The provisioner.
#[derive(Debug)]
pub struct Helm;

impl Provisioner for Helm {
    const FACTS: Facts = Facts::new("helm", env!("CARGO_PKG_VERSION")).formats(&[FORMAT]);

    fn detect(content: &dyn Content) -> Option<String> {
        content.exists("Chart.yaml").then(|| FORMAT.to_owned())
    }

    fn config_schema(_: &dyn Content) -> Result<Option<String>, Failure> {
        Ok(Some(configuration::schema().to_string()))
    }

    fn provision(request: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
        let Configuration { values, release, is_upgrade, part } = Configuration::read(request)?;
        let mut files = Vec::new();
        for entry in content.files("") {
            let data = content
                .read(&entry.path)
                .map_err(|error| Failure::internal(format!("cannot read {}: {error}", entry.path)))?;
            files.push(File::new(entry.path, data));
        }
        let kinds = request.clone();
        let placeholders = Placeholders::new(&release, request.namespace());
        let entropy = Rc::clone(&placeholders);
        let rendered = pipeline::render(pipeline::Request {
            files,
            values: vec![values],
            release: Release {
                name: release,
                namespace: request.namespace().to_owned(),
                revision: 1,
                upgrade: is_upgrade,
            },
            capabilities: Capabilities {
                kubernetes: request.kubernetes_version().unwrap_or(KUBERNETES).to_owned(),
                api_versions: ApiVersions::lazy(move || served(kinds.api_kinds())),
            },
            environment: Environment { entropy: Some(entropy) },
            limits: Limits::default(),
        })
        .map_err(|failure| {
            let message = placeholders.shown(&failure.message);
            failed(pipeline::Failure { message, ..failure })
        })?;
        match part {
            Part::Chart => emit(&rendered, &placeholders, request.namespace(), output),
            Part::Tests => test_hooks::emit(&rendered, &placeholders, request.namespace(), output),
        }
    }
}

/// The kinds of a cluster, with their groups and versions.
fn served(kinds: &[String]) -> Vec<String> {
    if kinds.is_empty() {
        return SERVED.iter().map(ToString::to_string).collect();
    }
    let mut all: Vec<String> =
        kinds.iter().filter_map(|kind| kind.rsplit_once('/')).map(|(version, _)| version.to_owned()).collect();
    all.dedup();
    all.extend(kinds.iter().cloned());
    all
}

/// A failure with its place.
fn failed(failure: pipeline::Failure) -> Failure {
    let code = match failure.stage {
        _ if failure.refused => "UnsupportedTemplate",
        Stage::Load => "InvalidChart",
        Stage::Installable => "LibraryChart",
        Stage::Dependencies => "InvalidDependencies",
        Stage::Values => "InvalidValues",
        Stage::KubeVersion => "UnsupportedKubernetes",
        Stage::Render => "TemplateFailed",
        Stage::Manifests => "InvalidManifest",
    };
    let mut finding = Diagnostic::error(code, failure.message.trim_end());
    finding = match (place(&failure.message), failure.stage) {
        (Some((path, line, column)), _) => finding.at(path).position(line, column),
        // It is about the configuration.
        (None, Stage::Values) => finding,
        (None, _) => match file(&failure.message) {
            (path, Some(line)) => finding.at(path).position(line, 1),
            (path, None) => finding.at(path),
        },
    };
    match failure.stage {
        _ if failure.refused => Failure::Unsupported(vec![finding]),
        Stage::Values => Failure::InvalidConfig(vec![finding]),
        _ => Failure::InvalidContent(vec![finding]),
    }
}

/// The first `CHART/PATH:LINE:COLUMN` of a text, as path in the bundle. Go counts columns from 0.
fn place(message: &str) -> Option<(String, u32, u32)> {
    message.split([' ', '(', ')']).find_map(|word| {
        let mut parts = word.trim_end_matches(':').split(':');
        let (path, line) = (parts.next()?, parts.next()?.parse().ok()?);
        let column =
            parts.next().and_then(|column| column.parse::<u32>().ok()).map_or(0, |column| column.saturating_add(1));
        Some((inside(path)?, line, column))
    })
}

/// The file that a text without such a place is about, `Chart.yaml` if it names none, and a line of it. A file that is not YAML has the line that its
/// reader reports. What a template printed has other lines than the template, and an archive has no lines.
fn file(message: &str) -> (String, Option<u32>) {
    let mut directory = String::new();
    let mut message = message;
    while let Some((subchart, rest)) =
        message.strip_prefix("error unpacking subchart ").and_then(|rest| rest.split_once(" in "))
    {
        directory.push_str("charts/");
        directory.push_str(subchart);
        if subchart.strip_suffix(".tgz").is_some() {
            return (directory, None);
        }
        directory.push('/');
        message = rest.split_once(": ").map_or("", |(_, rest)| rest);
    }
    let after = |start: &str| Some(message.split_once(start)?.1.split_once(':')?.0);
    if let Some(name) = after("cannot load ") {
        let line = after("yaml: line ").and_then(|line| line.parse().ok());
        return (directory + name, Some(line.unwrap_or(1)));
    }
    // Of a limit, the text begins with the template.
    let template = after("parse error on ").or_else(|| message.split_once(": ").map(|(path, _)| path));
    let template = template.filter(|path| !path.contains(' ')).and_then(inside);
    (template.unwrap_or_else(|| directory + "Chart.yaml"), Some(1))
}

/// The path in the bundle: a template's name begins with the chart's.
pub(crate) fn inside(path: &str) -> Option<String> {
    path.split_once('/').map(|(_, path)| path.to_owned())
}

pub(crate) fn location(path: &str) -> Option<Location> {
    inside(path).map(Location::file)
}

fn emit(
    rendered: &Rendered,
    placeholders: &Placeholders,
    namespace: &str,
    output: &mut dyn Output,
) -> Result<(), Failure> {
    describe(rendered, output);
    let (before, after) = installed_hooks(rendered);
    let mut objects = objects(rendered, &before, &after)?;
    placeholders
        .resolve(&mut objects, namespace)
        .map_err(|problems| Failure::Unsupported(problems.iter().map(unresolved).collect()))?;
    for Emitted { value, stage, path } in &objects {
        output.emit_value(value, Some(*stage), location(path))?;
    }
    if let Some(finding) = generated(&objects) {
        output.report(&finding);
    }
    for hook in before.iter().chain(&after).filter(|hook| !hook.delete_policies.is_empty()) {
        output.report(&stays(hook, &placeholders.shown(&hook.name)));
    }
    for hook in rendered.documents.hooks.iter().filter(|hook| !before.contains(hook) && !after.contains(hook)) {
        output.report(&left_out(hook, &placeholders.shown(&hook.name)));
    }
    if !rendered.documents.notes.trim().is_empty() {
        let notes = placeholders.shown(rendered.documents.notes.trim());
        let notes: String = notes.chars().take(NOTES).collect();
        output.report(&Diagnostic::info("Notes", notes).at("templates/NOTES.txt"));
    }
    Ok(())
}

/// The hooks before an installation or upgrade, and after it.
pub(crate) fn installed_hooks(rendered: &Rendered) -> (Vec<&Hook>, Vec<&Hook>) {
    let before = hooks(&rendered.documents.hooks, is_before);
    let after = hooks(&rendered.documents.hooks, is_after).into_iter().filter(|hook| !before.contains(hook)).collect();
    (before, after)
}

pub(crate) fn describe(rendered: &Rendered, output: &mut dyn Output) {
    let metadata = &rendered.chart.metadata;
    output.describe(&Description {
        name: Some(format!("{}.v{}", metadata.name, metadata.version.trim_start_matches('v'))),
        package: Some(metadata.name.clone()),
        version: Some(metadata.version.clone()),
        ..Description::default()
    });
    for warning in &rendered.warnings {
        output.report(&Diagnostic::warning("ChartWarning", warning.as_str()));
    }
}

/// The objects in the order of their stages.
pub(crate) fn objects(rendered: &Rendered, before: &[&Hook], after: &[&Hook]) -> Result<Vec<Emitted>, Failure> {
    let (mut objects, mut stage) = (Vec::new(), 0);
    for crd in &rendered.crds {
        let text = crd.file.text();
        let mut lines = 0;
        for (before, part) in manifest::split(&text) {
            lines += before;
            let documents = yaml::documents(&format!("{part}\n")).map_err(|error| {
                let finding = Diagnostic::error("InvalidManifest", error.to_string());
                let path = inside(&crd.path).unwrap_or_default();
                Failure::InvalidContent(vec![finding.at(path).position(lines.saturating_add(error.line), 1)])
            })?;
            for document in documents.iter().filter(|document| !document.root.is_null()) {
                objects.push(Emitted { value: document.root.to_json(), stage, path: crd.path.clone() });
            }
        }
    }
    add_hooks(before, installed, &mut stage, &mut objects);
    stage += 1;
    for manifest in &rendered.documents.manifests {
        if let Some(value) = object(manifest.object.as_ref()) {
            objects.push(Emitted { value, stage, path: manifest.path.clone() });
        }
    }
    add_hooks(after, installed, &mut stage, &mut objects);
    Ok(objects)
}

/// A value that cannot be generated, with the place of the call.
pub(crate) fn unresolved(problem: &Unresolved) -> Diagnostic {
    let message = problem.to_string();
    let finding = Diagnostic::error("UnsupportedTemplate", message.as_str());
    let finding = match place(&message) {
        Some((path, line, column)) => finding.at(path).position(line, column),
        None => finding,
    };
    finding.help("set the value that it is for; charts do not generate it then")
}

/// The Secrets whose values the host generates.
fn generated(objects: &[Emitted]) -> Option<Diagnostic> {
    let is_generated = |object: &&Emitted| {
        object.value.get("metadata").and_then(|metadata| metadata.get("annotations")?.get(GENERATE)).is_some()
    };
    let names: Vec<&str> = objects
        .iter()
        .filter(is_generated)
        .filter_map(|object| object.value.pointer("/metadata/name").and_then(Json::as_str))
        .collect();
    let (first, others) = names.split_first()?;
    let others = if others.is_empty() { String::new() } else { format!(" and {} other Secrets", others.len()) };
    let message = format!("passwords in Secret {first}{others} are generated in the cluster, and kept");
    Some(Diagnostic::info("GeneratedValues", message))
}

/// An object without the null that a document with nothing but comments is.
fn object(node: Option<&Node>) -> Option<Json> {
    node.filter(|node| !node.is_null()).map(Node::to_json)
}

/// Whether an event is before an installation or upgrade.
fn is_before(event: &str) -> bool {
    matches!(event, "pre-install" | "pre-upgrade")
}

/// Whether an event is after an installation or upgrade.
fn is_after(event: &str) -> bool {
    matches!(event, "post-install" | "post-upgrade")
}

/// Whether an event is a test. Documents have no other name for it.
pub(crate) fn is_test(event: &str) -> bool {
    event == "test"
}

/// The hooks of some events, by weight and then by name, as Helm runs them.
pub(crate) fn hooks(hooks: &[Hook], is_wanted: fn(&str) -> bool) -> Vec<&Hook> {
    let mut found: Vec<&Hook> = hooks.iter().filter(|hook| hook.events.iter().any(|event| is_wanted(event))).collect();
    found.sort_by(|left, right| left.weight.cmp(&right.weight).then_with(|| left.name.cmp(&right.name)));
    found
}

/// Whether Helm makes a new object of a hook at each upgrade. A hook without a policy has `before-hook-creation`.
fn is_made_anew(hook: &Hook) -> bool {
    let policies = &hook.delete_policies;
    policies.is_empty()
        || policies.iter().any(|policy| matches!(policy.as_str(), "before-hook-creation" | "hook-succeeded"))
}

/// A hook as an object of a release. A new version of the chart may change everything about it, as with Helm: a Job has a new template.
fn installed(hook: &Hook) -> Option<Json> {
    let mut value = as_rendered(hook)?;
    let annotations = value.pointer_mut("/metadata/annotations").and_then(Json::as_object_mut);
    if let Some(annotations) = annotations.filter(|_| is_made_anew(hook)) {
        annotations.insert(ON_IMMUTABLE.to_owned(), RECREATE.into());
    }
    Some(value)
}

/// A hook as the chart renders it.
pub(crate) fn as_rendered(hook: &Hook) -> Option<Json> {
    object(hook.object.as_ref())
}

/// Adds hooks, each weight in a stage of its own.
pub(crate) fn add_hooks(
    hooks: &[&Hook],
    value: fn(&Hook) -> Option<Json>,
    stage: &mut u32,
    objects: &mut Vec<Emitted>,
) {
    let mut weight = None;
    for hook in hooks {
        if weight != Some(hook.weight) {
            *stage += 1;
            weight = Some(hook.weight);
        }
        if let Some(value) = value(hook) {
            objects.push(Emitted { value, stage: *stage, path: hook.path.clone() });
        }
    }
}

fn stays(hook: &Hook, name: &str) -> Diagnostic {
    let message = format!(
        "the {} {name:?} is a hook that Helm deletes ({}); here it stays part of the release",
        hook.kind,
        hook.delete_policies.join(", ")
    );
    Diagnostic::info("HookStays", message).at(inside(&hook.path).unwrap_or_default())
}

fn left_out(hook: &Hook, name: &str) -> Diagnostic {
    let (kind, events) = (&hook.kind, hook.events.join(", "));
    let path = inside(&hook.path).unwrap_or_default();
    if hook.events.iter().all(|event| is_test(event)) {
        Diagnostic::info("TestLeftOut", format!("the {kind} {name:?} is a test, which is not installed"))
            .at(path)
            .help("`chandler test NAME` runs the tests of an installed chart")
    } else {
        let message =
            format!("the {kind} {name:?} is a hook for {events}, which has no place in a release: it is not installed");
        Diagnostic::warning("HookLeftOut", message).at(path).help("remove it from the chart, or run it yourself")
    }
}

#[cfg(test)]
mod tests {
    use chandler_sdk::testing::{Bundle, run};
    use serde_json::json;

    use super::*;

    fn chart(files: &[(&str, &str)]) -> Bundle {
        let own = [("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.2.3\n"), ("values.yaml", "replicas: 1\n")];
        Bundle::new(own.iter().chain(files).map(|(path, text)| (*path, *text)))
    }

    fn job(name: &str, hook: &str, weight: i32) -> String {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations:\n    helm.sh/hook: {hook}\n    helm.sh/hook-weight: \"{weight}\"\n"
        )
    }

    #[test]
    fn a_finding_has_the_place_that_the_text_names_or_the_file_that_it_is_about() {
        let sub = ("charts/a/Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n");
        for (files, expected) in [
            (&[("values.yaml", "a: 1\nb: [\n")][..], ("values.yaml", Some(2))),
            (&[("values.yaml", "- a\n")], ("values.yaml", Some(1))),
            (&[("Chart.yaml", "apiVersion: v2\n")], ("Chart.yaml", Some(1))),
            (&[("templates/a.yaml", "a: {{ nothing }}\n")], ("templates/a.yaml", Some(1))),
            (&[("templates/a.yaml", "\na: {{ .Values.a.b }}\n")], ("templates/a.yaml", Some(2))),
            (&[("templates/a.yaml", "{{/* two\nlines */}}a: [\n")], ("templates/a.yaml", Some(1))),
            (&[sub, ("charts/a/values.yaml", "a: 1\nb: 2\nc: [\n")], ("charts/a/values.yaml", Some(3))),
            (&[("charts/a/b.yaml", "")], ("charts/a/Chart.yaml", Some(1))),
            (&[("charts/a.tgz", "a")], ("charts/a.tgz", None)),
            (&[("crds/a.yaml", "a: 1\n---\nb: c\n: d\n---\ne: f\n")], ("crds/a.yaml", Some(4))),
        ] {
            let failure = run::<Helm>(&chart(files), &Request::new()).unwrap_err();
            let Failure::InvalidContent(findings) = &failure else { panic!("{files:?}: {failure}") };
            let at = findings[0].location.as_ref().map(|at| (at.path.as_str(), at.line()));
            assert_eq!(at, Some(expected), "{files:?}: {failure}");
        }
        let path = file("web/templates/a.yaml: more than 5 steps");
        assert_eq!(path, ("templates/a.yaml".to_owned(), Some(1)));
    }

    #[test]
    fn a_chart_is_rendered_in_stages() {
        let hooks = [
            job("b", "pre-install,pre-upgrade", 5),
            job("a", "pre-install", -1),
            job("c", "post-install", 0),
            job("d", "test", 0),
            job("e", "pre-delete", 0),
        ]
        .join("---\n");
        let content = chart(&[
            (
                "crds/x.yaml",
                "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n",
            ),
            ("templates/hooks.yaml", &hooks),
            (
                "templates/map.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {count: {{ .Values.replicas | quote }}}\n",
            ),
            ("templates/NOTES.txt", "Hello {{ .Release.Namespace }}"),
        ]);
        let request = Request::new()
            .with_name("demo")
            .with_namespace("ns")
            .with_config(serde_json::from_value(json!({"values": "replicas: 3"})).unwrap());
        assert_eq!(Helm::detect(&content).as_deref(), Some("helm"));
        let recorder = run::<Helm>(&content, &request).unwrap();
        let objects: Vec<String> = recorder
            .objects
            .iter()
            .map(|object| format!("{} {} {:?}", object.value["kind"], object.value["metadata"]["name"], object.stage))
            .collect();
        assert_eq!(
            objects,
            [
                "\"CustomResourceDefinition\" \"x\" Some(0)",
                "\"Job\" \"a\" Some(1)",
                "\"Job\" \"b\" Some(2)",
                "\"ConfigMap\" \"demo\" Some(3)",
                "\"Job\" \"c\" Some(4)",
            ]
        );
        assert_eq!(recorder.objects[3].value["data"]["count"], "3");
        let mut codes: Vec<&str> = recorder.findings.iter().map(|finding| finding.code.as_str()).collect();
        codes.sort_unstable();
        assert_eq!(codes, ["HookLeftOut", "Notes", "TestLeftOut"]);
    }

    #[test]
    fn hooks_that_helm_makes_anew_may_be_recreated() {
        let job = |name: &str, hook: &str, policy: &str| {
            format!(
                "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations: {{helm.sh/hook: {hook}{policy}}}\n"
            )
        };
        let hooks = [
            job("a", "pre-upgrade", ""),
            job("b", "post-install", ", helm.sh/hook-delete-policy: \"before-hook-creation,hook-failed\""),
            job("c", "post-install", ", helm.sh/hook-delete-policy: hook-succeeded"),
            job("d", "post-install", ", helm.sh/hook-delete-policy: hook-failed"),
            "apiVersion: batch/v1\nkind: Job\nmetadata: {name: e, annotations: {a: b}}\n".to_owned(),
        ]
        .join("---\n");
        let objects =
            run::<Helm>(&chart(&[("templates/hooks.yaml", hooks.as_str())]), &Request::new()).unwrap().objects;
        let found: Vec<(&str, Option<&str>)> = objects
            .iter()
            .map(|object| {
                let metadata = &object.value["metadata"];
                (metadata["name"].as_str().unwrap(), metadata["annotations"][ON_IMMUTABLE].as_str())
            })
            .collect();
        let recreate = Some("Recreate");
        assert_eq!(found, [("a", recreate), ("e", None), ("b", recreate), ("c", recreate), ("d", None)]);
    }

    #[test]
    fn a_failing_template_is_found_at_its_place() {
        let content = chart(&[("templates/a.yaml", "a: 1\nb: {{ required \"need it\" .Values.missing }}\n")]);
        let Err(Failure::InvalidContent(findings)) = run::<Helm>(&content, &Request::new()) else {
            panic!("it must fail")
        };
        let place = findings[0].location.clone().unwrap();
        assert_eq!((place.path.as_str(), place.line()), ("templates/a.yaml", Some(2)));
        assert_eq!(findings[0].message, "execution error at (web/templates/a.yaml:2:6): need it");
    }

    #[test]
    fn values_that_cannot_be_generated_are_refused_by_name() {
        let content = chart(&[("templates/a.yaml", "a: {{ htpasswd `user` `word` }}\n")]);
        let Err(Failure::Unsupported(findings)) = run::<Helm>(&content, &Request::new()) else {
            panic!("it must be refused")
        };
        assert!(findings[0].message.contains("htpasswd is not available"), "{}", findings[0].message);
    }

    #[test]
    fn the_release_is_the_one_of_the_configuration() {
        let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata:\n  a: {{ .Release.IsUpgrade }} {{ .Release.IsInstall }} {{ .Release.Revision }}\n";
        let content = chart(&[("templates/a.yaml", template)]);
        for (config, name, release) in [
            (json!({}), "demo", "false true 1"),
            (json!({"releaseName": "other", "isUpgrade": true}), "other", "true false 1"),
        ] {
            let request = Request::new().with_name("demo").with_config(serde_json::from_value(config).unwrap());
            let objects = run::<Helm>(&content, &request).unwrap().objects;
            assert_eq!(objects[0].value["metadata"]["name"], name);
            assert_eq!(objects[0].value["data"]["a"], release);
        }
    }

    #[test]
    fn values_must_be_a_map() {
        let request = Request::new().with_config(serde_json::from_value(json!({"values": "- a"})).unwrap());
        let Err(Failure::InvalidConfig(findings)) = run::<Helm>(&chart(&[]), &request) else {
            panic!("it must be refused")
        };
        assert_eq!(findings[0].code, "InvalidValues");
    }
}
