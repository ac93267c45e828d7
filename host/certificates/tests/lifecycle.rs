//! A Secret over the years: whatever happens, what is served is trusted.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on panics")]

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

/// A cluster with one webhook configuration, one Service, and pods behind it.
struct World {
    release: Release,
    declarations: Declarations,
    policy: Policy,
    now: OffsetDateTime,
    request: Option<String>,
    secret: Option<Value>,
    webhook: Value,
    /// Every certificate that a pod may still serve with: pods read the Secret when they like.
    served: Vec<String>,
}

/// How far the writes of a pass get before the controller is killed.
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

    /// One pass of a controller, and how long it may wait for the next.
    fn pass(&mut self, written: Written) -> OffsetDateTime {
        let names = self.declarations.certificates()[0].names();
        let decision = match self.decide() {
            Decision::Switch { to, unless_trusted: Some(material) } => {
                let target = &self.declarations.targets()[0];
                let trusted = self.declarations.trusts(target, &self.webhook, 0, &to);
                if trusted { Decision::Keep(to) } else { Decision::Keep(material) }
            }
            decision => decision,
        };
        let material = decision.take(&names, self.request.as_deref(), self.now, &self.policy).unwrap();
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
    let renewal = world.pass(Written::All);
    let first = world.current().to_owned();
    assert!(world.accepts(&first));
    assert_eq!(world.count(), 1);

    world.now = renewal - Duration::SECOND;
    assert!(matches!(world.decide(), Decision::Keep(_)));
    world.now = renewal;
    assert!(matches!(world.decide(), Decision::Announce(_, Cause::Due)));
    let switch = world.pass(Written::All);
    assert_eq!((world.current(), world.count()), (first.as_str(), 2), "announced, and not served");
    assert_eq!(switch, world.now + world.policy.propagation);

    world.now = switch - Duration::SECOND;
    world.pass(Written::All);
    assert_eq!(world.current(), first, "too early");
    world.now = switch;
    let announced = world.webhook.clone();
    world.pass(Written::All);
    assert_ne!(world.current(), first);
    assert_eq!(world.webhook, announced, "what checks is not written again");
    assert!(world.accepts(world.current()) && world.accepts(&first), "pods may still serve with the old one");

    let end = datetime!(2027-01-01 0:00 UTC);
    world.now = end;
    world.pass(Written::All);
    assert_eq!(world.count(), 1, "the old authority has expired");
    assert!(!world.accepts(&first) && world.accepts(world.current()));
}

#[test]
fn a_request_is_heeded_once() {
    let mut world = World::new();
    world.request = Some(request("before the first"));
    world.pass(Written::All);
    assert!(matches!(world.decide(), Decision::Keep(_)), "the first certificate is new enough");
    world.request = Some(request("2026-11-21T18:00:00Z"));
    assert!(matches!(world.decide(), Decision::Announce(_, Cause::Requested)));
    world.now = world.pass(Written::All);
    assert!(matches!(world.decide(), Decision::Switch { .. }));
    world.pass(Written::All);
    assert!(matches!(world.decide(), Decision::Keep(_)), "heeded");
    world.request = None;
    assert!(matches!(world.decide(), Decision::Keep(_)), "nobody asks any more");
}

#[test]
fn nothing_is_switched_before_everything_trusts_it() {
    let mut world = World::new();
    world.pass(Written::All);
    let first = world.current().to_owned();
    world.request = Some(request("1"));
    world.now = world.pass(Written::Secret);
    let again = world.pass(Written::Nothing);
    assert_eq!(world.current(), first);
    assert!(again > world.now, "waited for with patience");
    // The webhook configuration is written at last.
    world.pass(Written::All);
    assert_eq!(world.current(), first);
    world.now = again;
    world.pass(Written::All);
    assert_ne!(world.current(), first);
}

#[test]
fn what_is_lost_is_made_again_and_what_is_broken_replaced() {
    let mut world = World::new();
    world.pass(Written::All);
    let first = world.current().to_owned();

    world.secret.as_mut().unwrap()["data"]["tls.key"] = json!("");
    assert!(matches!(world.decide(), Decision::Replace { cause: Cause::Unusable(_), .. }));
    world.pass(Written::All);
    assert!(world.accepts(world.current()) && world.accepts(&first), "pods may still hold the old key");

    world.secret = None;
    world.pass(Written::All);
    assert!(world.accepts(world.current()) && !world.accepts(&first), "who deletes a Secret revokes it");
}

#[test]
fn an_announced_certificate_takes_over_at_once_when_the_served_one_cannot_serve() {
    let mut world = World::new();
    let renewal = world.pass(Written::All);
    let first = world.current().to_owned();
    world.now = renewal;
    world.pass(Written::All);
    world.now = datetime!(2027-01-01 0:00 UTC);
    assert!(matches!(world.decide(), Decision::Switch { unless_trusted: None, .. }));
    world.pass(Written::All);
    assert!(world.current() != first && world.accepts(world.current()));
}

#[test]
fn authorities_do_not_pile_up() {
    let mut world = World::new();
    world.pass(Written::All);
    for number in 0..20 {
        world.request = Some(request(&number.to_string()));
        world.now = world.pass(Written::All);
        world.pass(Written::All);
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

    /// Whenever the controller is killed, and however late pods read their Secret: each certificate that was ever served is
    /// trusted until it expires, unless none could serve in between.
    #[test]
    fn what_is_served_is_trusted(events in prop::collection::vec(event(), 1..30)) {
        let mut world = World::new();
        world.pass(Written::All);
        for event in events {
            match event {
                Event::Time(passed) => world.now += passed,
                Event::Request(value) => world.request = Some(request(&value.to_string())),
                Event::Pass(written) => {
                    if matches!(world.decide(), Decision::Replace { .. } | Decision::Switch { unless_trusted: None, .. }) {
                        world.pass(Written::All);
                    } else {
                        world.pass(written);
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

/// Whether a certificate is valid at this time: whether anything could trust it.
fn accepts_itself(world: &World, certificate: &str) -> bool {
    let text = pem::parse(certificate).unwrap();
    let (_, parsed) = x509_parser::parse_x509_certificate(text.contents()).unwrap();
    let now = world.now.unix_timestamp();
    parsed.validity().not_before.timestamp() <= now && now < parsed.validity().not_after.timestamp()
}
