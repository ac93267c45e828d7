//! How an installed bundle moves to another namespace: an upgrade cannot move it.

use chandler_api::{BundleDeployment, BundleSource, HttpSource};
use kube::ResourceExt as _;

use super::{error::CommandError, invocation::quoted, text::one_line};

/// The error for an upgrade with another namespace: why it does not move the bundle, and the commands that do.
pub fn refusal(deployment: &BundleDeployment, other: &str) -> CommandError {
    let (name, installed) = (deployment.name_any(), &deployment.spec.install_namespace);
    let account = deployment.spec.service_account.as_ref().map(|account| {
        let namespace = account.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!(" --service-account {}", quoted(&one_line(&format!("{namespace}{}", account.name))))
    });
    let error = CommandError::usage(format!("{name} is installed in namespace {installed}, and an upgrade does not move it to {other}"))
        .cause(format!(
            "an object cannot change its namespace: the objects in {other} would be new ones, without the data of Secrets, volumes and \
             custom resources in {installed}"
        ))
        .hint(format!("omit -n to upgrade it in {installed}"))
        .hint(format!("to install it in {other} instead, keep its configuration: `chandler get values {name} > {name}.yaml`"))
        .hint(format!("then delete it, and keep its CRDs with their custom resources: `chandler delete {name} --crds Keep`"))
        .hint(format!(
            "then install it: `chandler install {name} {} -n {other} --create-namespace -f {name}.yaml{}`; it takes over its CRDs",
            bundle(&deployment.spec.source),
            account.unwrap_or_default()
        ));
    if deployment.spec.values_from.is_empty() {
        return error;
    }
    error.hint(format!(
        "copy the Secrets and ConfigMaps of spec.valuesFrom to {other} before, and name them with --values-from"
    ))
}

/// The bundle as an argument. Files of a machine have no name here.
fn bundle(source: &BundleSource) -> String {
    let image = source.image.as_ref().map(|image| image.reference.clone());
    let archive = source.http.as_ref().map(|http| match (&http.chart, &http.sha256) {
        (Some(chart), _) => chart_argument(http, chart),
        (None, Some(digest)) => format!("{}#sha256={digest}", http.url),
        (None, None) => http.url.clone(),
    });
    image.or(archive).map_or_else(|| "BUNDLE".to_owned(), |text| quoted(&one_line(&text)))
}

/// A chart of a Helm repository as an argument.
pub fn chart_argument(source: &HttpSource, chart: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("chart", chart);
    let optional = [("version", &source.version), ("sha256", &source.sha256)];
    query.extend_pairs(optional.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?))));
    let separator = if source.url.contains('?') { '&' } else { '?' };
    // The command reads a plus as a plus.
    format!("helm+{}{separator}{}", source.url, query.finish().replace('+', "%20"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn error(spec: Value) -> String {
        let mut object = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "shop"},
            "spec": {"installNamespace": "a", "source": {"type": "image", "image": {"ref": "quay.io/example/shop:v1"}}},
        });
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().cloned().unwrap_or_default());
        refusal(&serde_json::from_value(object).unwrap(), "b").to_string()
    }

    #[test]
    fn the_commands_that_move_a_bundle_are_printed() {
        insta::assert_snapshot!(error(json!({})));
        let chart = json!({"type": "http", "http": {"url": "https://e.com", "chart": "web", "version": "^1"}});
        assert!(
            error(json!({"source": chart}))
                .contains("chandler install shop 'helm+https://e.com?chart=web&version=%5E1' -n b")
        );
        let values = json!([{"kind": "Secret", "name": "database"}]);
        let account = json!({"namespace": "accounts", "name": "deployer"});
        let source = json!({"type": "configMaps", "configMaps": []});
        insta::assert_snapshot!(error(json!({"source": source, "serviceAccount": account, "valuesFrom": values})));
    }
}
