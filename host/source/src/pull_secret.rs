//! Registry credentials from Secrets of the system namespace.

use std::sync::Arc;

use chandler_content::{ImageAccess, ImageReference, Keyring as _, PullSecrets};
use k8s_openapi::api::core::v1::Secret;

use crate::{Environment, Grantee, grant::SERVICE_ACCOUNTS};

/// The types of Secrets that hold registry credentials.
const DOCKER_CONFIG_JSON: &str = "kubernetes.io/dockerconfigjson";
const DOCKER_CFG: &str = "kubernetes.io/dockercfg";
/// The most pull secrets of a ServiceAccount that are read.
const ACCOUNT_SECRETS: usize = 32;

/// A pull secret is not usable. A change of the Secret may help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pull secret {object}: {message}")]
pub struct PullSecretError {
    /// The namespace and the name of the Secret.
    pub object: String,
    /// What is wrong with it. A grantee that may not use the Secret learns neither whether it exists nor its type.
    pub message: String,
}

/// The credentials for an image and its mirrors: of the pull secret that the grantee names, or else of the ServiceAccount whose pull
/// secrets are the default ones.
pub(crate) async fn access(
    environment: Environment<'_>,
    named: Option<&str>,
    image: &ImageReference,
) -> Result<ImageAccess, PullSecretError> {
    let system = environment.system;
    let (object, keyring) = match (named, system.pull_secrets_of()) {
        (Some(secret), _) => (system.object(secret), of_secret(environment, secret).await?),
        (None, Some(account)) => {
            let object = format!("of ServiceAccount {}", system.object(account));
            let found = of_account(environment, account).await;
            let keyring = found.map_err(|message| PullSecretError { object: object.clone(), message })?;
            (object, keyring)
        }
        (None, None) => return Ok(ImageAccess::default()),
    };
    let credentials = keyring.credentials(image);
    let credentials = credentials.map_err(|error| PullSecretError { object, message: error.to_string() })?;
    Ok(ImageAccess { credentials, keyring: Some(Arc::new(keyring)), ..ImageAccess::default() })
}

/// The pull secret that a grantee names.
///
/// A grantee that may not use a Secret gets the same error whether the Secret exists or not. The log has the cause.
async fn of_secret(environment: Environment<'_>, pull_secret: &str) -> Result<PullSecrets, PullSecretError> {
    let Environment { system, grantee, account, .. } = environment;
    let failed = |message: String| PullSecretError { object: system.object(pull_secret), message };
    let secret = system.secret(pull_secret).await.map_err(failed)?;
    let grant_required = system.requires_pull_secret_grant();
    let config = usable(secret, grantee, account, grant_required).map_err(|refused| {
        tracing::warn!(%grantee, pull_secret, cause = %refused, "a pull secret is refused");
        let grant = if grant_required { " has to name" } else { ", where it has one, has to name" };
        failed(format!(
            "there is none that {grantee} may use: it has to be of type {DOCKER_CONFIG_JSON} or {DOCKER_CFG}, and its \
             annotation {}{grant} {grantee}, and {SERVICE_ACCOUNTS}, where it has one, the ServiceAccount in spec.serviceAccount",
            grantee.annotation()
        ))
    })?;
    let config = config.map_err(|problem| failed(problem.to_owned()))?;
    PullSecrets::new([config.as_slice()]).map_err(|error| failed(error.to_string()))
}

/// The pull secrets of a ServiceAccount that a grantee may use. As for Pods, those that are not usable are passed over.
async fn of_account(environment: Environment<'_>, pulls: &str) -> Result<PullSecrets, String> {
    let Environment { system, grantee, account, .. } = environment;
    let pulls = system.service_account(pulls).await?.ok_or("the ServiceAccount does not exist")?;
    let names = pulls.image_pull_secrets.unwrap_or_default();
    let mut configs = Vec::new();
    for pull_secret in names.iter().take(ACCOUNT_SECRETS).map(|reference| reference.name.as_str()) {
        let secret = system.secret(pull_secret).await?;
        let config = usable(secret, grantee, account, system.requires_pull_secret_grant())
            .map_err(|refused| refused.to_string())
            .and_then(|config| config.map_err(str::to_owned));
        let config = config.and_then(|config| {
            PullSecrets::new([config.as_slice()]).map_err(|error| error.to_string())?;
            Ok(config)
        });
        match config {
            Ok(config) => configs.push(config),
            Err(cause) => {
                tracing::debug!(%grantee, pull_secret, cause, "a pull secret of the ServiceAccount is not used");
            }
        }
    }
    PullSecrets::new(configs.iter().map(Vec::as_slice)).map_err(|error| error.to_string())
}

