//! Watches the kinds of the objects that BundleDeployments manage.

use chandler_api::{
    BundleDeployment,
    names::{OWNER_KIND_LABEL, OWNER_NAME_LABEL},
};
use chandler_permissions::Account;
use chandler_rollout::impersonating;
use chandler_runtime::{OwnerLabels, Triggers};
use kube::Client;

/// The watches; those on behalf of a ServiceAccount impersonate it.
pub(crate) type ManagedWatches = chandler_runtime::ManagedWatches<BundleDeployment, Account>;

/// No watches yet.
pub(crate) fn managed_watches(client: Client, triggers: Triggers<BundleDeployment>) -> ManagedWatches {
    let labels = OwnerLabels { kind: OWNER_KIND_LABEL, name: OWNER_NAME_LABEL };
    ManagedWatches::new(client, triggers, labels, |client, account| Ok(impersonating(client, account)?))
}
