use std::collections::BTreeSet;

use super::*;

fn secret(annotation: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "data": data,
        "metadata": {"name": "s", "annotations": {GENERATE: annotation}}})
}

fn release(objects: &[Value]) -> Release {
    let parse = |object: &Value| Object::parse(object.to_string().as_bytes(), 0, None).unwrap();
    Release::new(objects.iter().map(parse).collect(), vec![], vec![])
}

fn filled(annotation: &str, data: &Value, live: Option<Value>) -> BTreeMap<String, String> {
    let release = release(&[secret(annotation, data)]);
    let secrets = GeneratedSecrets::of(&release, "n").unwrap();
    let filled = secrets.fill(&release, &[live], &mut operating_system).unwrap();
    assert_eq!(secrets.secrets()[0].secret.namespace.as_deref(), Some("n"));
    let data = filled.objects()[0].value["data"].as_object().unwrap();
    let text = |value: &Value| String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap();
    data.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

fn fault(object: Value) -> String {
    GeneratedSecrets::of(&release(&[object]), "n").unwrap_err().to_string()
}

#[test]
fn each_kind_has_its_format_and_values_are_unique() {
    let all = "a=password, b=password:64,c=hex,d=base64:16, e=uuid, f=letters:8, g=digits:16, h=ascii:200, i=strong:8";
    let one = filled(all, &json!({"user": "YWRtaW4="}), None);
    assert_eq!(one["user"], "admin", "data of the release is kept");
    assert_eq!((one["a"].len(), one["b"].len(), one["c"].len()), (32, 64, 64));
    assert!(one["a"].bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert!(one["c"].bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(STANDARD.decode(&one["d"]).unwrap().len(), 16);
    let uuid = &one["e"];
    assert_eq!((uuid.len(), &uuid[14..15], uuid.matches('-').count()), (36, "4", 4));
    assert!(one["f"].len() == 8 && one["f"].bytes().all(|byte| byte.is_ascii_alphabetic()));
    assert!(one["g"].len() == 16 && one["g"].bytes().all(|byte| byte.is_ascii_digit()));
    assert!(one["h"].len() == 200 && one["h"].bytes().all(|byte| byte.is_ascii_graphic()));
    let other = filled(all, &json!({}), None);
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
        assert_ne!(one[name], other[name]);
    }
}

#[test]
fn a_strong_password_has_a_character_of_each_class() {
    let mut firsts = BTreeSet::new();
    for _ in 0..200 {
        let value = Kind::Strong(8).make(&mut operating_system).unwrap();
        let has = |class: fn(&u8) -> bool| value.iter().any(class);
        assert_eq!(value.len(), 8);
        assert!(has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit));
        assert!(has(|byte| matches!(byte, b'_' | b'@')));
        firsts.insert(value[0].is_ascii_uppercase());
    }
    assert_eq!(firsts.len(), 2, "the classes are in no fixed order");
}

#[test]
fn existing_values_are_kept_and_missing_ones_generated() {
    let live = |data: Value| Some(json!({"data": data}));
    let value = STANDARD.encode("kept");
    // A change of kind or length does not change an existing value.
    assert_eq!(filled("a=uuid", &json!({}), live(json!({"a": value})))["a"], "kept");
    for unusable in [json!({}), json!({"a": ""}), json!({"a": "no base64"}), json!({"a": 7}), json!(null)] {
        assert_eq!(filled("a=hex", &json!({}), live(unusable))["a"].len(), 64);
    }
}

#[test]
fn letters_are_equally_likely() {
    // Every byte once, repeatedly: each letter must be equally frequent.
    let mut next = 0_u8;
    let mut count = |bytes: &mut [u8]| {
        for byte in bytes {
            *byte = next;
            next = next.wrapping_add(1);
        }
        Ok(())
    };
    let value = Kind::Password(248).make(&mut count).unwrap();
    let mut times: BTreeMap<u8, u32> = BTreeMap::new();
    for letter in value {
        *times.entry(letter).or_default() += 1;
    }
    let times: BTreeSet<u32> = times.into_values().collect();
    assert_eq!(times, BTreeSet::from([4]));
}

#[test]
fn invalid_requests_are_rejected() {
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "c", "annotations": {GENERATE: "a=hex"}}});
    let many = (0..40).map(|number| format!("k{number}=hex")).collect::<Vec<_>>().join(",");
    let none = json!({});
    let lines = [
        fault(config_map),
        fault(secret("password", &none)),
        fault(secret("a/b=hex", &none)),
        fault(secret("a=dice", &none)),
        fault(secret("a=password:4", &none)),
        fault(secret("a=hex:99999", &none)),
        fault(secret("a=uuid:7", &none)),
        fault(secret("a=digits:15", &none)),
        fault(secret("a=hex,a=uuid", &none)),
        fault(secret("a=hex", &json!({"a": "eA=="}))),
        fault(secret(&many, &none)),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    ConfigMap c: annotation secrets.chandler.dev/generate is supported only on Secrets
    Secret s: annotation secrets.chandler.dev/generate contains "password"; it must be KEY=KIND[:LENGTH], where KEY consists of letters, digits, `-`, `_` and `.`
    Secret s: annotation secrets.chandler.dev/generate contains "a/b=hex"; it must be KEY=KIND[:LENGTH], where KEY consists of letters, digits, `-`, `_` and `.`
    Secret s: annotation secrets.chandler.dev/generate contains "a=dice": unknown kind; it must be password, letters, digits, ascii, strong, hex, base64 or uuid
    Secret s: annotation secrets.chandler.dev/generate contains "a=password:4": the length must be a number from 8 to 1024
    Secret s: annotation secrets.chandler.dev/generate contains "a=hex:99999": the length must be a number from 16 to 1024
    Secret s: annotation secrets.chandler.dev/generate contains "a=uuid:7": a uuid takes no length
    Secret s: annotation secrets.chandler.dev/generate contains "a=digits:15": the length must be a number from 16 to 1024
    Secret s: annotation secrets.chandler.dev/generate sets key "a", which is already set
    Secret s: annotation secrets.chandler.dev/generate sets key "a", which is already set
    the release requests more than 100 Secrets with generated values, or more than 32 keys of one Secret
    "#);
}

