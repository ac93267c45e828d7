//! Files of a bundle in memory, and variants of them that a careless provisioner cannot bear.

use std::{collections::BTreeMap, sync::Arc};

use chandler_core::{Content, MemoryContent};

/// The number of files that are listed at once.
const PAGE: usize = 1000;
/// Larger files stay as they are: each variant is a copy of the bundle.
const MUTATED_BYTES: usize = 1 << 20;
/// At most this number of files of a bundle have variants.
const MUTATED_FILES: usize = 6;
/// A file at the limit of what a call may read by default.
pub(crate) const LARGE_BYTES: usize = 64 << 20;
/// Levels of deeply nested text and directories.
const DEPTH: usize = 20_000;

/// The files of a bundle, by path. A clone shares their bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Files(BTreeMap<String, Arc<Vec<u8>>>);

/// A bundle with one change.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    /// What is changed, such as `manifests/a.yaml is empty`.
    pub(crate) what: String,
    /// The file that has other bytes, if it was text and was cut or has bytes that are not text: a finding about it can name a line.
    pub(crate) broken_text: Option<String>,
    /// The files.
    pub(crate) files: Files,
}

impl Files {
    /// The files of content; those that cannot be read are left out.
    pub(crate) fn of(content: &dyn Content) -> Self {
        let (mut files, mut after) = (BTreeMap::new(), None::<String>);
        loop {
            let page = content.entries("", after.as_deref(), PAGE);
            let Some(last) = page.last() else { return Self(files) };
            after = Some(last.path.clone());
            for entry in page {
                if let Ok(bytes) = content.read_all(&entry.path) {
                    files.insert(entry.path, Arc::new(bytes));
                }
            }
        }
    }

    /// The content with these files.
    pub(crate) fn content(&self) -> MemoryContent {
        MemoryContent::new(self.0.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())))
    }

    /// The bytes of a file.
    pub(crate) fn get(&self, path: &str) -> Option<&[u8]> {
        self.0.get(path).map(|bytes| bytes.as_slice())
    }

    /// These files and another one.
    pub(crate) fn with(mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.0.insert(path.into(), Arc::new(bytes.into()));
        self
    }

    fn without(mut self, path: &str) -> Self {
        self.0.remove(path);
        self
    }

    /// The directory of the first file, with a `/`, or nothing.
    fn directory(&self) -> String {
        let first = self.0.keys().next().and_then(|path| path.rsplit_once('/'));
        first.map(|(directory, _)| format!("{directory}/")).unwrap_or_default()
    }

    /// The extension of the first file, with a dot.
    fn extension(&self) -> String {
        let name = self.0.keys().next().and_then(|path| path.rsplit('/').next());
        name.and_then(|name| name.rsplit_once('.')).map(|(_, extension)| format!(".{extension}")).unwrap_or_default()
    }

    /// The smallest files.
    fn mutated(&self) -> Vec<(&String, &Arc<Vec<u8>>)> {
        let mut files: Vec<_> = self.0.iter().filter(|(_, bytes)| bytes.len() <= MUTATED_BYTES).collect();
        files.sort_by(|(one, first), (other, second)| (first.len(), one).cmp(&(second.len(), other)));
        files.truncate(MUTATED_FILES);
        files
    }

    /// Each file with hostile content.
    pub(crate) fn hostile_contents(&self) -> Vec<Variant> {
        let mut variants = Vec::new();
        for (path, bytes) in self.mutated() {
            let is_text = std::str::from_utf8(bytes).is_ok();
            let mut push = |what: &str, new: Vec<u8>, breaks_text: bool| {
                let broken_text = (is_text && breaks_text).then(|| path.clone());
                let variant =
                    Variant { what: format!("{path} {what}"), broken_text, files: self.clone().with(path, new) };
                // A file without lines or colons stays as it is in some of them.
                if variant.files != *self {
                    variants.push(variant);
                }
            };
            let half = bytes.get(..bytes.len() / 2).unwrap_or_default();
            push("is empty", Vec::new(), false);
            push("is cut in the middle", half.to_vec(), false);
            push("lacks its last byte", bytes.get(..bytes.len().saturating_sub(1)).unwrap_or_default().to_vec(), false);
            push("has an unclosed bracket at its end", [bytes.as_slice(), b"\nx: [\n"].concat(), true);
            push("has bytes that are not UTF-8", [half, b"\xff\xfe\xc3\x28", bytes.as_slice()].concat(), true);
            push("has NUL bytes", [half, b"\0\0\0\0", bytes.as_slice()].concat(), false);
            push("begins with a byte order mark", [b"\xef\xbb\xbf".as_slice(), bytes.as_slice()].concat(), false);
            push("has a carriage return before each line end", replaced(bytes, b"\n", b"\r\n"), false);
            push(
                "has right-to-left marks, emoji and line separators",
                replaced(bytes, b":", "\u{202e}\u{1f6a2}\u{2028}:".as_bytes()),
                false,
            );
            for (what, text) in HOSTILE_TEXTS {
                push(what, (*text).into(), false);
            }
            push("is a list of 20000 levels", "[".repeat(DEPTH).into_bytes(), false);
            push("is a block list of 20000 levels", "- ".repeat(DEPTH).into_bytes(), false);
            push("is one line of 1 MiB", vec![b'a'; 1 << 20], false);
            push("has a key of 1 MiB", [&vec![b'k'; 1 << 20][..], b": 1\n"].concat(), false);
            push("has 100000 documents", "---\na: 1\n".repeat(100_000).into_bytes(), false);
            variants.push(Variant {
                what: format!("{path} is missing"),
                broken_text: None,
                files: self.clone().without(path),
            });
            variants.push(Variant {
                what: format!("{path} is a directory"),
                broken_text: None,
                files: self.clone().without(path).with(format!("{path}/{path}"), bytes.to_vec()),
            });
        }
        variants
    }

    /// Further files with odd names, beside the files of the bundle.
    pub(crate) fn hostile_names(&self) -> Vec<Variant> {
        let (directory, extension) = (self.directory(), self.extension());
        let bytes = self.0.values().next().map(|bytes| bytes.to_vec()).unwrap_or_default();
        let names = [
            ("a name with spaces", "  a b  ".to_owned()),
            ("a name with a line feed", "a\nb".to_owned()),
            ("a name with control characters", "a\u{1b}[2J\u{7}b".to_owned()),
            ("a name in another script, from right to left", "\u{202e}ملف🚢".to_owned()),
            ("a name of 250 bytes", "x".repeat(250 - extension.len().min(200))),
            ("a hidden name", ".hidden".to_owned()),
            ("a name like a template", "{{ .Values.x }}${x}%s".to_owned()),
            ("a name of one backslash", "\\".to_owned()),
        ];
        let beside = names.into_iter().map(|(what, name)| {
            let files = self.clone().with(format!("{directory}{name}{extension}"), bytes.clone());
            Variant { what: format!("a file has {what}"), broken_text: None, files }
        });
        beside.collect()
    }

    /// Bundles that are large, within what the host allows.
    pub(crate) fn large(&self) -> Vec<Variant> {
        let (directory, extension) = (self.directory(), self.extension());
        let variant = |what: &str, files| Variant { what: what.to_owned(), broken_text: None, files };
        let mut many = self.clone();
        for number in 0..10_000 {
            many = many.with(format!("{directory}many-{number}{extension}"), "");
        }
        let deep = format!("{directory}{}a{extension}", "d/".repeat(1_000));
        let lines = "# a line that says nothing, in a file at the limit of what may be read\n";
        let text = lines.repeat(LARGE_BYTES / lines.len()).into_bytes();
        vec![
            variant("10000 empty files", many),
            variant("a file 1000 directories deep", self.clone().with(deep, "")),
            variant("a file of 64 MiB of comments", self.clone().with(format!("{directory}zz-large{extension}"), text)),
            variant(
                "a file of 64 MiB of zero bytes",
                self.clone().with(format!("{directory}zz-large{extension}"), vec![0; LARGE_BYTES]),
            ),
        ]
    }
}

