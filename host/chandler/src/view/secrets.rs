//! Warns about values of a configuration that look like secrets: `spec.config` and the history show them to every reader.

use serde_json::{Map, Value};

use super::text::one_line;

/// Ends of member names whose values are secrets. `secretName` and `passwordKey` name where a secret is, and are none.
const ENDS: [&str; 8] = ["password", "passwd", "passphrase", "token", "secret", "secretkey", "apikey", "privatekey"];

/// A warning for each value that looks like a secret. The value itself is not shown.
pub fn warnings(config: &Map<String, Value>) -> Vec<String> {
    let mut paths = Vec::new();
    collect("", &Value::Object(config.clone()), &mut paths);
    let warning = |path: String| {
        format!(
            "warning: {} looks like a secret; all users who may read BundleDeployments see it in spec.config and in status.history; \
             --values-from takes it from a Secret",
            one_line(&path)
        )
    };
    paths.into_iter().map(warning).collect()
}

fn collect(at: &str, value: &Value, paths: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                let plain: String = name.chars().filter(|c| !matches!(c, '-' | '_')).collect();
                let is_secret = ENDS.iter().any(|end| plain.to_ascii_lowercase().ends_with(end));
                if is_secret && value.as_str().is_some_and(|text| !text.is_empty()) {
                    paths.push(path);
                } else {
                    collect(&path, value, paths);
                }
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                collect(&format!("{at}[{index}]"), element, paths);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_under_telling_names_are_warned_about_and_not_shown() {
        let config = json!({
            "adminPassword": "hunter2", "users": [{"api_key": "hunter2"}], "auth": {"TOKEN": "hunter2"},
            "secretName": "where", "password": "", "tokenSeconds": 3600, "secret": {"name": "where"},
        });
        let warnings = warnings(config.as_object().unwrap());
        let paths: Vec<&str> = warnings.iter().map(|warning| warning.split(' ').nth(1).unwrap()).collect();
        assert_eq!(paths, ["adminPassword", "auth.TOKEN", "users[0].api_key"]);
        assert!(!warnings.concat().contains("hunter2"));
    }
}
