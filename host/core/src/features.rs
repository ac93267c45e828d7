//! The features of this host that were added to a track of the contract after its first version. Provisioners query them
//! with `request.supports`, to degrade on hosts that lack them.

/// The features, sorted. A name never changes its meaning, and is removed only together with its track. The contract
/// (`wit/`) lists a feature where it describes it.
pub const FEATURES: &[&str] = &[];

/// The longest name of a feature, in bytes.
pub const FEATURE_BYTES: usize = 64;

/// Whether a text could be the name of a feature of any version: kebab-case, beginning with a letter, of at most
/// [`FEATURE_BYTES`].
pub fn is_name(name: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    name.len() <= FEATURE_BYTES
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.split('-').all(is_word)
}

/// Whether a host with these features offers one.
pub(crate) fn offers(features: &[&str], name: &str) -> bool {
    features.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kebab_case() {
        for good in ["hooks", "previous-bundle", "cel-2", "a"] {
            assert!(is_name(good), "{good}");
        }
        let long = "x".repeat(FEATURE_BYTES + 1);
        for bad in ["", "-", "Hooks", "previous_bundle", "a--b", "a-", "-a", "2a", "grün", "a b", &long] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn the_features_of_this_host_are_sorted_names() {
        assert!(FEATURES.iter().all(|feature| is_name(feature)));
        assert!(FEATURES.is_sorted());
    }
}
