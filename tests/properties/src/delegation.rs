//! An object makes Chandler act with no permission that its writer lacks: whatever it delegates needs a permission.

use chandler_api::{BundleDeploymentSpec, CatalogSpec, OlmCatalogs, OwnKind};
use chandler_core::Object;
use chandler_permissions::{
    Account, AccountPolicy, Delegation, Escalation, ExistingRoles, Held, Installation, Item, PolicyRule, Why, missing,
    requirements,
};
use serde::de::DeserializeOwned;

/// An object in JSON.
pub(crate) fn holds(input: &[u8]) {
    let Ok(object) = Object::parse(input, 0, None) else { return };
    let item = Item { key: &object.key, plural: "things", value: &object.value };
    let own = Account { namespace: "shop".to_owned(), name: "deployer".to_owned() };
    for accounts in [AccountPolicy::OPTIONAL, AccountPolicy::REQUIRED, default("bundles"), default("ci/bundles")] {
        let installation = Installation {
            accounts,
            platform: None,
            catalogs_from: vec![OlmCatalogs::ClusterCatalogs, OlmCatalogs::CatalogSources("olm".to_owned())],
            system_namespace: Some("chandler-system".to_owned()),
        };
        let found = Delegation::of(&item, &installation);
        let required = requirements(&[item], &[], &[], None, &ExistingRoles::default());
        let required = required.with_delegations(&[item], &installation, &own);
        let lacking = missing(&required, &Held::default(), Escalation::Hold);
        let delegated = lacking.needs().iter().filter(|need| matches!(need.why, Why::Delegates { .. })).count();
        let others = found.iter().filter(|it| **it != Delegation::Account(own.clone())).count();
        assert!(delegated >= others, "{found:?} need {delegated} permissions");
        let everything = Held { cluster: vec![PolicyRule::everything(), PolicyRule::every_path()], ..Held::default() };
        assert!(
            missing(&required, &everything, Escalation::Hold).is_empty(),
            "an administrator may delegate everything"
        );

        let kind = OwnKind::of(&object.key.group, &object.key.kind);
        let is_harmless =
            kind.is_none_or(|kind| kind == OwnKind::Resolution) || installation.accounts == AccountPolicy::REQUIRED;
        assert!(is_harmless || !found.is_empty(), "{kind:?} delegates nothing");
        // The controller will read the references that were checked.
        let references = match kind {
            Some(OwnKind::BundleDeployment) => {
                spec::<BundleDeploymentSpec>(&object).map(|spec| spec.source.references())
            }
            Some(OwnKind::Catalog) => spec::<CatalogSpec>(&object).map(|spec| spec.source.references()),
            _ => None,
        };
        for reference in references.unwrap_or_default() {
            let is_found = |it: &Delegation| matches!(it, Delegation::Reads { name, .. } if name == reference.name());
            assert!(found.iter().any(is_found), "{reference:?} is not in {found:?}");
        }
    }
}

fn default(account: &str) -> AccountPolicy {
    AccountPolicy::with_default(account.parse().expect("an account"))
}

fn spec<T: DeserializeOwned>(object: &Object) -> Option<T> {
    serde_json::from_value(object.value.get("spec")?.clone()).ok()
}
