//! The combined layers of an image; an archive is an image with one layer. Pure: no bytes, no disk.
//!
//! The rules come from `layer.md` of the OCI image specification: the whiteouts of a layer remove entries of lower layers,
//! at any position in the layer; a file replaces a directory of a lower layer, and the other way around. An entry that other
//! unpackers would write through a symbolic link is refused.

use std::collections::BTreeMap;

use super::{
    links,
    node::{Node, RootedAt, is_directory, remove_below},
};
use crate::{
    ArchiveError, EntryProblem, LimitExceeded, Limits,
    path::{ancestors, entry_path, join, split},
    tree::Stored,
};

const WHITEOUT: &str = ".wh.";
const OPAQUE: &str = ".wh..wh..opq";
/// Other names of the union file system that whiteouts come from, without meaning in an image.
const RESERVED: &str = ".wh..wh.";

/// The layers so far, and the one that is being read.
#[derive(Debug)]
pub(crate) struct Overlay {
    base: BTreeMap<String, Node>,
    layer: BTreeMap<String, Node>,
    /// Removed from lower layers, with all that is below.
    removed: Vec<String>,
    /// Directories that are emptied of what lower layers put there.
    emptied: Vec<String>,
    seen: usize,
    limits: Limits,
    /// The directory that becomes the root of the tree; nothing else is kept.
    below: Option<String>,
}

