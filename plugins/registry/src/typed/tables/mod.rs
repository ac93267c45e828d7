//! The types, as data: for every field its JSON name, when it is written and its type.
//!
//! They define the JSON form of Kubernetes 1.36's published Go types, and nothing else: no descriptions, no defaults,
//! no status. OLM v1 drops fields that are not in the tables.

pub(crate) mod crd;
pub(crate) mod csv;
pub(crate) mod meta;
pub(crate) mod pod;
pub(crate) mod volume;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::typed::{Record, Type};

    fn visit(record: &'static Record, seen: &mut BTreeSet<*const Record>) {
        if !seen.insert(std::ptr::from_ref(record)) {
            return;
        }
        assert!(record.fields.is_sorted_by(|a, b| a.name < b.name), "fields are found by binary search: {record:?}");
        for field in record.fields {
            let mut kind = &field.kind;
            while let Type::List(inner) | Type::Map(inner) = kind {
                kind = inner;
            }
            if let Type::Record(record) = kind {
                visit(record, seen);
            }
        }
    }

    #[test]
    fn fields_are_sorted_and_unique() {
        let mut seen = BTreeSet::new();
        for root in [&csv::CLUSTER_SERVICE_VERSION, &crd::CUSTOM_RESOURCE_DEFINITION, &pod::SUBSCRIPTION_CONFIG] {
            visit(root, &mut seen);
        }
        visit(&crd::JSON_SCHEMA_PROPS, &mut seen);
        assert!(seen.len() > 100, "{}", seen.len());
    }
}
