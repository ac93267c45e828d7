//! Parsers for values on the command line.

use std::time::Duration;

use chandler_api::{ValuesKind, ValuesReference};
use chandler_content::{ImageReference, ReferenceError};
use chandler_core::dns_name;

use super::target::is_path;
use crate::view::invocation::quoted;

/// Parses a duration: `90s`, `5m`, `1h30m` or a number of seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration: write `90s`, `5m` or `1h30m`");
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(Duration::from_secs(seconds.into()));
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (digits, tail) = rest.split_at(end);
        let number: u32 = digits.parse().map_err(|_| wrong())?;
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let unit = match unit {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_mins(1),
            "h" => Duration::from_hours(1),
            _ => return Err(wrong()),
        };
        total = unit.checked_mul(number).and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        rest = tail;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}

/// The least that a limit on bytes of content may be: less than one bundle may need.
const LEAST_BYTES: u64 = 64 << 20;

/// Parses a number of bytes, of at least 64 MiB: `8Gi`, `512Mi` or a number.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a number of bytes of at least 64Mi: write `512Mi` or `8Gi`");
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit: u64 = match unit {
        "" => 1,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return Err(wrong()),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    number.filter(|bytes| *bytes >= LEAST_BYTES).ok_or_else(wrong)
}

/// Parses a Kubernetes version and returns it in the form of the API server: `v1.36.0`.
pub fn kubernetes_version(text: &str) -> Result<String, String> {
    let number = text.strip_prefix('v').unwrap_or(text);
    let core = number.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = core.split('.').collect();
    let numeric = parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    match parts.len() {
        2 if numeric && core == number => Ok(format!("v{number}.0")),
        3 if numeric => Ok(format!("v{number}")),
        _ => Err(format!("{text:?} is not a Kubernetes version: write `1.36` or `v1.36.0`")),
    }
}

/// Parses the name of a namespace: a DNS label of at most 63 characters (RFC 1123).
pub fn dns_label(text: &str) -> Result<String, String> {
    name(text, 63)
}

/// Parses the name of a BundleDeployment: a DNS label of at most 52 characters, the limit in its CRD.
pub fn deployment_name(text: &str) -> Result<String, String> {
    name(text, 52)
}

/// Parses the name before a bundle, which a user may write behind it.
pub fn name_before_bundle(text: &str) -> Result<String, String> {
    deployment_name(text).map_err(|error| {
        if !is_path(text) {
            return error;
        }
        let turned = quoted(text);
        format!("{text:?} is a path, and the name comes before the bundle: `chandler install NAME {turned}`")
    })
}

/// Parses a reference to values: `configmap/NAME`, `secret/NAME:KEY` or `secret/NAME:KEY=PATH`.
pub fn values_reference(text: &str) -> Result<ValuesReference, String> {
    let wrong = || {
        format!(
            "{text:?} is not a reference to values: write `configmap/NAME`, `secret/NAME:KEY` or `secret/NAME:KEY=PATH`"
        )
    };
    let (kind, rest) = text.split_once('/').ok_or_else(wrong)?;
    let kind = match kind.to_ascii_lowercase().as_str() {
        "configmap" | "configmaps" | "cm" => ValuesKind::ConfigMap,
        "secret" | "secrets" => ValuesKind::Secret,
        _ => return Err(wrong()),
    };
    let (name, key) = rest.split_once(':').map_or((rest, None), |(name, key)| (name, Some(key)));
    let (key, path) = key.map_or((None, None), |key| match key.split_once('=') {
        Some((key, path)) => (Some(key), Some(path)),
        None => (Some(key), None),
    });
    if name.is_empty() || name.contains('/') || key.is_some_and(str::is_empty) || path.is_some_and(str::is_empty) {
        return Err(wrong());
    }
    let (values_key, target_path) = (key.map(str::to_owned), path.map(str::to_owned));
    Ok(ValuesReference { kind, name: name.to_owned(), values_key, target_path, optional: false })
}

/// Parses an image with its registry.
pub fn image(text: &str) -> Result<ImageReference, String> {
    let image: ImageReference = text.parse().map_err(|error: ReferenceError| error.to_string())?;
    if text.contains('/') {
        Ok(image)
    } else {
        Err(format!("{text:?} has no registry: write `registry.example.com/{text}`"))
    }
}

