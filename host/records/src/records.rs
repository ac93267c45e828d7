//! All records of an installation.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use chandler_rollout::{Holdings, OlderRecord, Seal};
use k8s_openapi::{
    ByteString,
    api::core::v1::{Namespace, Secret},
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use parking_lot::{Mutex, MutexGuard};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::{
    error::RecordError,
    format,
    names::{self, MANAGED_BY, RECORD_TYPE},
    record::Record,
    state::State,
    storage::{Storage, StorageLimit},
};

/// The key of a record in its Secret.
const KEY: &str = "record";
/// The largest record in bytes, with room for the metadata of the Secret.
const LIMIT: usize = 1_000_000;
/// The page size when listing records.
const PAGE: u32 = 100;

/// The BundleDeployment whose record is opened.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its UID.
    pub uid: &'a str,
    /// The ServiceAccount that it names, as `NAMESPACE/NAME`.
    pub account: Option<&'a str>,
    /// Whether a release was installed for it before. If so, a missing record was lost, and objects that refer to its
    /// UID belong to it.
    pub is_known: bool,
    /// Whether it will be installed, so that there may be a record from now on.
    pub installs: bool,
    /// Whether it has our finalizer, with which the record is deleted. Without it no record must exist.
    pub is_held: bool,
}

/// The records of one installation of Chandler.
pub struct Records {
    secrets: Secrets,
    cached: Mutex<HashMap<String, Arc<Record>>>,
    /// The names with a record, at startup or written since; none until they were listed.
    listed: Mutex<Option<HashSet<String>>>,
}

impl Records {
    /// The records in a namespace.
    pub fn new(client: &Client, namespace: &str) -> Self {
        Self { secrets: Secrets::new(client, namespace), cached: Mutex::default(), listed: Mutex::default() }
    }

    /// With a limit on what the records and releases of each tenant take together.
    #[must_use]
    pub fn limited(self, limit: StorageLimit) -> Self {
        let storage = Arc::new(Storage::new(limit));
        Self { secrets: Secrets { storage, ..self.secrets }, ..self }
    }

    /// Reads all records at once, so that they need not be requested one by one. An unreadable record is an error only
    /// when it is opened.
    ///
    /// # Errors
    /// The records cannot be listed, or their namespace does not exist and cannot be created.
    ///
    /// `alone` states that no other client writes the records. Otherwise each record is read again when it is opened.
    pub async fn load(&self, alone: bool) -> Result<(), RecordError> {
        self.secrets.ensure_namespace().await?;
        let mut names = HashSet::new();
        let mut parameters = ListParams::default().labels(&names::selector(names::RECORD)).limit(PAGE);
        loop {
            let page = self.secrets.api.list(&parameters).await;
            let page = page.map_err(|error| self.secrets.failed("list", "record-*", error))?;
            let next = page.metadata.continue_.filter(|token| !token.is_empty());
            for secret in page.items {
                let Some(name) = names::deployment(&secret.metadata).map(str::to_owned) else { continue };
                names.insert(secret.metadata.name.clone().unwrap_or_default());
                if alone && let Ok((state, version)) = self.secrets.parse(&secret) {
                    let record = Record::new(self.secrets.clone(), state, Some(version));
                    self.cached().insert(name, Arc::new(record));
                }
            }
            match next {
                Some(token) => parameters = parameters.continue_token(&token),
                None => break,
            }
        }
        *self.listed.lock() = alone.then_some(names);
        Ok(())
    }

    /// Opens the record of a BundleDeployment. If there is none, its first write creates it, or the end of the reconcile of one that
    /// will be installed and has our finalizer.
    ///
    /// If the record belongs to an earlier BundleDeployment of the same name that was not deleted by the controller, with the same account,
    /// the BundleDeployment was restored from a backup: it continues with the record. With another account it may belong to another
    /// user. Then, and after a deletion, the earlier one's objects count as orphaned, and its revisions and releases are not used.
    ///
    /// # Errors
    /// The record cannot be read or written.
    pub async fn open(&self, subject: Subject<'_>) -> Result<Arc<Record>, RecordError> {
        let known = self.cached().get(subject.name).cloned();
        if let Some(record) = known.filter(|record| record.state().holdings.owner() == subject.uid) {
            if subject.installs {
                record.note_account(subject.account);
                if subject.is_held {
                    record.require();
                }
            }
            return Ok(record);
        }
        let record = Arc::new(self.open_uncached(subject).await?);
        self.cached().insert(subject.name.to_owned(), Arc::clone(&record));
        Ok(record)
    }

