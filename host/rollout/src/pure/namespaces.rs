//! The namespaces of a release. Pure.

use std::collections::BTreeSet;

use crate::pure::{desired::Desired, owner::Owner};

/// The Namespaces of a release.
pub(crate) fn own(desired: &[Desired]) -> impl Iterator<Item = &Desired> {
    desired.iter().filter(|desired| desired.key.is_namespace())
}

/// The namespaces that these objects of a release need and that it does not have itself. A release that creates anything needs its install
/// namespace.
pub(crate) fn needed<'a, 'created: 'a>(
    owner: &'a Owner,
    desired: &[Desired],
    created: impl Iterator<Item = &'created Desired>,
) -> BTreeSet<&'a str> {
    let own: BTreeSet<&str> = own(desired).map(|desired| desired.key.name.as_str()).collect();
    created
        .flat_map(|desired| [desired.key.namespace.as_deref(), Some(owner.install_namespace.as_str())])
        .flatten()
        .filter(|namespace| !own.contains(namespace))
        .collect()
}
