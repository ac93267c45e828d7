//! Accounts that list the same names of BundleDeployments: a tenant could take a name for which another tenant's account may be used.

use std::fmt;

/// The most patterns that are compared with each other.
const COMPARED: usize = 500;
/// The longest pattern that is compared, in bytes. Any user who may create accounts writes patterns.
const LONGEST: usize = 64;

/// Two accounts with patterns that match a common name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The accounts, `NAMESPACE/NAME`, each with its pattern.
    accounts: [(String, String); 2],
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [(one, pattern), (other, its_pattern)] = &self.accounts;
        write!(
            f,
            "the ServiceAccounts {one} ({pattern}) and {other} ({its_pattern}) list the same names in chandler.dev/bundledeployments: \
             list the account in chandler.dev/serviceaccounts of each Secret of a tenant, or rename a tenant (docs/tenants.md)"
        )
    }
}

/// The accounts whose annotations have a name in common: one result for two accounts. Patterns without a literal character list all names
/// on purpose, and are left out.
pub fn overlaps<'a>(annotations: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Overlap> {
    let split = annotations
        .flat_map(|(account, patterns)| patterns.split(',').map(move |pattern| (account, pattern.trim())))
        .filter(|(_, pattern)| pattern.len() <= LONGEST && pattern.chars().any(|character| character != '*'));
    let mut patterns: Vec<(&str, &str)> = split.take(COMPARED).collect();
    patterns.sort_unstable();
    let mut found: Vec<Overlap> = Vec::new();
    for (index, (account, pattern)) in patterns.iter().enumerate() {
        for (other, its_pattern) in patterns.iter().skip(index + 1).filter(|(other, _)| other != account) {
            let is_known = |it: &Overlap| it.accounts[0].0 == *account && it.accounts[1].0 == *other;
            if overlap(pattern, its_pattern) && !found.iter().any(is_known) {
                let owned = |account: &str, pattern: &str| (account.to_owned(), pattern.to_owned());
                found.push(Overlap { accounts: [owned(account, pattern), owned(other, its_pattern)] });
            }
        }
    }
    found
}

/// Whether a name matches both patterns, in which `*` stands for any characters.
fn overlap(one: &str, other: &str) -> bool {
    let literal = |pattern: &str| pattern.find('*').unwrap_or(pattern.len());
    let common = literal(one).min(literal(other));
    if one.as_bytes().get(..common) != other.as_bytes().get(..common) {
        return false;
    }
    // `next`: whether the rest of `one` after the current byte has a name in common with each rest of `other`.
    let other = other.as_bytes();
    let mut next: Vec<bool> = vec![false; other.len() + 2];
    for byte in [None].into_iter().chain(one.bytes().rev().map(Some)) {
        let mut row = vec![false; other.len() + 2];
        for at in (0..=other.len()).rev() {
            let its = other.get(at).copied();
            let (below, right) = (next.get(at) == Some(&true), row.get(at + 1) == Some(&true));
            let holds = match (byte, its) {
                (None, None) => true,
                (Some(b'*'), _) | (_, Some(b'*')) => {
                    (byte == Some(b'*') && (below || (its.is_some() && right)))
                        || (its == Some(b'*') && (right || (byte.is_some() && below)))
                }
                (Some(byte), Some(its)) => byte == its && next.get(at + 1) == Some(&true),
                _ => false,
            };
            if let Some(cell) = row.get_mut(at) {
                *cell = holds;
            }
        }
        next = row;
    }
    next.first() == Some(&true)
}

#[cfg(test)]
mod tests {
    use chandler_core::pattern;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn accounts_that_list_a_common_name_are_found_once() {
        let of = |annotations: &[(&str, &str)]| -> Vec<String> {
            overlaps(annotations.iter().copied()).iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            of(&[("accounts/team-a", "team-a-*"), ("accounts/team-b", "team-b-*"), ("accounts/root", "*")]),
            [""; 0]
        );
        assert_eq!(
            of(&[("accounts/team-a", "shop, team-a-*"), ("accounts/team-a-b", "team-a-b-*,team-a-b, ,")]),
            ["the ServiceAccounts accounts/team-a (team-a-*) and accounts/team-a-b (team-a-b) list the same names in \
                 chandler.dev/bundledeployments: list the account in chandler.dev/serviceaccounts of each Secret of a tenant, or rename a \
                 tenant (docs/tenants.md)"]
        );
        // One account may list a name twice.
        assert_eq!(of(&[("accounts/team-a", "team-a-*, team-a-shop")]), [""; 0]);
    }

    #[test]
    fn patterns_overlap_if_a_name_matches_both() {
        for (one, other, expected) in [
            ("team-a-*", "team-a-b-*", true),
            ("team-a-*", "team-b-*", false),
            ("team-a-*", "*-shop", true),
            ("team-a-*", "team-a", false),
            ("team-a", "team-a", true),
            ("a*b", "*ab*", true),
            ("a*b", "b*a", false),
            ("", "*", true),
            ("", "a*", false),
        ] {
            assert_eq!(overlap(one, other), expected, "{one} {other}");
            assert_eq!(overlap(other, one), expected, "{other} {one}");
        }
    }

    proptest! {
        #[test]
        fn patterns_that_match_one_name_overlap(one in "[ab*]{0,6}", other in "[ab*]{0,6}") {
            let names = (0..=7_u32).flat_map(|length| (0..1_u32 << length).map(move |bits| {
                (0..length).map(|bit| if bits >> bit & 1 == 1 { 'a' } else { 'b' }).collect::<String>()
            }));
            let both = names.into_iter().any(|name| pattern::matches(&one, &name) && pattern::matches(&other, &name));
            // A name that both match is no longer than their literal characters together, here at most twelve.
            prop_assert!(!both || overlap(&one, &other));
            let literals = one.chars().chain(other.chars()).filter(|character| *character != '*').count();
            prop_assert!(literals > 7 || both == overlap(&one, &other));
        }
    }
}
