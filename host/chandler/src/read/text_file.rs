//! A file of text where an archive is expected: most often the manifests that a bundle would hold.

use std::{fs::File, io::Read as _, path::Path};

use crate::{
    CommandError,
    view::{invocation::quoted, text::one_line},
};

/// The bytes that are looked at. Every kind of archive has bytes among them that no text has.
const BYTES: usize = 512;

/// The error for a file of text; `None` for any other file, and for one that cannot be read.
pub fn error(path: &Path) -> Option<CommandError> {
    let mut bytes = Vec::new();
    // A pipe or a device is not read: what is taken from it is gone.
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|metadata| metadata.is_file()))?;
    file.take(BYTES as u64).read_to_end(&mut bytes).ok()?;
    describe(path, &bytes)
}

fn describe(path: &Path, bytes: &[u8]) -> Option<CommandError> {
    // The last character may be cut off.
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => std::str::from_utf8(bytes.get(..error.valid_up_to())?).ok()?,
        Err(_) => return None,
    };
    if text.is_empty() || text.contains('\0') {
        return None;
    }
    let (shown, argument) = (one_line(&path.display().to_string()), quoted(&path.to_string_lossy()));
    let extension = path.extension().and_then(|extension| extension.to_str());
    if extension.is_some_and(|extension| matches!(extension, "yaml" | "yml" | "json")) || text.contains("apiVersion:") {
        return Some(
            CommandError::failed(format!("{shown} is a file with YAML or JSON, not a bundle")).hint(format!(
                "a plain+v0 bundle is a directory with such files in manifests/: `mkdir -p bundle/manifests && cp {argument} \
                 bundle/manifests/`, and give ./bundle instead"
            )),
        );
    }
    Some(
        CommandError::failed(format!("{shown} is a file of text, not a bundle"))
            .hint("a bundle is a directory, an archive (.tar, .tar.gz, .tgz, .tar.zst, .zip) or an image"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_text_are_named_and_archives_are_not() {
        let shown = |name: &str, text: &str| {
            describe(Path::new(name), text.as_bytes()).map(|error| error.to_string()).unwrap_or_default()
        };
        insta::assert_snapshot!(shown("my app.yaml", "kind: Deployment\n"), @r"
        error: my app.yaml is a file with YAML or JSON, not a bundle
          hint: a plain+v0 bundle is a directory with such files in manifests/: `mkdir -p bundle/manifests && cp 'my app.yaml' bundle/manifests/`, and give ./bundle instead
        ");
        insta::assert_snapshot!(shown("notes", "words\n"), @r"
        error: notes is a file of text, not a bundle
          hint: a bundle is a directory, an archive (.tar, .tar.gz, .tgz, .tar.zst, .zip) or an image
        ");
        assert!(shown("all", "# objects\napiVersion: v1\n").contains("manifests/"));
        for archive in [&b"\x1f\x8b\x08\0"[..], b"PK\x03\x04\x14\0", b"\x28\xb5\x2f\xfd", b"manifests/\0\0", b""] {
            assert!(describe(Path::new("a.yaml"), archive).is_none(), "{archive:?}");
        }
        // A character that is cut off.
        assert!(describe(Path::new("a.yaml"), &"a\u{e9}".as_bytes()[..2]).is_some());
    }
}