/// Parses an image to push to: its tag is written, and there is no digest.
pub fn tagged_image(text: &str) -> Result<ImageReference, String> {
    let image: ImageReference = text.parse().map_err(|error: ReferenceError| error.to_string())?;
    let tag = text.rsplit('/').next().and_then(|name| name.split_once(':'));
    if image.digest().is_none() && tag.is_some() && text.contains('/') {
        Ok(image)
    } else {
        Err(format!(
            "{text:?} is not an image to push to: write its registry and tag, such as `registry.example.com/harbour:v0.1.0`"
        ))
    }
}

/// Parses a label: `KEY=VALUE`. The API server checks both.
pub fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is not a label: write `KEY=VALUE`")),
    }
}

/// Parses an annotation of an OCI manifest: `KEY=VALUE`.
pub fn annotation(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !text.contains(char::is_control) => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err(format!("{text:?} is not an annotation: write `KEY=VALUE`")),
    }
}

fn name(text: &str, longest: usize) -> Result<String, String> {
    if dns_name::is_part(text) && text.len() <= longest {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "{text:?} is not a valid name: use at most {longest} characters of a-z, 0-9 and -, and begin and end with a letter or digit"
        ))
    }
}

/// A number from 0 to 1.
pub fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse::<f64>().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| "write a number from 0 to 1, such as 0.1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_to_values_name_kind_object_key_and_path() {
        let parsed = |text: &str| {
            values_reference(text).map(|it| (it.kind.as_str(), it.name, it.values_key, it.target_path)).ok()
        };
        let own = |text: &str| Some(text.to_owned());
        assert_eq!(parsed("configmap/base"), Some(("ConfigMap", "base".into(), None, None)));
        assert_eq!(parsed("cm/base:prod.yaml"), Some(("ConfigMap", "base".into(), own("prod.yaml"), None)));
        assert_eq!(parsed("Secret/db:password=a.b[0]"), Some(("Secret", "db".into(), own("password"), own("a.b[0]"))));
        for text in ["base", "pod/x", "secret/", "secret/a/b", "secret/a:", "secret/a:k=", "secret/a:=p"] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn an_image_to_push_to_has_a_registry_and_a_tag() {
        for text in ["localhost:5000/a:v1", "quay.io/example/harbour:v0.1.0", "library/busybox:v1"] {
            assert_eq!(tagged_image(text).map(|image| image.digest().cloned()), Ok(None), "{text}");
        }
        let digest = format!("quay.io/a:v1@sha256:{}", "0".repeat(64));
        for text in ["harbour", "harbour:v1", "localhost:5000/a", "quay.io/a", "quay.io/A:v1", "", &digest] {
            assert!(tagged_image(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations() {
        for (text, seconds) in [("90", 90), ("90s", 90), ("5m", 300), ("1h30m", 5400)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for text in ["", "m", "5 m", "5d", "-1s", "1m5", "99999999999s", "5µ"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_of_bytes() {
        for (text, expected) in [("67108864", 64 << 20), ("64Mi", 64 << 20), ("8Gi", 8 << 30), ("1Ti", 1 << 40)] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "Gi", "1", "63Mi", "8G", "1.5Gi", "-8Gi", "99999999999Ti"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn versions_of_kubernetes() {
        for (text, version) in
            [("1.36", "v1.36.0"), ("v1.36.1", "v1.36.1"), ("1.36.0-eks+3", "v1.36.0-eks+3"), ("v1.36", "v1.36.0")]
        {
            assert_eq!(kubernetes_version(text).as_deref(), Ok(version));
        }
        for text in ["", "v", "1", "1.x.0", "1.36.0.1", "1..0", "1.36-rc"] {
            assert!(kubernetes_version(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names() {
        assert!(dns_label("a-1").is_ok());
        assert!(dns_label(&"a".repeat(63)).is_ok());
        assert!(deployment_name(&"a".repeat(53)).is_err());
        let turned = name_before_bundle("./my harbour").unwrap_err();
        assert!(turned.contains("`chandler install NAME './my harbour'`"), "{turned}");
        assert_eq!(name_before_bundle("Harbour"), deployment_name("Harbour"));
        for text in ["", "-a", "a-", "A", "a.b", "ä"] {
            assert!(dns_label(text).is_err(), "{text}");
        }
    }
}
