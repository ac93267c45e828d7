//! The kinds that the controller itself may watch in all namespaces.
//!
//! One rules review answers for all kinds, so that a controller with few permissions makes no requests that are refused.

use std::time::Duration;

use chandler_permissions::{PolicyRule, ReviewedRules, Scope, cover::is_covered};
use kube::{Client, api::ApiResource};
use serde_json::Value;
use tokio::{sync::Mutex, time::Instant};

/// After this time the permissions are reviewed again: an administrator may have granted one.
const REVIEWED_FOR: Duration = Duration::from_mins(10);

/// The permissions of the controller, as last reviewed.
#[derive(Debug, Default)]
pub(crate) struct Rights(Mutex<Option<(Instant, ReviewedRules)>>);

impl Rights {
    /// Whether the controller may list and watch a kind in all namespaces. Where that cannot be known, it may try.
    pub(crate) async fn may_watch(&self, client: &Client, kind: &ApiResource) -> bool {
        let mut reviewed = self.0.lock().await;
        if reviewed.as_ref().is_none_or(|(when, _)| when.elapsed() >= REVIEWED_FOR) {
            match review(client).await {
                Ok(found) => *reviewed = Some((Instant::now(), found)),
                Err(error) => tracing::debug!(%error, "failed to review the permissions of the controller"),
            }
        }
        reviewed.as_ref().is_none_or(|(_, reviewed)| allows(reviewed, kind))
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
