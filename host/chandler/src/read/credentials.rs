//! The registry credentials of this user: the files of docker and podman, and the programs that these name.

mod helper;

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

use chandler_content::{AccessError, Credentials, ImageReference, Keyring, PullSecrets};
use serde::Deserialize;
use tokio::runtime::Handle;

use self::helper::{Failed, Helper};
use super::{file, registry_settings::RegistryOptions};
use crate::CommandError;

/// The largest file with registry credentials, in bytes.
const FILE_BYTES: u64 = 1 << 20;
/// What docker calls Docker Hub.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";

/// The credentials of all files, in order. The first file that has some for an image counts.
#[derive(Debug, Default)]
pub struct UserCredentials {
    files: Vec<CredentialFile>,
}

/// A file with credentials, as `docker login` and `podman login` write it.
#[derive(Debug)]
struct CredentialFile {
    path: PathBuf,
    entries: PullSecrets,
    /// By registry.
    helpers: BTreeMap<String, Helper>,
    /// The helper for all other registries.
    store: Option<Helper>,
}

/// The part of a file that names helpers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Helpers {
    #[serde(default)]
    cred_helpers: Option<BTreeMap<String, String>>,
    #[serde(default)]
    creds_store: Option<String>,
}

impl UserCredentials {
    /// Reads the file that the options name, or else all default files that exist: podman's, then docker's.
    ///
    /// # Errors
    /// A file cannot be read, is not a credentials file, or can be written by other users.
    pub fn read(options: &RegistryOptions) -> Result<Self, CommandError> {
        if let Some(path) = &options.registry_config {
            return Ok(Self { files: vec![CredentialFile::read(path)?] });
        }
        let mut files = Vec::new();
        for path in default_files() {
            match file::read_trusted(&path, FILE_BYTES) {
                Ok(text) => files.push(CredentialFile::parse(path, &text)?),
                Err(error) if error.is_missing() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self { files })
    }

    /// The credentials for an image.
    pub async fn find(&self, image: &ImageReference) -> Result<Option<Credentials>, AccessError> {
        for file in &self.files {
            if let Some(found) = file.find(image).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

impl Keyring for UserCredentials {
    fn credentials(&self, image: &ImageReference) -> Result<Option<Credentials>, AccessError> {
        // On a thread for blocking work, which belongs to the runtime.
        Handle::current().block_on(self.find(image))
    }
}

impl CredentialFile {
    fn read(path: &Path) -> Result<Self, CommandError> {
        let text = file::read_trusted(path, FILE_BYTES)?;
        Self::parse(path.to_owned(), &text)
    }

    fn parse(path: PathBuf, text: &[u8]) -> Result<Self, CommandError> {
        let failed = |cause: &AccessError| {
            CommandError::failed(format!("failed to read the credentials in {}", path.display()))
                .because(cause)
                .hint("`docker login` writes such a file; --registry-config names another one")
        };
        let entries = PullSecrets::new([text]).map_err(|error| failed(&error))?;
        // The parser of the entries reports texts that are not JSON without quoting them.
        let helpers: Helpers = serde_json::from_slice(text).map_err(|_| {
            let problem = "`credHelpers` is not an object of names, or `credsStore` is not a name".to_owned();
            failed(&AccessError::Helper(problem))
        })?;
        let named = |name: String| name.parse::<Helper>().map_err(|error| failed(&error));
        let store = helpers.creds_store.filter(|name| !name.is_empty()).map(named).transpose()?;
        let helpers = helpers.cred_helpers.unwrap_or_default().into_iter().filter(|(_, name)| !name.is_empty());
        let helpers: Result<_, CommandError> = helpers.map(|(host, name)| Ok((host, named(name)?))).collect();
        Ok(Self { entries, helpers: helpers?, store, path })
    }

    /// The helper for the registry comes first, then the entries, then the store.
    async fn find(&self, image: &ImageReference) -> Result<Option<Credentials>, AccessError> {
        let at = |error: Failed| AccessError::Helper(format!("{}: {error}", self.path.display()));
        let names = names(image);
        if let Some((host, helper)) = names.iter().find_map(|name| self.helpers.get_key_value(*name)) {
            return helper.get(host).await.map_err(at);
        }
        if let Some(found) = self.entries.credentials(image)? {
            return Ok(Some(found));
        }
        let Some(store) = &self.store else { return Ok(None) };
        let host = if names.contains(&DOCKER_HUB) { DOCKER_HUB } else { image.registry_name() };
        match store.get(host).await {
            // Files name stores that only exist on another machine; without credentials a public image can be pulled.
            Err(Failed::NotInstalled(program)) => {
                tracing::warn!(program, file = %self.path.display(), "the credential store is not installed and not used");
                Ok(None)
            }
            found => found.map_err(at),
        }
    }
}

/// The names that files have for the registry of an image.
fn names(image: &ImageReference) -> Vec<&str> {
    let name = image.registry_name();
    if name == "docker.io" { vec![DOCKER_HUB, "docker.io", "index.docker.io"] } else { vec![name] }
}

/// The files that `podman login` and `docker login` write, as containers-auth.json(5) orders them.
fn default_files() -> Vec<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = env::home_dir();
    let below = |directory: Option<PathBuf>, path: &str| directory.map(|directory| directory.join(path));
    let config = variable("XDG_CONFIG_HOME").or_else(|| below(home.clone(), ".config"));
    let docker = variable("DOCKER_CONFIG").or_else(|| below(home, ".docker"));
    [
        below(variable("XDG_RUNTIME_DIR"), "containers/auth.json"),
        below(config, "containers/auth.json"),
        below(docker, "config.json"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn file(text: &str) -> Result<CredentialFile, CommandError> {
        CredentialFile::parse("config.json".into(), text.as_bytes())
    }

    fn basic(username: &str, password: &str) -> Credentials {
        Credentials::Basic { username: username.to_owned(), password: password.to_owned() }
    }

    /// A program that answers like a helper does: for `tokens.io` with a token, for `empty.io` that it has none, for `bad.io` with
    /// nonsense, for `endless.io` without end, else with the registry as the user.
    fn program(directory: &Path) -> Helper {
        let path = directory.join("docker-credential-test");
        let script = r#"#!/bin/sh
test "$1" = get || exit 3
read -r host || test -n "$host" || exit 4
case "$host" in
  tokens.io) echo '{"ServerURL":"tokens.io","Username":"<token>","Secret":"s3cret"}';;
  empty.io) echo "credentials not found in native keychain"; exit 1;;
  locked.io) printf 'the keychain is \033[31mlocked\n'; exit 1;;
  bad.io) echo '{"Username":"s3cret"';;
  endless.io) exec yes s3cret;;
  *) echo "{\"Username\":\"$host\",\"Secret\":\"p\"}";;
esac
"#;
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Helper::at(path)
    }

    #[tokio::test]
    async fn helpers_are_asked_for_their_registry_only() {
        let directory = tempfile::tempdir().unwrap();
        let helper = program(directory.path());
        let text = r#"{"auths": {"quay.io": {"auth": "dTpw"}, "helped.io": {"auth": "dTpw"}}}"#;
        let mut file = file(text).unwrap();
        for host in ["helped.io", "tokens.io", "empty.io", "bad.io", "locked.io", "endless.io", DOCKER_HUB] {
            file.helpers.insert(host.to_owned(), helper.clone());
        }
        let user = UserCredentials { files: vec![file] };
        for (image, expected) in [
            ("quay.io/a:v1", Ok(Some(basic("u", "p")))),
            ("helped.io/a:v1", Ok(Some(basic("helped.io", "p")))),
            ("tokens.io/a:v1", Ok(Some(Credentials::IdentityToken("s3cret".to_owned())))),
            ("empty.io/a:v1", Ok(None)),
            ("other.io/a:v1", Ok(None)),
            ("busybox", Ok(Some(basic(DOCKER_HUB, "p")))),
            ("bad.io/a:v1", Err("its answer is not credentials in JSON")),
            ("locked.io/a:v1", Err("it failed: the keychain is ")),
            ("endless.io/a:v1", Err("its answer is longer than 65536 bytes")),
        ] {
            let found = user.find(&image.parse().unwrap()).await;
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{image}"),
                (Err(error), Err(expected)) => {
                    let error = error.to_string();
                    assert!(error.contains(expected) && error.starts_with("config.json: "), "{image}: {error}");
                    assert!(!error.contains("s3cret") && !error.contains('\u{1b}'), "{error}");
                }
                (found, expected) => panic!("{image}: {found:?}, not {expected:?}"),
            }
        }
        // From a thread for blocking work, as mirrors are.
        let keyring = std::sync::Arc::new(user);
        let found = tokio::task::spawn_blocking(move || keyring.credentials(&"helped.io/a:v1".parse().unwrap()));
        assert_eq!(found.await.unwrap(), Ok(Some(basic("helped.io", "p"))));
    }

    #[tokio::test]
    async fn a_store_is_asked_for_what_has_no_entry() {
        let directory = tempfile::tempdir().unwrap();
        let mut stored = file(r#"{"auths": {"quay.io": {"auth": "dTpw"}, "other.io": {}}}"#).unwrap();
        stored.store = Some(program(directory.path()));
        let second = file(r#"{"auths": {"empty.io": {"auth": "dTpx"}}}"#).unwrap();
        let mut user = UserCredentials { files: vec![stored, second] };
        for (image, expected) in [
            ("quay.io/a:v1", Some(basic("u", "p"))),
            ("other.io/a:v1", Some(basic("other.io", "p"))),
            ("busybox", Some(basic(DOCKER_HUB, "p"))),
            ("empty.io/a:v1", Some(basic("u", "q"))),
        ] {
            assert_eq!(user.find(&image.parse().unwrap()).await, Ok(expected), "{image}");
        }
        let absent = Helper::at(directory.path().join("absent"));
        user.files[0].store = Some(absent.clone());
        assert_eq!(user.find(&"other.io/a:v1".parse().unwrap()).await, Ok(None));
        user.files[0].helpers.insert("other.io".to_owned(), absent);
        let error = user.find(&"other.io/a:v1".parse().unwrap()).await.unwrap_err().to_string();
        assert!(error.ends_with("absent is not installed"), "{error}");
    }

    #[test]
    fn names_of_helpers_are_names_of_programs() {
        for text in [
            r#"{"credsStore": "../evil"}"#,
            r#"{"credHelpers": {"quay.io": "a b"}}"#,
            r#"{"credHelpers": {"quay.io": "-x"}}"#,
            r#"{"credsStore": ["x"]}"#,
            "s3cret",
        ] {
            let error = file(text).unwrap_err().to_string();
            assert!(
                error.contains("failed to read the credentials in config.json") && !error.contains("s3cret"),
                "{error}"
            );
        }
        assert!(file(r#"{"credsStore": "", "credHelpers": {"quay.io": ""}}"#).unwrap().store.is_none());
        assert!(
            file(r#"{"credsStore": "desktop.exe", "credHelpers": {"a.io": "ecr-login"}}"#).unwrap().store.is_some()
        );
    }
}
