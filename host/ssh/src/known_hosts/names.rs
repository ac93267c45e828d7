//! The names of hosts in a line of a known_hosts file.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::hmac;

/// The names that a line is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// Patterns, each with whether a name that matches it is excluded.
    Patterns(Vec<(bool, String)>),
    /// The salt of a name, and its HMAC-SHA1.
    Hashed { salt: Vec<u8>, hash: Vec<u8> },
}

pub(super) fn parse(text: &str) -> Result<Names, &'static str> {
    if text.starts_with('|') {
        let wrong = "its host name is hashed in an unknown way";
        let (salt, hash) = text.strip_prefix("|1|").and_then(|text| text.split_once('|')).ok_or(wrong)?;
        let (salt, hash) = (STANDARD.decode(salt), STANDARD.decode(hash));
        let (Ok(salt), Ok(hash)) = (salt, hash) else { return Err(wrong) };
        return if hash.len() == 20 { Ok(Names::Hashed { salt, hash }) } else { Err(wrong) };
    }
    let patterns = text.split(',').filter(|pattern| !pattern.is_empty()).map(|pattern| {
        let (excludes, pattern) = pattern.strip_prefix('!').map_or((false, pattern), |pattern| (true, pattern));
        (excludes, pattern.to_ascii_lowercase())
    });
    Ok(Names::Patterns(patterns.collect()))
}

impl Names {
    /// Whether a server is among them: `host`, or `[host]:port`.
    pub(super) fn contain(&self, name: &str) -> bool {
        match self {
            Self::Hashed { salt, hash } => {
                let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, salt);
                hmac::verify(&key, name.as_bytes(), hash).is_ok()
            }
            Self::Patterns(patterns) => {
                let mut matching = patterns.iter().filter(|(_, pattern)| matches(pattern, name)).peekable();
                // One that excludes the name counts wherever it is.
                matching.peek().is_some() && matching.all(|(excludes, _)| !excludes)
            }
        }
    }
}

/// Whether a name matches a pattern with `*` and `?`. Takes time in proportion to the product of their lengths at most.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut reads) = (0, 0);
    // Where to continue if what follows the last `*` does not match: it takes one byte more.
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = name.get(reads) {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                star = Some((at, reads));
            }
            Some(one) if *one == b'?' || one == byte => {
                at += 1;
                reads += 1;
            }
            _ => {
                let Some((after, from)) = star else { return false };
                at = after;
                reads = from + 1;
                star = Some((after, reads));
            }
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_and_their_exceptions() {
        for (names, name, expected) in [
            ("example.com", "example.com", true),
            ("Example.COM", "example.com", true),
            ("example.com", "example.com.evil", false),
            ("*.example.com,other", "git.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com,!git.example.com", "git.example.com", false),
            ("!git.example.com,*.example.com", "git.example.com", false),
            ("!git.example.com,*.example.com", "web.example.com", true),
            ("!git.example.com", "web.example.com", false),
            ("192.0.2.?", "192.0.2.7", true),
            ("192.0.2.?", "192.0.2.77", false),
            ("[example.com]:2222", "[example.com]:2222", true),
            ("example.com", "[example.com]:2222", false),
            ("*", "[example.com]:2222", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("", "example.com", false),
        ] {
            assert_eq!(parse(names).unwrap().contain(name), expected, "{names} {name}");
        }
    }

    #[test]
    fn hashed_names_match_only_themselves() {
        // From ssh-keygen -H.
        let names = parse("|1|bxT0NO3ZfaGljMZcwQTYxicigOM=|11AGRvvXYa/W0456W8vCb7a/unk=").unwrap();
        assert!(names.contain("example.com") && !names.contain("example.org") && !names.contain("[example.com]:2222"));
        let names = parse("|1|8Tbi0CTC9BqmoS0q0eJegg3a/ic=|bsfpPlS4M/0UXSCwm+tJ1uzsxjg=").unwrap();
        assert!(names.contain("[git.example.com]:2222") && !names.contain("git.example.com"));
        for text in ["|2|AA==|AA==", "|1|AA==", "|1|?|?", "|1|AA==|AA=="] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        /// Against a definition by recursion.
        #[test]
        fn the_loop_is_right(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            fn defined(pattern: &[u8], name: &[u8]) -> bool {
                match (pattern.split_first(), name.split_first()) {
                    (None, _) => name.is_empty(),
                    (Some((b'*', rest)), _) => (0..=name.len()).any(|taken| defined(rest, &name[taken..])),
                    (Some((one, rest)), Some((byte, others))) => (*one == b'?' || one == byte) && defined(rest, others),
                    (Some(_), None) => false,
                }
            }
            prop_assert_eq!(matches(&pattern, &name), defined(pattern.as_bytes(), name.as_bytes()));
        }
    }
}
