//! Version ranges of catalogs (`olm.skipRange`), which have the syntax of blang/semver.

use semver::Version;

/// Whether OLM can read a range: comparisons of full versions, or with `x` for the last parts, separated by spaces and `||`.
pub(crate) fn is_valid(range: &str) -> bool {
    range.split("||").all(|alternative| {
        let mut comparisons = comparisons(alternative).into_iter().peekable();
        comparisons.peek().is_some() && comparisons.all(|comparison| is_comparison(&comparison))
    })
}

/// The comparisons of an alternative; spaces may follow an operator.
fn comparisons(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match found.last_mut().filter(|last| last.ends_with(['>', '<', '='])) {
            Some(last) => last.push_str(word),
            None => found.push(word.to_owned()),
        }
    }
    found
}

fn is_comparison(text: &str) -> bool {
    let operators = ["==", ">=", "<=", "!=", "=", ">", "<", "!", ""];
    let version = operators.iter().find_map(|operator| text.strip_prefix(operator)).unwrap_or(text);
    if !version.contains(['x', 'X']) || version.contains(['-', '+']) {
        return Version::parse(version).is_ok();
    }
    let mut parts = version.split('.');
    let is_open = |part: &str| part == "x" || part == "X";
    let is_number = |part: &str| part.parse::<u64>().is_ok() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.next().is_some_and(is_number) && {
        let rest: Vec<&str> = parts.collect();
        match rest.as_slice() {
            [minor] => is_open(minor),
            [minor, patch] => is_open(patch) && (is_number(minor) || minor == patch),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_resolver_reads_them() {
        for range in [
            ">=1.0.0 <2.0.0",
            ">= 1.0.0 < 2.0.0",
            ">1.0.0 <2.0.0 || >3.0.0 !4.2.1",
            "1.x",
            "1.2.x",
            "1.x.x",
            "!1.x",
            "<=1.2.x",
            "=1.0.0",
            "1.0.0",
            ">=1.0.0-rc.1",
        ] {
            assert!(is_valid(range), "{range:?}");
        }
        for range in
            ["", "<4", ">=1.0", "1.0.0,2.0.0", "1.0.0 ||", "x", "v1.0.0", "<v1.1.0", "^1.0.0", "~1.0.0", ">", "1.x.2"]
        {
            assert!(!is_valid(range), "{range:?}");
        }
    }
}
