use serde_json::{Value, json};

use super::*;
use crate::{Diagnostic, Facts, Output, Probe, Refusal, Selector, read_documents};

fn bundle() -> Bundle {
    Bundle::new([("manifests/a.yaml", "abc"), ("manifests/b.yaml", ""), ("metadata/x", "x")])
}

#[test]
fn content_is_paged_in_order() {
    let bundle = bundle();
    let paths = |prefix, after, limit| -> Vec<String> {
        bundle.page(prefix, after, limit).into_iter().map(|entry| entry.path).collect()
    };
    assert_eq!(paths("", None, 2), ["manifests/a.yaml", "manifests/b.yaml"]);
    assert_eq!(paths("", Some("manifests/b.yaml"), 2), ["metadata/x"]);
    assert_eq!(paths("manifests/", Some("a"), 9), ["manifests/a.yaml", "manifests/b.yaml"]);
    let many = Bundle::new((0..1234).map(|number| (format!("{number:04}"), "")));
    let files = many.files("");
    assert_eq!((files.len(), files.is_sorted_by_key(|entry| entry.path.clone())), (1234, true));
}

#[test]
fn reads_stop_at_the_end() {
    let bundle = bundle();
    assert_eq!(bundle.read_at("manifests/a.yaml", 1, 100), Ok(b"bc".to_vec()));
    assert_eq!(bundle.read_at("manifests/a.yaml", u64::MAX, u32::MAX), Ok(Vec::new()));
    assert_eq!(bundle.read("manifests"), Err(ReadError::NotAFile));
    assert_eq!(bundle.read("manifests/c"), Err(ReadError::NotFound));
    let large = vec![7; (2 << 20) + 5];
    let bundle = Bundle::new([("large", large.clone())]);
    assert_eq!(bundle.read_at("large", 0, u32::MAX).unwrap().len(), 1 << 20, "as the host has it");
    assert_eq!(bundle.read("large").unwrap(), large);
}

/// A host may return less than requested.
#[test]
fn short_chunks_are_not_the_end() {
    struct Slow;
    impl Content for Slow {
        fn digest(&self) -> String {
            String::new()
        }
        fn page(&self, _: &str, _: Option<&str>, _: u32) -> Vec<Entry> {
            Vec::new()
        }
        fn read_at(&self, _: &str, offset: u64, _: u32) -> Result<Vec<u8>, ReadError> {
            Ok(if offset < 3 { vec![b'x'] } else { Vec::new() })
        }
    }
    assert_eq!(Slow.read("a"), Ok(b"xxx".to_vec()));
}

#[test]
fn a_path_exists_as_a_file_or_a_directory() {
    let bundle = Bundle::new([("a.b", ""), ("a/c", ""), ("ab", "")]);
    for (path, exists) in
        [("a", true), ("a/c", true), ("a.b", true), ("ab", true), ("a/", false), ("b", false), ("a/d", false)]
    {
        assert_eq!(bundle.exists(path), exists, "{path}");
    }
}

#[test]
fn a_directory_is_a_bundle() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("manifests/empty")).unwrap();
    fs::write(directory.path().join("manifests/a.yaml"), "abc").unwrap();
    fs::write(directory.path().join("manifests/b.yaml"), "").unwrap();
    fs::create_dir(directory.path().join("metadata")).unwrap();
    fs::write(directory.path().join("metadata/x"), "x").unwrap();
    let read = Bundle::from_directory(directory.path()).unwrap();
    assert_eq!(read.files(""), bundle().files(""));
    assert_eq!(read.digest(), bundle().digest());
    // `printf 'metadata/x\0001\000%s\n' "$(printf x | sha256sum | cut -c-64)" | sha256sum`
    insta::assert_snapshot!(Bundle::new([("metadata/x", "x")]).digest(), @"sha256:4d23198eeb90b254d3702d50d769d000aa39614feb0c2604902cc308a34a3745");
}

fn object(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "n"}})
}

/// Emits the objects in `values`, and ignores refusals of the host.
struct IgnoresRefusals;

