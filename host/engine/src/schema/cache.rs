//! A cache of compiled schemas. Compiling the schema of a large format takes longer than rendering a small bundle, and
//! the bundles of a format share a few schemas.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use chandler_core::Digest;
use parking_lot::Mutex;

use super::Schema;
use crate::CallError;

/// The total number of parts of the cached schemas of one provisioner. A part takes well below a kilobyte.
const PARTS: usize = 50_000;

/// The most recently used schemas of one provisioner.
#[derive(Default)]
pub(crate) struct Schemas(Mutex<VecDeque<(Digest, Arc<Schema>)>>);

impl Schemas {
    /// Returns the cached schema, or compiles it.
    pub(crate) fn read(&self, text: &str, deadline: Instant) -> Result<Arc<Schema>, CallError> {
        let digest = Digest::of(text.as_bytes());
        if let Some(schema) = self.find(&digest) {
            return Ok(schema);
        }
        // A concurrent call may compile the same schema; that is rare and cheaper than making it wait.
        let schema = Arc::new(Schema::read(text, deadline)?);
        self.keep(digest, &schema);
        Ok(schema)
    }

    fn find(&self, digest: &Digest) -> Option<Arc<Schema>> {
        let mut kept = self.0.lock();
        let index = kept.iter().position(|(found, _)| found == digest)?;
        let found = kept.remove(index)?;
        let schema = Arc::clone(&found.1);
        kept.push_front(found);
        Some(schema)
    }

    fn keep(&self, digest: Digest, schema: &Arc<Schema>) {
        let mut kept = self.0.lock();
        kept.retain(|(found, _)| *found != digest);
        kept.push_front((digest, Arc::clone(schema)));
        let mut parts = 0_usize;
        kept.retain(|(_, schema)| {
            parts = parts.saturating_add(schema.parts());
            parts <= PARTS
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_schema_is_compiled_once_and_the_oldest_are_evicted() {
        let schemas = Schemas::default();
        let read = |text: &str| schemas.read(text, Instant::now() + Duration::from_mins(10));
        let large = |name: &str| json!({"title": name, "enum": vec![Value::Null; PARTS / 2 - 10]}).to_string();
        let first = read(&large("first")).unwrap();
        let second = read(&large("second")).unwrap();
        assert!(Arc::ptr_eq(&first, &read(&large("first")).unwrap()));
        read(&large("third")).unwrap();
        assert!(Arc::ptr_eq(&first, &read(&large("first")).unwrap()));
        assert!(!Arc::ptr_eq(&second, &read(&large("second")).unwrap()));
        let huge = json!({"enum": vec![Value::Null; PARTS + 1]}).to_string();
        let huge_once = read(&huge).unwrap();
        assert!(!Arc::ptr_eq(&huge_once, &read(&huge).unwrap()));
        assert!(read("{").is_err());
    }
}
