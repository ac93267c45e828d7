//! The names in JSON pointers (RFC 6901, section 4).

/// A name as a part of a JSON pointer.
pub fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The name that a part of a JSON pointer stands for.
pub fn unescape(part: &str) -> String {
    // In this order, so that "~01" becomes "~1".
    part.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn separators_in_names_are_escaped() {
        for (name, part) in [("a/b", "a~1b"), ("m~n", "m~0n"), ("~1", "~01"), ("", "")] {
            assert_eq!((escape(name).as_str(), unescape(part).as_str()), (part, name));
        }
    }

    proptest! {
        #[test]
        fn an_escaped_name_is_one_part_and_comes_back(name in "[~/01a]{0,12}") {
            prop_assert!(!escape(&name).contains('/'));
            prop_assert_eq!(unescape(&escape(&name)), name);
        }
    }
}