impl Provisioner for IgnoresRefusals {
    const FACTS: Facts = Facts::new("ignores-refusals", "0.1.0");

    fn detect(_: &dyn Content) -> Option<String> {
        None
    }

    fn provision(_: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
        for line in String::from_utf8(content.read("values").unwrap()).unwrap().lines() {
            let _ = output.emit(line.as_bytes(), None, None);
        }
        Ok(())
    }
}

fn emit(values: &[Value]) -> Result<usize, String> {
    let lines = values.iter().fold(String::new(), |lines, value| format!("{lines}{value}\n"));
    let recorder = run::<IgnoresRefusals>(&Bundle::new([("values", lines)]), &Request::default());
    recorder.map(|recorder| recorder.objects.len()).map_err(|failure| failure.to_string())
}

#[test]
fn invalid_output_is_refused_as_by_the_host() {
    assert_eq!(emit(&[object("a"), object("b")]), Ok(2));
    let mut newer = object("a");
    newer["apiVersion"] = json!("apps/v2");
    let mut unnamed = object("a");
    unnamed["metadata"] = json!({});
    let mut numeric_namespace = object("a");
    numeric_namespace["metadata"]["namespace"] = json!(1);
    for (values, reason) in [
        (vec![object("a"), newer], "object 1 duplicates object 0: Deployment.apps n/a"),
        (vec![unnamed, object("b")], "object 0 has no metadata.name"),
        (vec![numeric_namespace], "object 0 has a metadata.namespace that is not a string"),
        (vec![object("../a")], "object 0 has an illegal metadata.name: \"../a\""),
        (vec![json!([])], "object 0 is not a JSON object"),
    ] {
        assert_eq!(emit(&values), Err(format!("internal error\nthe host refuses this: {reason}")));
    }
}

