use chandler_core::MemoryContent;
use chandler_test_support::needs::fixture;
use proptest::prelude::*;

use super::*;
use crate::{Directory, model::Bundle};

#[derive(Debug)]
struct Failed(CatalogError);

impl From<CatalogError> for Failed {
    fn from(error: CatalogError) -> Self {
        Self(error)
    }
}

fn items(content: &dyn Content, limits: &Limits) -> Result<Vec<Item>, Failed> {
    let mut items = Vec::new();
    read(content, limits, |item| {
        items.push(item);
        Ok(())
    })
    .map(|()| items)
}

fn of(files: &[(&str, &str)]) -> Vec<Item> {
    items(&MemoryContent::new(files.iter().map(|(path, text)| (*path, *text))), &Limits::default()).unwrap()
}

fn metas(files: &[(&str, &str)]) -> Vec<Meta> {
    let meta = |item| match item {
        Item::Meta(meta) => *meta,
        Item::Finding(finding) => panic!("{finding}"),
    };
    of(files).into_iter().map(meta).collect()
}

fn findings(files: &[(&str, &str)]) -> Vec<String> {
    let findings = of(files).into_iter().flat_map(|item| match item {
        Item::Meta(meta) => meta.findings,
        Item::Finding(finding) => vec![finding],
    });
    findings.map(|finding| finding.to_string()).collect()
}

#[test]
fn documents_have_their_key_and_their_place() {
    let text = "# a\n---\nschema: olm.package\nname: a\n---\nSchema: custom\nPACKAGE: a\nx: 1\n";
    let metas =
        metas(&[("b.yaml", text), ("a/c.json", "{\"schema\":\"olm.bundle\",\n\"name\":\"n\",\"package\":\"p\"}")]);
    let keys: Vec<_> = metas.iter().map(|it| [it.schema.as_str(), &it.package, &it.name, it.owner()]).collect();
    assert_eq!(keys, [["olm.bundle", "p", "n", "p"], ["olm.package", "", "a", "a"], ["custom", "a", "", "a"]]);
    let places: Vec<_> = metas.iter().map(|it| it.span.place.to_string()).collect();
    assert_eq!(places, ["a/c.json:1", "b.yaml:3", "b.yaml:6"]);
    let span = &metas[2].span;
    let at = usize::try_from(span.offset).unwrap();
    assert_eq!(&text[at..at + usize::try_from(span.length).unwrap()], "Schema: custom\nPACKAGE: a\nx: 1\n");
}

#[test]
fn what_is_no_document_is_a_finding_with_its_line() {
    let cases = [
        ("a: [\n", "x.yaml:2: not readable: "),
        ("schema: a\n---\n\n- b\n", "x.yaml:4: the document is not an object"),
        ("schema: a\n---\nname: b\n", "x.yaml:3: the document has no schema"),
        ("schema: a\n---\nschema: ''\n", "x.yaml:3: the document has no schema"),
        (
            "name: a\nschema: 1\n",
            "x.yaml:2: schema is not valid: text is required, but this is a number; write it in quotes",
        ),
        ("schema: \"a\\0b\"\n", "x.yaml:1: schema is not valid: control characters are not allowed"),
        (
            "schema: olm.bundle\npackage: a\nname: \"a.v1\\u202e\"\n",
            "x.yaml:3: name is not valid: U+202E is not allowed: it is invisible, or changes the order of the text around it",
        ),
        ("schema: olm.channel\npackage: \"a\\u200b\"\n", "x.yaml:2: package is not valid: U+200B is not allowed: "),
        ("schema: a\rname: b\r---\rschema: c", "x.yaml:4: several documents without `---` between them"),
        (
            "schema: olm.package\nname: a\npackage: b\n",
            "x.yaml:1: package is not valid: it is \"b\", but the package defines \"a\"",
        ),
        ("a: {{ template }}\n", "x.yaml:1: not readable: "),
        ("{\"schema\": \"a\"", "x.yaml:1: not readable: "),
        ("schema: a\nb: 1\nb: 2\n", "x.yaml:3: key \"b\" is a duplicate with another value"),
        (
            "schema: olm.channel\nentries:\n- name: a\n  skips: b\n",
            "x.yaml:4: entries.skips is not valid: a sequence is required",
        ),
        (
            "schema: olm.channel\nentries:\n- a\n",
            "x.yaml:3: entries is not valid: an object is required, but this is text",
        ),
        ("\n\nschema: olm.bundle\nproperties:\n- value: 1\n", "x.yaml:5: properties.type is not valid: "),
        ("schema: olm.bundle\nproperties:\n- type: a\n", "x.yaml:3: properties.value is not valid: "),
    ];
    for (text, expected) in cases {
        let found = findings(&[("x.yaml", text)]);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{text:?}: {found:?}");
    }
}

