//! The tests of a chart, for `chandler test`.
//!
//! A test is rendered with the whole chart, so that it has the chart's names and values, and emitted alone. Its annotations say that it is a test, and when
//! it is deleted, as for Helm.

use chandler_sdk::{
    Diagnostic, Failure, Output,
    secrets::{EXPAND, GENERATE},
};
use serde_json::Value as Json;

use crate::{
    pipeline::Rendered,
    placeholders::{Emitted, Placeholders},
    provisioner::{
        add_hooks, as_rendered, describe, hooks, inside, installed_hooks, is_test, location, objects, unresolved,
    },
};

/// Emits the tests, each weight in a stage of its own.
///
/// # Errors
/// A test needs a value that only the objects of a release can have, or the chart cannot be installed.
pub(crate) fn emit(
    rendered: &Rendered,
    placeholders: &Placeholders,
    namespace: &str,
    output: &mut dyn Output,
) -> Result<(), Failure> {
    describe(rendered, output);
    let (before, after) = installed_hooks(rendered);
    // All of them, so that a test can refer to a value of the chart.
    let mut objects = objects(rendered, &before, &after)?;
    let mut stage = objects.iter().map(|object| object.stage).max().unwrap_or_default();
    let first = stage.saturating_add(1);
    add_hooks(&hooks(&rendered.documents.hooks, is_test), as_rendered, &mut stage, &mut objects);
    for object in objects.iter_mut().filter(|object| object.stage >= first) {
        name(&mut object.value, placeholders);
    }
    placeholders
        .resolve(&mut objects, namespace)
        .map_err(|problems| Failure::Unsupported(problems.iter().map(unresolved).collect()))?;
    for Emitted { value, stage, path } in objects.iter().filter(|object| object.stage >= first) {
        let annotations = value.pointer("/metadata/annotations");
        let has = |name: &&str| annotations.is_some_and(|annotations| annotations.get(*name).is_some());
        if [GENERATE, EXPAND].iter().any(has) {
            let name = value.pointer("/metadata/name").and_then(Json::as_str).unwrap_or_default();
            let message =
                format!("the test {name:?} needs a generated value, which only objects of the release can have");
            let finding = Diagnostic::error("UnsupportedTest", message).at(inside(path).unwrap_or_default());
            return Err(Failure::Unsupported(vec![
                finding.help("take the value from a Secret of the chart, for example with secretKeyRef"),
            ]));
        }
        output.emit_value(value, Some(stage - first), location(path))?;
    }
    Ok(())
}

/// Gives a test and its containers constant names. Charts make random ones, since Helm leaves the Pods of earlier tests.
fn name(test: &mut Json, placeholders: &Placeholders) {
    let rename = |value: Option<&mut Json>| {
        if let Some(Json::String(text)) = value {
            *text = placeholders.constant(text);
        }
    };
    rename(test.pointer_mut("/metadata/name"));
    for list in [
        "/spec/containers",
        "/spec/initContainers",
        "/spec/template/spec/containers",
        "/spec/template/spec/initContainers",
    ] {
        for container in test.pointer_mut(list).and_then(Json::as_array_mut).into_iter().flatten() {
            rename(container.get_mut("name"));
        }
    }
}

#[cfg(test)]
mod tests {
    use chandler_sdk::{
        Request,
        testing::{Bundle, run},
    };
    use serde_json::json;

    use super::*;
    use crate::Helm;

    fn chart(text: &str) -> Bundle {
        Bundle::new([("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.2.3\n"), ("templates/a.yaml", text)])
    }

    fn tests(text: &str) -> Result<Vec<(Json, Option<u32>)>, Failure> {
        let config = serde_json::from_value(json!({(crate::configuration::RENDER): "tests"})).unwrap();
        let objects = run::<Helm>(&chart(text), &Request::new().with_name("demo").with_config(config))?.objects;
        Ok(objects.into_iter().map(|object| (object.value, object.stage)).collect())
    }

    fn pod(name: &str, hook: &str, weight: i32) -> String {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  annotations: {{helm.sh/hook: {hook}, helm.sh/hook-weight: \"{weight}\"}}\n"
        )
    }

    #[test]
    fn tests_are_rendered_alone_by_their_weights() {
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n";
        let text = [pod("b", "test", 5), pod("a", "test-success", -1), pod("c", "post-install", 0), map.to_owned()];
        let found = tests(&text.join("---\n")).unwrap();
        let names: Vec<(&str, Option<u32>)> =
            found.iter().map(|(value, stage)| (value["metadata"]["name"].as_str().unwrap(), *stage)).collect();
        assert_eq!(names, [("a", Some(0)), ("b", Some(1))]);
        assert!(tests(map).unwrap().is_empty());
    }

    #[test]
    fn random_names_become_constant() {
        let random = "t-{{ randAlphaNum 5 | lower }}";
        let text = pod(random, "test", 0) + &format!("spec: {{containers: [{{name: \"c-{random}\", image: a}}]}}\n");
        let (value, _) = tests(&text).unwrap().remove(0);
        assert_eq!(value["metadata"]["name"], "t-generated");
        assert_eq!(value["spec"]["containers"][0]["name"], "c-t-generated");
    }

    #[test]
    fn a_test_has_no_generated_values() {
        let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: {{ $p }}}\n";
        let test = "metadata: {name: t, annotations: {helm.sh/hook: test}}\n";
        let of =
            |rest: &str| tests(&format!("{{{{- $p := randAlphaNum 10 }}}}\n{secret}---\napiVersion: v1\n{rest}{test}"));
        assert_eq!(of("kind: Pod\nspec: {a: b}\n").unwrap().len(), 1);
        let Err(Failure::Unsupported(findings)) = of("kind: Secret\nstringData: {q: {{ $p }}}\n") else {
            panic!("it must be refused")
        };
        assert_eq!(findings[0].code, "UnsupportedTest");
        assert_eq!(findings[0].location.as_ref().unwrap().path, "templates/a.yaml");
        assert!(matches!(of("kind: Pod\nspec: {a: {{ $p }}}\n"), Err(Failure::Unsupported(_))));
    }
}
