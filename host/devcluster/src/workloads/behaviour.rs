//! What is to be pretended about a workload.

use serde_json::Value;

use crate::metadata;

/// The annotation that selects the simulated behaviour: `stall`, `fail`, `crash-loop`, `image-pull` or `healthy`.
pub const ANNOTATION: &str = "devcluster.chandler.dev/simulate";

/// The simulated behaviour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Behaviour {
    /// All is well.
    #[default]
    Healthy,
    /// Objects that are not ready do not become ready.
    Stall,
    /// It fails permanently: Pods of Jobs fail, containers of others crash, and a Deployment's deadline passes at once.
    Fail,
    /// Containers start and end, again and again.
    CrashLoop,
    /// The image cannot be pulled.
    ImagePull,
}

impl Behaviour {
    /// The behaviour in the annotation of an object; `None` for unknown values.
    pub(super) fn annotated(object: &Value) -> Option<Self> {
        match metadata::annotation(object, ANNOTATION)? {
            "healthy" => Some(Self::Healthy),
            "stall" => Some(Self::Stall),
            "fail" => Some(Self::Fail),
            "crash-loop" => Some(Self::CrashLoop),
            "image-pull" => Some(Self::ImagePull),
            _ => None,
        }
    }

    /// The behaviour that the images of a Pod or a Pod template select.
    pub(super) fn of_images(object: &Value) -> Self {
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
pub(super) fn is_unpullable(image: &str) -> bool {
    let Some((host, _)) = image.split_once('/') else { return false };
    let host = host.split(':').next().unwrap_or_default();
    host == "invalid" || host.ends_with(".invalid")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotations_select_the_behaviour() {
        let annotated = |text: &str| Behaviour::annotated(&json!({"metadata": {"annotations": {ANNOTATION: text}}}));
        let cases = [
            ("", None),
            ("unknown", None),
            ("healthy", Some(Behaviour::Healthy)),
            ("stall", Some(Behaviour::Stall)),
            ("fail", Some(Behaviour::Fail)),
            ("crash-loop", Some(Behaviour::CrashLoop)),
            ("image-pull", Some(Behaviour::ImagePull)),
        ];
        for (text, expected) in cases {
            assert_eq!(annotated(text), expected, "{text}");
        }
    }

    #[test]
    fn unpullable_images_are_recognised_by_their_registry() {
        let cases = [
            ("nginx", Behaviour::Healthy),
            ("quay.io/a/b", Behaviour::Healthy),
            ("registry.invalid/a:1", Behaviour::ImagePull),
            ("registry.invalid:5000/a:1", Behaviour::ImagePull),
            ("invalid.example.com/a", Behaviour::Healthy),
        ];
        for (image, expected) in cases {
            let spec = json!({"containers": [{"image": image}]});
            assert_eq!(Behaviour::of_images(&json!({"spec": {"template": {"spec": spec}}})), expected, "{image}");
            assert_eq!(Behaviour::of_images(&json!({"spec": spec})), expected, "{image}");
        }
    }
}
