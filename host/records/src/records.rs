//! All records.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chandler_rollout::{Holdings, Seal};
use k8s_openapi::{
    ByteString,
    api::core::v1::{Namespace, Secret},
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::{
    book::Book,
    error::RecordError,
    format,
    names::{self, MANAGED_BY, RECORD_TYPE},
    state::State,
};

/// The key of a record in its Secret.
const KEY: &str = "record";
/// What a Secret holds at most, with some room for its metadata.
const LIMIT: usize = 1_000_000;
/// How many records one page of a list holds.
const PAGE: u32 = 100;

/// A BundleDeployment whose record is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its UID.
    pub uid: &'a str,
    /// Whether something was installed for it before: then the absence of a record is a loss, and what refers to it by UID is
    /// its own.
    pub is_known: bool,
    /// Whether it is to be installed. Otherwise nothing new is written for it.
    pub installs: bool,
}

/// The records of one installation of Chandler.
pub struct Records {
    secrets: Secrets,
    books: Mutex<HashMap<String, Arc<Book>>>,
    /// The names for which there was a record at the start, and for which one was written since; none until they were listed.
    listed: Mutex<Option<HashSet<String>>>,
}

impl Records {
    /// Those in this namespace.
    pub fn new(client: &Client, namespace: &str) -> Self {
        Self { secrets: Secrets::new(client, namespace), books: Mutex::default(), listed: Mutex::default() }
    }

    /// Reads all of them, so that each need not be asked for by itself. One that cannot be read is an error where it is wanted.
    ///
    /// # Errors
    /// They cannot be listed, or their namespace neither exists nor can be made.
    ///
    /// `alone` says whether nobody else writes any of them. Otherwise each is read when it is opened.
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
                    let book = Book::new(self.secrets.clone(), state, Some(version));
                    self.books().insert(name, Arc::new(book));
                }
            }
            match next {
                Some(token) => parameters = parameters.continue_token(&token),
                None => break,
            }
        }
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = alone.then_some(names);
        Ok(())
    }

    /// The record of a BundleDeployment. Where there is none it is written, unless nothing is to be installed any more; where
    /// there is that of an earlier one of its name, what that one held was left behind.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub async fn open(&self, subject: Subject<'_>) -> Result<Arc<Book>, RecordError> {
        let known = self.books().get(subject.name).cloned();
        if let Some(book) = known.filter(|book| book.state().holdings.owner() == subject.uid) {
            return Ok(book);
        }
        let book = Arc::new(self.open_anew(subject).await?);
        self.books().insert(subject.name.to_owned(), Arc::clone(&book));
        Ok(book)
    }

    async fn open_anew(&self, subject: Subject<'_>) -> Result<Book, RecordError> {
        let Subject { name, uid, is_known, installs } = subject;
        let found = if self.may_exist(name) { self.secrets.record(name).await? } else { None };
        let seal = Seal::new(random()?);
        let book = match found {
            Some((state, version)) if state.holdings.owner() == uid => {
                return Ok(Book::new(self.secrets.clone(), state, Some(version)));
            }
            Some((earlier, version)) => {
                let state = State {
                    history: Vec::new(),
                    holdings: earlier.holdings.clone().succeeded_by(uid, seal),
                    ..earlier.clone()
                };
                let book = Book::new(self.secrets.clone(), state, Some(version));
                book.forget_releases().await?;
                book
            }
            None => {
                let holdings = Holdings::new(uid, seal);
                let holdings = if is_known { holdings.inheriting() } else { holdings };
                Book::new(self.secrets.clone(), State::new(name, holdings), None)
            }
        };
        if installs {
            book.write().await?;
            if let Some(listed) = &mut *self.listed.lock().unwrap_or_else(PoisonError::into_inner) {
                listed.insert(names::record(name));
            }
        }
        Ok(book)
    }

    /// Whether there may be a record for this name, so that it is worth asking.
    fn may_exist(&self, name: &str) -> bool {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.as_ref().is_none_or(|listed| listed.contains(&names::record(name)))
    }

    /// Forgets what was read of a BundleDeployment that another controller looks after from now on.
    pub fn forget(&self, name: &str) {
        self.books().remove(name);
    }

    /// What was read or written of a BundleDeployment, without asking; none where it was not opened.
    pub fn known(&self, name: &str) -> Option<Arc<Book>> {
        self.books().get(name).cloned()
    }

    /// Removes the records of BundleDeployments that are gone and left nothing behind: of those that somebody took the finalizer
    /// off. Only what was read or written by this process is looked at.
    ///
    /// # Errors
    /// One cannot be removed.
    pub async fn sweep(&self, exists: impl Fn(&str) -> bool) -> Result<usize, RecordError> {
        let books = self.books().clone();
        let mut removed = 0;
        for (name, book) in books {
            // What a deleted one still held was not deleted by anybody here: it stays known.
            if !exists(&name) && !book.state().holdings.has_orphaned() && book.state().holdings.is_empty() {
                self.close(&name, &book).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Ends the record of a BundleDeployment that is about to go. What it left behind stays known under its name.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn close(&self, name: &str, book: &Book) -> Result<(), RecordError> {
        book.close().await?;
        self.books().remove(name);
        Ok(())
    }

    fn books(&self) -> MutexGuard<'_, HashMap<String, Arc<Book>>> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
}

impl Secrets {
    fn new(client: &Client, namespace: &str) -> Self {
        let api = Api::namespaced(client.clone(), namespace);
        Self { api, namespaces: Api::all(client.clone()), namespace: namespace.to_owned() }
    }

    /// Makes the namespace where it is missing and that is allowed.
    async fn ensure_namespace(&self) -> Result<(), RecordError> {
        // Whether it may be read is no matter: the list below tells what is wrong.
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

    /// The record of a name, and its version.
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
            return Err(unreadable(format!("it is not of type {RECORD_TYPE}")));
        }
        let bytes = secret.data.as_ref().and_then(|data| data.get(KEY));
        let state = format::decode(&bytes.ok_or_else(|| unreadable(format!("it has no key {KEY}")))?.0);
        let state = state.map_err(unreadable)?;
        if names::record(&state.name) != name {
            return Err(unreadable(format!("it is that of BundleDeployment {}", state.name)));
        }
        Ok((state, secret.metadata.resource_version.clone().unwrap_or_default()))
    }

    /// Writes a record: creates it, or replaces the one with this version. Its new version; none where another one is there.
    pub(crate) async fn write(&self, state: &State, version: Option<&str>) -> Result<Option<String>, RecordError> {
        let name = names::record(&state.name);
        let bytes = format::encode(state).map_err(|error| self.broken("write", &name, error.to_string()))?;
        if bytes.len() > LIMIT {
            return Err(RecordError::TooLarge { owner: state.name.clone(), bytes: bytes.len(), limit: LIMIT });
        }
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
            Ok(written) => Ok(Some(written.metadata.resource_version.unwrap_or_default())),
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

    pub(crate) async fn create_unless_there(&self, secret: &Secret) -> Result<(), RecordError> {
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

    /// Removes all releases that are kept for BundleDeployments of this name.
    pub(crate) async fn delete_releases(&self, deployment: &str) -> Result<(), RecordError> {
        let mut page = ListParams::default().labels(&names::selector(names::RELEASE)).limit(PAGE);
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
        let message = "somebody else, another controller, say, writes it at the same time".to_owned();
        let name = names::record(deployment);
        RecordError::Request { action: "write", namespace: self.namespace.clone(), name, message, transient: true }
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

/// Whether it is the namespace that is missing, and not the Secret.
fn is_about_namespace(message: &str) -> bool {
    message.starts_with("namespaces ")
}
