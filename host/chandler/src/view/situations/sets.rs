//! Situations of a Resolution, its set and its Catalogs.

use chandler_api::{BundleDeployment, Catalog, PendingDecision, Reason, Resolution};
use chandler_decisions::{
    assessment::{Assessment, ReconcileOutcome},
    revisions::Cause,
};
use chandler_resolution::{
    Plan, PlannedMember,
    status::{Answer, Found as Answered, Set, derive},
};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::{
    super::{
        cluster_catalogs::{self, CatalogRow},
        decisions,
        listing::{self, Columns, Row},
        path::{Found, Path},
        reported::ReportedStatus,
        resolution_status::ResolutionStatusView,
    },
    harbour::{Harbour, found, needs_approval, refused, waiting},
    problems as because,
    sides::WIDTH,
};

/// Another member, in the same state.
fn named(harbour: &Harbour, name: &str) -> BundleDeployment {
    let text = serde_json::to_string(&harbour.deployment).unwrap();
    serde_json::from_str(&text.replace("harbour", name)).unwrap()
}

/// The BundleDeployment of the set, in the same state. Its bundle has neither a name nor a version.
fn as_set(harbour: Harbour) -> BundleDeployment {
    let mut set = harbour.deployment;
    set.metadata.name = Some("resolveset-shop".to_owned());
    if let Some(status) = &mut set.status {
        status.bundle = None;
        for revision in &mut status.history {
            revision.version = None;
        }
        if let Some(candidate) = &mut status.candidate {
            (candidate.name, candidate.package, candidate.version) = (None, None, None);
        }
        for condition in &mut status.conditions {
            condition.message =
                condition.message.replace("chandler approve harbour", "chandler approve resolveset-shop");
            condition.message = condition.message.replace("chandler diff harbour", "chandler diff resolveset-shop");
        }
    }
    set
}

fn installed(name: &str) -> BundleDeployment {
    named(&Harbour::installed(&json!({})), name)
}

/// The BundleDeployment of the set after a reconcile.
fn set(found: &Assessment) -> BundleDeployment {
    let began = Harbour::new(&json!({})).reconciled(&super::harbour::starting("0.1.0"));
    as_set(began.reconciled(found))
}

fn member(package: &str, path: &[&str], why: &str) -> PlannedMember {
    PlannedMember {
        package: package.into(),
        bundle: format!("{package}.v0.1.0"),
        version: "0.1.0".into(),
        catalog: Some("operatorhub".into()),
        channel: Some("stable".into()),
        image: format!("quay.io/example/{package}:v0.1.0"),
        path: path.iter().map(|&version| version.to_owned()).collect(),
        reasons: vec![why.to_owned()],
        ..PlannedMember::default()
    }
}

fn members() -> Vec<PlannedMember> {
    vec![member("harbour", &[], "requested >=0.1"), member("tides", &[], "harbour 0.1.0 needs package tides >=0.1.0")]
}

fn resolution() -> Resolution {
    serde_json::from_value(json!({
        "apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution", "metadata": {"name": "shop", "generation": 1},
        "spec": {"packages": [{"name": "harbour", "version": ">=0.1"}],
            "output": {"type": "ResolveSet", "resolveSet": {"installNamespace": "harbour-system"}}},
    }))
    .unwrap()
}

/// What the cluster has of a Resolution.
#[derive(Default)]
struct Shop {
    answer: Answer,
    members: Vec<PlannedMember>,
    pending: Option<PendingDecision>,
    set: Option<BundleDeployment>,
    deployments: Vec<BundleDeployment>,
    catalogs: Vec<Catalog>,
    /// Whether the Resolution is suspended.
    suspend: bool,
    /// The BundleDeployment that commands are asked about.
    about: Option<&'static str>,
}

impl Shop {
    fn found(&self) -> Found {
        let states = self.deployments.iter().filter_map(|deployment| {
            let conditions = &deployment.status.as_ref()?.conditions;
            Some((deployment.name_any(), conditions.iter().find(|it| it.type_ == "Ready")?.reason.clone()))
        });
        let set = self.set.as_ref().map(|observed| Set {
            number: 1,
            deployment: "resolveset-shop".into(),
            observed: Some(observed),
            members: self.members.clone(),
            ..Set::default()
        });
        let answered = Answered {
            answer: self.answer.clone(),
            set,
            states: states.collect(),
            pending: self.pending.clone(),
            ..Answered::default()
        };
        let mut resolution = resolution();
        resolution.spec.suspend = self.suspend;
        resolution.status = Some(derive(&resolution, &answered, Timestamp::UNIX_EPOCH));
        let deployments = self.deployments.iter().chain(&self.set);
        Found {
            resolution: Some(resolution),
            deployments: deployments.map(|deployment| (deployment.name_any(), deployment.clone())).collect(),
            ..Found::default()
        }
    }

