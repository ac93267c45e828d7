//! What the statuses of several kinds have in common.

use std::{borrow::Cow, marker::PhantomData};

use chandler_api::{
    ConditionType, NewCondition,
    conditions::{remove_condition, whole_seconds},
    set_condition,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};
use kube::Resource;

/// The status of an object of a kind could not be written: the only error of reconcilers that report every other one in the status.
#[derive(Debug, thiserror::Error)]
#[error("failed to write the status of {}: {}", with_article::<K>(), chandler_source::api_message(source))]
pub(crate) struct StatusError<K>
where
    K: Resource<DynamicType = ()>,
{
    /// The error of the request.
    pub(crate) source: kube::Error,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource<DynamicType = ()>> From<kube::Error> for StatusError<K> {
    fn from(source: kube::Error) -> Self {
        Self { source, kind: PhantomData }
    }
}

impl<K: Resource<DynamicType = ()> + std::fmt::Debug + 'static> chandler_runtime::ReconcileError for StatusError<K> {
    fn is_conflict(&self) -> bool {
        matches!(&self.source, kube::Error::Api(status) if status.is_conflict() || status.is_not_found())
    }

    fn of_status(error: kube::Error) -> Self {
        error.into()
    }
}

/// The kind, such as `a Catalog` or `an Alert`.
fn with_article<K: Resource<DynamicType = ()>>() -> String {
    let kind: Cow<'_, str> = K::kind(&());
    let article = if kind.starts_with(['A', 'E', 'I', 'O']) { "an" } else { "a" };
    format!("{article} {kind}")
}

/// Sets the condition that says how an object is, and `Stalled`, which kstatus reads, with its reason and message if only an action helps.
pub(crate) fn set_with_stalled(
    conditions: &mut Vec<Condition>,
    condition: NewCondition,
    is_stalled: bool,
    generation: Option<i64>,
    now: Timestamp,
) {
    let now = whole_seconds(now);
    if is_stalled {
        let stalled = NewCondition::is_true(ConditionType::Stalled, condition.reason, condition.message.clone());
        set_condition(conditions, stalled, generation, now.clone());
    } else {
        remove_condition(conditions, ConditionType::Stalled);
    }
    set_condition(conditions, condition, generation, now);
}

#[cfg(test)]
mod tests {
    use chandler_api::{Alert, Catalog};

    use super::*;

    #[test]
    fn the_error_names_the_kind() {
        let failed = || kube::Error::Service("down".into());
        let text = StatusError::<Catalog>::from(failed()).to_string();
        assert!(text.starts_with("failed to write the status of a Catalog: "), "{text}");
        let text = StatusError::<Alert>::from(failed()).to_string();
        assert!(text.starts_with("failed to write the status of an Alert: "), "{text}");
    }
}
