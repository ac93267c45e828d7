//! The values of `spec.valuesFrom`, read with the rights of the user.

use chandler_api::{BundleDeployment, ValuesReference};
use chandler_values::{Redactor, Values, ValuesError, resolve::has_secrets};
use kube::Client;

use crate::CommandError;

/// The values of these references.
pub async fn values(client: &Client, namespace: &str, references: &[ValuesReference]) -> Result<Values, CommandError> {
    available(client, namespace, references).await?.map_err(|why| CommandError::failed(why.to_string()))
}

/// Like [`values`]; the inner error is an object or a key that does not exist yet, which the controller waits for.
pub async fn available(
    client: &Client,
    namespace: &str,
    references: &[ValuesReference],
) -> Result<Result<Values, ValuesError>, CommandError> {
    let read = chandler_values::read(client, namespace, references).await;
    let objects = read.map_err(|error| {
        let failed = CommandError::failed(error.to_string()).because(error.error.as_ref());
        if error.is_forbidden() {
            failed.hint("this command renders the bundle with the values in spec.valuesFrom, which it reads with your permissions")
        } else {
            failed
        }
    })?;
    match Values::resolve(references, namespace, &objects) {
        Err(error) if !error.problem.is_missing() => Err(CommandError::failed(error.to_string())),
        resolved => Ok(resolved),
    }
}

/// What hides the values of Secrets in the objects of a BundleDeployment, as far as the user may read the Secrets.
pub async fn redactor(client: &Client, deployment: &BundleDeployment) -> Redactor {
    let spec = &deployment.spec;
    if !has_secrets(&spec.values_from) {
        return Redactor::default();
    }
    let values = values(client, &spec.install_namespace, &spec.values_from).await;
    values.map(|values| values.redactor().clone()).unwrap_or_default()
}