    async fn open_uncached(&self, subject: Subject<'_>) -> Result<Record, RecordError> {
        let Subject { name, uid, account, is_known, installs, is_held } = subject;
        let found = if self.may_exist(name) { self.secrets.record(name).await? } else { None };
        let seal = Seal::new(random()?);
        let record = match found {
            Some((state, version)) if state.holdings.owner() == uid => {
                let record = Record::new(self.secrets.clone(), state, Some(version));
                if installs {
                    record.note_account(account);
                }
                return Ok(record);
            }
            Some((earlier, version)) if is_restored(&earlier, account) => {
                tracing::info!(deployment = name, from = earlier.holdings.owner(), to = uid, "restored from a backup");
                let holdings = earlier.holdings.clone().restored_as(uid);
                return Ok(Record::new(self.secrets.clone(), State { holdings, ..earlier }, Some(version)));
            }
            Some((earlier, version)) => {
                let state = State {
                    account: None,
                    target: None,
                    history: Vec::new(),
                    holdings: earlier.holdings.clone().succeeded_by(uid, seal),
                    ..earlier.clone()
                };
                let record = Record::new(self.secrets.clone(), state, Some(version));
                record.delete_releases().await?;
                record
            }
            None => {
                let holdings = Holdings::new(uid, seal);
                let holdings = if is_known { holdings.inheriting() } else { holdings };
                Record::new(self.secrets.clone(), State::new(name, holdings), None)
            }
        };
        if installs {
            record.note_account(account);
            // Nothing is written to the cluster before the first intent, which creates the record. That a record was lost must not be
            // forgotten before.
            if is_known && !record.is_stored() {
                record.write().await?;
            }
            if is_held {
                record.require();
            }
            if let Some(listed) = &mut *self.listed.lock() {
                listed.insert(names::record(name));
            }
        }
        Ok(record)
    }

    /// Whether there may be a record for this name, so that it must be requested.
    fn may_exist(&self, name: &str) -> bool {
        let listed = self.listed.lock();
        listed.as_ref().is_none_or(|listed| listed.contains(&names::record(name)))
    }

    /// Drops the cached record of a BundleDeployment, so that the Secret is read again: another controller manages the BundleDeployment
    /// from now on, or an administrator has to restore or delete the Secret.
    pub fn forget(&self, name: &str) {
        self.cached().remove(name);
    }

    /// Like [`forget`](Self::forget), for a record that did not exist, and that a restored backup may bring.
    pub fn expect(&self, name: &str) {
        self.forget(name);
        if let Some(listed) = &mut *self.listed.lock() {
            listed.insert(names::record(name));
        }
    }

    /// The cached record of a BundleDeployment, without a request, or `None` if it was not opened.
    pub fn known(&self, name: &str) -> Option<Arc<Record>> {
        self.cached().get(name).cloned()
    }

    /// The content of the record of a BundleDeployment with this account, for others that look at what it has; `None` without a record of this
    /// very BundleDeployment, which may have been restored from a backup. Requests the record if it is not cached, and does not cache it: it is the reconcile of the BundleDeployment that
    /// opens it.
    ///
    /// # Errors
    /// The record cannot be read.
    pub async fn read(&self, name: &str, uid: &str, account: Option<&str>) -> Result<Option<Arc<State>>, RecordError> {
        let state = match self.known(name) {
            Some(record) => Some(record.state()),
            None if self.may_exist(name) => self.secrets.record(name).await?.map(|(state, _)| Arc::new(state)),
            None => None,
        };
        Ok(state.and_then(|state| {
            if state.holdings.owner() == uid {
                return Some(state);
            }
            let holdings = || state.holdings.clone().restored_as(uid);
            is_restored(&state, account).then(|| Arc::new(State { holdings: holdings(), ..State::clone(&state) }))
        }))
    }

