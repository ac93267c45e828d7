//! Requests at startup: that the API server serves a kind, and patience with a server that fails for a moment.

use std::{error::Error, fmt::Debug, io, time::Duration};

use kube::{Api, Client, Resource, api::ListParams};
use serde::de::DeserializeOwned;

/// Lists one object of a kind. Fails if the API server does not serve the kind; a watch would retry forever.
pub async fn probe<K>(client: &Client, parameters: ListParams) -> Result<(), kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let (api, parameters) = (Api::<K>::all(client.clone()), parameters.limit(1));
    patiently(|| api.list_metadata(&parameters), is_momentary).await.map(drop)
}

/// The first pause between attempts; each is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(200);
/// The maximum number of attempts, which take six seconds.
const ATTEMPTS: u32 = 6;

/// Tries again while the API server fails for a moment: at startup, one failed request would end the controller.
///
/// # Errors
/// The first error that is not momentary, or the last attempt's error.
pub async fn patiently<T, E: std::error::Error, F: Future<Output = Result<T, E>>>(
    attempt: impl FnMut() -> F,
    is_momentary: impl Fn(&E) -> bool,
) -> Result<T, E> {
    with_pauses(PAUSE, attempt, is_momentary).await
}

async fn with_pauses<T, E: std::error::Error, F: Future<Output = Result<T, E>>>(
    mut pause: Duration,
    mut attempt: impl FnMut() -> F,
    is_momentary: impl Fn(&E) -> bool,
) -> Result<T, E> {
    for _ in 1..ATTEMPTS {
        match attempt().await {
            Err(error) if is_momentary(&error) => {
                tracing::warn!(%error, ?pause, "a request at startup failed; it is tried again");
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            result => return result,
        }
    }
    attempt().await
}

/// Whether the API server answered that it cannot answer now (429 or 5xx), or a connection to it broke off. A server that cannot be connected to
/// does not count: its address may be wrong.
pub fn is_momentary(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || (500..600).contains(&status.code),
        kube::Error::Service(error) => broke_off(&**error),
        _ => false,
    }
}

fn broke_off(error: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(kind, Some(BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof))
        || error.source().is_some_and(broke_off)
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn answer(code: u16) -> kube::Error {
        kube::Error::Api(Box::new(Status { code, ..Status::failure("", "") }))
    }

    #[tokio::test]
    async fn only_what_may_pass_is_tried_again() {
        let attempts = async |codes: &[u16]| {
            let mut left = codes.iter();
            let mut made = 0;
            let result = with_pauses(
                Duration::ZERO,
                || {
                    made += 1;
                    std::future::ready(left.next().map_or(Ok(()), |code| Err(answer(*code))))
                },
                is_momentary,
            );
            (result.await.is_ok(), made)
        };
        assert_eq!(attempts(&[]).await, (true, 1));
        assert_eq!(attempts(&[500, 429, 503]).await, (true, 4));
        assert_eq!(attempts(&[500, 404, 500]).await, (false, 2));
        assert_eq!(attempts(&[503; 20]).await, (false, 6));
    }

    #[test]
    fn a_connection_that_broke_off_is_tried_again_and_one_that_is_refused_is_not() {
        let service = |kind: io::ErrorKind| kube::Error::Service(Box::new(io::Error::from(kind)));
        assert!(is_momentary(&service(io::ErrorKind::UnexpectedEof)));
        assert!(is_momentary(&service(io::ErrorKind::ConnectionReset)));
        assert!(!is_momentary(&service(io::ErrorKind::ConnectionRefused)));
    }
}
