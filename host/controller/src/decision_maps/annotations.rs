//! What the annotations of a ConfigMap say about the set that it decides.

use chandler_api::ServiceAccountReference;
use chandler_core::dns_name::{self, is_label};
use kube::ResourceExt;

/// The name of the set. Its presence makes the ConfigMap a decision.
pub(super) const SET: &str = "resolveset.chandler.dev/set";
/// The number of the decision: the highest one of a set is installed.
const NUMBER: &str = "resolveset.chandler.dev/number";
/// The account that installs the set, as NAMESPACE/NAME.
const ACCOUNT: &str = "resolveset.chandler.dev/service-account";
/// The UID of the BundleDeployment that the controller created. It is on a ConfigMap of its own, so that it outlives the decisions: the
/// metadata of a BundleDeployment proves nothing, since its author writes it.
pub(super) const CREATED: &str = "resolveset.chandler.dev/created";

/// The prefix of the names of the BundleDeployments of these sets. Resolutions have another prefix, so that their names never collide.
const PREFIX: &str = "decidedset-";
/// The longest name of a set. A BundleDeployment has 52 characters at most.
const NAME: usize = 52 - PREFIX.len();

/// Why a ConfigMap with the annotation is not installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// The set has no usable name.
    #[error(
        "the annotation {SET} is {0:?}, which is not the name of a set: write at most {NAME} lower-case letters, digits and -, with a \
         letter or digit at both ends"
    )]
    Name(String),
    /// No number.
    #[error(
        "the annotation {NUMBER} is missing: write the number of the decision, such as \"1\"; the highest one of a set is installed"
    )]
    NumberMissing,
    /// An invalid number.
    #[error(
        "the annotation {NUMBER} is {0:?}: write a whole number of at most 18 digits, without zeros in front, in quotes"
    )]
    Number(String),
    /// No account.
    #[error("the annotation {ACCOUNT} is missing: write NAMESPACE/NAME of the ServiceAccount that installs the set")]
    AccountMissing,
    /// Not the name of an account.
    #[error("the annotation {ACCOUNT} is {0:?}: write NAMESPACE/NAME of the ServiceAccount that installs the set")]
    Account(String),
    /// The content could change.
    #[error(
        "the ConfigMap is not immutable: `kubectl patch configmap {name} --namespace {namespace} --type merge --patch \
         '{{\"immutable\":true}}'` makes it so"
    )]
    Mutable {
        /// The ConfigMap.
        name: String,
        /// The system namespace.
        namespace: String,
    },
    /// An older ConfigMap has the number.
    #[error("the older ConfigMap {other} has number {number} of this set: create this one again with a higher number")]
    SameNumber {
        /// The number.
        number: u64,
        /// The older ConfigMap.
        other: String,
    },
    /// An administrator has not allowed it.
    #[error(
        "the controller does not install sets that ConfigMaps decide: apply deploy/admission-policies.yaml, and start it with \
         --decisions-from-config-maps"
    )]
    Disabled,
    /// A BundleDeployment of another origin has the name.
    #[error(
        "BundleDeployment {0} exists, and this controller did not create it for the set: delete it with `chandler delete {0}`, or give \
         the set another name"
    )]
    Taken(String),
    /// A ConfigMap of another origin has the name of the note.
    #[error(
        "ConfigMap {0} exists, and this controller needs the name to note what it created for the set: delete that ConfigMap, or give \
         the set another name"
    )]
    NoteTaken(String),
}

/// What a decision says about its set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// The number of the decision.
    pub(super) number: u64,
    /// The account that installs the set.
    pub(super) account: ServiceAccountReference,
}

impl Terms {
    /// Reads the annotations of a decision.
    pub(super) fn of(map: &impl ResourceExt) -> Result<Self, Refusal> {
        let annotation = |name: &str| map.annotations().get(name).cloned();
        let name = annotation(SET).unwrap_or_default();
        if !is_set_name(&name) {
            return Err(Refusal::Name(name));
        }
        let number = annotation(NUMBER).ok_or(Refusal::NumberMissing)?;
        let number = parse_number(&number).ok_or(Refusal::Number(number))?;
        let account = annotation(ACCOUNT).ok_or(Refusal::AccountMissing)?;
        let account = parse_account(&account).ok_or(Refusal::Account(account))?;
        Ok(Self { number, account })
    }
}

