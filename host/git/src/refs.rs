//! The ref that a source names, and its commit.

use gix_hash::ObjectId;
use semver::{Version, VersionReq};

use crate::{CommitId, GitError, lines};

/// The most refs that are read.
pub const REFS: usize = 50_000;
const HEADS: &str = "refs/heads/";
const TAGS: &str = "refs/tags/";

/// What a source names of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revision {
    /// The latest commit of a branch.
    Branch(String),
    /// A tag.
    Tag(String),
    /// The tag with the highest version in a range. Tags are read as versions with and without `v` before them; others are passed
    /// over, and pre-releases too unless the range names one.
    Range(VersionReq),
    /// One commit.
    Commit(CommitId),
}

impl Revision {
    /// A range of versions, as Cargo writes it.
    ///
    /// # Errors
    /// The text is not a range.
    pub fn range(text: &str) -> Result<Self, GitError> {
        VersionReq::parse(text).map(Self::Range).map_err(|_| GitError::Range(text.chars().take(100).collect()))
    }

    /// The beginning of the names of all refs that it may be.
    pub(crate) fn prefix(&self) -> Option<String> {
        match self {
            Self::Branch(name) => Some(format!("{HEADS}{name}")),
            Self::Tag(name) => Some(format!("{TAGS}{name}")),
            Self::Range(_) => Some(TAGS.to_owned()),
            Self::Commit(_) => None,
        }
    }
}

/// The refs of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refs(Vec<(String, CommitId)>);

/// The commit that a revision is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The commit.
    pub commit: CommitId,
    /// The tag that was chosen for a range.
    pub tag: Option<String>,
}

impl Refs {
    /// Reads the response to [`list`](crate::protocol::list). Refs whose names are not UTF-8 are passed over.
    ///
    /// # Errors
    /// The response violates the protocol, or has more than [`REFS`] refs.
    pub fn parse(response: &[u8]) -> Result<Self, GitError> {
        let mut refs = Vec::new();
        for line in lines::all(response)?.iter().filter(|line| !line.is_empty()) {
            let Ok(line) = std::str::from_utf8(line) else { continue };
            let mut words = line.split(' ');
            let (Some(id), Some(name)) = (words.next(), words.next()) else {
                return Err(GitError::Protocol("a ref has no name"));
            };
            // An annotated tag is an object of its own, and says which commit it is for.
            let id = words.find_map(|word| word.strip_prefix("peeled:")).unwrap_or(id);
            let id = ObjectId::from_hex(id.as_bytes()).map_err(|_| GitError::Protocol("a ref has no object"))?;
            if refs.len() >= REFS {
                return Err(GitError::Refs(REFS));
            }
            refs.push((name.to_owned(), CommitId(id)));
        }
        Ok(Self(refs))
    }

    /// The commit that a revision is.
    ///
    /// # Errors
    /// No ref matches.
    pub fn select(&self, revision: &Revision) -> Result<Selected, GitError> {
        let named = |name: String| self.0.iter().find(|(known, _)| *known == name).map(|(_, commit)| *commit);
        let found = match revision {
            Revision::Commit(commit) => Some(*commit),
            Revision::Branch(name) => named(format!("{HEADS}{name}")),
            Revision::Tag(name) => named(format!("{TAGS}{name}")),
            Revision::Range(range) => return self.highest(range),
        };
        let missing = || match revision {
            Revision::Branch(name) => GitError::NotFound(format!("branch {name:?}")),
            Revision::Tag(name) => GitError::NotFound(format!("tag {name:?}")),
            Revision::Range(_) | Revision::Commit(_) => GitError::NotFound("such commit".to_owned()),
        };
        found.map(|commit| Selected { commit, tag: None }).ok_or_else(missing)
    }

    /// The highest version. Of tags that are equal as versions, the first by name counts, so that the answer does not change.
    fn highest(&self, range: &VersionReq) -> Result<Selected, GitError> {
        let mut versions: Vec<(Version, &str, CommitId)> = self.0.iter().filter_map(version).collect();
        versions.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
        let found = versions.iter().find(|(version, ..)| range.matches(version));
        let missing = || {
            let known: Vec<&str> = versions.iter().take(3).map(|(_, tag, _)| *tag).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            GitError::NotFound(format!("tag for a version in \"{range}\"; the highest versions are: {known}"))
        };
        let (_, tag, commit) = found.ok_or_else(missing)?;
        Ok(Selected { commit: *commit, tag: Some((*tag).to_owned()) })
    }
}

fn version((name, commit): &(String, CommitId)) -> Option<(Version, &str, CommitId)> {
    let tag = name.strip_prefix(TAGS)?;
    let version = Version::parse(tag.strip_prefix('v').unwrap_or(tag)).ok()?;
    Some((version, tag, *commit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refs(lines: &[String]) -> Result<Refs, GitError> {
        let lines: Vec<String> = lines.iter().map(|line| format!("{:04x}{line}\n", line.len() + 5)).collect();
        Refs::parse(format!("{}0000", lines.concat()).as_bytes())
    }

    fn id(digit: char) -> String {
        std::iter::repeat_n(digit, 40).collect()
    }

    #[test]
    fn branches_tags_and_ranges_are_found() {
        let refs = refs(&[
            format!("{} HEAD symref-target:refs/heads/main", id('1')),
            format!("{} refs/heads/main", id('1')),
            format!("{} refs/heads/main-2", id('2')),
            format!("{} refs/tags/v1.2.0 peeled:{}", id('3'), id('4')),
            format!("{} refs/tags/1.10.0", id('5')),
            format!("{} refs/tags/v2.0.0-rc.1", id('6')),
            format!("{} refs/tags/latest", id('7')),
        ])
        .unwrap();
        let commit = |revision: Revision| {
            refs.select(&revision).map(|it| (it.commit.to_string().chars().next().unwrap(), it.tag))
        };
        let own = |tag: &str| Some(tag.to_owned());
        assert_eq!(commit(Revision::Branch("main".to_owned())), Ok(('1', None)));
        assert_eq!(commit(Revision::Tag("v1.2.0".to_owned())), Ok(('4', None)));
        assert_eq!(commit(Revision::range(">=1").unwrap()), Ok(('5', own("1.10.0"))));
        assert_eq!(commit(Revision::range("~1.2").unwrap()), Ok(('4', own("v1.2.0"))));
        assert_eq!(commit(Revision::range(">=2.0.0-rc.0").unwrap()), Ok(('6', own("v2.0.0-rc.1"))));
        let message = |revision| refs.select(&revision).unwrap_err().to_string();
        assert_eq!(message(Revision::Branch("mian".to_owned())), "it has no branch \"mian\"");
        let expected = "it has no tag for a version in \">=3\"; the highest versions are: v2.0.0-rc.1, 1.10.0, v1.2.0";
        assert_eq!(message(Revision::range(">=3").unwrap()), expected);
    }

    #[test]
    fn malformed_refs_are_refused() {
        assert_eq!(refs(&["x".to_owned()]), Err(GitError::Protocol("a ref has no name")));
        assert_eq!(refs(&["x refs/heads/a".to_owned()]), Err(GitError::Protocol("a ref has no object")));
        assert_eq!(Revision::range("foo"), Err(GitError::Range("foo".to_owned())));
    }
}
