//! What reconciles fail with, from the error types of the crates that report them.

use std::{collections::BTreeSet, time::Duration};

use chandler_api::Reason;
use chandler_content::{ContentError, RegistryError, ServerFailure};
use chandler_core::{Object, ObjectKey};
use chandler_decisions::{
    detection::{Answer, Opinion, Undecided},
    problem::{Problem, Refusal},
};
use chandler_engine::{CallError, CallLog, Retry, Trapped};
use chandler_permissions::{Account, Escalation, ExistingRoles, Held, Item, requirements};
use chandler_rollout::{
    Collision, Collisions, CrdInUse, ExistingOwner, ObjectFailure, PermissionsMissing, RolloutError, deletion_plan,
    error::ApiError,
};
use serde_json::json;

pub(super) fn key(group: &str, kind: &str, name: &str) -> ObjectKey {
    let namespace = (kind != "CustomResourceDefinition").then(|| "harbour-system".to_owned());
    ObjectKey { group: group.into(), version: "v1".into(), kind: kind.into(), namespace, name: name.into() }
}

fn account() -> Account {
    Account { namespace: "harbour-system".into(), name: "deployer".into() }
}

/// An object of another owner is in the way.
pub(super) fn collision() -> Problem {
    let existing_owner = ExistingOwner::Manager { name: "kubectl-create".into() };
    let collision = Collision { object: key("", "Service", "metrics"), existing_owner };
    let (owner_kind, owner) = ("BundleDeployment".into(), "harbour".into());
    Problem::from(&RolloutError::Collisions(Collisions { owner_kind, owner, found: vec![collision], lost: false }))
}

/// The account may not create the objects.
pub(super) fn permissions_missing() -> Problem {
    let service =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics", "namespace": "harbour-system"}});
    let object = Object::parse(service.to_string().as_bytes(), 0, None).unwrap();
    let items = [Item { key: &object.key, plural: "services", value: &object.value }];
    let required = requirements(&items, &[], &[], None, &ExistingRoles::default());
    Problem::from(&RolloutError::PermissionsMissing(Box::new(PermissionsMissing {
        owner: "harbour".into(),
        account: Some(account()),
        missing: chandler_permissions::missing(&required, &Held::default(), Escalation::Hold),
        not_yet: BTreeSet::new(),
    })))
}

/// The account does not exist.
pub(super) fn account_missing() -> Problem {
    Problem::from(&RolloutError::ServiceAccountNotFound(account()))
}

/// The account does not exist, and objects are to be deleted on its behalf: as the step `finalize` of the controller reports it.
pub(super) fn account_missing_for_deletion() -> Problem {
    let problem = account_missing();
    let message = format!(
        "{}; or leave the objects where they are: kubectl delete bundledeployment harbour --cascade=orphan",
        problem.message
    );
    Problem { message, ..problem }
}

/// The controller itself may not do something.
pub(super) fn forbidden() -> Problem {
    let message = "serviceaccounts \"deployer\" is forbidden: User \"system:serviceaccount:chandler-system:chandler-controller\" \
                   cannot impersonate resource \"serviceaccounts\" in API group \"\" in the namespace \"harbour-system\"";
    let error = ApiError::Forbidden(message.to_owned());
    Problem::from(&RolloutError::Request { action: "list the permissions of harbour-system/deployer".into(), error })
}

/// The release changes a field that the API server does not let anyone change.
pub(super) fn immutable_field() -> Problem {
    let message = "Deployment.apps \"pilot\" is invalid: spec.selector: Invalid value: field is immutable";
    let error = ApiError::Immutable(message.to_owned());
    Problem::from(&RolloutError::Objects(vec![ObjectFailure {
        object: key("apps", "Deployment", "pilot"),
        action: "update",
        error,
    }]))
}

/// A kind of the release is not served.
pub(super) fn kind_missing() -> Problem {
    let monitor = key("monitoring.coreos.com", "ServiceMonitor", "pilot");
    let unknown = ("monitoring.coreos.com/v1".into(), "ServiceMonitor".into(), monitor);
    Problem::from(&RolloutError::UnknownKinds(vec![unknown]))
}