#[test]
fn limits_are_kept() {
    let limits = Limits { metas: 2, files: 2, document_bytes: 100, name_bytes: 10, ..Limits::default() };
    let read = |files: &[(&str, String)]| {
        items(&MemoryContent::new(files.iter().map(|(path, text)| (*path, text.as_str()))), &limits)
    };
    let long = "x".repeat(2000);
    assert!(matches!(read(&[("a", "schema: a\n---\n".repeat(3))]), Err(Failed(CatalogError::Metas(2)))));
    let three = ["a", "b", "c"].map(|path| (path, String::new()));
    assert!(matches!(read(&three), Err(Failed(CatalogError::Files(2)))));
    for (text, expected) in [
        (format!("schema: a\n---\nschema: a\nx: {long}\n"), "larger than"),
        (format!("schema: {}\n", &long[..11]), "schema is not valid: longer than 10 bytes"),
    ] {
        let items = read(&[("a", text.clone())]).unwrap();
        assert!(
            matches!(items.last(), Some(Item::Finding(it)) if it.to_string().contains(expected)),
            "{text:?}: {items:?}"
        );
    }
    let deep = Limits { depth: 5, ..Limits::default() };
    let content =
        MemoryContent::new([("a", format!("{{\"schema\":\"a\",\"x\":{}1{}}}", "[".repeat(9), "]".repeat(9)))]);
    assert!(matches!(items(&content, &deep).unwrap().as_slice(), [Item::Finding(_)]));
}

#[test]
fn large_values_stay_in_the_file() {
    let text = "schema: olm.bundle\nname: a.v1\npackage: a\nproperties:\n\
        - {type: olm.bundle.object, value: {data: eA==}}\n\
        - {type: olm.package, value: {packageName: a, version: 1.0.0+2}}\n\
        - {type: olm.gvk, value: {group: g, kind: K, version: v1}}\n\
        - {type: olm.csv.metadata, value: {displayName: A, annotations: {description: D}, keywords: [k], provider: {name: P}}}\n";
    let metas = metas(&[("a.yaml", text)]);
    let Blob::Bundle(bundle) = &metas[0].blob else { panic!("{metas:?}") };
    let values: Vec<_> = bundle.properties.iter().map(|it| (it.kind.as_str(), it.value.is_some(), it.line)).collect();
    let expected = [
        ("olm.bundle.object", false, 5),
        ("olm.package", true, 6),
        ("olm.gvk", true, 7),
        ("olm.csv.metadata", false, 8),
    ];
    assert_eq!(values, expected);
    assert_eq!(bundle.version().unwrap().to_string(), "1.0.0+2");
    assert_eq!(bundle.provides().next().unwrap().kind, "K");
    let summary = bundle.summary.as_ref().unwrap();
    assert_eq!(
        [&*summary.display_name, &*summary.description, &*summary.provider, &*summary.keywords[0]],
        ["A", "D", "P", "k"]
    );
    assert_eq!(
        Bundle::default().version().unwrap_err().to_string(),
        "the bundle has 0 properties of type olm.package, but must have one"
    );
}

#[test]
fn ignored_files_are_not_read() {
    let files = [(".indexignore", "*.md\n"), ("README.md", "{{"), ("a.yaml", "schema: a\n")];
    assert_eq!(metas(&files).len(), 1);
}

#[test]
fn the_catalogs_of_the_seeds_are_readable() {
    let Some(catalogs) = fixture("catalogs") else { return };
    let content = Directory::open(catalogs, 100).unwrap();
    let items = items(&content, &Limits::default()).unwrap();
    assert_eq!(items.len(), 35);
    assert!(items.iter().all(|item| matches!(item, Item::Meta(meta) if meta.findings.is_empty())), "{items:?}");
}