    /// Deletes the records of BundleDeployments that disappeared without a finalizer (because a user removed it) and that
    /// hold no objects, also no orphaned ones. Considers only records that this process read or wrote.
    ///
    /// # Errors
    /// A record cannot be deleted.
    pub async fn sweep(&self, exists: impl Fn(&str) -> bool) -> Result<usize, RecordError> {
        let cached = self.cached().clone();
        let mut removed = 0;
        for (name, record) in cached {
            // Keep it if objects remain: they were not deleted by the controller.
            if !exists(&name) && !record.state().holdings.has_orphaned() && record.state().holdings.is_empty() {
                self.close(&name, &record).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Closes the record of a BundleDeployment before its deletion. Objects that it orphaned stay recorded under its
    /// name.
    ///
    /// # Errors
    /// The record cannot be written.
    pub async fn close(&self, name: &str, record: &Record) -> Result<(), RecordError> {
        record.close().await?;
        self.cached().remove(name);
        Ok(())
    }

    fn cached(&self) -> MutexGuard<'_, HashMap<String, Arc<Record>>> {
        self.cached.lock()
    }
}

/// Whether a BundleDeployment with this account and another UID is the one of this record, restored from a backup. After a deletion the
/// record lists nothing but orphaned objects.
fn is_restored(earlier: &State, account: Option<&str>) -> bool {
    !earlier.holdings.is_empty() && !earlier.history.is_empty() && earlier.account.as_deref() == account
}

fn random() -> Result<[u8; 32], RecordError> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| RecordError::Random)?;
    Ok(bytes)
}

/// The Secrets of the system namespace.
#[derive(Clone, Debug)]
pub(crate) struct Secrets {
    api: Api<Secret>,
    namespaces: Api<Namespace>,
    namespace: String,
    /// What they take.
    pub(crate) storage: Arc<Storage>,
}

impl Secrets {
    fn new(client: &Client, namespace: &str) -> Self {
        let api = Api::namespaced(client.clone(), namespace);
        let namespaces = Api::all(client.clone());
        Self { api, namespaces, namespace: namespace.to_owned(), storage: Arc::default() }
    }

    /// Creates the namespace if it does not exist and permissions allow it.
    async fn ensure_namespace(&self) -> Result<(), RecordError> {
        // A failed read is ignored here: listing the Secrets reports the error.
        if !matches!(self.namespaces.get_opt(&self.namespace).await, Ok(None)) {
            return Ok(());
        }
        let namespace = Namespace {
            metadata: kube::api::ObjectMeta { name: Some(self.namespace.clone()), ..Default::default() },
            ..Namespace::default()
        };
        match self.namespaces.create(&PostParams::default(), &namespace).await {
            Ok(_) => tracing::info!(namespace = %self.namespace, "created the system namespace"),
            Err(error) => tracing::warn!(namespace = %self.namespace, %error, "the system namespace does not exist"),
        }
        Ok(())
    }

    /// The record of a name with its resource version.
    pub(crate) async fn record(&self, deployment: &str) -> Result<Option<(State, String)>, RecordError> {
        let secret = self.get(&names::record(deployment)).await?;
        secret.map(|secret| self.parse(&secret)).transpose()
    }

    fn parse(&self, secret: &Secret) -> Result<(State, String), RecordError> {
        let name = secret.metadata.name.clone().unwrap_or_default();
        let unreadable = |message: String| RecordError::Unreadable {
            namespace: self.namespace.clone(),
            name: name.clone(),
            message,
        };
        if secret.type_.as_deref() != Some(RECORD_TYPE) {
            return Err(unreadable(format!("its type is not {RECORD_TYPE}")));
        }
        let bytes = secret.data.as_ref().and_then(|data| data.get(KEY));
        let bytes = bytes.ok_or_else(|| unreadable(format!("it has no key {KEY}")))?.0.as_slice();
        let state = format::decode(bytes).map_err(unreadable)?;
        if names::record(&state.name) != name {
            return Err(unreadable(format!("it belongs to BundleDeployment {}", state.name)));
        }
        self.storage.note_record(&state.name, bytes.len());
        Ok((state, secret.metadata.resource_version.clone().unwrap_or_default()))
    }