/// The set that a ConfigMap is a decision for. The name may be invalid.
pub(super) fn set_of(map: &impl ResourceExt) -> Option<&str> {
    map.annotations().get(SET).map(String::as_str)
}

/// The name of the BundleDeployment of a set, and of the ConfigMap that notes its UID.
pub(super) fn deployment_name(set: &str) -> String {
    format!("{PREFIX}{set}")
}

/// The set that an object of this name may belong to.
pub(super) fn set_named_by(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX)
}

/// Whether a set can have this name.
pub(super) fn is_set_name(name: &str) -> bool {
    name.len() <= NAME && is_label(name)
}

/// Numbers have only one notation, so that no two texts are one number.
fn parse_number(text: &str) -> Option<u64> {
    let canonical = (1..=18).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (!text.starts_with('0') || text == "0");
    text.parse().ok().filter(|_| canonical)
}

fn parse_account(text: &str) -> Option<ServiceAccountReference> {
    let (namespace, name) = text.split_once('/')?;
    let is_name = name.len() <= dns_name::SUBDOMAIN_LENGTH && name.split('.').all(is_label);
    (is_label(namespace) && is_name)
        .then(|| ServiceAccountReference { name: name.to_owned(), namespace: Some(namespace.to_owned()) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn terms(annotations: &[(&str, &str)]) -> Result<Terms, Refusal> {
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut map = ConfigMap::default();
        map.metadata.annotations = Some(annotations.iter().map(text).collect::<BTreeMap<_, _>>());
        Terms::of(&map)
    }

    #[test]
    fn a_decision_names_its_set_its_number_and_its_account() {
        let read = terms(&[(SET, "shop"), (NUMBER, "12"), (ACCOUNT, "operators/de.ployer")]).unwrap();
        assert_eq!(read.number, 12);
        assert_eq!((read.account.namespace.as_deref(), read.account.name.as_str()), (Some("operators"), "de.ployer"));
    }

    #[test]
    fn what_is_missing_or_invalid_is_refused() {
        let (set, number, account) = ((SET, "shop"), (NUMBER, "1"), (ACCOUNT, "a/b"));
        assert_eq!(terms(&[set, account]), Err(Refusal::NumberMissing));
        assert_eq!(terms(&[set, number]), Err(Refusal::AccountMissing));
        let long = "x".repeat(NAME + 1);
        for name in ["", "Shop", "shop/x", "-shop", "shop-", "sh.op", "sh\u{1b}op", long.as_str()] {
            assert_eq!(terms(&[(SET, name), number, account]), Err(Refusal::Name(name.to_owned())));
        }
        for text in ["", "01", "+1", "-1", "1.5", " 1", "one", "1234567890123456789"] {
            assert_eq!(terms(&[set, (NUMBER, text), account]), Err(Refusal::Number(text.to_owned())));
        }
        for text in ["", "/", "deployer", "a/", "/b", "a/b/c", "A/b", "a.b/c", "a/b..c", "system:x/y"] {
            assert_eq!(terms(&[set, number, (ACCOUNT, text)]), Err(Refusal::Account(text.to_owned())));
        }
    }

    #[test]
    fn the_name_of_a_set_is_in_the_name_of_its_bundle_deployment() {
        assert_eq!(set_named_by(&deployment_name("shop")), Some("shop"));
        assert_eq!(set_named_by("resolveset-shop"), None);
        let longest = "x".repeat(NAME);
        assert!(is_set_name(&longest) && deployment_name(&longest).len() == 52);
    }

    #[test]
    fn refusals_say_what_helps() {
        let (name, namespace) = ("shop-1".to_owned(), "chandler-system".to_owned());
        insta::assert_snapshot!(Refusal::Mutable { name, namespace }, @r#"the ConfigMap is not immutable: `kubectl patch configmap shop-1 --namespace chandler-system --type merge --patch '{"immutable":true}'` makes it so"#);
        insta::assert_snapshot!(Refusal::Name("Shop".into()), @r#"the annotation resolveset.chandler.dev/set is "Shop", which is not the name of a set: write at most 41 lower-case letters, digits and -, with a letter or digit at both ends"#);
        insta::assert_snapshot!(Refusal::Taken("decidedset-shop".into()), @"BundleDeployment decidedset-shop exists, and this controller did not create it for the set: delete it with `chandler delete decidedset-shop`, or give the set another name");
    }
}
