//! Errors of the API server and of the connection to it, in words: what failed, and the command that helps.

use std::error::Error;

use chandler_content::connection_trust_problem;
use chandler_core::descriptors_exhausted;
use kube::core::Status;

/// What helps a user who lacks a permission.
pub const ASK: &str =
    "`kubectl auth can-i --list` shows what you may do; ask an administrator of the cluster to grant the permission";
/// The command that installs the CRDs.
const INSTALL_CRDS: &str = "install Chandler's CRDs: `chandler crds | kubectl apply --server-side -f -`";

/// An error in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// What failed.
    pub cause: String,
    /// What helps, where it is known.
    pub hint: Option<String>,
}

impl Explained {
    fn new(cause: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { cause: cause.into(), hint: Some(hint.into()) }
    }
}

/// The error of kube's client, if it is one.
fn of_client<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a kube::Error> {
    let boxed = || error.downcast_ref::<Box<kube::Error>>().map(AsRef::as_ref);
    error.downcast_ref::<kube::Error>().or_else(boxed)
}

/// The answer of the API server, if the error is one.
pub fn status<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Status> {
    match of_client(error)? {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

/// The error in words, if it is one of kube's client.
pub fn explain(error: &(dyn Error + 'static)) -> Option<Explained> {
    let error = of_client(error)?;
    Some(match error {
        kube::Error::Api(status) => answer(status),
        kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => Explained::new(
            "the server did not answer as a Kubernetes API server does",
            "check the address of the cluster: `kubectl cluster-info`",
        ),
        kube::Error::Auth(_) => Explained::new(
            format!("the credentials in the kubeconfig cannot be used: {}", innermost(error)),
            "check the user of the context: `kubectl config view --minify`",
        ),
        error => connection(error),
    })
}

/// An error that the API server answered with.
fn answer(status: &Status) -> Explained {
    let message = match status.message.trim() {
        "" => format!("the API server answered {}", status.code),
        message => message.to_owned(),
    };
    match status.code {
        401 => Explained::new(
            "the API server does not accept the credentials of the kubeconfig (401 Unauthorized)",
            "log in again, or choose another context: `kubectl config get-contexts`; `kubectl auth whoami` checks the credentials",
        ),
        403 if message.contains("system:anonymous") => Explained::new(
            message,
            "the kubeconfig has no credentials for this cluster: `kubectl config view --minify` shows its user",
        ),
        403 => Explained::new(message, ASK),
        404 if is_unserved(status) => {
            Explained::new("the cluster does not serve this kind (404 Not Found)", INSTALL_CRDS)
        }
        429 | 500.. => Explained::new(
            format!("{message} ({})", status.code),
            "the API server is overloaded or unhealthy: `kubectl get --raw /readyz?verbose`",
        ),
        _ => Explained { cause: message, hint: None },
    }
}

/// Whether the cluster does not serve the kind that was asked for.
pub fn is_kind_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_not_found() && is_unserved(status))
}

/// Whether the answer is about a path that the API server does not have, rather than about an object.
pub fn is_unserved(status: &Status) -> bool {
    let named = status.details.as_ref().is_some_and(|details| !details.name.is_empty());
    !named && !status.message.ends_with("not found") || status.message.trim() == "404 page not found"
}

/// No answer.
fn connection(error: &kube::Error) -> Explained {
    let text = chain(error);
    if let Some(exhausted) = descriptors_exhausted(error) {
        return Explained { cause: exhausted.to_string(), hint: None };
    }
    if let Some(problem) = connection_trust_problem(error) {
        let hint = "check `certificate-authority-data` of the cluster in the kubeconfig: `kubectl config view --minify --raw`; \
                    `kubectl cluster-info` shows the address";
        return Explained::new(format!("{text}: {problem}"), hint);
    }
    let cause = innermost(error);
    if let Some(refusal) = chandler_proxies::refusal(&cause) {
        let hint =
            "check the proxy: proxy-url of the cluster (`kubectl config view --minify`), else HTTPS_PROXY and NO_PROXY";
        return Explained::new(format!("{text}: {refusal}"), hint);
    }
    // The standard library has no kind for it.
    let hint = if cause.contains("lookup address") {
        "the host name is not in DNS: check the address of the cluster with `kubectl config view --minify`"
    } else if cause.contains("refused") {
        "no server listens there: start the cluster, or choose another context: `kubectl config get-contexts`"
    } else {
        "check that the cluster is running and that this machine can reach it: `kubectl cluster-info`"
    };
    Explained::new(if text.is_empty() { cause } else { format!("{text}: {cause}") }, hint)
}

/// The first of the causes that names the server.
fn chain(error: &kube::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let mut texts = causes.map(ToString::to_string);
    texts.find(|text| text.starts_with("failed to connect")).unwrap_or_default()
}

/// The last cause, which says the most.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let last = std::iter::successors(Some(error), |error| (*error).source()).last();
    without_code(&last.map(ToString::to_string).unwrap_or_default()).to_owned()
}

/// A message of the operating system without ` (os error 111)`, which says the same again.
pub fn without_code(message: &str) -> &str {
    message.strip_suffix(')').and_then(|text| text.rsplit_once(" (os error ")).map_or(message, |(words, _)| words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(message: &str, code: u16) -> Explained {
        explain(&kube::Error::Api(Box::new(Status::failure(message, "").with_code(code)))).unwrap()
    }

    #[test]
    fn an_answer_has_the_words_of_the_api_server_and_the_command_that_helps() {
        for (message, code, cause, hint) in [
            ("404 page not found\n", 404, "the cluster does not serve this kind", "chandler crds |"),
            ("the server could not find the requested resource", 404, "the cluster does not serve", "chandler crds |"),
            ("Unauthorized", 401, "does not accept the credentials", "kubectl config get-contexts"),
            ("User \"a\" cannot get x", 403, "User \"a\" cannot get x", "kubectl auth can-i --list"),
            ("User \"system:anonymous\" cannot", 403, "system:anonymous", "kubectl config view"),
            ("", 503, "the API server answered 503", "readyz"),
        ] {
            let explained = api(message, code);
            assert!(explained.cause.contains(cause), "{explained:?}");
            assert!(explained.hint.as_ref().is_some_and(|it| it.contains(hint)), "{explained:?}");
        }
        let missing = api("bundledeployments.core.rukpak.io \"x\" not found", 404);
        assert_eq!(missing.hint, None);
        let boxed = Box::new(kube::Error::Api(Box::new(Status::failure("no", "").with_code(409))));
        assert_eq!(explain(&boxed).unwrap().cause, "no");
    }

    #[test]
    fn codes_of_the_operating_system_are_left_out() {
        assert_eq!(without_code("Connection refused (os error 111)"), "Connection refused");
        assert_eq!(without_code("no (really)"), "no (really)");
    }
}
