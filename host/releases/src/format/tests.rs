use chandler_core::{ProbeSelector, Related, Severity};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn key(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

fn sample() -> Release {
    let text =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"text": "x\ny\u{2028}"}});
    let origin = Location { path: "manifests/a.yaml".into(), line: Some(3), ..Location::default() };
    let object = Object::parse(text.to_string().as_bytes(), 2, Some(origin)).unwrap();
    Release::new(vec![object], vec![], vec![])
}

/// What differs in no part; the types compare all of theirs.
fn assert_same(one: &Release, other: &Release) {
    assert_eq!(one, other);
    assert_eq!(one.digest(), other.digest());
    assert_eq!(format!("{one:?}"), format!("{other:?}"));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |number| number.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn location() -> impl Strategy<Value = Location> {
    (any::<String>(), any::<[Option<u32>; 4]>(), any::<Option<String>>()).prop_map(|(path, place, pointer)| {
        let [line, column, end_line, end_column] = place;
        Location { path, line, column, end_line, end_column, pointer }
    })
}

fn object() -> impl Strategy<Value = Object> {
    let kind = prop_oneof![Just("ConfigMap"), Just("Namespace"), Just("Widget")];
    (kind, "[a-z]{1,8}", any::<Option<u8>>(), any::<u32>(), prop::option::of(location()), value()).prop_map(
        |(kind, name, namespace, stage, origin, content)| {
            let mut metadata = Map::from_iter([("name".to_owned(), json!(name))]);
            metadata.extend(namespace.map(|number| ("namespace".to_owned(), json!(format!("n{number}")))));
            let value = json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": metadata, "content": content});
            Object::parse(value.to_string().as_bytes(), stage, origin).unwrap()
        },
    )
}

fn probe() -> impl Strategy<Value = Probe> {
    let labels = prop::collection::btree_map(any::<String>(), any::<String>(), 0..3);
    (any::<[String; 3]>(), any::<[Option<String>; 4]>(), labels).prop_map(|(text, optional, labels)| {
        let [group, kind, rule] = text;
        let [namespace, name, message, message_expression] = optional;
        let selector = ProbeSelector { group, kind, namespace, name, labels };
        Probe { selector, rule, message, message_expression }
    })
}

fn finding() -> impl Strategy<Value = Diagnostic> {
    let severity = prop_oneof![Just(Severity::Error), Just(Severity::Warning), Just(Severity::Info)];
    let related = (location(), any::<String>()).prop_map(|(location, message)| Related { location, message });
    let related = prop::collection::vec(related, 0..3);
    (severity, any::<[String; 2]>(), prop::option::of(location()), any::<[Option<String>; 2]>(), related).prop_map(
        |(severity, [code, message], location, [help, url], related)| Diagnostic {
            location,
            related,
            help,
            url,
            ..Diagnostic::new(severity, code, message)
        },
    )
}

fn description() -> impl Strategy<Value = Description> {
    let property = (any::<String>(), value()).prop_map(|(kind, value)| Property { kind, value });
    (any::<[Option<String>; 3]>(), prop::collection::vec(property, 0..4), any::<u64>()).prop_map(
        |([name, package, version], properties, omitted)| Description { name, package, version, properties, omitted },
    )
}

fn release() -> impl Strategy<Value = Release> {
    use prop::collection::vec;
    (vec(object(), 0..12), vec(probe(), 0..4), vec(finding(), 0..4), description()).prop_map(
        |(objects, probes, findings, description)| Release::new(objects, probes, findings).described(description),
    )
}

proptest! {
    #[test]
    fn a_release_comes_back_as_it_was(release in release()) {
        let bytes = encode(&key("a"), &release).unwrap();
        assert_same(&decode(&key("a"), &bytes).unwrap(), &release);
    }

    #[test]
    fn no_altered_byte_goes_unseen(place in any::<prop::sample::Index>(), mask in 1_u8..) {
        let mut bytes = encode(&key("a"), &sample()).unwrap();
        let place = place.index(bytes.len());
        bytes[place] ^= mask;
        prop_assert!(decode(&key("a"), &bytes).is_err());
    }

    #[test]
    fn no_truncation_goes_unseen(place in any::<prop::sample::Index>()) {
        let bytes = encode(&key("a"), &sample()).unwrap();
        prop_assert!(decode(&key("a"), &bytes[..place.index(bytes.len())]).is_err());
    }

    #[test]
    fn any_bytes_are_bounded_work(bytes in prop::collection::vec(any::<u8>(), 0..200), sealed in any::<bool>()) {
        // With the right hash in front, too: then the lines are what is wrong.
        let bytes = if sealed { sealed_text(&bytes) } else { bytes };
        prop_assert!(decode(&key("a"), &bytes).is_err());
    }
}

/// A file whose hash is right, with these bytes as its text.
fn sealed_text(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    let text = encoder.finish().unwrap();
    [MAGIC, &hash(&key("a"), &text), &text].concat()
}

/// The lines of a file.
fn lines(bytes: &[u8]) -> Vec<String> {
    let mut text = String::new();
    GzDecoder::new(&bytes[MAGIC.len() + HASH_BYTES..]).read_to_string(&mut text).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn each_object_may_be_as_deep_as_any() {
    // Objects, arrays and the object itself make 127 levels, the most that the reader takes.
    let deep = format!("{}1{}", "[".repeat(126), "]".repeat(126));
    let text = format!(r#"{{"apiVersion":"v1","kind":"A","metadata":{{"name":"a"}},"deep":{deep}}}"#);
    let object = Object::parse(text.as_bytes(), 0, None).unwrap();
    let property = Property { kind: "deep".into(), value: serde_json::from_str(&deep).unwrap() };
    let description = Description { properties: vec![property], ..Description::default() };
    let release = Release::new(vec![object], vec![], vec![]).described(description);
    assert_same(&decode(&key("a"), &encode(&key("a"), &release).unwrap()).unwrap(), &release);
}

#[test]
fn what_is_wrong_is_told() {
    let good = encode(&key("a"), &sample()).unwrap();
    let rewritten = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines = lines(&good);
        change(&mut lines);
        sealed_text((lines.join("\n") + "\n").as_bytes())
    };
    let other_version = [b"chandler release 0\n", &good[MAGIC.len()..]].concat();
    for (bytes, message) in [
        (Vec::new(), "it has another format"),
        (other_version, "it has another format"),
        (MAGIC.to_vec(), "it is cut off"),
        (rewritten(&|lines| drop(lines.pop())), "it is cut off"),
        (rewritten(&|lines| lines.push("{}".into())), "there is data after its end"),
        (rewritten(&|lines| lines[1] = "{}".into()), "one of its objects has no apiVersion"),
        (rewritten(&|lines| lines[0] = lines[0].replace("\"digest\"", "\"other\"")), "unknown field `other`"),
    ] {
        let error = decode(&key("a"), &bytes).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    let error = decode(&key("b"), &good).unwrap_err();
    assert!(matches!(error, DecodeError::Altered), "{error}");
    let changed = rewritten(&|lines| lines[1] = lines[1].replace("\"a\"", "\"b\""));
    let error = decode(&key("a"), &changed).unwrap_err();
    assert!(matches!(error, DecodeError::Otherwise { .. }), "{error}");
}

#[test]
fn a_text_that_never_ends_is_not_read_to_its_end() {
    let zeros = vec![b' '; usize::try_from(TEXT_BYTES).unwrap() + 1];
    let error = decode(&key("a"), &sealed_text(&zeros)).unwrap_err();
    assert!(matches!(error, DecodeError::TooLarge), "{error}");
}

#[test]
fn more_text_than_is_read_is_not_written() {
    let mut objects = sample().objects().to_vec();
    let large = "x".repeat(usize::try_from(TEXT_BYTES / 2).unwrap());
    objects[0].value.insert("data".into(), json!({"a": large, "b": large}));
    let error = encode(&key("a"), &Release::new(objects, vec![], vec![])).unwrap_err();
    assert!(matches!(error, EncodeError::TooLarge), "{error}");
}
