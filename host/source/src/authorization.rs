//! Credentials for servers other than registries, from Secrets of the system namespace.
//!
//! A pull secret names the registry that it is for. These Secrets name no server: a user who may use one in a BundleDeployment can direct
//! it to a server of their own. So a Secret needs an annotation that grants its use, except one of the types `kubernetes.io/basic-auth` and
//! `kubernetes.io/ssh-auth`, to which the rules of pull secrets apply: nothing but such credentials has these types.

use std::collections::BTreeMap;

use chandler_api::Authorization;
use chandler_content::{Credentials, ImageAccess, SshKey};
use k8s_openapi::{ByteString, api::core::v1::Secret};

use crate::{
    Environment, Grantee, SourceError,
    grant::{HOSTS, SERVICE_ACCOUNTS, is_for_server},
};

/// The type of Secrets with a user name and a password.
const BASIC_AUTH: &str = "kubernetes.io/basic-auth";
/// The type of Secrets with a private key for SSH.
const SSH_AUTH: &str = "kubernetes.io/ssh-auth";
/// The keys of Secrets for SSH: Kubernetes's and Flux's.
const PRIVATE_KEY: [&str; 2] = ["ssh-privatekey", "identity"];
const KNOWN_HOSTS: [&str; 2] = ["ssh-knownhosts", "known_hosts"];
/// The type of Secrets without a type.
const OPAQUE: &str = "Opaque";

/// A Secret with credentials is not usable. A change of the Secret may help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("secret {object}: {message}")]
pub struct AuthorizationError {
    /// The namespace and the name of the Secret.
    pub object: String,
    /// What is wrong with it. A grantee that may not use the Secret learns neither whether it exists nor its type.
    pub message: String,
}

/// Reads the credentials of a source for a server, `HOST` or `HOST:PORT`.
pub(crate) async fn access(
    environment: Environment<'_>,
    auth: Option<&Authorization>,
    server: &str,
    certificate_data: Option<&String>,
) -> Result<ImageAccess, SourceError> {
    let credentials = match auth.and_then(|auth| auth.secret.as_ref()) {
        Some(secret) => Some(credentials(environment, &secret.name, server).await?),
        None => None,
    };
    Ok(ImageAccess {
        credentials,
        certificate_authority: certificate_data.map(|data| data.clone().into_bytes()),
        insecure_skip_tls_verify: auth.is_some_and(|auth| auth.insecure_skip_verify),
        keyring: None,
        signatures: None,
    })
}

/// The credentials in a Secret: `bearerToken`, or `username` and `password`, or `ssh-privatekey` and `ssh-knownhosts`.
///
/// A grantee that may not use a Secret gets the same error whether the Secret exists or not. The log has the cause.
async fn credentials(
    environment: Environment<'_>,
    name: &str,
    server: &str,
) -> Result<Credentials, AuthorizationError> {
    let Environment { system, grantee, account, .. } = environment;
    let failed = |message: String| AuthorizationError { object: system.object(name), message };
    let secret = system.secret(name).await.map_err(failed)?;
    let user = User { grantee, account, server };
    let usable = usable(secret, user, system.requires_pull_secret_grant()).map_err(|refused| {
        tracing::warn!(%grantee, secret = name, cause = %refused, "a Secret with credentials is refused");
        failed(format!(
            "there is none that {grantee} may use: its annotation {} has to name {grantee}; only one of type {BASIC_AUTH} or {SSH_AUTH} \
             may be without it, unless the controller requires grants. Where it has the annotations {SERVICE_ACCOUNTS} and {HOSTS}, they have to \
             name the ServiceAccount in spec.serviceAccount, and {server}",
            grantee.annotation()
        ))
    })?;
    usable.map_err(failed)
}

/// Why a Secret is not used. Only the log reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Refused {
    #[error("it does not exist")]
    Absent,
    #[error("its type is none of Opaque, kubernetes.io/basic-auth and kubernetes.io/ssh-auth")]
    OtherType,
    #[error("its annotations do not grant it")]
    NotGranted,
    #[error("its annotation chandler.dev/hosts does not list the server")]
    OtherServer,
}