/// The new CRD would break stored objects: the text of `chandler_crd_upgrade::RefusedUpgrades`.
pub(super) fn unsafe_crd_upgrade() -> Problem {
    let message = "validating upgrade for CRD \"berths.harbour.example.com\": v1: ^.spec.depth: type: type changed : \"integer\" -> \"string\"\n\
        help: objects or clients that are legal now may be refused, or mean something else; check that none rely on it; \
        `chandler diff harbour --findings` shows the finding, `chandler approve harbour --findings=sha256:5d41` allows exactly what was \
        reviewed; spec.preflight.crdUpgradeSafety.enforcement: Warn allows every unsafe upgrade";
    Problem::transient(Reason::UnsafeCRDUpgrade, message)
}

/// Custom resources are in the way of a deletion.
pub(super) fn custom_resources_exist() -> Problem {
    let in_use = CrdInUse {
        crd: key("apiextensions.k8s.io", "CustomResourceDefinition", "berths.harbour.example.com"),
        count: Some(2),
        more: false,
        namespaces: 1,
        examples: vec!["north/berth-1".into(), "north/berth-7".into()],
    };
    Problem::transient(Reason::CustomResourcesExist, deletion_plan::held(&[in_use]))
}

fn registry(version: &str, failure: ServerFailure, message: &str) -> Problem {
    let error = RegistryError {
        image: format!("quay.io/example/harbour:v{version}"),
        failure,
        message: message.into(),
        is_plain: false,
        retry_after: None,
    };
    Problem::transient(Reason::UnpackFailed, ContentError::from(error).to_string())
}

/// The registry does not answer.
pub(super) fn registry_unreachable(version: &str) -> Problem {
    registry(version, ServerFailure::Network, "quay.io cannot be reached: Connection refused")
}

/// The registry has no such image.
pub(super) fn image_not_found() -> Problem {
    let problem = registry("0.2.0", ServerFailure::NotFound, "repository example/harbour of quay.io has no tag v0.2.0");
    Problem { refusal: Some(Refusal::Source), ..problem }
}

fn called(error: &CallError) -> Problem {
    Problem { terminal: error.retry() == Retry::OnChange, ..Problem::transient(error.reason(), error.to_string()) }
}

/// The bundle has an error: as the controller reports it for registry+v1.
pub(super) fn invalid_bundle() -> Problem {
    Problem::terminal(
        Reason::InvalidContent,
        "convert registry+v1 bundle to plain+v0 bundle: invalid content: manifests/csv.yaml:12:3 at /spec/install: the strategy \
         \"helm\" is not supported (help: use \"deployment\")",
    )
}

/// No class recognises the content.
pub(super) fn unknown_format() -> Problem {
    let opinion =
        |class: &str| Opinion { class: class.into(), priority: 0, is_builtin: true, answer: Answer::NotRecognised };
    let classes = ["core-rukpak-io-registry", "core-rukpak-io-resolveset", "core-rukpak-io-plain"];
    Problem::from(&Undecided::Unrecognised { opinions: classes.map(opinion).into() })
}

/// The provisioner crashed.
pub(super) fn trapped() -> Problem {
    called(&CallError::Trapped(Trapped {
        trap: "wasm trap: wasm `unreachable` instruction executed".into(),
        frames: vec!["sail::render".into()],
        log: CallLog::default(),
    }))
}

/// The provisioner used up its time.
pub(super) fn timed_out() -> Problem {
    called(&CallError::Timeout { limit: Duration::from_secs(10) })
}

/// The rest of a backup is awaited.
pub(super) fn restore_incomplete() -> Problem {
    Problem::transient(
        Reason::RestoreIncomplete,
        "it was restored from a backup, and these of its objects do not exist yet: ConfigMap harbour-system/harbour-tides, \
         Deployment.apps harbour-system/harbour; the controller creates what is still missing at 2026-01-01T10:10:00Z, or at once after \
         `chandler reconcile harbour`",
    )
}

/// The cluster of a kubeconfig is away.
pub(super) fn target_unavailable() -> Problem {
    Problem::transient(
        Reason::TargetUnavailable,
        "spec.kubeConfig: the cluster of the kubeconfig in Secret harbour-system/eu does not answer; the controller tries again",
    )
}

/// The controller cannot write the record.
pub(super) fn record_unavailable() -> Problem {
    Problem::transient(
        Reason::RecordUnavailable,
        "failed to write Secret chandler-system/chandler-record-harbour: secrets is forbidden: exceeded quota: small, requested: \
         count/secrets=1, used: count/secrets=10, limited: count/secrets=10",
    )
}
