//! The syntax of values.

use std::collections::BTreeMap;

use chandler_core::dns_name;
use k8s_openapi::api::core::v1::Toleration;

/// Why a value is refused: what it should be.
pub(crate) type Refused = String;

/// `true` or `false`.
pub(crate) fn boolean(text: &str) -> Result<bool, Refused> {
    text.parse().map_err(|_| "write true or false".to_owned())
}

/// A DNS label (RFC 1123).
pub(crate) fn label(text: &str) -> Result<String, Refused> {
    let valid = dns_name::is_part(text) && text.len() <= 63;
    let wanted =
        || "write a name of at most 63 characters of a-z, 0-9 and - that begins and ends with a letter or digit";
    valid.then(|| text.to_owned()).ok_or_else(|| wanted().to_owned())
}

/// A name of an object (RFC 1123 subdomain).
pub(crate) fn name(text: &str) -> Result<String, Refused> {
    let wanted = "write the name of an object: characters of a-z, 0-9, - and .";
    dns_name::is_subdomain(text).then(|| text.to_owned()).ok_or_else(|| wanted.to_owned())
}

/// A reference of an image.
pub(crate) fn image(text: &str) -> Result<String, Refused> {
    match text.parse::<oci_client::Reference>() {
        Ok(_) if text.contains('/') => Ok(text.to_owned()),
        Ok(_) => Err("write the image with its registry, such as registry.corp.example/chandler:v0.1.0".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A quantity of Kubernetes that is not negative, such as `100m`, `1.5` or `256Mi`.
pub(crate) fn quantity(text: &str) -> Result<String, Refused> {
    const SUFFIXES: [&str; 15] = ["", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "u"];
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    let valid = digits > 0 && number.len() <= digits + 1 && SUFFIXES.contains(&suffix);
    valid.then(|| text.to_owned()).ok_or_else(|| "write a quantity, such as 100m, 2 or 256Mi".to_owned())
}

/// A number of replicas.
pub(crate) fn replicas(text: &str) -> Result<u8, Refused> {
    let number = text.parse().ok().filter(|number| (1..=5).contains(number));
    number.ok_or_else(|| "write a number from 1 to 5: one replica works, and the others wait".to_owned())
}

/// Labels: `KEY=VALUE` separated by commas.
pub(crate) fn labels(text: &str) -> Result<BTreeMap<String, String>, Refused> {
    let wanted = || "write labels as KEY=VALUE, separated by commas".to_owned();
    let mut found = BTreeMap::new();
    for part in items(text) {
        let (key, value) = part.split_once('=').ok_or_else(wanted)?;
        if !is_key(key) || !is_value(value) {
            return Err(wanted());
        }
        found.insert(key.to_owned(), value.to_owned());
    }
    Ok(found)
}

/// Tolerations as `kubectl taint` writes taints: `KEY[=VALUE][:EFFECT]` separated by commas, or `*` for all taints.
pub(crate) fn tolerations(text: &str) -> Result<Vec<Toleration>, Refused> {
    items(text).map(toleration).collect()
}

fn toleration(text: &str) -> Result<Toleration, Refused> {
    let (taint, effect) = text.split_once(':').map_or((text, None), |(taint, effect)| (taint, Some(effect)));
    let (key, value) = taint.split_once('=').map_or((taint, None), |(key, value)| (key, Some(value)));
    let is_effect = effect.is_none_or(|effect| ["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect));
    if !is_effect || !(is_key(key) || taint == "*") || !value.is_none_or(is_value) {
        return Err("write taints as KEY=VALUE:EFFECT, KEY:EFFECT or KEY, separated by commas, or * for all; \
                    effects are NoSchedule, PreferNoSchedule and NoExecute"
            .to_owned());
    }
    Ok(Toleration {
        key: (key != "*").then(|| key.to_owned()),
        operator: Some(if value.is_some() { "Equal" } else { "Exists" }.to_owned()),
        value: value.map(str::to_owned),
        effect: effect.map(str::to_owned),
        ..Toleration::default()
    })
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// Whether this is a key of a label: a name of at most 63 characters, and perhaps a domain before it.
fn is_key(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(dns_name::is_subdomain) && !name.is_empty() && is_value(name)
}

/// Whether this is a value of a label.
fn is_value(text: &str) -> bool {
    let is_end = |byte: Option<u8>| byte.is_none_or(|byte| byte.is_ascii_alphanumeric());
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.len() <= 63 && text.bytes().all(is_inner) && is_end(text.bytes().next()) && is_end(text.bytes().last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_numbers_with_a_suffix() {
        for text in ["100m", "2", "1.5", "256Mi", "1Gi", ".5", "5."] {
            assert_eq!(quantity(text).as_deref(), Ok(text));
        }
        for text in ["", ".", "Mi", "-1", "1.2.3", "256MB", "1 Gi", "1e3x"] {
            assert!(quantity(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_image_names_its_registry() {
        let digest = format!("localhost:5000/chandler@sha256:{}", "0".repeat(64));
        for text in ["registry.corp.example/chandler:v1", &digest] {
            assert_eq!(image(text).as_deref(), Ok(text));
        }
        for text in [
            "chandler",
            "",
            "a b/c",
            "localhost:5000/a@sha256:",
            "registry.corp.example/Chandler:v1",
            "x/y:v1\nargs: []",
        ] {
            assert!(image(text).is_err(), "{text}");
        }
    }

    #[test]
    fn tolerations_are_written_as_taints() {
        let found = tolerations("node-role.kubernetes.io/infra:NoSchedule, dedicated=platform:NoExecute,spot").unwrap();
        let found = serde_json::to_value(found).unwrap();
        let wanted = serde_json::json!([
            {"key": "node-role.kubernetes.io/infra", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "dedicated", "operator": "Equal", "value": "platform", "effect": "NoExecute"},
            {"key": "spot", "operator": "Exists"},
        ]);
        assert_eq!(found, wanted);
        assert_eq!(
            serde_json::to_value(tolerations("*").unwrap()).unwrap(),
            serde_json::json!([{"operator": "Exists"}])
        );
        assert_eq!(tolerations("").unwrap(), []);
        for text in ["a:Sometimes", "=b", "-a", "a/b/c", "a=b c"] {
            assert!(tolerations(text).is_err(), "{text}");
        }
    }

    #[test]
    fn labels_have_keys_and_values() {
        let found = labels("kubernetes.io/os=linux,node-role.kubernetes.io/infra=").unwrap();
        let wanted = [("kubernetes.io/os", "linux"), ("node-role.kubernetes.io/infra", "")];
        assert_eq!(found, wanted.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
        for text in ["a", "a=b=c", "=a", "A/b/c=d", "a=.b"] {
            assert!(labels(text).is_err(), "{text}");
        }
    }
}
