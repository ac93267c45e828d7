//! The order of versions (`k8s.io/apimachinery/pkg/version`): `v2` before `v1` before `v2beta1` before `v1alpha1` before all
//! others, which are sorted alphabetically.

use std::cmp::Ordering;

/// Compares two versions; the less mature one is less.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => b.cmp(a),
    }
}

/// Maturity, major and minor number.
fn parse(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(digits);
    let number = |text: &str| text.parse::<u64>().ok();
    let major = number(major)?;
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    let (maturity, minor) =
        rest.strip_prefix("beta").map(|minor| (1, minor)).or_else(|| Some((0, rest.strip_prefix("alpha")?)))?;
    let all_digits = minor.bytes().all(|byte| byte.is_ascii_digit());
    Some((maturity, major, number(minor).filter(|_| all_digits)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_example() {
        // https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-CRD-versioning/
        let expected =
            ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"];
        let mut sorted = expected;
        sorted.reverse();
        sorted.sort_by(|a, b| compare(b, a));
        assert_eq!(sorted, expected);
        assert_eq!(compare("v1beta", "v1beta1"), Ordering::Less);
    }
}
