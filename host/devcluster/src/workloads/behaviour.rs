//! What is to be pretended about a workload.

use serde_json::Value;

use crate::metadata;

/// The annotation that tells what to pretend: `stall`, `fail` or `crash-loop`.
pub const ANNOTATION: &str = "devcluster.chandler.dev/simulate";

/// What is pretended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Behaviour {
    /// All is well.
    #[default]
    Healthy,
    /// It never gets ready.
    Stall,
    /// It fails for good.
    Fail,
    /// Its containers start and end, again and again.
    CrashLoop,
    /// Its image cannot be pulled.
    ImagePull,
}

impl Behaviour {
    /// What to pretend of an object: its own annotation counts before that of its Pod template, then the images.
    pub fn of(object: &Value) -> Self {
        let template = object.pointer("/spec/template");
        let stated = metadata::annotation(object, ANNOTATION)
            .or_else(|| template.and_then(|template| metadata::annotation(template, ANNOTATION)));
        match stated {
            Some("stall") => return Self::Stall,
            Some("fail") => return Self::Fail,
            Some("crash-loop") => return Self::CrashLoop,
            _ => {}
        }
        let pod_spec = object.pointer("/spec/template/spec").or_else(|| object.get("spec"));
        let containers =
            ["initContainers", "containers"].into_iter().filter_map(|list| pod_spec?.get(list)?.as_array());
        let mut images = containers.flatten().filter_map(|container| container.get("image")?.as_str());
        if images.any(is_unpullable) { Self::ImagePull } else { Self::Healthy }
    }

    /// Whether Pods get ready.
    pub fn is_healthy(self) -> bool {
        self == Self::Healthy
    }
}

/// Whether an image's registry is under `.invalid`, the domain that never resolves (RFC 2606).
fn is_unpullable(image: &str) -> bool {
    let Some((host, _)) = image.split_once('/') else { return false };
    let host = host.split(':').next().unwrap_or_default();
    host == "invalid" || host.ends_with(".invalid")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotations_and_images_tell_what_to_pretend() {
        let template = |annotation: &str, image: &str| {
            json!({"spec": {"template": {
                "metadata": {"annotations": {ANNOTATION: annotation}}, "spec": {"containers": [{"image": image}]}}}})
        };
        let cases = [
            (template("", "nginx"), Behaviour::Healthy),
            (template("unknown", "quay.io/a/b"), Behaviour::Healthy),
            (template("stall", "nginx"), Behaviour::Stall),
            (template("fail", "nginx"), Behaviour::Fail),
            (template("crash-loop", "nginx"), Behaviour::CrashLoop),
            (template("", "registry.invalid/a:1"), Behaviour::ImagePull),
            (template("", "registry.invalid:5000/a:1"), Behaviour::ImagePull),
            (template("", "invalid.example.com/a"), Behaviour::Healthy),
            (json!({"metadata": {"annotations": {ANNOTATION: "fail"}}, "spec": {}}), Behaviour::Fail),
            (json!({"spec": {"containers": [{"image": "x.invalid/y"}]}}), Behaviour::ImagePull),
        ];
        for (object, expected) in cases {
            assert_eq!(Behaviour::of(&object), expected, "{object}");
        }
    }
}
