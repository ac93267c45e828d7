//! The life of a Secret over years: the served certificate is always trusted.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot continue must fail")]

mod support;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_certificates::{
    Cause, Decision, Declarations, Material, Policy, Stored,
    annotations::{INJECT_CA, SERVING_SECRET},
    decide::{decide, request},
};
use chandler_core::{Object, Release};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::accepts;
use time::{Duration, OffsetDateTime, macros::datetime};

const SERVER: &str = "a.n.svc";

/// A cluster with one webhook configuration, one Service and its Pods.
struct World {
    release: Release,
    declarations: Declarations,
    policy: Policy,
    now: OffsetDateTime,
    request: Option<String>,
    secret: Option<Value>,
    webhook: Value,
    /// Every certificate that a Pod may still serve: Pods reload the Secret at any time.
    served: Vec<String>,
}

/// How many writes of a reconcile succeed before the controller is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Nothing,
    Secret,
    All,
}

impl World {
    fn new() -> Self {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "annotations": {SERVING_SECRET: "s"}}});
        let webhook = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "w", "annotations": {INJECT_CA: "true"}},
            "webhooks": [{"clientConfig": {"service": {"namespace": "n", "name": "a"}}}]});
        let objects = [&service, &webhook].map(|value| Object::parse(value.to_string().as_bytes(), 0, None).unwrap());
        let release = Release::new(objects.to_vec(), vec![], vec![]);
        Self {
            declarations: Declarations::of(&release, "n").unwrap(),
            release,
            policy: Policy::default(),
            now: datetime!(2026-01-01 0:00 UTC),
            request: None,
            secret: None,
            webhook,
            served: Vec::new(),
        }
    }

    fn decide(&self) -> Decision {
        let names = self.declarations.certificates()[0].names();
        let stored = self.secret.as_ref().map(Stored::read);
        decide(stored, &names, self.request.as_deref(), self.now, &self.policy)
    }

    /// One reconcile; returns the latest time of the next one.
    fn reconcile(&mut self, written: Written) -> OffsetDateTime {
        let names = self.declarations.certificates()[0].names();
        let decision = match self.decide() {
            Decision::Switch { to, unless_trusted: Some(material) } => {
                let target = &self.declarations.targets()[0];
                let trusted = self.declarations.trusts(target, &self.webhook, 0, &to);
                if trusted { Decision::Keep(to) } else { Decision::Keep(material) }
            }
            decision => decision,
        };
        let material = decision.carry_out(&names, self.request.as_deref(), self.now, &self.policy).unwrap();
        self.write(&material, written);
        material.look_again(self.now, &self.policy)
    }

    fn write(&mut self, material: &Material, written: Written) {
        let completed =
            self.declarations.complete(&self.release, std::slice::from_ref(material), &self.policy).unwrap();
        let object = |kind: &str| {
            let object = completed.objects().iter().find(|object| object.key.kind == kind).unwrap();
            Value::Object(object.value.clone())
        };
        if written == Written::Nothing {
            return;
        }
        self.secret = Some(object("Secret"));
        self.served.push(material.certificate());
        self.served.dedup();
        if written == Written::All {
            self.webhook = object("ValidatingWebhookConfiguration");
        }
    }

    fn authorities(&self) -> String {
        let bundle = self.webhook["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap_or_default();
        String::from_utf8(STANDARD.decode(bundle).unwrap()).unwrap()
    }

    /// Whether the API server accepts this certificate now.
    fn accepts(&self, certificate: &str) -> bool {
        accepts(&self.authorities(), certificate, SERVER, self.now)
    }

    fn current(&self) -> &str {
        self.served.last().unwrap()
    }

    fn count(&self) -> usize {
        self.authorities().matches("BEGIN CERTIFICATE").count()
    }
}

#[test]
fn a_certificate_is_issued_kept_announced_and_replaced() {
    let mut world = World::new();
    assert!(matches!(world.decide(), Decision::Replace { cause: Cause::Missing, .. }));
    let renewal = world.reconcile(Written::All);
    let first = world.current().to_owned();
    assert!(world.accepts(&first));
    assert_eq!(world.count(), 1);

    world.now = renewal - Duration::SECOND;
    assert!(matches!(world.decide(), Decision::Keep(_)));
    world.now = renewal;
    assert!(matches!(world.decide(), Decision::Announce(_, Cause::Due)));
    let switch = world.reconcile(Written::All);
    assert_eq!((world.current(), world.count()), (first.as_str(), 2), "announced but not served");
    assert_eq!(switch, world.now + world.policy.propagation);

    world.now = switch - Duration::SECOND;
    world.reconcile(Written::All);
    assert_eq!(world.current(), first, "too early");
    world.now = switch;
    let announced = world.webhook.clone();
    world.reconcile(Written::All);
    assert_ne!(world.current(), first);
    assert_eq!(world.webhook, announced, "the webhook configuration is unchanged");
    assert!(world.accepts(world.current()) && world.accepts(&first), "Pods may still serve the old certificate");

    let end = datetime!(2027-01-01 0:00 UTC);
    world.now = end;
    world.reconcile(Written::All);
    assert_eq!(world.count(), 1, "the old authority has expired");
    assert!(!world.accepts(&first) && world.accepts(world.current()));
}

