//! Kinds that are answered and not stored.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Api, Input, Target, write::decode_object};
use crate::{metadata, status::Status, store::object::render};

/// The user that every valid credential stands for.
pub const USER: &str = "kubernetes-admin";

impl Api {
    /// Answers a review. There is no authorisation: whoever has the credential may do everything.
    ///
    /// # Errors
    /// When the body is no such review, or the kind is not answered here.
    pub fn review(&self, target: &Target, input: &Input) -> Result<Bytes, Status> {
        let mut review = decode_object(&target.resource, input)?.value;
        let status = match target.resource.kind().kind.as_str() {
            "SelfSubjectReview" => json!({"userInfo": {
                "username": USER, "groups": ["system:masters", "system:authenticated"]}}),
            "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview" => {
                json!({"allowed": true, "reason": "the development cluster does not enforce authorisation"})
            }
            "SelfSubjectRulesReview" => json!({
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false,
            }),
            other => return Err(Status::not_implemented(other)),
        };
        metadata::of(&mut review).insert("creationTimestamp".to_owned(), Value::Null);
        metadata::as_map(&mut review).insert("status".to_owned(), status);
        Ok(render(&review))
    }
}