/// What credentials are wanted for.
#[derive(Clone, Copy)]
struct User<'a> {
    grantee: Grantee<'a>,
    /// The ServiceAccount on whose behalf it is installed.
    account: Option<&'a str>,
    server: &'a str,
}

/// The credentials in a Secret, or what is wrong with them, if the grantee may use the Secret.
fn usable(
    secret: Option<Secret>,
    user: User<'_>,
    grant_required: bool,
) -> Result<Result<Credentials, String>, Refused> {
    let secret = secret.ok_or(Refused::Absent)?;
    let grant_required = match secret.type_.as_deref() {
        Some(BASIC_AUTH | SSH_AUTH) => grant_required,
        Some(OPAQUE) | None => true,
        Some(_) => return Err(Refused::OtherType),
    };
    if !user.grantee.may_name(user.account, &secret.metadata, grant_required) {
        return Err(Refused::NotGranted);
    }
    if !is_for_server(&secret.metadata, user.server) {
        return Err(Refused::OtherServer);
    }
    Ok(read(secret.data.unwrap_or_default()))
}

fn read(mut data: BTreeMap<String, ByteString>) -> Result<Credentials, String> {
    let mut text = |key: &str| {
        let value = data.remove(key).map(|value| String::from_utf8(value.0)).transpose();
        value.map_err(|_| format!("the value of the key {key} is not UTF-8"))
    };
    // A file that was made with an editor or `echo` ends with a line break.
    let line = |text: String| text.trim_end_matches(['\r', '\n']).to_owned();
    let (token, username, password) = (text("bearerToken")?, text("username")?.map(line), text("password")?);
    let [private_key, known_hosts] = [PRIVATE_KEY, KNOWN_HOSTS].map(|[name, other]| match text(name) {
        Ok(None) => text(other),
        value => value,
    });
    let (private_key, known_hosts) = (private_key?, known_hosts?);
    match (token, password, private_key) {
        (None, None, Some(private_key)) => ssh(username, &private_key, known_hosts.as_deref()),
        (_, _, Some(_)) => Err("has the key ssh-privatekey, and the key bearerToken or password as well".to_owned()),
        (Some(token), None, None) if username.is_none() => Ok(Credentials::RegistryToken(line(token))),
        (Some(_), _, None) => Err("has both the key bearerToken and the key username or password".to_owned()),
        (None, Some(password), None) if let Some(username) = username => {
            Ok(Credentials::Basic { username, password: line(password) })
        }
        _ => {
            Err("has neither the key bearerToken, nor the keys username and password, nor the keys ssh-privatekey and \
                  ssh-knownhosts"
                .to_owned())
        }
    }
}

