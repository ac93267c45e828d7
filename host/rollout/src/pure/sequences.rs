//! Objects of a stage that are applied one after the other. Pure.

use std::collections::BTreeMap;

use chandler_core::ObjectKey;

use crate::pure::desired::Desired;

/// The sequences of a stage: the indices of their objects, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sequences(Vec<Vec<usize>>);

impl Sequences {
    /// The sequences of these objects.
    pub(crate) fn of(desired: &[Desired], indices: impl Iterator<Item = usize>) -> Self {
        let mut sequences: BTreeMap<&str, BTreeMap<(u32, usize), usize>> = BTreeMap::new();
        for index in indices {
            if let Some(place) = desired.get(index).and_then(|object| object.place.as_ref()) {
                sequences.entry(&place.sequence).or_default().insert((place.number, index), index);
            }
        }
        Self(sequences.into_values().map(|objects| objects.into_values().collect()).collect())
    }

    /// The first object of each sequence that is not done.
    pub(crate) fn current(&self, is_done: impl Fn(usize) -> bool) -> Vec<usize> {
        self.0.iter().filter_map(|sequence| sequence.iter().copied().find(|index| !is_done(*index))).collect()
    }
}

/// Whether the next object of a sequence waits until one of this kind is healthy: what it defines or does may be needed. It does not wait for
/// workloads, which may need objects that come later.
pub(crate) fn is_awaited(key: &ObjectKey) -> bool {
    matches!(
        (key.group.as_str(), key.kind.as_str()),
        ("apiextensions.k8s.io", "CustomResourceDefinition") | ("batch", "Job")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pure::desired::tests::desired;

    #[test]
    fn each_sequence_continues_with_its_first_object_that_is_not_done() {
        let object = |name: &str, place: Option<&str>| {
            let annotations = place.map_or_else(|| json!({}), |place| json!({"chandler.dev/sequence": place}));
            desired(
                &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "annotations": annotations}}),
                true,
            )
        };
        let objects = [
            object("another stage", Some("a/0")),
            object("c", Some("a/10")),
            object("b", Some("a/2")),
            object("a", Some("a/1")),
            object("alone", None),
            object("z", Some("b/5")),
        ];
        let sequences = Sequences::of(&objects, 1..6);
        for (done, current) in [(&[][..], &[3, 5][..]), (&[3], &[2, 5]), (&[3, 1, 5], &[2]), (&[1, 2, 3, 5], &[])] {
            assert_eq!(sequences.current(|index| done.contains(&index)), current, "{done:?}");
        }
    }
}