#[test]
fn a_rotation_request_is_handled_once() {
    let mut world = World::new();
    world.request = Some(request("before the first"));
    world.reconcile(Written::All);
    assert!(matches!(world.decide(), Decision::Keep(_)), "the first certificate is new enough");
    world.request = Some(request("2026-11-21T18:00:00Z"));
    assert!(matches!(world.decide(), Decision::Announce(_, Cause::Requested)));
    world.now = world.reconcile(Written::All);
    assert!(matches!(world.decide(), Decision::Switch { .. }));
    world.reconcile(Written::All);
    assert!(matches!(world.decide(), Decision::Keep(_)), "heeded");
    world.request = None;
    assert!(matches!(world.decide(), Decision::Keep(_)), "the request was removed");
}

#[test]
fn a_certificate_is_not_served_before_all_clients_trust_it() {
    let mut world = World::new();
    world.reconcile(Written::All);
    let first = world.current().to_owned();
    world.request = Some(request("1"));
    world.now = world.reconcile(Written::Secret);
    let again = world.reconcile(Written::Nothing);
    assert_eq!(world.current(), first);
    assert!(again > world.now, "checked again later");
    // Now the webhook configuration is written.
    world.reconcile(Written::All);
    assert_eq!(world.current(), first);
    world.now = again;
    world.reconcile(Written::All);
    assert_ne!(world.current(), first);
}

#[test]
fn missing_and_broken_certificates_are_replaced() {
    let mut world = World::new();
    world.reconcile(Written::All);
    let first = world.current().to_owned();

    world.secret.as_mut().unwrap()["data"]["tls.key"] = json!("");
    assert!(matches!(world.decide(), Decision::Replace { cause: Cause::Unusable(_), .. }));
    world.reconcile(Written::All);
    assert!(world.accepts(world.current()) && world.accepts(&first), "Pods may still use the old key");

    world.secret = None;
    world.reconcile(Written::All);
    assert!(world.accepts(world.current()) && !world.accepts(&first), "deleting a Secret revokes its certificate");
}

#[test]
fn a_certificate_for_servers_is_replaced_when_clients_need_it() {
    let mut world = World::new();
    world.reconcile(Written::All);
    let first = world.current().to_owned();
    world.policy.for_clients = true;
    assert!(matches!(world.decide(), Decision::Replace { cause: Cause::Unusable(_), .. }));
    world.reconcile(Written::All);
    let second = world.current().to_owned();
    assert!(second != first && world.accepts(&first), "Pods may still serve the old certificate");
    assert!(matches!(world.decide(), Decision::Keep(_)));
    // Servers can use a certificate that is for clients as well.
    world.policy.for_clients = false;
    assert!(matches!(world.decide(), Decision::Keep(_)));
}

#[test]
fn an_announced_certificate_replaces_an_unusable_one_at_once() {
    let mut world = World::new();
    let renewal = world.reconcile(Written::All);
    let first = world.current().to_owned();
    world.now = renewal;
    world.reconcile(Written::All);
    world.now = datetime!(2027-01-01 0:00 UTC);
    assert!(matches!(world.decide(), Decision::Switch { unless_trusted: None, .. }));
    world.reconcile(Written::All);
    assert!(world.current() != first && world.accepts(world.current()));
}

#[test]
fn the_number_of_authorities_is_bounded() {
    let mut world = World::new();
    world.reconcile(Written::All);
    for number in 0..20 {
        world.request = Some(request(&number.to_string()));
        world.now = world.reconcile(Written::All);
        world.reconcile(Written::All);
        assert!(world.accepts(world.current()));
    }
    assert_eq!(world.count(), 8);
}

#[derive(Clone, Debug)]
enum Event {
    Time(Duration),
    Request(u8),
    Pass(Written),
}

fn event() -> impl Strategy<Value = Event> {
    let written = prop_oneof![1 => Just(Written::Nothing), 1 => Just(Written::Secret), 3 => Just(Written::All)];
    prop_oneof![
        1 => (0i64..1_000_000).prop_map(|seconds| Event::Time(Duration::seconds(seconds))),
        1 => (0i64..60).prop_map(|days| Event::Time(Duration::days(days))),
        1 => (0u8..7).prop_map(Event::Request),
        3 => written.prop_map(Event::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whenever the controller is killed and however late Pods reload their Secret, each certificate that was ever
    /// served is trusted until it expires, unless the served certificate became unusable in between.
    #[test]
    fn served_certificates_are_trusted(events in prop::collection::vec(event(), 1..30)) {
        let mut world = World::new();
        world.reconcile(Written::All);
        for event in events {
            match event {
                Event::Time(passed) => world.now += passed,
                Event::Request(value) => world.request = Some(request(&value.to_string())),
                Event::Pass(written) => {
                    if matches!(world.decide(), Decision::Replace { .. } | Decision::Switch { unless_trusted: None, .. }) {
                        world.reconcile(Written::All);
                    } else {
                        world.reconcile(written);
                    }
                }
            }
            let recent = world.served.iter().rev().take(7);
            for certificate in recent {
                let own = accepts_itself(&world, certificate);
                prop_assert!(!own || world.accepts(certificate), "{:?}", event);
            }
        }
    }
}

/// Whether a certificate is valid now when its own authority is trusted.
fn accepts_itself(world: &World, certificate: &str) -> bool {
    let text = pem::parse(certificate).unwrap();
    let (_, parsed) = x509_parser::parse_x509_certificate(text.contents()).unwrap();
    let now = world.now.unix_timestamp();
    parsed.validity().not_before.timestamp() <= now && now < parsed.validity().not_after.timestamp()
}
