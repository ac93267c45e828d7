//! The Alerts in use, and what they take of the Events.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use chandler_api::{Alert, AlertKind, AlertSeverity, BundleDeployment, Resolution, ServiceAccountReference};
use chandler_monitoring::Metrics;
use chandler_notifications::{Notification, Tenant};
use chandler_runtime::events::{Announce, Announcement, EventType};
use kube::ResourceExt as _;
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
};

use super::{delivery::Delivery, lane::Lane};

/// The most Alerts that notifications are sent for. Each has a queue and a task.
pub(super) const MOST: usize = 64;

/// The Alerts in use, by name.
pub(crate) struct Lanes {
    by_name: Mutex<BTreeMap<String, Arc<Lane>>>,
    added: mpsc::UnboundedSender<Arc<Lane>>,
    metrics: Arc<Metrics>,
    /// Wakes those that wait until nothing waits for a server.
    idle: Arc<Notify>,
}

/// The lanes whose tasks have not begun.
pub(crate) type Added = mpsc::UnboundedReceiver<Arc<Lane>>;

impl Lanes {
    /// No Alerts. [`Self::run`] takes the second part.
    pub(crate) fn new(metrics: &Arc<Metrics>) -> (Arc<Self>, Added) {
        let (added, lanes) = mpsc::unbounded_channel();
        let metrics = Arc::clone(metrics);
        (Arc::new(Self { by_name: Mutex::default(), added, metrics, idle: Arc::default() }), lanes)
    }

    /// Takes each Event.
    pub(crate) fn announce(self: &Arc<Self>) -> Announce {
        let lanes = Arc::clone(self);
        Arc::new(move |announcement| lanes.take(announcement))
    }

    fn take(&self, announcement: &Announcement<'_>) {
        let Some(notification) = notification(announcement) else { return };
        let notification = Arc::new(notification);
        for lane in self.by_name.lock().values() {
            lane.take(&notification, announcement.labels, &self.metrics);
        }
    }

    /// Uses an Alert from now on, as it is. One that exceeds the limit of Alerts is not used.
    pub(super) fn configure(&self, alert: &Alert) {
        let (name, mut lanes) = (alert.name_any(), self.by_name.lock());
        // A later object of the same name is another Alert: nothing is left of the first one.
        if lanes.get(&name).is_some_and(|lane| lane.uid() != alert.uid()) {
            lanes.remove(&name).iter().for_each(|lane| lane.end());
        }
        match lanes.get(&name) {
            Some(lane) => lane.configure(alert),
            None if lanes.len() < MOST => {
                let lane = Arc::new(Lane::new(alert, &self.idle));
                // An error means that the controller is stopping.
                let _ = self.added.send(Arc::clone(&lane));
                lanes.insert(name, lane);
            }
            None => {}
        }
    }

    /// No longer uses the Alert of this name. A request that waits for its answer is interrupted.
    pub(super) fn remove(&self, name: &str) {
        self.by_name.lock().remove(name).iter().for_each(|lane| lane.end());
    }

    /// Uses no others than these.
    pub(super) fn retain(&self, names: &BTreeSet<String>) {
        self.by_name.lock().retain(|name, lane| {
            let is_kept = names.contains(name);
            if !is_kept {
                lane.end();
            }
            is_kept
        });
    }

    /// A Secret has changed: Alerts that wait before another attempt make it now. Returns the names of the Alerts that use the Secret.
    pub(super) fn secret_changed(&self, secret: &str) -> Vec<String> {
        let lanes = self.by_name.lock();
        lanes.iter().filter(|(_, lane)| lane.secret_changed(secret)).map(|(name, _)| name.clone()).collect()
    }

    /// The lane of an Alert in use.
    pub(super) fn lane(&self, name: &str) -> Option<Arc<Lane>> {
        self.by_name.lock().get(name).cloned()
    }

    /// Sends. Never completes; if it is dropped, nothing more is sent.
    pub(crate) async fn run(&self, mut added: Added, delivery: Arc<Delivery>) {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                Some(lane) = added.recv() => {
                    tasks.spawn(lane.run(Arc::clone(&delivery)));
                }
                Some(_) = tasks.join_next() => {}
                else => return std::future::pending().await,
            }
        }
    }

    /// Waits until nothing waits for a server.
    pub(crate) async fn drained(&self) {
        loop {
            let mut idle = std::pin::pin!(self.idle.notified());
            idle.as_mut().enable();
            if self.by_name.lock().values().all(|lane| lane.is_idle()) {
                return;
            }
            idle.await;
        }
    }
}

