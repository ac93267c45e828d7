//! Patterns with `*`, for annotations and pull secrets.

/// Whether a pattern matches a name. `*` matches any characters, or none; every other character matches itself.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    // The earliest match leaves the most text for the parts that follow.
    for part in parts {
        let Some((_, after)) = left.split_once(part) else { return false };
        left = after;
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_star_matches_any_characters() {
        let cases = [
            // The pattern, names that it matches, names that it does not match.
            ("harbour", &["harbour"][..], &["harbours", "a-harbour", ""][..]),
            ("team-a-*", &["team-a-", "team-a-x"], &["team-a", "team-b-x", "x-team-a-x"]),
            ("*-a", &["-a", "team-a"], &["a", "team-ab"]),
            ("a*b*c", &["abc", "axbxc", "abbcc"], &["ab", "acb", "abcd"]),
            ("a*a", &["aa", "aba"], &["a"]),
            ("*", &["", "x"], &[]),
            ("**", &["", "x"], &[]),
            ("", &[""], &["x"]),
            ("a.c", &["a.c"], &["abc"]),
            ("[a-z]?", &["[a-z]?"], &["ab"]),
        ];
        for (pattern, yes, no) in cases {
            for name in yes {
                assert!(matches(pattern, name), "{pattern:?} {name:?}");
            }
            for name in no {
                assert!(!matches(pattern, name), "{pattern:?} {name:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_pattern_matches_like_the_regular_expression(pattern in "[ab*]{0,8}", name in "[ab]{0,10}") {
            let naive = |pattern: &[u8], name: &[u8]| -> bool {
                fn go(pattern: &[u8], name: &[u8]) -> bool {
                    match pattern.split_first() {
                        None => name.is_empty(),
                        Some((b'*', rest)) => {
                            go(rest, name) || name.split_first().is_some_and(|(_, left)| go(pattern, left))
                        }
                        Some((first, rest)) => {
                            name.split_first().is_some_and(|(found, left)| found == first && go(rest, left))
                        }
                    }
                }
                go(pattern, name)
            };
            prop_assert_eq!(matches(&pattern, &name), naive(pattern.as_bytes(), name.as_bytes()));
        }
    }
}