    /// Creates a record, or replaces the one with this version. Returns the new version, or `None` if another version exists.
    pub(crate) async fn write(&self, state: &State, version: Option<&str>) -> Result<Option<String>, RecordError> {
        let name = names::record(&state.name);
        let bytes = format::encode(state).map_err(|error| self.broken("write", &name, error.to_string()))?;
        if bytes.len() > LIMIT {
            return Err(RecordError::TooLarge { owner: state.name.clone(), bytes: bytes.len(), limit: LIMIT });
        }
        let length = bytes.len();
        let mut metadata = names::metadata(name.clone(), names::RECORD, &state.name);
        metadata.resource_version = version.map(str::to_owned);
        let secret = Secret {
            metadata,
            type_: Some(RECORD_TYPE.to_owned()),
            data: Some([(KEY.to_owned(), ByteString(bytes))].into()),
            ..Secret::default()
        };
        let parameters = PostParams { field_manager: Some(MANAGED_BY.1.to_owned()), ..PostParams::default() };
        let written = match version {
            Some(_) => self.api.replace(&name, &parameters, &secret).await,
            None => self.api.create(&parameters, &secret).await,
        };
        match written {
            Ok(written) => {
                self.storage.note_record(&state.name, length);
                Ok(Some(written.metadata.resource_version.unwrap_or_default()))
            }
            Err(kube::Error::Api(status))
                if matches!(status.code, 404 | 409) && !is_about_namespace(&status.message) =>
            {
                Ok(None)
            }
            Err(error) => Err(self.failed("write", &name, error)),
        }
    }

    pub(crate) async fn get(&self, name: &str) -> Result<Option<Secret>, RecordError> {
        self.api.get_opt(name).await.map_err(|error| self.failed("read", name, error))
    }

    pub(crate) async fn create_if_absent(&self, secret: &Secret) -> Result<(), RecordError> {
        let parameters = PostParams { field_manager: Some(MANAGED_BY.1.to_owned()), ..PostParams::default() };
        match self.api.create(&parameters, secret).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
            Err(error) => Err(self.failed("create", secret.metadata.name.as_deref().unwrap_or_default(), error)),
        }
    }

    pub(crate) async fn delete(&self, name: &str) -> Result<(), RecordError> {
        match self.api.delete(name, &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(self.failed("delete", name, error)),
        }
    }

    /// Deletes all releases stored for BundleDeployments of this name.
    pub(crate) async fn delete_releases(&self, deployment: &str) -> Result<(), RecordError> {
        let mut page = ListParams::default().labels(&names::selector_of(names::RELEASE, deployment)).limit(PAGE);
        loop {
            let listed = self.api.list_metadata(&page).await;
            let listed = listed.map_err(|error| self.failed("list", "releases", error))?;
            let own = listed.items.iter().filter(|secret| names::deployment(&secret.metadata) == Some(deployment));
            for name in own.filter_map(|secret| secret.metadata.name.as_deref()) {
                self.delete(name).await?;
            }
            match listed.metadata.continue_.filter(|next| !next.is_empty()) {
                Some(next) => page = page.continue_token(&next),
                None => return Ok(()),
            }
        }
    }

    pub(crate) async fn delete_record(&self, deployment: &str) -> Result<(), RecordError> {
        self.delete(&names::record(deployment)).await
    }

    fn failed(&self, action: &'static str, name: &str, error: kube::Error) -> RecordError {
        let (message, transient) = match &error {
            kube::Error::Api(status) => (status.message.clone(), matches!(status.code, 409 | 429 | 500..)),
            other => (other.to_string(), true),
        };
        RecordError::Request { action, namespace: self.namespace.clone(), name: name.to_owned(), message, transient }
    }

    pub(crate) fn contended(&self, deployment: &str) -> RecordError {
        let message = "another client, such as a second controller, is writing it at the same time".to_owned();
        let name = names::record(deployment);
        RecordError::Request { action: "write", namespace: self.namespace.clone(), name, message, transient: true }
    }

    pub(crate) fn older(&self, deployment: &str, found: OlderRecord) -> RecordError {
        let (namespace, name) = (self.namespace.clone(), names::record(deployment));
        RecordError::Older { found, namespace, name, owner: deployment.to_owned() }
    }

    fn broken(&self, action: &'static str, name: &str, message: String) -> RecordError {
        RecordError::Request {
            action,
            namespace: self.namespace.clone(),
            name: name.to_owned(),
            message,
            transient: false,
        }
    }
}

/// Whether the namespace is missing and not the Secret.
fn is_about_namespace(message: &str) -> bool {
    message.starts_with("namespaces ")
}
