//! Names of generated objects, and the name validation of Kubernetes.

use serde::Serialize;
use sha2::{Digest as _, Sha224};

use crate::csv::PolicyRule;

/// The maximum length of a generated name.
const LONGEST: usize = 63;

/// `<base>-<suffix>`, with the base truncated.
///
/// If base and suffix have exactly 63 bytes together, the result has 64: OLM v1 forgets the dash, and the names of
/// existing objects depend on it.
pub(crate) fn object_name(base: &str, suffix: &str) -> String {
    let mut base = base;
    if base.len() + suffix.len() > LONGEST {
        let mut end = LONGEST.saturating_sub(suffix.len() + 1);
        while !base.is_char_boundary(end) {
            end -= 1;
        }
        base = base.get(..end).unwrap_or_default();
    }
    format!("{base}-{suffix}")
}

/// The name of the role that grants `rules` to a service account: the base and a hash of the permission.
pub(crate) fn role_name(base: &str, service_account: &str, rules: Option<&[PolicyRule]>) -> String {
    object_name(base, &permission_hash(service_account, rules))
}

/// base36(sha224(the permission as Go's `json.Encoder` formats it, with the final newline)).
fn permission_hash(service_account: &str, rules: Option<&[PolicyRule]>) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Permission<'a> {
        service_account_name: &'a str,
        rules: Option<&'a [PolicyRule]>,
    }
    // Strings and lists only: serialization cannot fail.
    let json = serde_json::to_string(&Permission { service_account_name: service_account, rules }).unwrap_or_default();
    let mut text = escape_html(&json);
    text.push('\n');
    base36(&Sha224::digest(text.as_bytes()))
}

/// Go's additional escapes in JSON text: `<`, `>`, `&` and the line separators.
pub(crate) fn escape_html(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

/// A big-endian number in base 36, without leading zeros.
fn base36(bytes: &[u8]) -> String {
    let mut number: Vec<u8> = bytes.to_vec();
    let mut digits = Vec::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut remainder = 0_u32;
        for byte in &mut number {
            let value = remainder << 8 | u32::from(*byte);
            *byte = u8::try_from(value / 36).unwrap_or_default();
            remainder = value % 36;
        }
        digits.extend(char::from_digit(remainder, 36));
    }
    if digits.is_empty() {
        digits.push('0');
    }
    digits.iter().rev().collect()
}

/// The errors of a name that should be an RFC 1123 subdomain, with the messages of
/// `k8s.io/apimachinery/pkg/util/validation.IsDNS1123Subdomain`, sorted.
pub(crate) fn subdomain_errors(name: &str) -> Vec<&'static str> {
    let mut errors = Vec::new();
    if !name.split('.').all(is_label) {
        errors.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        );
    }
    if name.len() > 253 {
        errors.push("must be no more than 253 characters");
    }
    errors
}

/// Whether this is a label of a subdomain: `[a-z0-9]([-a-z0-9]*[a-z0-9])?`.
pub(crate) fn is_label(label: &str) -> bool {
    label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        && !label.is_empty()
        && !label.starts_with('-')
        && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn role_names_match_olm_v1() {
        let rules: Vec<PolicyRule> = serde_json::from_value(json!([
            {"verbs": ["get", "list", "watch", "create", "update", "patch", "delete"], "apiGroups": [""], "resources": ["configmaps"]},
            {"verbs": ["get", "list", "watch", "create", "update", "patch", "delete"], "apiGroups": ["coordination.k8s.io"],
             "resources": ["leases"]},
            {"verbs": ["create", "patch"], "apiGroups": [""], "resources": ["events"]},
        ]))
        .unwrap();
        assert_eq!(
            role_name(
                "argocd-operator.v0.6.0-argocd-operator-controller-manager",
                "argocd-operator-controller-manager",
                Some(&rules),
            ),
            "argocd-operator.v0-22gmilmgp91wu25is5i2ec598hni8owq3l71bbkl7iz3"
        );
    }

    #[test]
    fn html_is_escaped_as_in_go() {
        assert_eq!(escape_html("\"a<b>&\u{2028}\""), "\"a\\u003cb\\u003e\\u0026\\u2028\"");
    }

    #[test]
    fn base36_has_no_leading_zeros() {
        assert_eq!(base36(&[0, 0, 35]), "z");
        assert_eq!(base36(&[1, 0]), "74");
        assert_eq!(base36(&[0]), "0");
    }

    #[test]
    fn long_bases_are_cut() {
        assert_eq!(object_name("a", "b"), "a-b");
        assert_eq!(object_name(&"a".repeat(60), "service"), format!("{}-service", "a".repeat(55)));
        // The off-by-one error of OLM v1.
        assert_eq!(object_name(&"a".repeat(56), "service").len(), 64);
        assert_eq!(object_name(&"\u{e4}".repeat(40), "service").len(), 62);
    }

    #[test]
    fn subdomains() {
        for good in ["a", "a.b", "a-1.b", "0"] {
            assert_eq!(subdomain_errors(good), [""; 0], "{good}");
        }
        for bad in ["", "A", "a_b", "-a", "a-", "a..b", ".a"] {
            assert_eq!(subdomain_errors(bad).len(), 1, "{bad}");
        }
        assert_eq!(subdomain_errors(&"A".repeat(300)).len(), 2);
    }
}
