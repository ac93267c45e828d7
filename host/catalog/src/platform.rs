//! Which packages are platform operators, and where they are meant to run.

use chandler_resolver::version::VersionRelease;
use serde_json::Value;

use crate::{Bundle, Index, IndexError, Property, index_catalogs::candidate, namespace};

/// The property of a bundle whose package is a platform operator. Its value is `true`.
pub const PLATFORM_OPERATOR: &str = "chandler.dev/platform-operator";

/// The information of a catalog about a package that a PlatformOperator requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlatformPackage {
    /// The namespace that it is meant for; empty if none.
    pub namespace: String,
    /// Whether its newest version is a platform operator.
    pub is_operator: bool,
}

/// The information of a catalog about a package; `None` if it has no such package.
///
/// # Errors
/// The index cannot be read.
pub fn package(index: &Index, package: &str) -> Result<Option<PlatformPackage>, IndexError> {
    let Some(namespace) = namespace::suggested(index, package)? else { return Ok(None) };
    let bundles = index.bundles(package)?;
    let newest = newest(bundles.iter().map(|bundle| &bundle.value));
    Ok(Some(PlatformPackage { namespace, is_operator: newest.is_some_and(is_platform_operator) }))
}

/// Whether a bundle says that its package is a platform operator.
pub fn is_platform_operator(bundle: &Bundle) -> bool {
    let says = |property: &Property| property.kind == PLATFORM_OPERATOR && property.value == Some(Value::Bool(true));
    bundle.properties.iter().any(says)
}

fn newest<'a>(bundles: impl Iterator<Item = &'a Bundle>) -> Option<&'a Bundle> {
    let versions = bundles.filter_map(|bundle| Some((candidate(bundle).version?, bundle)));
    let newest: Option<(VersionRelease, &Bundle)> = versions.max_by(|(one, _), (other, _)| one.cmp(other));
    newest.map(|(_, bundle)| bundle)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bundle(version: &str, mark: Option<Value>) -> Bundle {
        let package = Property {
            kind: "olm.package".to_owned(),
            value: Some(json!({"packageName": "a", "version": version})),
            line: 1,
        };
        let mark = mark.map(|value| Property { kind: PLATFORM_OPERATOR.to_owned(), value: Some(value), line: 1 });
        let properties = [Some(package), mark].into_iter().flatten().collect();
        Bundle { name: format!("a.v{version}"), package: "a".to_owned(), properties, ..Bundle::default() }
    }

    #[test]
    fn the_newest_version_says_what_the_package_is() {
        let (yes, no) = (Some(json!(true)), Some(json!(false)));
        for (bundles, expected) in [
            (vec![bundle("1.0.0", yes.clone())], true),
            (vec![bundle("1.0.0", None)], false),
            (vec![bundle("1.0.0", no)], false),
            (vec![bundle("1.0.0", Some(json!("true")))], false),
            (vec![bundle("2.0.0", yes.clone()), bundle("1.0.0", None)], true),
            (vec![bundle("10.0.0", None), bundle("2.0.0", yes)], false),
        ] {
            assert_eq!(newest(bundles.iter()).is_some_and(is_platform_operator), expected, "{bundles:?}");
        }
    }
}
