//! The configuration of a chart: `spec.config` of a BundleDeployment.

use chandler_go_template::Map;
use chandler_sdk::{Diagnostic, Failure, Request};
use serde_json::{Value as Json, json};

use crate::chart::values;

/// The longest name of a release, in characters, as in Helm: charts append to it, and names of Kubernetes have at most 63.
const NAME: usize = 53;
/// The form of a release's name, as in Helm.
const NAME_PATTERN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// What is rendered. The controller refuses members with this prefix: a release of the tests alone would delete everything else.
pub(crate) const RENDER: &str = "chandler.dev/render";

/// What a BundleDeployment says about its chart.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    /// The values of the user.
    pub(crate) values: Map,
    /// `.Release.Name`.
    pub(crate) release: String,
    /// `.Release.IsUpgrade`.
    pub(crate) is_upgrade: bool,
    /// What is rendered.
    pub(crate) part: Part,
}

/// What of a chart is rendered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Part {
    /// What is installed.
    #[default]
    Chart,
    /// The tests, which `chandler test` runs.
    Tests,
}

/// The JSON Schema of the configuration.
pub(crate) fn schema() -> Json {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of a Helm chart",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "values": {
                "description": "The values of the chart, as a YAML text or an object.",
                "type": ["string", "object", "null"],
            },
            "releaseName": {
                "description": "The name of the release, .Release.Name; without it, the name of the BundleDeployment. A new name gives the objects \
                                new names: they are created anew, and the earlier ones are deleted.",
                "type": ["string", "null"],
                "minLength": 1,
                "maxLength": NAME,
                "pattern": NAME_PATTERN,
            },
            "isUpgrade": {
                "description": "Whether the chart is rendered as for an upgrade: .Release.IsUpgrade, as with helm template --is-upgrade.",
                "type": ["boolean", "null"],
            },
            RENDER: {
                "description": "What is rendered: chart, which is installed, or tests. Reserved: chandler test sets it, and the controller refuses it.",
                "enum": ["chart", "tests", null],
            },
        },
    })
}

impl Configuration {
    /// Reads the configuration of a request.
    ///
    /// # Errors
    /// A member has another type or form than the schema says.
    pub(crate) fn read(request: &Request) -> Result<Self, Failure> {
        let config = request.config();
        let member = |name: &str| config.get(name).filter(|value| !value.is_null());
        let wrong = |name: &str, message: &str| {
            let finding = Diagnostic::error("InvalidConfiguration", message).at("config");
            Failure::InvalidConfig(vec![finding.pointer(format!("/{}", name.replace('/', "~1")))])
        };
        let values = given(config.get("values")).map_err(|message| {
            let finding = Diagnostic::error("InvalidValues", message).at("config").pointer("/values");
            Failure::InvalidConfig(vec![finding.help("write the values as an object, or as a YAML text with a map")])
        })?;
        let release = match member("releaseName") {
            None => request.name().to_owned(),
            Some(name) => name.as_str().filter(|name| is_release_name(name)).map(str::to_owned).ok_or_else(|| {
                wrong(
                    "releaseName",
                    "not a name of a release: use a-z, 0-9, - and dots, begin and end with a letter or digit, and at most 53 characters",
                )
            })?,
        };
        let is_upgrade = match member("isUpgrade") {
            None => false,
            Some(value) => value.as_bool().ok_or_else(|| wrong("isUpgrade", "must be true or false"))?,
        };
        let part = match member(RENDER).map(Json::as_str) {
            None | Some(Some("chart")) => Part::Chart,
            Some(Some("tests")) => Part::Tests,
            Some(_) => return Err(wrong(RENDER, "must be chart or tests")),
        };
        Ok(Self { values, release, is_upgrade, part })
    }
}

/// The values of the configuration.
fn given(values: Option<&Json>) -> Result<Map, String> {
    match values {
        None | Some(Json::Null) => Ok(Map::new()),
        Some(Json::String(text)) => values::read(text),
        // As a text, so that numbers are read as in a values file.
        Some(object) => values::read(&object.to_string()),
    }
}

/// Whether a release of Helm can have a name: [`NAME_PATTERN`].
fn is_release_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_end = |end: Option<char>| end.is_some_and(|end| end != '-');
        label.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'))
            && is_end(label.chars().next())
            && is_end(label.chars().next_back())
    };
    name.len() <= NAME && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: Json) -> Result<Configuration, Failure> {
        let config = serde_json::from_value(config).unwrap();
        Configuration::read(&Request::new().with_name("web").with_config(config))
    }

    #[test]
    fn the_release_has_the_name_of_the_bundle_deployment_unless_the_configuration_names_it() {
        for (config, name) in [
            (json!({}), "web"),
            (json!({"releaseName": null}), "web"),
            (json!({"releaseName": "shop.v2-a"}), "shop.v2-a"),
            (json!({"releaseName": "a".repeat(53)}), &*"a".repeat(53)),
        ] {
            assert_eq!(read(config.clone()).unwrap().release, name, "{config}");
        }
        for refused in ["", "Web", "-web", "web-", "a..b", "a.-b", "a_b", "ä", &"a".repeat(54)] {
            let Err(Failure::InvalidConfig(findings)) = read(json!({"releaseName": refused})) else {
                panic!("{refused:?} is taken")
            };
            assert_eq!(findings[0].location.as_ref().unwrap().pointer.as_deref(), Some("/releaseName"));
        }
        assert!(matches!(read(json!({"releaseName": 3})), Err(Failure::InvalidConfig(_))));
    }

    #[test]
    fn the_schema_accepts_the_names_that_are_accepted() {
        let pattern = regex::Regex::new(NAME_PATTERN).unwrap();
        for name in ["a", "a-b", "a.b", "0", "-a", "a-", "a..b", ".a", "a.", "A", "a_b", "a--b", ""] {
            assert_eq!(is_release_name(name), pattern.is_match(name), "{name:?}");
        }
    }

    #[test]
    fn an_upgrade_and_the_tests_are_rendered_if_the_configuration_says_so() {
        let of = |config: Json| read(config).map(|read| (read.is_upgrade, read.part)).ok();
        assert_eq!(of(json!({"isUpgrade": null, RENDER: null})), Some((false, Part::Chart)));
        assert_eq!(of(json!({"isUpgrade": true, RENDER: "chart"})), Some((true, Part::Chart)));
        assert_eq!(of(json!({RENDER: "tests"})), Some((false, Part::Tests)));
        for refused in [json!({"isUpgrade": "true"}), json!({RENDER: "all"}), json!({RENDER: true})] {
            assert_eq!(of(refused), None);
        }
    }
}
