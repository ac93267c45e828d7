//! The names of entries of an archive.

use crate::{EntryProblem, Limits};

/// The longest part of a path that file systems accept.
const PART_BYTES: usize = 255;

/// The path of an entry in the tree: separated by `/`, without `.`, `..` and empty parts. The root is the empty path.
///
/// `./a//b/` is read as `a/b`, since tar writes such names. A path that could leave the tree is refused, not repaired.
pub(crate) fn entry_path(name: &[u8], limits: &Limits) -> Result<String, EntryProblem> {
    if name.is_empty() {
        return Err(EntryProblem::NoName);
    }
    // First, so that the code below never handles a name of unbounded length.
    if name.len() > limits.path_bytes {
        return Err(EntryProblem::PathTooLong(limits.path_bytes));
    }
    let name = std::str::from_utf8(name).map_err(|_| EntryProblem::NotUtf8)?;
    if name.starts_with('/') {
        return Err(EntryProblem::Absolute);
    }
    if name.chars().any(char::is_control) {
        return Err(EntryProblem::ControlCharacter);
    }
    let mut path = String::with_capacity(name.len());
    let mut parts = 0;
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(EntryProblem::Parent),
            part if part.len() > PART_BYTES => return Err(EntryProblem::NameTooLong),
            part => {
                if parts > 0 {
                    path.push('/');
                }
                path.push_str(part);
                parts += 1;
            }
        }
    }
    if parts > limits.depth + 1 {
        return Err(EntryProblem::TooDeep(limits.depth));
    }
    Ok(path)
}

/// The directory of a path, and its last part.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The path of `name` in `directory`; the root is the empty path.
pub(crate) fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

/// The directories above a path, from the nearest to the one below the root.
pub(crate) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(path.rsplit_once('/'), |(directory, _)| directory.rsplit_once('/'))
        .map(|(directory, _)| directory)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_normalised_or_refused() {
        let limits = Limits { path_bytes: 300, depth: 3, ..Limits::default() };
        let long = "x".repeat(256);
        let longer = "x/".repeat(200);
        for (name, expected) in [
            ("a", Ok("a")),
            ("./a//b/", Ok("a/b")),
            ("./", Ok("")),
            ("a/b/c/d", Ok("a/b/c/d")),
            ("a\\b", Ok("a\\b")),
            ("...", Ok("...")),
            ("", Err(EntryProblem::NoName)),
            ("/etc/passwd", Err(EntryProblem::Absolute)),
            ("..", Err(EntryProblem::Parent)),
            ("a/../b", Err(EntryProblem::Parent)),
            ("a\nb", Err(EntryProblem::ControlCharacter)),
            ("a\0b", Err(EntryProblem::ControlCharacter)),
            (&long, Err(EntryProblem::NameTooLong)),
            (&longer, Err(EntryProblem::PathTooLong(300))),
            ("a/b/c/d/e", Err(EntryProblem::TooDeep(3))),
        ] {
            assert_eq!(entry_path(name.as_bytes(), &limits), expected.map(str::to_owned), "{name:?}");
        }
        assert_eq!(entry_path(b"a\xffb", &limits), Err(EntryProblem::NotUtf8));
    }

    #[test]
    fn ancestors_are_the_directories_above() {
        assert_eq!(ancestors("a/b/c").collect::<Vec<_>>(), ["a/b", "a"]);
        assert_eq!(ancestors("a").count(), 0);
    }

    proptest! {
        #[test]
        fn accepted_names_stay_inside(name in proptest::collection::vec(any::<u8>(), 0..80)) {
            check(&name)?;
        }

        #[test]
        fn accepted_path_like_names_stay_inside(name in "[./a\\\\\u{e9}\u{0}-\u{2}]{0,40}") {
            check(name.as_bytes())?;
        }
    }

    fn check(name: &[u8]) -> Result<(), TestCaseError> {
        let limits = Limits::default();
        if let Ok(path) = entry_path(name, &limits) {
            prop_assert!(path.is_empty() || path.split('/').all(|part| !matches!(part, "" | "." | "..")));
            prop_assert!(!path.contains('\0'));
            // Reading is idempotent.
            if !path.is_empty() {
                prop_assert_eq!(entry_path(path.as_bytes(), &limits), Ok(path));
            }
        }
        Ok(())
    }
}