#[test]
fn a_failing_source_of_randomness_is_an_error() {
    let release = release(&[secret("a=hex", &json!({}))]);
    let secrets = GeneratedSecrets::of(&release, "n").unwrap();
    let mut broken = |_: &mut [u8]| Err(io::Error::other("no randomness"));
    assert!(secrets.fill(&release, &[None], &mut broken).is_err());
}

/// A Secret with texts that refer to values.
fn expanding(name: &str, keys: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "stringData": data,
        "metadata": {"name": name, "annotations": {EXPAND: keys}}})
}

#[test]
fn texts_contain_the_values_that_they_refer_to() {
    let url = "redis://:$(secrets.chandler.dev/s/a)@host?again=$(secrets.chandler.dev/s/a:base64)";
    let texts = json!({"url": url, "copy": "$(secrets.chandler.dev/s/a)", "plain": "$(secrets.chandler.dev/s/a)"});
    let mut own = expanding("t", "url, copy", &texts);
    own["metadata"]["namespace"] = json!("n");
    let release = release(&[own, secret("a=password:8", &json!({}))]);
    let secrets = GeneratedSecrets::of(&release, "n").unwrap();
    for password in ["first", "second"] {
        let encoded = STANDARD.encode(password);
        let live = json!({"data": {"a": encoded}});
        let filled = secrets.fill(&release, &[Some(live)], &mut operating_system).unwrap();
        // A release orders its objects.
        let value = &filled.objects().iter().find(|object| object.key.name == "t").unwrap().value;
        let text =
            |key: &str| String::from_utf8(STANDARD.decode(value["data"][key].as_str().unwrap()).unwrap()).unwrap();
        assert_eq!(text("url"), format!("redis://:{password}@host?again={encoded}"));
        assert_eq!(text("copy"), password);
        assert_eq!(
            value["stringData"],
            json!({"plain": "$(secrets.chandler.dev/s/a)"}),
            "only listed keys are expanded"
        );
    }
}