#[test]
fn a_schema_and_objects_with_duplicate_keys_are_refused() {
    let refused = run_configured(r#"{"type": "object", "type": "array"}"#, json!({})).unwrap_err();
    assert!(refused.contains(r#"the configuration schema has the key "type" twice, at "/type""#), "{refused}");
    let mut recorder = Recorder::new(Limits::default());
    let twice = br#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "name": "b"}}"#;
    assert_eq!(recorder.emit(twice, None, None), Err(Refusal::Malformed));
    assert_eq!(recorder.refusal(), Some(r#"object 0 has the key "name" twice, at "/metadata/name""#));
}

#[test]
fn documents_come_with_findings() {
    let bundle =
        Bundle::new([("a", "a: 1\na: 2\n---\nkind: List\nitems: [{kind: A}]\n"), ("b", "x: [\n"), ("c/d", "")]);
    let read = crate::documents::read_documents_with_warnings(&bundle, "a").unwrap();
    let values: Vec<Value> = read.nodes.iter().map(chandler_yaml::Node::to_json).collect();
    assert_eq!(values, [json!({"a": 2}), json!({"kind": "A"})]);
    let warnings: Vec<String> = read.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["a:2:1: key \"a\" is a duplicate with another value; the one in line 1 is ignored"]);
    let refusal = |path| read_documents(&bundle, path).map_err(|finding| format!("{} {finding}", finding.code));
    assert_eq!(
        refusal("b").unwrap_err(),
        "InvalidYaml b:2:1: while parsing a node, did not find expected node content"
    );
    assert_eq!(refusal("c").unwrap_err(), "UnreadableFile c: cannot be read: is a directory");
}

/// Does what the configuration requests, with a schema.
struct Configurable;

impl Provisioner for Configurable {
    const FACTS: Facts = Facts::new("configurable", "0.1.0");

    fn detect(_: &dyn Content) -> Option<String> {
        None
    }

    fn config_schema(content: &dyn Content) -> Result<Option<String>, Failure> {
        Ok(content.read("schema").ok().and_then(|schema| String::from_utf8(schema).ok()))
    }

    fn provision(request: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
        let config = request.config();
        let text = |name: &str| config.get(name).and_then(Value::as_str).map(str::to_owned);
        for index in 0..config.get("objects").and_then(Value::as_u64).unwrap_or(0) {
            let padding = "x".repeat(usize::try_from(index).unwrap_or(0));
            let mut object = object(&format!("o{index}"));
            object["padding"] = padding.into();
            let id = output.emit_value(&object, None, None)?;
            assert_eq!(u64::from(id.0), index);
        }
        if let Some(rule) = text("rule") {
            let selector = Selector { kind: text("kind").unwrap_or_default(), ..Selector::default() };
            let message_expression = text("messageExpression");
            output.probe(&Probe { selector, rule, message_expression, ..Probe::default() })?;
        }
        while config.contains_key("readForever") && content.read("schema").is_ok() {}
        match text("fail").as_deref() {
            Some("silently") => Err(Failure::InvalidContent(Vec::new())),
            Some("content") => Err(Failure::InvalidContent(vec![Diagnostic::error("Bad", "it is bad")])),
            Some("internal") => Err(Failure::internal("it broke")),
            _ => Ok(()),
        }
    }
}

fn run_configured(schema: &str, config: Value) -> Result<usize, String> {
    let Value::Object(config) = config else { panic!("{config}") };
    let bundle = Bundle::new([("schema", schema)]);
    let limits = Limits { objects: 3, object_bytes: 200, output_bytes: 260, read_bytes: 1 << 10, ..Limits::default() };
    let result = run_within::<Configurable>(&bundle, &Request::new().with_config(config), &limits);
    result.map(|recorder| recorder.objects.len() + recorder.probes.len()).map_err(|failure| failure.to_string())
}

#[test]
fn limits_are_those_of_the_host() {
    assert_eq!(run_configured("true", json!({"objects": 2, "rule": "self.a == 1", "kind": "Pod"})), Ok(3));
    for (config, reason) in [
        (json!({"objects": 4}), "object 2 exceeds the limit of 260 bytes in all objects"),
        (json!({"readForever": true}), "more was read from the bundle than the host allows"),
        (json!({"rule": "true"}), "probe 0: it has no kind"),
        (json!({"rule": "", "kind": "Pod"}), "probe 0: it has no rule"),
        (json!({"rule": "x".repeat(20_000), "kind": "Pod"}), "probe 0: it has more than 16384 bytes"),
        (json!({"fail": "silently"}), "a failure without findings"),
    ] {
        assert_eq!(run_configured("true", config), Err(format!("internal error\nthe host refuses this: {reason}")));
    }
    #[cfg(feature = "checks")]
    for config in
        [json!({"rule": "self.", "kind": "Pod"}), json!({"rule": "true", "kind": "Pod", "messageExpression": "("})]
    {
        let refused = run_configured("true", config).unwrap_err();
        assert!(refused.contains("is not CEL"), "{refused}");
    }
}

#[cfg(feature = "checks")]
#[test]
fn the_schema_is_enforced_as_by_the_host() {
    let schema = r#"{"properties": {"objects": {"type": "integer"}}, "required": ["objects"]}"#;
    assert_eq!(run_configured(schema, json!({"objects": 1})), Ok(1));
    insta::assert_snapshot!(run_configured(schema, json!({"objects": "one"})).unwrap_err(), @r#"
    invalid configuration
    config (/objects): "one" is not of type "integer" (help: set the values that the configuration schema requires)
    "#);
    // Findings about the content are more useful than those about the configuration.
    assert_eq!(run_configured(schema, json!({"fail": "content"})), Err("invalid content\nit is bad".to_owned()));
    assert!(run_configured(schema, json!({"fail": "internal"})).unwrap_err().starts_with("invalid configuration"));
    assert!(run_configured("{", json!({})).unwrap_err().contains("the configuration schema is not JSON"));
    assert!(
        run_configured(r#"{"type": 7}"#, json!({}))
            .unwrap_err()
            .contains("the configuration schema is not a JSON schema")
    );
    assert!(
        run_configured(r#"{"$ref": "https://example.com/x"}"#, json!({})).unwrap_err().contains("is not a JSON schema")
    );
}