/// Texts that take the place of a file.
const HOSTILE_TEXTS: &[(&str, &str)] = &[
    ("is null", "null\n"),
    ("is a list", "[]\n"),
    ("is an empty object", "{}\n"),
    ("is a string", "\"text\"\n"),
    ("has three empty documents", "---\n---\n---\n"),
    (
        "has huge numbers",
        "apiVersion: 99999999999999999999999999999999\nkind: 1e400\nmetadata: {name: -0x7fffffffffffffffffffffff}\n",
    ),
    ("has numbers for names", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 1, namespace: 2.5}\n"),
    ("has an object without metadata", "apiVersion: v1\nkind: ConfigMap\n"),
    ("has metadata that is a list", "apiVersion: v1\nkind: ConfigMap\nmetadata: []\n"),
    (
        "has aliases that grow a thousandfold",
        "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n",
    ),
    ("has an alias of itself", "a: &a [*a]\n"),
    ("has tags", "!!python/object/apply:os.system [\"true\"]\n"),
    ("is a tab", "\t\n"),
    ("has characters that JSON cannot have unescaped", "\"\u{7f}\u{85}\u{2028}\u{feff}\"\n"),
];

fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        if let Some(after) = rest.strip_prefix(old) {
            replaced.extend_from_slice(new);
            rest = after;
        } else {
            replaced.push(*first);
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn files() -> Files {
        Files::of(&MemoryContent::new([("m/a.yaml", "a: b\n"), ("m/b.yaml", "c: d\n"), ("icon.png", "\u{fffd}")]))
    }

    #[test]
    fn each_variant_differs_from_the_bundle_and_from_the_others() {
        let original = files();
        let all = [original.hostile_contents(), original.hostile_names()].concat();
        let mut seen = BTreeSet::new();
        for variant in &all {
            assert_ne!(variant.files, original, "{}", variant.what);
            assert!(seen.insert(variant.what.clone()), "{} twice", variant.what);
        }
        let broken = all.iter().filter(|variant| variant.broken_text.is_some()).count();
        assert_eq!(broken, 6, "two for each file");
    }

    #[test]
    fn large_bundles_keep_the_files_of_the_bundle() {
        for variant in files().large() {
            assert_eq!(variant.files.get("m/a.yaml"), Some(b"a: b\n".as_slice()), "{}", variant.what);
            assert!(variant.files.0.len() > 3, "{}", variant.what);
        }
    }

    #[test]
    fn replacing_is_by_bytes() {
        assert_eq!(replaced(b"a\nb\n", b"\n", b"\r\n"), b"a\r\nb\r\n");
        assert_eq!(replaced(b"", b":", b"x"), b"");
    }
}