fn ssh(username: Option<String>, private_key: &str, known_hosts: Option<&str>) -> Result<Credentials, String> {
    let missing =
        "has no key ssh-knownhosts: put in what ssh-keyscan HOST prints, compared with what the host publishes";
    let known_hosts = known_hosts.ok_or_else(|| missing.to_owned())?;
    SshKey::parse(username, private_key, known_hosts).map(Credentials::SshKey).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const USER: User<'static> =
        User { grantee: Grantee::BundleDeployment("harbour"), account: Some("accounts/team-a"), server: "example.com" };

    fn secret(type_: &str, annotations: &Value, data: &[(&str, &str)]) -> Secret {
        let metadata = json!({"name": "server", "annotations": annotations});
        let data = data.iter().map(|(key, text)| ((*key).to_owned(), ByteString((*text).into())));
        Secret {
            metadata: serde_json::from_value(metadata).unwrap(),
            type_: Some(type_.to_owned()),
            data: Some(data.collect()),
            ..Secret::default()
        }
    }

    #[test]
    fn a_secret_that_may_hold_anything_must_be_granted() {
        let data: &[_] = &[("username", "user"), ("password", "s3cret\n")];
        let basic = || Ok(Ok(Credentials::Basic { username: "user".into(), password: "s3cret".into() }));
        let (none, other) = (json!({}), json!({"chandler.dev/bundledeployments": "other"}));
        let granted = json!({"chandler.dev/bundledeployments": "harbour"});
        let with =
            |annotation: &str, value: &str| json!({"chandler.dev/bundledeployments": "harbour", annotation: value});
        let cases = [
            (Some(secret(OPAQUE, &with(SERVICE_ACCOUNTS, "accounts/team-a"), data)), true, basic()),
            (Some(secret(OPAQUE, &with(SERVICE_ACCOUNTS, "accounts/team-b"), data)), true, Err(Refused::NotGranted)),
            (Some(secret(OPAQUE, &with(HOSTS, "example.com"), data)), true, basic()),
            (Some(secret(OPAQUE, &with(HOSTS, "example.org"), data)), true, Err(Refused::OtherServer)),
            (Some(secret(BASIC_AUTH, &json!({HOSTS: "example.org"}), data)), false, Err(Refused::OtherServer)),
            (None, false, Err(Refused::Absent)),
            (Some(secret(OPAQUE, &none, data)), false, Err(Refused::NotGranted)),
            (Some(secret(OPAQUE, &other, data)), false, Err(Refused::NotGranted)),
            (Some(secret(OPAQUE, &granted, data)), false, basic()),
            (Some(secret(BASIC_AUTH, &none, data)), false, basic()),
            (Some(secret(BASIC_AUTH, &none, data)), true, Err(Refused::NotGranted)),
            (Some(secret(BASIC_AUTH, &other, data)), false, Err(Refused::NotGranted)),
            (Some(secret(BASIC_AUTH, &granted, data)), true, basic()),
            (Some(secret(SSH_AUTH, &none, data)), false, basic()),
            (Some(secret(SSH_AUTH, &none, data)), true, Err(Refused::NotGranted)),
            (Some(secret("kubernetes.io/service-account-token", &granted, data)), false, Err(Refused::OtherType)),
            (Some(secret("chandler.dev/record", &granted, data)), false, Err(Refused::OtherType)),
        ];
        for (secret, required, expected) in cases {
            assert_eq!(usable(secret.clone(), USER, required), expected, "{secret:?} {required}");
        }
    }

    #[test]
    fn a_secret_has_one_kind_of_credentials() {
        let granted = json!({"chandler.dev/bundledeployments": "*"});
        let both = "has both the key bearerToken and the key username or password";
        let neither = "has neither the key bearerToken, nor the keys username and password, nor the keys ssh-privatekey and \
                       ssh-knownhosts";
        let unknown =
            "has no key ssh-knownhosts: put in what ssh-keyscan HOST prints, compared with what the host publishes";
        let mixed = "has the key ssh-privatekey, and the key bearerToken or password as well";
        let malformed = "the key ssh-privatekey is not a private key in the OpenSSH or PEM format";
        for (data, expected) in [
            (&[("bearerToken", "t")][..], Ok(Credentials::RegistryToken("t".into()))),
            (&[("bearerToken", "t"), ("username", "u")], Err(both)),
            (&[("username", "u")], Err(neither)),
            (&[("password", "p")], Err(neither)),
            (&[], Err(neither)),
            (&[("ssh-knownhosts", "h")], Err(neither)),
            (&[("ssh-privatekey", "k"), ("username", "u")], Err(unknown)),
            (&[("identity", "k")], Err(unknown)),
            (&[("ssh-privatekey", "k"), ("ssh-knownhosts", "h"), ("password", "p")], Err(mixed)),
            (&[("ssh-privatekey", "k"), ("ssh-knownhosts", "h"), ("bearerToken", "t")], Err(mixed)),
            (&[("ssh-privatekey", "k"), ("ssh-knownhosts", "h")], Err(malformed)),
            (&[("identity", "k"), ("known_hosts", "h"), ("identity.pub", "p")], Err(malformed)),
        ] {
            let expected = expected.map_err(str::to_owned);
            assert_eq!(usable(Some(secret(OPAQUE, &granted, data)), USER, true), Ok(expected), "{data:?}");
        }
    }
}