/// Why a Secret is not used. Only the log reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Refused {
    #[error("it does not exist")]
    Absent,
    #[error("it is not a pull secret")]
    OtherType,
    #[error("its annotation does not grant it")]
    NotGranted,
}

/// The configuration in a Secret, as a `.dockerconfigjson`, or what is wrong with it, if the grantee may use the Secret.
fn usable(
    secret: Option<Secret>,
    grantee: Grantee<'_>,
    account: Option<&str>,
    grant_required: bool,
) -> Result<Result<Vec<u8>, &'static str>, Refused> {
    let secret = secret.ok_or(Refused::Absent)?;
    let key = match secret.type_.as_deref() {
        Some(DOCKER_CONFIG_JSON) => ".dockerconfigjson",
        Some(DOCKER_CFG) => ".dockercfg",
        _ => return Err(Refused::OtherType),
    };
    if !grantee.may_name(account, &secret.metadata, grant_required) {
        return Err(Refused::NotGranted);
    }
    let Some(config) = secret.data.unwrap_or_default().remove(key) else {
        return Ok(Err(if key == ".dockercfg" { "has no key .dockercfg" } else { "has no key .dockerconfigjson" }));
    };
    if key == ".dockerconfigjson" {
        return Ok(Ok(config.0));
    }
    // The older form is the member `auths` of the newer one.
    let wrapped = [b"{\"auths\":".as_slice(), &config.0, b"}"].concat();
    Ok(Ok(wrapped))
}

#[cfg(test)]
mod tests {
    use chandler_content::Credentials;
    use k8s_openapi::ByteString;
    use serde_json::{Value, json};

    use super::*;

    const GRANTEE: Grantee<'static> = Grantee::BundleDeployment("harbour");

    fn secret(type_: &str, annotations: &Value, data: &[(&str, &str)]) -> Secret {
        let metadata = json!({"name": "pull", "annotations": annotations});
        let data = data.iter().map(|(key, text)| ((*key).to_owned(), ByteString((*text).into())));
        Secret {
            metadata: serde_json::from_value(metadata).unwrap(),
            type_: Some(type_.to_owned()),
            data: Some(data.collect()),
            ..Secret::default()
        }
    }

    #[test]
    fn only_a_pull_secret_that_is_granted_is_used() {
        let data: &[_] = &[(".dockerconfigjson", "{}")];
        let granted = json!({"chandler.dev/bundledeployments": "harbour"});
        let other = json!({"chandler.dev/bundledeployments": "other"});
        let of = |team: &str| json!({SERVICE_ACCOUNTS: format!("accounts/{team}")});
        let cases = [
            (None, false, Err(Refused::Absent)),
            (Some(secret("Opaque", &granted, data)), false, Err(Refused::OtherType)),
            (Some(secret("chandler.dev/record", &granted, data)), false, Err(Refused::OtherType)),
            (Some(secret(DOCKER_CONFIG_JSON, &other, data)), false, Err(Refused::NotGranted)),
            (Some(secret(DOCKER_CONFIG_JSON, &json!({}), data)), true, Err(Refused::NotGranted)),
            (Some(secret(DOCKER_CONFIG_JSON, &json!({}), data)), false, Ok(Ok(b"{}".to_vec()))),
            (Some(secret(DOCKER_CONFIG_JSON, &granted, data)), true, Ok(Ok(b"{}".to_vec()))),
            (Some(secret(DOCKER_CONFIG_JSON, &granted, &[])), true, Ok(Err("has no key .dockerconfigjson"))),
            (Some(secret(DOCKER_CFG, &granted, data)), true, Ok(Err("has no key .dockercfg"))),
            (Some(secret(DOCKER_CONFIG_JSON, &of("team-b"), data)), false, Err(Refused::NotGranted)),
            (Some(secret(DOCKER_CONFIG_JSON, &of("team-a"), data)), false, Ok(Ok(b"{}".to_vec()))),
        ];
        for (secret, required, expected) in cases {
            assert_eq!(
                usable(secret.clone(), GRANTEE, Some("accounts/team-a"), required),
                expected,
                "{secret:?} {required}"
            );
        }
    }

    #[test]
    fn the_older_form_holds_the_same_credentials() {
        let auths = json!({"registry.example.com": {"username": "user", "password": "password"}});
        let auths = auths.to_string();
        let config = usable(Some(secret(DOCKER_CFG, &json!({}), &[(".dockercfg", &auths)])), GRANTEE, None, false)
            .unwrap()
            .unwrap();
        let image: ImageReference = "registry.example.com/a:v1".parse().unwrap();
        let found = PullSecrets::new([config.as_slice()]).unwrap().credentials(&image).unwrap();
        assert_eq!(found, Some(Credentials::Basic { username: "user".into(), password: "password".into() }));
    }
}
