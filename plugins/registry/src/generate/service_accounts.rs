//! ServiceAccounts: one for each name in the permissions, and for each that only a Deployment names.
//!
//! The account `default` exists in every namespace and is never generated.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Context, Generated, Source, service_account_or_default};

pub(super) fn generate<'a>(context: &Context<'a>) -> Vec<Generated<'a>> {
    let strategy = &context.bundle.csv.spec.install.spec;
    let lists = [("permissions", &strategy.permissions), ("clusterPermissions", &strategy.cluster_permissions)];
    let mut accounts: BTreeMap<&str, String> = BTreeMap::new();
    for (list, permissions) in lists {
        for (index, permission) in permissions.iter().enumerate() {
            accounts
                .entry(service_account_or_default(&permission.service_account_name))
                .or_insert_with(|| format!("/spec/install/spec/{list}/{index}/serviceAccountName"));
        }
    }
    if context.compatibility.creates_deployment_accounts() {
        for (index, deployment) in strategy.deployments.iter().enumerate() {
            accounts.entry(deployment.service_account()).or_insert_with(|| {
                format!("/spec/install/spec/deployments/{index}/spec/template/spec/serviceAccountName")
            });
        }
    }
    accounts.remove("default");
    accounts
        .into_iter()
        .map(|(name, pointer)| {
            let account = json!({
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": context.namespace},
            });
            let generated = Generated::new(&account, context.bundle.csv_place(&pointer));
            Generated { source: Source::ServiceAccount, ..generated }
        })
        .collect()
}
