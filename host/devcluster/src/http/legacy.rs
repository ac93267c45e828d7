//! The legacy watch paths, from before `watch` was a parameter: `/api/v1/watch/pods` is `/api/v1/pods?watch=true`.

use http::{Uri, uri::PathAndQuery};

/// The path of today for one of long ago; `None` for any other.
pub fn modern(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    let mut at = path.match_indices('/').map(|(at, _)| at);
    // Behind `/api/<version>` or `/apis/<group>/<version>`.
    let start =
        if path.starts_with("/api/") { at.nth(2)? } else { path.starts_with("/apis/").then(|| at.nth(3))?? };
    let (root, rest) = path.split_at_checked(start)?;
    let rest = rest.strip_prefix("/watch/").filter(|rest| !rest.is_empty())?;
    let query = uri.query().map(|query| format!("&{query}")).unwrap_or_default();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("{root}/{rest}?watch=true{query}")).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watching_is_a_parameter_today() {
        let cases = [
            ("/api/v1/watch/pods", Some("/api/v1/pods?watch=true")),
            (
                "/api/v1/watch/namespaces/a/pods/b?resourceVersion=3",
                Some("/api/v1/namespaces/a/pods/b?watch=true&resourceVersion=3"),
            ),
            ("/apis/apps/v1/watch/deployments", Some("/apis/apps/v1/deployments?watch=true")),
            ("/api/v1/pods", None),
            ("/api/v1/watch/", None),
            ("/api/v1/namespaces/watch/pods", None),
            ("/apis/apps/v1", None),
            ("/watch/x", None),
        ];
        for (path, expected) in cases {
            let found = modern(&path.parse().unwrap()).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), expected, "{path}");
        }
    }
}
