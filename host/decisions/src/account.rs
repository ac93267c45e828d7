//! The ServiceAccount on whose behalf a BundleDeployment is installed, and the permissions that it lacks.

use chandler_api::{BundleDeployment, MissingPermissions, ServiceAccountReference};
use chandler_permissions::{Account, AccountPolicy, AccountRefused, NamedAccount, PolicyRule, roles::place};
use chandler_rollout::PermissionsMissing;
use chandler_turns::Requester;
use k8s_openapi::api::rbac::v1 as rbac;

use super::spec_error::SpecError;

/// About how many bytes of permissions the status holds. An API server stores objects of up to 1.5 MiB, and every watcher receives them.
const BYTES: usize = 64 * 1024;

/// The ServiceAccount on whose behalf a BundleDeployment is installed: the spec's, else the installation's; `None`
/// where the controller uses its own rights.
pub fn account(deployment: &BundleDeployment, policy: &AccountPolicy) -> Result<Option<Account>, SpecError> {
    account_of(deployment.spec.service_account.as_ref(), &deployment.spec.install_namespace, policy)
}

/// The account as records name it.
pub fn recorded(deployment: &BundleDeployment, policy: &AccountPolicy) -> Option<String> {
    account_for_deletion(deployment, policy).map(|account| account.to_string())
}

fn account_of(
    named: Option<&ServiceAccountReference>,
    install_namespace: &str,
    policy: &AccountPolicy,
) -> Result<Option<Account>, SpecError> {
    let named = named.map(|named| NamedAccount { namespace: named.namespace.as_deref(), name: &named.name });
    policy.account(named, install_namespace).map_err(|refused| match refused {
        AccountRefused::Required => SpecError::AccountRequired,
        AccountRefused::OtherNamespace(account) => {
            SpecError::AccountOfOtherNamespace { account, namespaces: policy.namespaces.iter().cloned().collect() }
        }
    })
}

/// On whose behalf the controller works for a BundleDeployment, where requesters take turns. Without an account, the install namespace
/// stands for its users.
pub fn requester(deployment: &BundleDeployment, policy: &AccountPolicy) -> Requester {
    requester_of(deployment.spec.service_account.as_ref(), &deployment.spec.install_namespace, policy)
}

/// [`requester`], for a set of a Resolution.
pub fn requester_of(
    named: Option<&ServiceAccountReference>,
    install_namespace: &str,
    policy: &AccountPolicy,
) -> Requester {
    match account_of(named, install_namespace, policy) {
        Ok(Some(account)) => Requester::new(&account.namespace, &account.name),
        Ok(None) | Err(_) => Requester::new(install_namespace, ""),
    }
}

/// The ServiceAccount on whose behalf the objects of a BundleDeployment are deleted. Objects that were installed with the rights of the
/// controller, before an account was required, are deleted with these rights, too: a deletion creates nothing, and no other account may
/// delete them. Objects that were installed on behalf of an account whose namespace is refused now are deleted on its behalf, never with the
/// rights of the controller.
pub fn account_for_deletion(deployment: &BundleDeployment, policy: &AccountPolicy) -> Option<Account> {
    match account(deployment, policy) {
        Ok(account) => account,
        Err(SpecError::AccountOfOtherNamespace { account, .. }) => Some(account),
        Err(_) => None,
    }
}

/// The permissions that an account lacks, for the status: by namespace, in a bounded number of bytes.
pub fn missing(found: &PermissionsMissing) -> Vec<MissingPermissions> {
    let mut left = BYTES;
    let mut missing = Vec::new();
    for (namespace, rules) in place(&found.missing.rules(), &found.not_yet) {
        let mut fitting = Vec::new();
        for rule in rules {
            let texts = [&rule.verbs, &rule.api_groups, &rule.resources, &rule.resource_names, &rule.non_resource_urls];
            let size: usize = texts.into_iter().flatten().map(|text| text.len() + 4).sum();
            match left.checked_sub(size) {
                Some(rest) => left = rest,
                None => continue,
            }
            fitting.push(of(rule));
        }
        if !fitting.is_empty() {
            missing.push(MissingPermissions { namespace, rules: fitting });
        }
    }
    missing
}

