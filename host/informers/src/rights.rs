//! The kinds that the controller itself may watch in all namespaces.
//!
//! One rules review answers for all kinds, so that a controller with few permissions makes no requests that are refused.

use std::time::Duration;

use chandler_client::Availability;
use chandler_permissions::{PolicyRule, ReviewedRules, Scope, cover::is_covered};
use kube::{Client, api::ApiResource};
use serde_json::Value;
use tokio::{sync::Mutex, time::Instant};

/// After this time the permissions are reviewed again: an administrator may have granted one.
const REVIEWED_FOR: Duration = Duration::from_mins(10);

/// After this time a review that failed is made again.
const FAILED_FOR: Duration = Duration::from_secs(5);
/// How long an API server that answers again may refuse more than it should, since it does not know all roles yet.
const SETTLES: Duration = Duration::from_secs(30);
/// After this time a refusal of such a server is doubted.
const DOUBTED_AFTER: Duration = Duration::from_secs(5);

/// The permissions of the controller, as last reviewed.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    reviewed: Mutex<Option<Review>>,
    availability: Availability,
}

#[derive(Debug)]
struct Review {
    when: Instant,
    /// None where the review failed.
    rules: Option<ReviewedRules>,
}

/// How long a refusal counts that began then: not for long if the API server had just begun to answer again.
pub(crate) fn refused_for(availability: &Availability, began: Instant, otherwise: Duration) -> Duration {
    let doubtful = availability.returned().is_some_and(|returned| began < returned + SETTLES);
    if doubtful { DOUBTED_AFTER } else { otherwise }
}

impl Rights {
    /// No review yet.
    pub(crate) fn new(availability: Availability) -> Self {
        Self { reviewed: Mutex::default(), availability }
    }

    /// Whether the controller may list and watch a kind in all namespaces. Where that cannot be known, it may try.
    pub(crate) async fn may_watch(&self, client: &Client, kind: &ApiResource) -> bool {
        let mut last = self.reviewed.lock().await;
        if last.as_ref().is_none_or(|last| last.when.elapsed() >= self.lasts(last)) {
            let rules = match review(client).await {
                Ok(rules) => Some(rules),
                Err(error) => {
                    tracing::debug!(%error, "failed to review the permissions of the controller");
                    last.take().and_then(|last| last.rules)
                }
            };
            *last = Some(Review { when: Instant::now(), rules });
        }
        let rules = last.as_ref().and_then(|last| last.rules.as_ref());
        rules.is_none_or(|rules| allows(rules, kind))
    }

    fn lasts(&self, review: &Review) -> Duration {
        if review.rules.is_none() { FAILED_FOR } else { refused_for(&self.availability, review.when, REVIEWED_FOR) }
    }
}

fn allows(reviewed: &ReviewedRules, kind: &ApiResource) -> bool {
    let rules: Vec<&PolicyRule> = reviewed.rules.iter().collect();
    let covers = |verb: &str| {
        let part = PolicyRule {
            verbs: vec![verb.to_owned()],
            api_groups: vec![kind.group.clone()],
            resources: vec![kind.plural.clone()],
            ..PolicyRule::default()
        };
        is_covered(&rules, &part)
    };
    reviewed.incomplete || (covers("list") && covers("watch"))
}

async fn review(client: &Client) -> Result<ReviewedRules, kube::Error> {
    let request = http::Request::post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(ReviewedRules::request(&Scope::Cluster).to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    let answer: Value = client.request(request).await?;
    Ok(ReviewedRules::of_status(answer.get("status").unwrap_or(&Value::Null)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kind_may_be_watched_with_permission_to_list_and_watch_it() {
        let kind = ApiResource {
            group: "apps".into(),
            version: "v1".into(),
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            plural: "deployments".into(),
        };
        let rule = |verbs: &[&str], group: &str, names: &[&str]| json!({"verbs": verbs, "apiGroups": [group], "resources": ["deployments"], "resourceNames": names});
        for (rules, incomplete, expected) in [
            (vec![], false, false),
            (vec![], true, true),
            (vec![rule(&["get", "list", "watch"], "apps", &[])], false, true),
            (vec![rule(&["list"], "apps", &[]), rule(&["watch"], "*", &[])], false, true),
            (vec![rule(&["list"], "apps", &[])], false, false),
            (vec![rule(&["*"], "apps", &["x"])], false, false),
            (vec![rule(&["*"], "", &[])], false, false),
        ] {
            let status = json!({"resourceRules": rules, "nonResourceRules": [], "incomplete": incomplete});
            assert_eq!(allows(&ReviewedRules::of_status(&status), &kind), expected, "{status}");
        }
    }
}
