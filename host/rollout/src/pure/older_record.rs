//! Whether the record of an owner is older than its objects: a backup of the record was restored, and not of the objects. Pure.
//!
//! A revision is recorded before any of its objects is written, and each object that it writes has a mark that names it. So an
//! object with the mark of a revision that the record does not have shows that the record lost it. Every decision from such a record
//! is wrong: the release of an earlier revision would replace the one that runs, and objects of the lost revision would count as
//! objects of other owners. A crash between the two writes leaves a record that is newer than the objects, never an older one.
//!
//! Only the owner's secret makes such a mark, so no user who may patch an object can stop the owner with a forged one. Marks of
//! earlier versions of Chandler name no revision, and show nothing.

use chandler_core::ObjectKey;
use serde_json::Value;

use crate::pure::{error::RolloutError, owner::Owner};

/// An object that a revision wrote which the record does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("revision {written} wrote {object}, but the record ends with revision {recorded}")]
pub struct OlderRecord {
    /// The object.
    pub object: Box<ObjectKey>,
    /// The revision that wrote it.
    pub written: u64,
    /// The newest revision in the record.
    pub recorded: u64,
}

/// The revision that wrote an object, if the record does not have it.
fn lost_revision(owner: &Owner, object: &Value) -> Option<u64> {
    let (ledger, holdings) = (owner.ledger.as_ref()?, owner.holdings()?);
    holdings.revision_of(object).filter(|written| *written > ledger.recorded_revision())
}

/// Whether an object shows that the record is older.
pub(crate) fn shows(owner: &Owner, object: &Value) -> bool {
    lost_revision(owner, object).is_some()
}

/// Refuses to continue if one of these objects shows that the record is older.
pub(crate) fn refuse<'a>(
    owner: &Owner,
    objects: impl IntoIterator<Item = &'a Value>,
    key: impl Fn(&Value) -> ObjectKey,
) -> Result<(), RolloutError> {
    let Some(ledger) = &owner.ledger else { return Ok(()) };
    let lost = |object: &'a Value| Some((object, lost_revision(owner, object)?));
    let Some((object, written)) = objects.into_iter().find_map(lost) else { return Ok(()) };
    let found = OlderRecord { object: Box::new(key(object)), written, recorded: ledger.recorded_revision() };
    ledger.refute(&found);
    Err(RolloutError::OlderRecord(found))
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use futures::future::BoxFuture;
    use serde_json::json;

    use super::*;
    use crate::pure::{
        desired::SEAL,
        holdings::{Holdings, Intent, Settlement},
        ledger::{InMemory, Ledger, LedgerError},
        live,
        seal::Seal,
    };

    /// The record of an owner whose newest revision is this one.
    #[derive(Debug)]
    struct Revised {
        inner: InMemory,
        recorded: u64,
        refuted: AtomicBool,
    }

    impl Ledger for Revised {
        fn holdings(&self) -> Arc<Holdings> {
            self.inner.holdings()
        }

        fn begin(&self, intent: Intent) -> BoxFuture<'_, Result<(), LedgerError>> {
            self.inner.begin(intent)
        }

        fn recorded_revision(&self) -> u64 {
            self.recorded
        }

        fn refute(&self, _: &OlderRecord) {
            self.refuted.store(true, Ordering::SeqCst);
        }

        fn settle(&self, settlement: Settlement) -> BoxFuture<'_, Result<(), LedgerError>> {
            self.inner.settle(settlement)
        }
    }

    fn config_map(mark: Option<&str>) -> Value {
        let metadata = json!({"name": "x", "namespace": "n", "annotations": {SEAL: mark}});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    }

    fn key(object: &Value) -> ObjectKey {
        let (group, version) = (String::new(), "v1".to_owned());
        let id = live::id(object);
        ObjectKey { group, version, kind: id.kind, namespace: id.namespace, name: id.name }
    }

    /// Whether a record that ends with revision 2 is refuted by an object with this mark.
    fn refuted_by(mark: Option<&str>) -> bool {
        let inner = InMemory::with(Holdings::new("uid-a", Seal::new([1; 32])));
        let record = Arc::new(Revised { inner, recorded: 2, refuted: AtomicBool::new(false) });
        let owner = live::tests::owner().recorded_in(Arc::<Revised>::clone(&record));
        let found = refuse(&owner, [&config_map(None), &config_map(mark)], key);
        let noted = record.refuted.load(Ordering::SeqCst);
        assert_eq!(found.is_err(), noted);
        if let Err(error) = found {
            let message = "revision 3 wrote ConfigMap n/x, but the record ends with revision 2";
            assert_eq!(error.to_string(), message);
        }
        noted
    }

    #[test]
    fn only_the_mark_of_a_revision_that_the_record_does_not_have_refutes_it() {
        let mark = |seal: u8, revision| {
            Holdings::new("uid-a", Seal::new([seal; 32])).mark(&live::id(&config_map(None)), revision)
        };
        assert!(refuted_by(Some(&mark(1, 3))));
        for (mark, what) in [
            (None, "no mark"),
            (Some(mark(1, 0)), "written by an earlier version of Chandler"),
            (Some(mark(1, 1)), "unchanged since an earlier revision"),
            (Some(mark(1, 2)), "written by the newest revision"),
            (Some(mark(2, 3)), "made with another seal"),
            (Some(format!("9{}", mark(1, 3))), "forged"),
        ] {
            assert!(!refuted_by(mark.as_deref()), "{what}");
        }
    }

    #[test]
    fn an_owner_without_a_record_has_no_older_one() {
        let mark = Holdings::new("uid-a", Seal::new([1; 32])).mark(&live::id(&config_map(None)), 3);
        assert!(refuse(&live::tests::owner(), [&config_map(Some(&mark))], key).is_ok());
    }
}