/// The rule as a type of the API. Empty members are left out.
fn of(rule: PolicyRule) -> rbac::PolicyRule {
    let some = |texts: Vec<String>| (!texts.is_empty()).then_some(texts);
    let PolicyRule { verbs, api_groups, resources, resource_names, non_resource_urls } = rule;
    rbac::PolicyRule {
        verbs,
        api_groups: some(api_groups),
        resources: some(resources),
        resource_names: some(resource_names),
        non_resource_urls: some(non_resource_urls),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use chandler_api::Reason;
    use chandler_core::Object;
    use chandler_permissions::{Escalation, ExistingRoles, Held, Item, requirements};
    use serde_json::json;

    use super::*;
    use crate::problem::Problem;

    /// The permissions to install so many ConfigMaps.
    pub(crate) fn found(names: usize, length: usize) -> PermissionsMissing {
        let objects: Vec<Object> = (0..names)
            .map(|number| {
                let name = format!("{number}{}", "x".repeat(length));
                let value = json!({"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": name, "namespace": format!("n{number}")}});
                Object::parse(value.to_string().as_bytes(), 0, None).unwrap()
            })
            .collect();
        let items: Vec<Item<'_>> = objects
            .iter()
            .map(|object| Item { key: &object.key, plural: "configmaps", value: &object.value })
            .collect();
        let required = requirements(&items, &[], &[], None, &ExistingRoles::default());
        PermissionsMissing {
            owner: "x".into(),
            account: Some(Account { namespace: "n".into(), name: "a".into() }),
            missing: chandler_permissions::missing(&required, &Held::default(), Escalation::Hold),
            not_yet: ["n1".to_owned()].into(),
        }
    }

    fn deployment(service_account: &serde_json::Value) -> BundleDeployment {
        let object = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "x"},
            "spec": {"installNamespace": "shop", "provisionerClassName": "c", "source": {"type": "image"},
                     "serviceAccount": service_account},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_bundle_deployment_without_an_account_is_refused_and_can_be_deleted() {
        let named = |name: &str| Some(Account { namespace: "shop".into(), name: name.into() });
        let (with, without) = (deployment(&json!({"name": "deployer"})), deployment(&json!(null)));
        for policy in [AccountPolicy::OPTIONAL, AccountPolicy::REQUIRED] {
            assert_eq!(account(&with, &policy).unwrap(), named("deployer"), "{policy:?}");
            assert_eq!(account_for_deletion(&with, &policy), named("deployer"), "{policy:?}");
            assert_eq!(account_for_deletion(&without, &policy), None, "{policy:?}");
        }
        assert_eq!(account(&without, &AccountPolicy::OPTIONAL).unwrap(), None);
        let default = AccountPolicy::with_default("bundles".parse().unwrap());
        assert_eq!(account(&without, &default).unwrap(), named("bundles"));
        assert_eq!(account_for_deletion(&without, &default), named("bundles"));

        let refused = account(&without, &AccountPolicy::REQUIRED).unwrap_err();
        let refused = Problem::from(&refused);
        assert_eq!((refused.reason, refused.terminal), (Reason::ServiceAccountRequired, true));
        for part in ["--require-service-account", "spec.serviceAccount.name", "chandler rbac"] {
            assert!(refused.message.contains(part), "{}", refused.message);
        }
    }

    #[test]
    fn an_account_of_another_namespace_is_refused_and_deletes_what_it_installed() {
        let named = deployment(&json!({"name": "mine", "namespace": "team-b"}));
        let policy = AccountPolicy::REQUIRED.within(["accounts".to_owned(), "ci".to_owned()]).unwrap();
        let refused = Problem::from(&account(&named, &policy).unwrap_err());
        assert_eq!((refused.reason, refused.terminal), (Reason::ServiceAccountNotGranted, true));
        for part in ["team-b/mine", "--accounts-in accounts,ci", "spec.serviceAccount"] {
            assert!(refused.message.contains(part), "{}", refused.message);
        }
        // Never with the rights of the controller.
        let mine = Account { namespace: "team-b".into(), name: "mine".into() };
        assert_eq!(recorded(&named, &policy), Some(mine.to_string()));
        assert_eq!(account_for_deletion(&named, &policy), Some(mine));
    }

    #[test]
    fn missing_permissions_are_listed_by_namespace() {
        let listed = missing(&found(2, 0));
        let text: Vec<String> = listed.iter().map(|place| serde_json::to_string(place).unwrap()).collect();
        assert_eq!(
            text,
            [
                r#"{"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["create","list","watch"]},{"apiGroups":[""],"resourceNames":["1"],"resources":["configmaps"],"verbs":["delete","get","patch"]}]}"#,
                r#"{"namespace":"n0","rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["create","list","watch"]},{"apiGroups":[""],"resourceNames":["0"],"resources":["configmaps"],"verbs":["delete","get","patch"]}]}"#,
            ]
        );
    }

    #[test]
    fn a_status_stays_small() {
        let listed = missing(&found(2000, 200));
        let bytes = serde_json::to_string(&listed).unwrap().len();
        assert!((32 * 1024..192 * 1024).contains(&bytes), "{bytes}");
    }
}
