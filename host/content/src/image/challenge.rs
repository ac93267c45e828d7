//! Authentication challenges of registries: the `WWW-Authenticate` header. Pure.

use reqwest::{
    Url,
    header::{HeaderMap, WWW_AUTHENTICATE},
};

/// How to authenticate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User name and password with each request.
    Basic,
    /// A token from a token server.
    Bearer {
        /// The URL of the token server.
        realm: String,
        /// The service that the token is for.
        service: Option<String>,
    },
}

impl Challenge {
    /// The strongest challenge of a response: a token is preferred to a password.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let texts = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let mut basic = None;
        for challenge in texts.filter_map(|text| http_auth::parse_challenges(text).ok()).flatten() {
            if challenge.scheme.eq_ignore_ascii_case("bearer") {
                let parameter = |name: &str| {
                    let found = challenge.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                    found.map(|(_, value)| value.to_unescaped())
                };
                if let Some(realm) = parameter("realm") {
                    return Some(Self::Bearer { realm, service: parameter("service") });
                }
            } else if challenge.scheme.eq_ignore_ascii_case("basic") {
                basic = Some(Self::Basic);
            }
        }
        basic
    }
}

/// The fields of a token request.
pub(super) fn token_fields(service: Option<&str>, repository: &str, actions: &str) -> Vec<(&'static str, String)> {
    let service = service.map(|service| ("service", service.to_owned()));
    service.into_iter().chain([("scope", format!("repository:{repository}:{actions}"))]).collect()
}

/// Fields as the query of a URL or the body of a form.
pub(super) fn encode(fields: &[(&str, String)]) -> String {
    // Any URL will do: only its query is used.
    let Ok(mut url) = Url::parse("http://localhost/") else { return String::new() };
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn the_strongest_challenge_is_used() {
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer { realm: realm.to_owned(), service: service.map(str::to_owned) })
        };
        for (headers, expected) in [
            (vec![], None),
            (vec!["nonsense,,="], None),
            (vec!["Basic realm=\"r\""], Some(Challenge::Basic)),
            (vec!["Basic realm=\"r\"", "Bearer realm=\"https://a/t\",service=\"s\""], bearer("https://a/t", Some("s"))),
            (vec!["bearer realm=\"https://a/t\", Basic realm=\"r\""], bearer("https://a/t", None)),
            (vec!["Bearer service=\"s\""], None),
        ] {
            let mut map = HeaderMap::new();
            for header in &headers {
                map.append(WWW_AUTHENTICATE, HeaderValue::from_str(header).unwrap());
            }
            assert_eq!(Challenge::of(&map), expected, "{headers:?}");
        }
    }

    #[test]
    fn fields_cannot_add_fields() {
        let fields = token_fields(Some("a&b=c"), "x/y", "pull,push");
        assert_eq!(encode(&fields), "service=a%26b%3Dc&scope=repository%3Ax%2Fy%3Apull%2Cpush");
    }
}
