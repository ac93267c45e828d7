//! Sets of completion indexes, written as `0-2,5`.

use std::{collections::BTreeSet, fmt};

/// How many indexes a Job may have.
const MOST: i64 = 100_000;

/// A set of indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(BTreeSet<i64>);

impl Indexes {
    /// Parses the format of [`Display`](fmt::Display); unreadable parts are omitted.
    pub(super) fn parse(text: &str) -> Self {
        let mut indexes = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
                indexes.extend(first.max(0)..=last.min(MOST));
            }
        }
        Self(indexes)
    }

    pub(super) fn extend(&mut self, more: impl Iterator<Item = i64>) {
        self.0.extend(more.filter(|index| (0..=MOST).contains(index)));
    }

    pub(super) fn contains(&self, index: i64) -> bool {
        self.0.contains(&index)
    }

    pub(super) fn len(&self) -> i64 {
        i64::try_from(self.0.len()).unwrap_or(i64::MAX)
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(i64, i64)> = Vec::new();
        for index in &self.0 {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == *index => *last = *index,
                _ => ranges.push((*index, *index)),
            }
        }
        for (position, (first, last)) in ranges.into_iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_written_short() {
        for text in ["", "0", "0,1", "0-2", "1,3-5,7,8,10"] {
            assert_eq!(Indexes::parse(text).to_string(), text);
        }
        assert_eq!(Indexes::parse("x,3,4-y,-5,9999999-1").to_string(), "3");
    }

    proptest! {
        #[test]
        fn indexes_round_trip(indexes in prop::collection::btree_set(0_i64..200, 0..60)) {
            let indexes = Indexes(indexes);
            prop_assert_eq!(Indexes::parse(&indexes.to_string()), indexes);
        }

        #[test]
        fn any_text_is_read(text in "[0-9,x-]{0,40}") {
            let _ = Indexes::parse(&text);
        }
    }
}