impl Overlay {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            base: BTreeMap::new(),
            layer: BTreeMap::new(),
            removed: Vec::new(),
            emptied: Vec::new(),
            seen: 0,
            limits: limits.clone(),
            below: None,
        }
    }

    /// An overlay that keeps only what is below a directory.
    pub(crate) fn below(limits: &Limits, directory: String) -> Self {
        Self { below: Some(directory), ..Self::new(limits) }
    }

    /// Whether an entry is needed: what is below the directory, and what may be in its way.
    pub(super) fn wants(&self, path: &str) -> bool {
        let is_below = |path: &str, directory: &str| {
            path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.below.as_deref().is_none_or(|directory| is_below(path, directory) || is_below(directory, path))
    }

    /// Whether an entry has nothing to do with the directory that is kept, so that its name does not matter. The name is compared as a
    /// process in the image would read it; an entry that is skipped is written nowhere.
    pub(super) fn is_elsewhere(&self, name: &[u8]) -> bool {
        let Some(directory) = &self.below else { return false };
        let mut parts: Vec<&[u8]> = Vec::new();
        for part in name.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        // A whiteout is about what it hides.
        if let Some(hidden) = parts.last().and_then(|last| last.strip_prefix(WHITEOUT.as_bytes())) {
            let is_opaque = parts.pop() == Some(OPAQUE.as_bytes());
            parts.extend(Some(hidden).filter(|_| !is_opaque));
        }
        // Otherwise one of the two contains the other.
        parts.iter().zip(directory.split('/')).any(|(part, kept)| *part != kept.as_bytes())
    }

    /// Counts one more entry of any kind.
    pub(crate) fn count(&mut self) -> Result<(), ArchiveError> {
        self.seen += 1;
        let most = self.limits.entries;
        if self.seen > most { Err(LimitExceeded::Entries(most).into()) } else { Ok(()) }
    }

    /// Handles the entry as a whiteout, if its name is one.
    pub(super) fn whiteout(&mut self, path: &str) -> Result<bool, EntryProblem> {
        let (directory, name) = split(path);
        let Some(hidden) = name.strip_prefix(WHITEOUT) else { return Ok(false) };
        if name == OPAQUE {
            self.emptied.push(directory.to_owned());
        } else if !name.starts_with(RESERVED) {
            // `.wh.` and `.wh...` would hide the directory itself or the one above.
            let hidden = entry_path(hidden.as_bytes(), &self.limits)?;
            if hidden.is_empty() {
                return Err(EntryProblem::NoName);
            }
            self.removed.push(join(directory, &hidden));
        }
        Ok(true)
    }

    /// Adds a directory; it may occur often.
    pub(crate) fn directory(&mut self, path: String) -> Result<(), EntryProblem> {
        if path.is_empty() {
            return Ok(());
        }
        self.check_above(&path)?;
        match self.layer.get(&path) {
            None => self.layer.insert(path, Node::Directory),
            Some(Node::Directory) => None,
            Some(_) => return Err(EntryProblem::Duplicate),
        };
        Ok(())
    }

    /// Adds a regular file.
    pub(crate) fn file(&mut self, path: String, stored: Stored) -> Result<(), EntryProblem> {
        self.leaf(path, Node::File(stored))
    }

    /// Adds a symbolic link. Links are resolved after the last layer.
    pub(crate) fn symbolic_link(&mut self, path: String, target: &[u8]) -> Result<(), EntryProblem> {
        if target.len() > self.limits.path_bytes {
            return Err(EntryProblem::PathTooLong(self.limits.path_bytes));
        }
        let target = std::str::from_utf8(target).map_err(|_| EntryProblem::NotUtf8)?;
        self.leaf(path, Node::Link(target.to_owned()))
    }

    /// Adds a second name of a file that this layer, or a lower one, holds already.
    pub(super) fn hard_link(&mut self, path: String, target: &str) -> Result<(), EntryProblem> {
        match self.layer.get(target).or_else(|| self.base.get(target)) {
            Some(Node::File(stored)) => {
                let stored = stored.clone();
                self.leaf(path, Node::File(stored))
            }
            Some(Node::Link(_)) => Err(EntryProblem::HardLinkToLink(target.to_owned())),
            Some(Node::Directory) => Err(EntryProblem::LinkToDirectory(target.to_owned())),
            None if is_directory(&self.layer, target) || is_directory(&self.base, target) => {
                Err(EntryProblem::LinkToDirectory(target.to_owned()))
            }
            None => Err(EntryProblem::LinkDangling(target.to_owned())),
        }
    }

    fn leaf(&mut self, path: String, node: Node) -> Result<(), EntryProblem> {
        if path.is_empty() {
            return Err(EntryProblem::NoName);
        }
        self.check_above(&path)?;
        match self.layer.get(&path) {
            Some(Node::Directory) => return Err(EntryProblem::AlsoDirectory),
            Some(_) => return Err(EntryProblem::Duplicate),
            None if is_directory(&self.layer, &path) => return Err(EntryProblem::AlsoDirectory),
            None => {}
        }
        self.layer.insert(path, node);
        Ok(())
    }

    /// No ancestor of a path may be a file or a link: unpackers could write such an entry anywhere.
    fn check_above(&self, path: &str) -> Result<(), EntryProblem> {
        for above in ancestors(path) {
            match self.layer.get(above) {
                // This layer puts a directory there, whatever lower ones hold.
                Some(Node::Directory) => return Ok(()),
                Some(_) => return Err(EntryProblem::BelowFile(above.to_owned())),
                None => {}
            }
        }
        Ok(())
    }

    /// Ends the layer and lays it over the ones below.
    pub(crate) fn merge(&mut self) -> Result<(), ArchiveError> {
        for directory in std::mem::take(&mut self.emptied) {
            remove_below(&mut self.base, &directory);
        }
        for path in std::mem::take(&mut self.removed) {
            remove_below(&mut self.base, &path);
            self.base.remove(&path);
        }
        for (path, node) in std::mem::take(&mut self.layer) {
            if let Some(above) =
                ancestors(&path).find(|above| !matches!(self.base.get(*above), None | Some(Node::Directory)))
            {
                return Err(EntryProblem::BelowFile(above.to_owned()).at(path.as_bytes()));
            }
            if node != Node::Directory {
                remove_below(&mut self.base, &path);
            }
            self.base.insert(path, node);
        }
        Ok(())
    }

    /// The files of all layers, with links replaced by their targets.
    pub(crate) fn finish(self, root: RootedAt) -> Result<BTreeMap<String, Stored>, ArchiveError> {
        let mut files = BTreeMap::new();
        let mut total = 0_u64;
        for (path, node) in &self.base {
            let stored = match node {
                Node::Directory => continue,
                Node::File(stored) => stored.clone(),
                Node::Link(target) => {
                    links::resolve(&self.base, path, target, root).map_err(|problem| problem.at(path.as_bytes()))?
                }
            };
            // A link counts with the size of its target, since a reader sees that many bytes.
            total = total.saturating_add(stored.size);
            if total > self.limits.total_bytes {
                return Err(LimitExceeded::TotalBytes(self.limits.total_bytes).into());
            }
            let path = match &self.below {
                None => path.clone(),
                Some(directory) => match path.strip_prefix(&format!("{directory}/")) {
                    Some(path) => path.to_owned(),
                    // A file in the way of the directory.
                    None => continue,
                },
            };
            files.insert(path, stored);
        }
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use chandler_core::Digest;
    use proptest::prelude::*;

    use super::*;

    /// What a layer may do.
    #[derive(Clone, Debug)]
    enum Step {
        File(String),
        Directory(String),
        Whiteout(String),
        Opaque(String),
    }

    fn stored(layer: usize) -> Stored {
        Stored { offset: layer as u64, size: 1, digest: Digest::of(b"") }
    }

    fn step() -> impl Strategy<Value = Step> {
        let path = || proptest::collection::vec("[ab]", 1..4).prop_map(|parts| parts.join("/"));
        prop_oneof![
            4 => path().prop_map(Step::File),
            1 => path().prop_map(Step::Directory),
            1 => path().prop_map(Step::Whiteout),
            1 => path().prop_map(Step::Opaque),
        ]
    }

    fn is_below(path: &str, directory: &str) -> bool {
        path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
    }

    /// The rules of the specification, without regard to speed: first the whiteouts, then the entries.
    fn model(files: &mut BTreeMap<String, Stored>, layer: usize, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Whiteout(path) => files.retain(|file, _| file != path && !is_below(file, path)),
                Step::Opaque(path) => files.retain(|file, _| !is_below(file, path)),
                Step::File(_) | Step::Directory(_) => {}
            }
        }
        for step in steps {
            match step {
                Step::File(path) => {
                    files.retain(|file, _| !is_below(file, path));
                    files.insert(path.clone(), stored(layer));
                }
                Step::Directory(path) => {
                    files.remove(path);
                }
                Step::Whiteout(_) | Step::Opaque(_) => {}
            }
        }
    }

    fn apply(overlay: &mut Overlay, layer: usize, steps: &[Step]) -> Result<(), String> {
        let text = |problem: EntryProblem| problem.to_string();
        for step in steps {
            match step {
                Step::File(path) => overlay.file(path.clone(), stored(layer)).map_err(text)?,
                Step::Directory(path) => overlay.directory(path.clone()).map_err(text)?,
                Step::Whiteout(path) => {
                    let (directory, name) = split(path);
                    assert!(overlay.whiteout(&join(directory, &format!(".wh.{name}"))).map_err(text)?);
                }
                Step::Opaque(path) => assert!(overlay.whiteout(&join(path, OPAQUE)).map_err(text)?),
            }
        }
        overlay.merge().map_err(|error| error.to_string())
    }

    #[test]
    fn names_outside_of_the_directory_do_not_matter() {
        let overlay = Overlay::below(&Limits::default(), "a/configs".to_owned());
        for name in
            ["etc/x\n", "/etc/x", "../etc/x", "a/other\u{1}/x", "a/.wh.other\n", "/b/.wh..wh..opq", "a/configs2"]
        {
            assert!(overlay.is_elsewhere(name.as_bytes()), "{name:?}");
        }
        for name in [
            "",
            "/",
            "..",
            "a",
            "/a/configs/x\n",
            "../a/configs/x",
            "b/../a/configs",
            ".wh.a",
            "/a/.wh.configs",
            "/.wh..wh..opq",
        ] {
            assert!(!overlay.is_elsewhere(name.as_bytes()), "{name:?}");
        }
        assert!(!Overlay::new(&Limits::default()).is_elsewhere(b"/etc/x"));
    }

    proptest! {
        #[test]
        fn layers_are_combined_as_specified(
            layers in proptest::collection::vec(proptest::collection::vec(step(), 0..6), 0..5),
        ) {
            let mut overlay = Overlay::new(&Limits::default());
            let mut files = BTreeMap::new();
            let refused = layers.iter().enumerate().any(|(layer, steps)| {
                model(&mut files, layer, steps);
                apply(&mut overlay, layer, steps).is_err()
            });
            if !refused {
                prop_assert_eq!(overlay.finish(RootedAt::Tree), Ok(files));
            }
        }

        #[test]
        fn links_are_always_resolved_or_refused(
            links in proptest::collection::btree_map("[abc](/[abc]){0,2}", "[abc./]{0,8}", 0..12),
        ) {
            let mut overlay = Overlay::new(&Limits::default());
            for (path, target) in &links {
                // Some are refused, since their parent is a file.
                overlay.symbolic_link(path.clone(), target.as_bytes()).ok();
            }
            overlay.merge().unwrap();
            // The target of the link does not exist.
            let empty = overlay.base.is_empty();
            prop_assert_eq!(overlay.finish(RootedAt::Tree).is_ok(), empty);
        }
    }
}
