//! Which Leases elect a leader, and why a process is not the leader.

use std::{collections::BTreeMap, fmt, io, sync::Arc};

use kube::Client;

use super::lease::Timing;

/// How much longer than its own Lease the Lease of an installation lasts without a renewal: a restart of all replicas, such as an upgrade, must
/// not let another installation take over. It is renewed as much less often.
const INSTALLATION_PATIENCE: u32 = 4;

/// Elects one process among those that reconcile the same objects: the holder of a Lease.
#[derive(Clone)]
pub struct Election {
    connect: Arc<dyn Fn() -> kube::Result<Client> + Send + Sync>,
    pub(super) own: LeaseName,
    /// The Lease that all installations of the cluster have in common.
    pub(super) installation: Option<LeaseName>,
    pub(super) timing: Timing,
    /// Annotations of the own Lease while this process holds it, by name. Without a value, the annotation is removed.
    pub(super) annotations: Arc<BTreeMap<String, Option<String>>>,
    /// Called when another process holds the Lease, with the annotations of that Lease.
    waiting: Waiting,
    /// Called after each renewal.
    renewed: Arc<dyn Fn(Renewal) + Send + Sync>,
}

/// Receives the annotations of a Lease that another process holds.
type Waiting = Arc<dyn Fn(&BTreeMap<String, String>) + Send + Sync>;

/// How the renewal of the Leases ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// Every Lease was renewed.
    Completed,
    /// A request failed. It is tried again.
    Failed,
    /// Another process holds a Lease.
    Lost,
}

impl Renewal {
    /// The value of a metric label: `completed`, `failed` or `lost`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Lost => "lost",
        }
    }
}

/// A Lease, and how it names this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeaseName {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) identity: String,
}

/// Why this process is not the leader and will not become it.
#[derive(Debug, thiserror::Error)]
pub enum ElectionError {
    /// Another process is the leader.
    #[error("another controller has become the leader: {holder} holds the Lease {namespace}/{name}")]
    Lost {
        /// The namespace of the Lease.
        namespace: String,
        /// The name of the Lease.
        name: String,
        /// The identity of the leader.
        holder: String,
    },
    /// The controller of another system namespace has taken over.
    #[error("{}", other_installation(holder, namespace, name))]
    OtherInstallation {
        /// The namespace of the Lease.
        namespace: String,
        /// The name of the Lease.
        name: String,
        /// The system namespace of the other controller.
        holder: String,
    },
    /// The API server refuses to let this process read or write the Lease.
    #[error("failed to hold the Lease {namespace}/{name}")]
    Refused {
        /// The namespace of the Lease.
        namespace: String,
        /// The name of the Lease.
        name: String,
        /// The error of the client.
        source: kube::Error,
    },
    /// No client can be made.
    #[error("failed to make a client for the Lease")]
    Client(#[source] kube::Error),
    /// The thread that holds the Lease cannot be started.
    #[error("failed to start the thread that holds the Lease")]
    Thread(#[source] io::Error),
    /// The thread that holds the Lease panicked; the log has the panic.
    #[error("the thread that holds the Lease panicked: please report what the log says")]
    Panicked,
}

/// That another installation has the objects, and what helps.
pub(super) fn other_installation(holder: &str, namespace: &str, name: &str) -> String {
    format!(
        "the controller of the system namespace {holder} reconciles the same objects (it holds the Lease {namespace}/{name}): stop one of the \
         two controllers, or let each reconcile a part of the objects (--watch-selector)"
    )
}

impl Election {
    /// An election by this Lease, for a process with this identity. No two processes may have the same one. `connect` makes the client, on the
    /// thread that holds the Lease: the connections of a client stop with the runtime in which it was made.
    pub fn new(
        connect: impl Fn() -> kube::Result<Client> + Send + Sync + 'static,
        namespace: &str,
        name: &str,
        identity: String,
    ) -> Self {
        let own = LeaseName { namespace: namespace.to_owned(), name: name.to_owned(), identity };
        Self {
            connect: Arc::new(connect),
            own,
            installation: None,
            timing: Timing::default(),
            annotations: Arc::default(),
            waiting: Arc::new(|_| {}),
            renewed: Arc::new(|_| {}),
        }
    }

    /// Replaces the times of the election.
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    /// Sets these annotations of the Lease while this process holds it, so that processes that wait learn about this one. An annotation
    /// without a value is removed: the process that held the Lease before may have set it.
    #[must_use]
    pub fn annotated(self, annotations: BTreeMap<String, Option<String>>) -> Self {
        Self { annotations: Arc::new(annotations), ..self }
    }

    /// Calls this each time that this process has read the Lease and found that another one holds it, with the annotations of the Lease. They
    /// are empty if this process holds its own Lease and waits for the installation's.
    #[must_use]
    pub fn when_waiting(self, waiting: impl Fn(&BTreeMap<String, String>) + Send + Sync + 'static) -> Self {
        Self { waiting: Arc::new(waiting), ..self }
    }

    /// Calls this after each renewal of the Leases.
    #[must_use]
    pub fn when_renewed(self, renewed: impl Fn(Renewal) + Send + Sync + 'static) -> Self {
        Self { renewed: Arc::new(renewed), ..self }
    }

    /// The leader also holds a Lease that all installations on the cluster have in common, so that one of them works and the others wait.
    /// `installation` names this one: its system namespace. Replicas hand the Lease on; another installation gets it once it has expired.
    #[must_use]
    pub fn among_installations(self, namespace: &str, name: &str, installation: &str) -> Self {
        let (namespace, name, identity) = (namespace.to_owned(), name.to_owned(), installation.to_owned());
        Self { installation: Some(LeaseName { namespace, name, identity }), ..self }
    }

    /// The times of the Lease of the installation.
    pub(super) fn installation_timing(&self) -> Timing {
        self.timing.stretched(INSTALLATION_PATIENCE)
    }

    pub(super) fn note_waiting(&self, annotations: &BTreeMap<String, String>) {
        (self.waiting)(annotations);
    }

    pub(super) fn note_renewal(&self, renewal: Renewal) {
        (self.renewed)(renewal);
    }

    pub(super) fn connect(&self) -> Result<Client, ElectionError> {
        (self.connect)().map_err(ElectionError::Client)
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connect: _, own, installation, timing, annotations, waiting: _, renewed: _ } = self;
        let mut fields = f.debug_struct("Election");
        fields.field("own", own).field("installation", installation).field("timing", timing);
        fields.field("annotations", annotations).finish_non_exhaustive()
    }
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
