//! The syntax of names, as `k8s.io/apimachinery/pkg/util/validation` has it.

/// The maximum length of a label, such as the name of a namespace, in bytes.
pub const LABEL_LENGTH: usize = 63;
/// The maximum length of a subdomain, such as the name of a Secret, in bytes.
pub const SUBDOMAIN_LENGTH: usize = 253;

/// Whether this is an RFC 1123 label: `[a-z0-9]([-a-z0-9]*[a-z0-9])?`, with [`LABEL_LENGTH`] bytes at most.
pub fn is_label(text: &str) -> bool {
    text.len() <= LABEL_LENGTH && is_part(text)
}

/// Whether this is an RFC 1123 subdomain: labels with dots between them. As in Kubernetes, only the total length is limited.
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_LENGTH && text.split('.').all(is_part)
}

/// A label of any length.
pub fn is_part(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        && !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_subdomains() {
        for good in ["a", "0", "a-1", &"a".repeat(63)] {
            assert!(is_label(good) && is_subdomain(good), "{good}");
        }
        for bad in ["", "A", "a_b", "-a", "a-", "ä"] {
            assert!(!is_label(bad) && !is_subdomain(bad), "{bad}");
        }
        for bad in ["a..b", ".a", "a.", "a.-b", &"a".repeat(254)] {
            assert!(!is_subdomain(bad), "{bad}");
        }
        assert!(is_subdomain("a.b") && !is_label("a.b"));
        assert!(is_subdomain(&"a".repeat(253)) && !is_label(&"a".repeat(64)));
    }
}