#[test]
fn invalid_references_are_rejected_without_showing_the_text() {
    let many = "$(secrets.chandler.dev/s/a)".repeat(101);
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "c", "annotations": {EXPAND: "a"}}});
    let cases = [
        config_map,
        expanding("t", "b", &json!({"a": "x"})),
        expanding("t", "a", &json!({"a": "hunter2 $(secrets.chandler.dev/s"})),
        expanding("t", "a", &json!({"a": "hunter2 $(secrets.chandler.dev/a)"})),
        expanding("t", "a", &json!({"a": "hunter2 $(secrets.chandler.dev/s/a:rot13)"})),
        expanding("t", "a", &json!({"a": "hunter2 $(secrets.chandler.dev/s/b)"})),
        expanding("t", "a", &json!({"a": "hunter2 $(secrets.chandler.dev/u/a)"})),
        expanding("t", "a", &json!({"a": many})),
    ];
    let faults: Vec<String> = cases
        .into_iter()
        .map(|case| {
            let release = release(&[case, secret("a=hex", &json!({}))]);
            GeneratedSecrets::of(&release, "n").unwrap_err().to_string()
        })
        .collect();
    insta::assert_snapshot!(faults.join("\n"), @r#"
    ConfigMap c: annotation secrets.chandler.dev/expand: it is supported only on Secrets
    Secret t: annotation secrets.chandler.dev/expand: the Secret has no text under key "b"
    Secret t: annotation secrets.chandler.dev/expand: the text of key "a" contains a malformed reference; it must be $(secrets.chandler.dev/SECRET/KEY) or $(secrets.chandler.dev/SECRET/KEY:base64)
    Secret t: annotation secrets.chandler.dev/expand: the text of key "a" contains a malformed reference; it must be $(secrets.chandler.dev/SECRET/KEY) or $(secrets.chandler.dev/SECRET/KEY:base64)
    Secret t: annotation secrets.chandler.dev/expand: the text of key "a" contains a malformed reference; it must be $(secrets.chandler.dev/SECRET/KEY) or $(secrets.chandler.dev/SECRET/KEY:base64)
    Secret t: annotation secrets.chandler.dev/expand: key "a" refers to key "b" of Secret "s", which no Secret of the release in this namespace generates
    Secret t: annotation secrets.chandler.dev/expand: key "a" refers to key "a" of Secret "u", which no Secret of the release in this namespace generates
    Secret t: annotation secrets.chandler.dev/expand: it lists more than 32 keys, or the text of one has more than 100 references
    "#);
}

/// A value of another namespace is not readable by a reference.
#[test]
fn a_reference_stays_in_its_namespace() {
    let mut other = expanding("t", "a", &json!({"a": "$(secrets.chandler.dev/s/a)"}));
    other["metadata"]["namespace"] = json!("elsewhere");
    let release = release(&[other, secret("a=hex", &json!({}))]);
    assert!(GeneratedSecrets::of(&release, "n").is_err());
}

#[test]
fn long_live_values_cannot_make_texts_of_any_size() {
    let text = "$(secrets.chandler.dev/s/a)".repeat(100);
    let texts = json!({"a": text, "b": text, "c": text});
    let release = release(&[expanding("t", "a,b,c", &texts), secret("a=hex", &json!({}))]);
    let secrets = GeneratedSecrets::of(&release, "n").unwrap();
    let live = json!({"data": {"a": STANDARD.encode(vec![b'x'; 40 << 10])}});
    let error = secrets.fill(&release, &[Some(live)], &mut operating_system).unwrap_err();
    assert!(matches!(error, FillError::TooLarge(_)), "{error}");
}