    fn text(&self) -> String {
        let found = self.found();
        let rows: Vec<Row> =
            found.deployments.values().map(|deployment| Row::new(deployment, Timestamp::UNIX_EPOCH)).collect();
        let notes: String = listing::notes(&rows).into_iter().map(|note| note + "\n").collect();
        let mut parts = vec![
            ("list".to_owned(), listing::table(&rows, Columns::Short, WIDTH) + &notes),
            ("status resolution/shop".to_owned(), ResolutionStatusView::new(&found).text(WIDTH)),
            ("explain resolution/shop".to_owned(), Path::new(&found).text(WIDTH)),
            ("history resolution/shop".to_owned(), decisions::table(found.resolution.as_ref().unwrap(), WIDTH)),
        ];
        if let Some(name) = self.about {
            let about = Found { deployment: Some(name.to_owned()), ..found };
            parts.push((format!("explain {name}"), Path::new(&about).text(WIDTH)));
        }
        for catalog in &self.catalogs {
            let status = ReportedStatus::new(catalog).text(WIDTH);
            parts.push((format!("status catalog/{}", catalog.name_any()), status));
        }
        if !self.catalogs.is_empty() {
            let rows: Vec<CatalogRow> =
                self.catalogs.iter().map(|catalog| CatalogRow::new(catalog, Timestamp::UNIX_EPOCH)).collect();
            let problems: String = cluster_catalogs::problems(&rows).into_iter().map(|line| line + "\n").collect();
            parts.push(("catalog list".to_owned(), cluster_catalogs::table(&rows, WIDTH) + &problems));
        }
        let parts: Vec<String> =
            parts.into_iter().map(|(command, text)| format!("$ chandler {command}\n{text}")).collect();
        parts.join("\n")
    }
}

fn plan(members: &[PlannedMember]) -> Answer {
    Answer::Plan(Plan { members: members.to_vec(), ..Plan::default() })
}

/// Both members are installed.
fn complete() -> Shop {
    Shop {
        answer: plan(&members()),
        members: members(),
        set: Some(set(&super::harbour::applied("0.1.0", &[]))),
        deployments: vec![installed("harbour"), installed("tides")],
        ..Shop::default()
    }
}

/// The set waits for a member.
fn waits_for(text: &str, harbour: BundleDeployment) -> Shop {
    let rolling = found("0.1.0", Cause::Spec, waiting(2, &[text]));
    Shop {
        set: Some(set(&rolling)),
        deployments: vec![harbour, installed("tides")],
        about: Some("harbour"),
        ..complete()
    }
}

fn catalog(conditions: &Value, in_use: bool) -> Catalog {
    let mut object = json!({
        "apiVersion": "chandler.dev/v1alpha1", "kind": "Catalog", "metadata": {"name": "operatorhub", "generation": 1},
        "spec": {"source": {"type": "image", "image": {"ref": "quay.io/operatorhubio/catalog:latest"}}},
        "status": {"observedGeneration": 1, "conditions": conditions},
    });
    if in_use {
        object["status"]["contents"] = json!({"packages": 300, "channels": 900, "bundles": 5000});
        object["status"]["resolvedSource"] =
            json!({"type": "image", "image": {"ref": "quay.io/operatorhubio/catalog@sha256:1"}});
        object["status"]["lastUnpacked"] = json!("2026-01-01T00:00:00Z");
    }
    serde_json::from_value(object).unwrap()
}

