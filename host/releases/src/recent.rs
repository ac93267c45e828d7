//! The releases that were used last.

use std::{collections::HashMap, sync::Arc};

use chandler_core::{Digest, Release};

/// Releases within a bound in bytes; the one that was not used for the longest time goes first.
pub(crate) struct Recent {
    budget: usize,
    held: usize,
    /// Counts uses.
    uses: u64,
    entries: HashMap<Digest, Entry>,
}

struct Entry {
    release: Arc<Release>,
    bytes: usize,
    used: u64,
}

impl Recent {
    /// Nothing yet.
    pub(crate) fn new(budget: usize) -> Self {
        Self { budget, held: 0, uses: 0, entries: HashMap::new() }
    }

    /// The release that was made from this.
    pub(crate) fn get(&mut self, key: &Digest) -> Option<Arc<Release>> {
        let entry = self.entries.get_mut(key)?;
        self.uses += 1;
        entry.used = self.uses;
        Some(Arc::clone(&entry.release))
    }

    /// Keeps a release, unless it is larger than all that may be kept.
    pub(crate) fn insert(&mut self, key: Digest, release: Arc<Release>) {
        self.remove(&key);
        let bytes = release.memory();
        if bytes > self.budget {
            return;
        }
        while self.held.saturating_add(bytes) > self.budget {
            // There are at most some hundred.
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            self.remove(&oldest);
        }
        self.uses += 1;
        self.held = self.held.saturating_add(bytes);
        self.entries.insert(key, Entry { release, bytes, used: self.uses });
    }

    fn remove(&mut self, key: &Digest) {
        if let Some(entry) = self.entries.remove(key) {
            self.held = self.held.saturating_sub(entry.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use chandler_core::Object;

    use super::*;

    fn release(name: &str) -> Arc<Release> {
        let text = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}}}"#);
        Arc::new(Release::new(vec![Object::parse(text.as_bytes(), 0, None).unwrap()], vec![], vec![]))
    }

    fn key(name: &str) -> Digest {
        Digest::of(name.as_bytes())
    }

    #[test]
    fn what_was_not_used_for_the_longest_time_goes_first() {
        let one = release("a").memory();
        let mut recent = Recent::new(one * 2);
        recent.insert(key("a"), release("a"));
        recent.insert(key("b"), release("b"));
        assert_eq!(recent.get(&key("a")), Some(release("a")));
        recent.insert(key("c"), release("c"));
        assert_eq!(recent.get(&key("b")), None);
        assert_eq!(recent.get(&key("a")), Some(release("a")));
        assert_eq!(recent.get(&key("c")), Some(release("c")));
        assert_eq!(recent.held, one * 2);
    }

    #[test]
    fn the_bound_holds_whatever_comes() {
        let one = release("a").memory();
        let mut recent = Recent::new(one - 1);
        recent.insert(key("a"), release("a"));
        assert_eq!((recent.get(&key("a")), recent.held), (None, 0));

        let mut recent = Recent::new(one * 3);
        for number in 0..100 {
            recent.insert(key(&format!("{}", number % 7)), release("a"));
            assert_eq!(recent.held, recent.entries.values().map(|entry| entry.bytes).sum::<usize>());
            assert!(recent.held <= one * 3);
        }
        assert_eq!(recent.entries.len(), 3);
    }
}