/// What an Event says; `None` for an object of a kind that no Alert is about.
fn notification(announcement: &Announcement<'_>) -> Option<Notification> {
    let Announcement { regarding, object, labels: _, notice, time } = announcement;
    let kind = regarding.kind.clone().filter(|kind| AlertKind::from_name(kind).is_some())?;
    Some(Notification {
        api_version: regarding.api_version.clone().unwrap_or_default(),
        kind,
        name: regarding.name.clone().unwrap_or_default(),
        uid: regarding.uid.clone().unwrap_or_default(),
        tenant: tenant(*object).unwrap_or_default(),
        severity: match notice.type_ {
            EventType::Normal => AlertSeverity::Info,
            EventType::Warning => AlertSeverity::Warning,
        },
        reason: notice.reason.to_owned(),
        action: notice.action.to_owned(),
        message: notice.message.to_owned(),
        time: *time,
    })
}

/// The ServiceAccount that installs for an object. Its author had to be permitted to name the account, so that no tenant takes the
/// share of another one; `None` for an object without an account, which administrators write.
fn tenant(object: &dyn Any) -> Option<Tenant> {
    let (account, namespace) = if let Some(deployment) = object.downcast_ref::<BundleDeployment>() {
        (deployment.spec.service_account.as_ref()?, deployment.spec.install_namespace.as_str())
    } else {
        let output = object.downcast_ref::<Resolution>()?.spec.output.as_ref()?.resolve_set.as_ref()?;
        (output.service_account.as_ref()?, output.install_namespace.as_str())
    };
    let ServiceAccountReference { name, namespace: named } = account;
    Some(Tenant { namespace: named.as_deref().unwrap_or(namespace).to_owned(), account: name.clone() })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use chandler_monitoring::Health;
    use chandler_notifications::Next;
    use chandler_runtime::Notice;
    use k8s_openapi::{api::core::v1::ObjectReference, jiff::Timestamp};
    use kube::Resource as _;
    use serde_json::{Value, json};

    use super::*;

    fn alert(name: &str, uid: &str, spec: Value) -> Alert {
        let mut alert = Alert::new(name, serde_json::from_value(spec).unwrap());
        alert.metadata.uid = Some(uid.to_owned());
        alert.metadata.generation = Some(1);
        alert
    }

    fn spec(filter: Value) -> Value {
        json!({"provider": {"type": "Webhook", "url": "https://hooks.example.com"}, "filter": filter})
    }

    fn lanes() -> (Arc<Lanes>, Added) {
        Lanes::new(&Arc::new(Metrics::new("0", Health::default())))
    }

    fn publish(lanes: &Arc<Lanes>, name: &str, type_: EventType, number: usize) {
        let regarding = ObjectReference {
            api_version: Some(BundleDeployment::api_version(&()).into_owned()),
            kind: Some("BundleDeployment".to_owned()),
            name: Some(name.to_owned()),
            ..ObjectReference::default()
        };
        let message = &number.to_string();
        let notice = Notice { type_, reason: "UpgradeFailed", action: "Installed", message };
        let time = Timestamp::UNIX_EPOCH;
        lanes.announce()(&Announcement { regarding: &regarding, object: &(), labels: None, notice, time });
    }

    fn waiting(lanes: &Lanes, name: &str) -> Vec<String> {
        let lane = lanes.lane(name).unwrap();
        let mut found = Vec::new();
        while let Next::Send(notification) = lane.next(Instant::now()) {
            found.push(format!("{} {} {}", notification.severity.as_str(), notification.name, notification.message));
        }
        found
    }

    #[test]
    fn each_alert_takes_what_its_filter_selects() {
        let (lanes, _added) = lanes();
        lanes.configure(&alert("all", "1", spec(json!({}))));
        lanes.configure(&alert("problems", "2", spec(json!({"severity": "Warning"}))));
        lanes.configure(&alert("suspended", "3", json!({"provider": {"type": "Webhook"}, "suspend": true})));
        publish(&lanes, "a", EventType::Normal, 1);
        publish(&lanes, "b", EventType::Warning, 2);
        assert_eq!(waiting(&lanes, "all"), ["Info a 1", "Warning b 2"]);
        assert_eq!(waiting(&lanes, "problems"), ["Warning b 2"]);
        assert!(waiting(&lanes, "suspended").is_empty());
    }

    #[test]
    fn a_flood_while_nothing_is_sent_is_bounded_and_counted() {
        let (lanes, _added) = lanes();
        lanes.configure(&alert("all", "1", spec(json!({}))));
        for number in 0..10_000 {
            publish(&lanes, "a", EventType::Normal, number);
        }
        assert_eq!(lanes.lane("all").unwrap().known().dropped, 9900);
        let counted = "chandler_notifications_total{outcome=\"dropped\"} 9900";
        assert!(lanes.metrics.exposition().contains(counted), "{}", lanes.metrics.exposition());
    }

    #[test]
    fn another_alert_of_the_same_name_begins_anew_and_a_changed_one_keeps_what_waits() {
        let (lanes, _added) = lanes();
        lanes.configure(&alert("all", "1", spec(json!({}))));
        publish(&lanes, "a", EventType::Normal, 1);
        let mut changed = alert("all", "1", spec(json!({"names": ["other"]})));
        changed.metadata.generation = Some(2);
        lanes.configure(&changed);
        assert_eq!(waiting(&lanes, "all"), ["Info a 1"]);
        lanes.configure(&alert("all", "1", spec(json!({}))));
        publish(&lanes, "a", EventType::Normal, 2);
        lanes.configure(&alert("all", "2", spec(json!({}))));
        assert!(waiting(&lanes, "all").is_empty());
        lanes.remove("all");
        assert!(lanes.lane("all").is_none());
    }

    #[test]
    fn the_tenant_of_an_object_is_its_account() {
        let deployment = |account: Value| -> BundleDeployment {
            let source = json!({"type": "image", "image": {"ref": "registry.invalid/a:v1"}});
            let spec = json!({"installNamespace": "shop", "source": source, "serviceAccount": account});
            serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap()
        };
        let account = |namespace: &str, account: &str| {
            Some(Tenant { namespace: namespace.to_owned(), account: account.to_owned() })
        };
        assert_eq!(tenant(&deployment(json!({"name": "installer"}))), account("shop", "installer"));
        let named = json!({"name": "team-a", "namespace": "chandler-accounts"});
        assert_eq!(tenant(&deployment(named)), account("chandler-accounts", "team-a"));
        assert_eq!(tenant(&deployment(Value::Null)), None);
        let output = |account: Value| json!({"type": "ResolveSet", "resolveSet": {"installNamespace": "shop", "serviceAccount": account}});
        let resolution = |account: Value| -> Resolution {
            serde_json::from_value(
                json!({"metadata": {"name": "a"}, "spec": {"packages": [], "output": output(account)}}),
            )
            .unwrap()
        };
        let named = json!({"name": "team-b", "namespace": "chandler-accounts"});
        assert_eq!(tenant(&resolution(named)), account("chandler-accounts", "team-b"));
        assert_eq!(tenant(&resolution(Value::Null)), None);
        assert_eq!(tenant(&alert("all", "1", spec(json!({})))), None);
    }

    #[test]
    fn alerts_that_use_a_secret_are_found() {
        let (lanes, _added) = lanes();
        let of = |secret: &str| json!({"provider": {"type": "Webhook", "secretRef": {"name": secret}}});
        lanes.configure(&alert("a", "1", of("chat")));
        lanes.configure(&alert("b", "2", of("other")));
        lanes.configure(&alert("c", "3", spec(json!({}))));
        assert_eq!(lanes.secret_changed("chat"), ["a"]);
        assert!(lanes.secret_changed("unknown").is_empty());
    }

    #[test]
    fn the_number_of_alerts_is_limited() {
        let (lanes, _added) = lanes();
        for number in 0..=MOST {
            lanes.configure(&alert(&number.to_string(), "1", spec(json!({}))));
        }
        assert!(lanes.lane(&(MOST - 1).to_string()).is_some() && lanes.lane(&MOST.to_string()).is_none());
        lanes.retain(&BTreeSet::from(["7".to_owned()]));
        lanes.configure(&alert(&MOST.to_string(), "1", spec(json!({}))));
        assert!(lanes.lane("7").is_some() && lanes.lane("8").is_none() && lanes.lane(&MOST.to_string()).is_some());
    }
}
