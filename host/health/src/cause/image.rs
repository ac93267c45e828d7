//! Why an image cannot be pulled, without what container runtimes put around it.

/// Whether a container waits for this reason because of its image.
pub(super) fn is_about_image(reason: &str) -> bool {
    matches!(
        reason,
        "ErrImagePull"
            | "ImagePullBackOff"
            | "ErrImageNeverPull"
            | "InvalidImageName"
            | "ImageInspectError"
            | "RegistryUnavailable"
            | "SignatureValidationFailed"
    )
}

/// The beginnings of parts of a message that name no cause. Parts are separated by a colon and a space.
const WRAPPERS: &[&str] = &[
    "rpc error",
    "failed to pull and unpack image",
    "failed to pull image",
    "Failed to pull image",
    "failed to resolve reference",
    "failed to resolve image",
    "failed to do request",
    "failed to copy",
    "Back-off pulling image",
    "ErrImagePull",
    "ImagePullBackOff",
    "RegistryUnavailable",
    "SignatureValidationFailed",
    "unable to pull image",
    "Error response from daemon",
    "initializing source",
    "Error initializing source",
    "unexpected status from HEAD request to",
    "unexpected status from GET request to",
    "Head \"",
    "Get \"",
];

/// The cause in a message about an image, or `None` if the message only says that the image was not pulled.
pub(super) fn detail(message: &str, image: &str) -> Option<String> {
    let mut rest = message.trim();
    loop {
        // The status of a remote call of the container runtime.
        if let Some((_, description)) = rest.strip_prefix("code = ").and_then(|rest| rest.split_once(" desc = ")) {
            rest = description.trim_start();
            continue;
        }
        let (head, tail) = rest.split_once(": ").unwrap_or((rest, ""));
        let wraps = WRAPPERS.iter().any(|wrapper| head.starts_with(wrapper));
        // The runtime adds the default registry to a reference.
        if !(wraps || (!image.is_empty() && head.ends_with(image)) || head == "Error") {
            break;
        }
        rest = tail.trim_start();
    }
    (!rest.is_empty()).then(|| rest.to_owned())
}

/// The cause as a sentence fragment. The kubelet alternates between two reasons while it tries again; the cause is the same.
pub(super) fn text(reason: &str, image: &str, detail: Option<&str>) -> String {
    let reason = if reason == "ErrImagePull" { "ImagePullBackOff" } else { reason };
    match detail {
        Some(detail) => format!("{reason}: {image}: {detail}"),
        None if reason == "ImagePullBackOff" => format!("{reason}: {image} cannot be pulled"),
        None => format!("{reason}: {image}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_of_container_runtimes_are_removed() {
        let image = "registry.example.com/x:1";
        for (message, expected) in [
            (
                r#"rpc error: code = NotFound desc = failed to pull and unpack image "registry.example.com/x:1": failed to resolve reference "registry.example.com/x:1": registry.example.com/x:1: not found"#,
                Some("not found"),
            ),
            (
                r#"Back-off pulling image "registry.example.com/x:1": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image "registry.example.com/x:1": failed to resolve reference "registry.example.com/x:1": registry.example.com/x:1: not found"#,
                Some("not found"),
            ),
            (
                r#"failed to pull and unpack image "registry.example.com/x:1": failed to resolve reference "registry.example.com/x:1": failed to do request: Head "https://registry.example.com/v2/x/manifests/1": dial tcp: lookup registry.example.com on 10.96.0.10:53: no such host"#,
                Some("dial tcp: lookup registry.example.com on 10.96.0.10:53: no such host"),
            ),
            (
                r#"failed to pull and unpack image "registry.example.com/x:1": failed to resolve reference "registry.example.com/x:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed"#,
                Some(
                    "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed",
                ),
            ),
            (
                r#"Failed to pull image "registry.example.com/x:1": initializing source docker://registry.example.com/x:1: reading manifest 1 in registry.example.com/x: manifest unknown"#,
                Some("reading manifest 1 in registry.example.com/x: manifest unknown"),
            ),
            (
                "rpc error: code = Unknown desc = Error response from daemon: manifest for registry.example.com/x:1 not found: manifest unknown: manifest unknown",
                Some("manifest for registry.example.com/x:1 not found: manifest unknown: manifest unknown"),
            ),
            (r#"Back-off pulling image "registry.example.com/x:1""#, None),
            ("Error: ErrImagePull", None),
            ("Error: ImagePullBackOff", None),
            ("", None),
        ] {
            assert_eq!(detail(message, image).as_deref(), expected, "{message}");
        }
        let short = r#"failed to pull and unpack image "docker.io/library/nginx:0": failed to resolve reference "docker.io/library/nginx:0": docker.io/library/nginx:0: not found"#;
        assert_eq!(detail(short, "nginx:0").as_deref(), Some("not found"));
    }
}
