//! The order of versions: as in semantic versioning, but lenient, since directories may have any name.

use std::cmp::Ordering;

/// Compares two names of version directories.
pub fn compare(one: &str, other: &str) -> Ordering {
    let ((release, suffix), (other_release, other_suffix)) = (parts(one), parts(other));
    let by_suffix = match (suffix, other_suffix) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(suffix), Some(other)) => identifiers(suffix).cmp(&identifiers(other)),
    };
    identifiers(release).cmp(&identifiers(other_release)).then(by_suffix).then_with(|| one.cmp(other))
}

/// The release and the pre-release, without a leading `v` and the build.
fn parts(version: &str) -> (&str, Option<&str>) {
    let version = version.strip_prefix('v').unwrap_or(version);
    let version = version.split_once('+').map_or(version, |(version, _)| version);
    version.split_once('-').map_or((version, None), |(release, suffix)| (release, Some(suffix)))
}

/// A part between dots. Numbers precede words.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Identifier<'a> {
    Number(u64),
    Word(&'a str),
}

fn identifiers(text: &str) -> Vec<Identifier<'_>> {
    text.split('.').map(|part| part.parse().map_or(Identifier::Word(part), Identifier::Number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_published() {
        let mut shuffled =
            ["1.10.0", "v1.9.1", "1.10.0-rc1", "1.9.1-rc1", "0.9.4-clusterwide", "20.0.0-alpha.10", "20.0.0-alpha.2"];
        shuffled.sort_by(|one, other| compare(one, other));
        let ordered =
            ["0.9.4-clusterwide", "1.9.1-rc1", "v1.9.1", "1.10.0-rc1", "1.10.0", "20.0.0-alpha.2", "20.0.0-alpha.10"];
        assert_eq!(shuffled, ordered);
    }

    #[test]
    fn names_that_are_no_versions_have_an_order_too() {
        assert_eq!(compare("alpha", "alpha"), Ordering::Equal);
        assert_eq!(compare("1.0", "alpha"), Ordering::Less);
    }
}
