//! A run: the objects that one test creates. Their name and a label distinguish them from everything else on the cluster.
//!
//! Both are required: another object may have such a name by chance, and a label is easily copied.

use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use chandler_controller::WatchSelector;
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
    jiff::{SignedDuration, Timestamp},
};
use serde_json::{Map, Value};

/// The label of every object that a run creates. Its value is the name of the run.
pub const LABEL: &str = "chandler.dev/e2e-run";

/// The prefix of the names of all runs.
const PREFIX: &str = "e2e-";

/// How many hexadecimal digits of a run's name identify the process.
const DIGITS: usize = 8;

/// No test takes this long: older objects are leftovers of a killed run.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(1);

/// A run, by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run(String);

impl Run {
    /// Creates a run with a name that no other test, process or machine uses.
    #[expect(clippy::new_without_default, reason = "no two runs are equal")]
    pub fn new() -> Self {
        static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
        static COUNT: AtomicU32 = AtomicU32::new(0);
        Self(format!("{PREFIX}{:0DIGITS$x}-{}", *PROCESS & 0xffff_ffff, COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// The run that created an object, if any.
    pub fn of(metadata: &ObjectMeta) -> Option<Self> {
        let run = metadata.labels.as_ref()?.get(LABEL)?;
        let named = metadata.name.as_ref()?.contains(run.as_str());
        (named && run.starts_with(PREFIX)).then(|| Self(run.clone()))
    }

    /// Its name. The names of all its objects contain it.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// The namespace of its controller.
    pub fn system_namespace(&self) -> String {
        format!("{}-system", self.0)
    }

    /// The name of the Resolution of its PlatformOperators.
    pub fn platform(&self) -> String {
        format!("{}-platform", self.0)
    }

    /// Adds the label to an object.
    pub fn mark(&self, object: &mut Value) {
        let labels = object.pointer_mut("/metadata/labels").filter(|labels| labels.is_object());
        if let Some(labels) = labels {
            labels[LABEL] = Value::from(self.name());
        } else if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            let labels: Map<String, Value> = [(LABEL.to_owned(), Value::from(self.name()))].into_iter().collect();
            metadata.insert("labels".to_owned(), labels.into());
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether this is the name of an object of a run, or of the namespace of a conformance case.
pub fn is_name(name: &str) -> bool {
    let (prefix, rest) = name.split_once(PREFIX).unwrap_or(("x", ""));
    let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
    (prefix.is_empty() || prefix.ends_with('-'))
        && digits == DIGITS
        && rest.get(DIGITS..).is_some_and(|rest| rest.starts_with('-'))
}

/// Selects the objects of these runs.
pub fn selector<'a>(runs: impl IntoIterator<Item = &'a Run>) -> WatchSelector {
    let names: Vec<&str> = runs.into_iter().map(Run::name).collect();
    format!("{LABEL} in ({})", names.join(",")).parse().expect("the name of a run is a valid label value")
}

/// Whether an object is a leftover of a killed run.
pub fn is_left_over(metadata: &ObjectMeta, now: Timestamp) -> bool {
    let made = metadata.creation_timestamp.as_ref().map(|time| time.0);
    Run::of(metadata).is_some() && made.is_some_and(|made| now.duration_since(made) > MAX_AGE)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;

    fn metadata(name: &str, label: Option<&str>) -> ObjectMeta {
        let labels = label.map(|label| [(LABEL.to_owned(), label.to_owned())].into());
        ObjectMeta { name: Some(name.to_owned()), labels, ..ObjectMeta::default() }
    }

    #[test]
    fn an_object_belongs_to_a_run_by_name_and_label() {
        for (name, label, run) in [
            ("e2e-1-0-bd", Some("e2e-1-0"), Some("e2e-1-0")),
            ("widgets.e2e-1-0.example.com", Some("e2e-1-0"), Some("e2e-1-0")),
            ("e2e-1-0-bd", None, None),
            ("cert-manager", Some("e2e-1-0"), None),
            ("e2e-1-0-bd", Some("e2e-2-0"), None),
            ("mine-bd", Some("mine"), None),
            ("anything", Some(""), None),
        ] {
            let found = Run::of(&metadata(name, label));
            assert_eq!(found.as_ref().map(Run::name), run, "{name} {label:?}");
        }
    }

    #[test]
    fn names_of_runs_are_recognized() {
        let run = Run::new();
        assert!(is_name(run.name()) && is_name(&format!("{run}-bd")) && is_name(&format!("conformance-{run}-3")));
        for name in ["e2e-tests", "e2e-12345678", "mye2e-12345678-0", "e2e-1234567-0", "default", ""] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn an_object_of_an_old_run_is_a_leftover() {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(10);
        for (minutes, label, left) in [(61, Some("e2e-1-0"), true), (59, Some("e2e-1-0"), false), (6000, None, false)] {
            let made = Time(now - SignedDuration::from_mins(minutes));
            let metadata = ObjectMeta { creation_timestamp: Some(made), ..metadata("e2e-1-0", label) };
            assert_eq!(is_left_over(&metadata, now), left, "{minutes} {label:?}");
        }
        assert!(!is_left_over(&metadata("e2e-1-0", Some("e2e-1-0")), now), "the creation time is unknown");
    }

    #[test]
    fn a_marked_object_belongs_to_the_run_and_keeps_its_labels() {
        let run = Run::new();
        assert_ne!(run, Run::new());
        for mut object in [
            json!({"metadata": {"name": run.name()}}),
            json!({"metadata": {"name": run.name(), "labels": null}}),
            json!({"metadata": {"name": run.name(), "labels": {"a": "b"}}}),
        ] {
            let before = object["metadata"]["labels"]["a"].clone();
            run.mark(&mut object);
            assert_eq!(object["metadata"]["labels"]["a"], before);
            let metadata = serde_json::from_value(object["metadata"].clone()).expect("metadata");
            assert_eq!(Run::of(&metadata).as_ref(), Some(&run));
        }
        assert_eq!(selector([&run]).to_string(), format!("{LABEL} in ({run})"));
    }
}