fn conditions(all: &[(&str, &str, &str, &str)]) -> Value {
    let one = |(kind, status, reason, message): &(&str, &str, &str, &str)| {
        json!({"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    all.iter().map(one).collect()
}

/// What `host/controller/src/catalog/status.rs` reports while the registry does not answer.
const AWAY: &str = "image quay.io/operatorhubio/catalog:latest: quay.io cannot be reached: Connection refused";

fn away() -> Catalog {
    let conditions = conditions(&[
        ("Resolved", "False", "SourceNotResolved", AWAY),
        ("Unpacked", "Unknown", "SourceNotResolved", "an earlier step failed"),
        ("Valid", "Unknown", "SourceNotResolved", "an earlier step failed"),
        ("Ready", "False", "SourceNotResolved", AWAY),
        ("Reconciling", "True", "SourceNotResolved", AWAY),
    ]);
    catalog(&conditions, false)
}

fn stale() -> Catalog {
    let stays = "the index of image quay.io/operatorhubio/catalog@sha256:1 stays in use, unpacked 2026-01-01T00:00:00Z";
    let conditions = conditions(&[
        ("Resolved", "False", "SourceNotResolved", AWAY),
        ("Unpacked", "Unknown", "SourceNotResolved", "an earlier step failed"),
        ("Valid", "Unknown", "SourceNotResolved", "an earlier step failed"),
        ("Ready", "True", "CatalogStale", &format!("{stays}: {AWAY}")),
    ]);
    catalog(&conditions, true)
}

macro_rules! situations {
    ($($name:ident: $shop:expr;)+) => {
        $(#[test]
        fn $name() {
            let shop: Shop = $shop;
            insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
                insta::assert_snapshot!(stringify!($name), shop.text());
            });
        })+
    };
}

situations! {
    set_complete: complete();
    set_with_a_deprecated_package: {
        let deprecated = Some("tides is no longer maintained; use currents".to_owned());
        let members = vec![members()[0].clone(), PlannedMember { deprecated, ..members()[1].clone() }];
        Shop { answer: plan(&members), members, ..complete() }
    };
    set_member_in_progress: {
        let object = "Deployment.apps harbour-system/pilot: 0 of 1 replica is available";
        let began = Harbour::new(&json!({})).reconciled(&super::harbour::starting("0.1.0"));
        let rolling = began.reconciled(&found("0.1.0", Cause::Spec, waiting(2, &[object])));
        waits_for(&format!("BundleDeployment.core.rukpak.io harbour: RollingOut: stage 2 of 2 waits for {object}"), rolling.deployment)
    };
    set_member_failed: {
        let problem = because::permissions_missing();
        let text = format!("BundleDeployment.core.rukpak.io harbour: PermissionsMissing: {}", problem.message);
        let refused = refused("0.1.0", problem, None);
        let failed = Harbour::new(&json!({})).reconciled(&refused).after(20).reconciled(&refused);
        waits_for(&text, failed.deployment)
    };
    set_waits_for_approval: {
        let pending = PendingDecision {
            reason: Reason::ApprovalRequired.to_string(),
            message: "the change waits for approval: `chandler approve resolveset-shop`".into(),
            changes: vec!["change BundleDeployment.core.rukpak.io harbour: spec.source.image.ref".into()],
        };
        let change = chandler_api::PendingChange { digest: "sha256:5d41".into(), changed: 1, ..Default::default() };
        let waits = Harbour::installed(&json!({"approval": "Manual"}))
            .upgraded("0.2.0")
            .reconciled(&needs_approval("0.2.0", change, Some("0.1.0")));
        Shop { pending: Some(pending), set: Some(as_set(waits)), about: Some("harbour"), ..complete() }
    };
    set_with_upgrades_to_come: {
        let members = vec![
            member("harbour", &["0.1.0", "0.2.0", "0.3.0"], "requested >=0.1"),
            members()[1].clone(),
        ];
        Shop { answer: plan(&members), members, about: Some("harbour"), ..complete() }
    };
    set_suspended: Shop { answer: Answer::Suspended, suspend: true, ..complete() };
    unresolved: Shop {
        answer: Answer::Refused {
            message: "package harbour is required with the range >=0.1; no catalog has package harbour".into(),
            explanation: vec!["package harbour is required with the range >=0.1".into(), "no catalog has package harbour".into()],
        },
        ..Shop::default()
    };
    catalog_away: Shop {
        answer: Answer::Failed {
            reason: Reason::CatalogsNotReady,
            message: "no catalog has package harbour; catalogs that are not ready: operatorhub".into(),
        },
        catalogs: vec![away()],
        ..Shop::default()
    };
    catalog_stale: Shop { catalogs: vec![stale()], ..complete() };
    set_being_created: {
        let preparing = Assessment::early(ReconcileOutcome::Preparing);
        let new = Harbour::new(&json!({})).reconciled(&preparing);
        Shop { set: Some(as_set(new)), deployments: Vec::new(), ..complete() }
    };
}
