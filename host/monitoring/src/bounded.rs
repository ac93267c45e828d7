//! Labels with a limited number of values.
//!
//! A label whose values users choose would let them fill the memory of the controller and of the monitoring system with series.

use std::{borrow::Cow, collections::BTreeSet};

use parking_lot::Mutex;

/// The value that stands for all others.
pub const OTHER: &str = "other";
/// The longest value in bytes. Names of Kubernetes objects and resources are shorter.
const VALUE_BYTES: usize = 253;

/// The values of a label: the first few that occur keep their names, and all later ones share [`OTHER`].
#[derive(Debug)]
pub struct Bounded {
    most: usize,
    known: Mutex<BTreeSet<Box<str>>>,
}

impl Bounded {
    /// At most so many values beside [`OTHER`].
    pub fn new(most: usize) -> Self {
        Self { most, known: Mutex::default() }
    }

    /// The value of the label for this text.
    pub fn value<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut known = self.known.lock();
        if known.contains(text) {
            return text.into();
        }
        if known.len() >= self.most || text.len() > VALUE_BYTES || !text.bytes().all(is_plain) {
            return OTHER.into();
        }
        known.insert(text.into());
        text.into()
    }

    /// The value of the label for a constant.
    pub fn constant(&self, text: &'static str) -> &'static str {
        match self.value(text) {
            Cow::Borrowed(value) => value,
            // It returns its argument or `OTHER`.
            Cow::Owned(_) => OTHER,
        }
    }
}

/// Names of objects, resources and verbs consist of these.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-./_".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn later_values_share_one() {
        let bounded = Bounded::new(2);
        let values: Vec<String> =
            ["a", "b", "c", "a", "d", "b"].into_iter().map(|text| bounded.value(text).into_owned()).collect();
        assert_eq!(values, ["a", "b", OTHER, "a", OTHER, "b"]);
    }

    #[test]
    fn a_name_that_no_object_can_have_is_not_kept() {
        let bounded = Bounded::new(8);
        for name in ["a".repeat(VALUE_BYTES + 1).as_str(), "a b", "ä", "a\n"] {
            assert_eq!(bounded.value(name), OTHER);
        }
        assert_eq!(bounded.value(&"a".repeat(VALUE_BYTES)).len(), VALUE_BYTES);
    }

    proptest! {
        // Each case draws a thousand names.
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn a_thousand_hostile_names_are_few_values(names in prop::collection::vec(".{0,12}", 1000)) {
            let bounded = Bounded::new(8);
            let values: BTreeSet<String> = names.iter().map(|name| bounded.value(name).into_owned()).collect();
            prop_assert!(values.len() <= 9);
            for value in values {
                prop_assert!(value.bytes().all(is_plain) && value.len() <= VALUE_BYTES);
            }
        }
    }
}