/// A document in JSON and in YAML, and whether a text is quoted does not matter.
fn document() -> impl Strategy<Value = serde_json::Value> {
    let name = "[a-z]{1,3}";
    let entry = (name, prop::option::of(name), prop::collection::vec(name, 0..3))
        .prop_map(|(name, replaces, skips)| serde_json::json!({"name": name, "replaces": replaces, "skips": skips}));
    prop_oneof![
        (name, name).prop_map(
            |(name, channel)| serde_json::json!({"schema": "olm.package", "name": name, "defaultChannel": channel})
        ),
        (name, name, prop::collection::vec(entry, 0..4)).prop_map(|(package, name, entries)| {
            serde_json::json!({"schema": "olm.channel", "package": package, "name": name, "entries": entries})
        }),
        (name, name, "\\PC{0,20}").prop_map(|(package, name, text)| serde_json::json!({
            "schema": "olm.bundle", "package": package, "name": name, "image": text,
            "properties": [{"type": "olm.package", "value": {"packageName": package, "version": "1.0.0"}}],
        })),
        (name, "\\PC{0,20}").prop_map(|(schema, text)| serde_json::json!({"schema": schema, "text": text})),
    ]
}

/// What a document says, without its position.
fn said(files: &[(&str, String)]) -> Vec<String> {
    let content = MemoryContent::new(files.iter().map(|(path, text)| (*path, text.as_str())));
    let said = |item| match item {
        Item::Meta(meta) => {
            let mut blob = serde_json::to_value(&meta.blob).unwrap();
            without_lines(&mut blob);
            format!("{} {} {} {blob}", meta.schema, meta.package, meta.name)
        }
        Item::Finding(finding) => panic!("{finding}"),
    };
    items(&content, &Limits::default()).unwrap().into_iter().map(said).collect()
}

fn without_lines(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.remove("line");
            fields.values_mut().for_each(without_lines);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(without_lines),
        _ => {}
    }
}

proptest! {
    /// One file or several, JSON or YAML: the documents are the same.
    #[test]
    fn the_form_of_a_catalog_does_not_matter(documents in prop::collection::vec(document(), 0..8), cut in 0_usize..8) {
        let json: Vec<String> = documents.iter().map(|it| serde_json::to_string_pretty(it).unwrap()).collect();
        let lines: Vec<String> = documents.iter().map(ToString::to_string).collect();
        let yaml: Vec<String> = documents.iter().map(block).collect();
        let expected = said(&[("a.json", json.concat())]);
        prop_assert_eq!(expected.len(), documents.len());
        let cut = cut.min(json.len());
        let (one, other) = json.split_at(cut);
        prop_assert_eq!(&said(&[("a.json", one.concat()), ("b.json", other.join("\n"))]), &expected);
        prop_assert_eq!(&said(&[("a", lines.join("\n---\n"))]), &expected);
        prop_assert_eq!(&said(&[("a", format!("---\n{}", yaml.join("---\n")))]), &expected);
        let mixed: Vec<&str> = json.iter().zip(&yaml).enumerate()
            .map(|(at, (json, yaml))| if at % 2 == 0 { json.as_str() } else { yaml.as_str() }).collect();
        prop_assert_eq!(&said(&[("a", mixed.join("\n---\n"))]), &expected);
    }

    #[test]
    fn no_bytes_make_it_fail(bytes: Vec<u8>) {
        let content = MemoryContent::new([("a", bytes)]);
        items(&content, &Limits::default()).unwrap();
    }
}

/// YAML in block style at the top, as people write it.
fn block(document: &serde_json::Value) -> String {
    document
        .as_object()
        .unwrap()
        .iter()
        .fold(String::new(), |text, (key, value)| text + key + ": " + &value.to_string() + "\n")
}

#[test]
fn the_error_of_the_visitor_ends_the_reading() {
    #[derive(Debug)]
    enum Stop {
        Here,
        Never(#[expect(dead_code, reason = "printed if it occurs")] CatalogError),
    }
    impl From<CatalogError> for Stop {
        fn from(error: CatalogError) -> Self {
            Self::Never(error)
        }
    }
    let content = MemoryContent::new([("a", "schema: a\n---\nschema: b\n")]);
    let mut seen = 0;
    let result = read(&content, &Limits::default(), |_| {
        seen += 1;
        Err(Stop::Here)
    });
    assert!(matches!(result, Err(Stop::Here)));
    assert_eq!(seen, 1);
}
