//! Tables of what is hidden.

use proptest::prelude::*;
use serde_json::json;

use super::{text::SCHEMES, *};

#[test]
fn values_that_users_choose_are_hidden_and_names_stay() {
    let mut object = json!({
        "metadata": {
            "name": "harbour", "managedFields": [{"f:spec": 1}],
            "annotations": {LAST_APPLIED: "hunter2", "example.com/note": "hunter2", "chandler.dev/image": "registry.example.com/a:v1"},
        },
        "spec": {
            "config": {"level": "info", "users": [{"name": "ada", "pin": 1234}], "on": true, "none": null},
            "source": {"image": {"ref": "registry.example.com/a:v1", "pullSecret": "pull"}},
            "containers": [{
                "env": [{"name": "LEVEL", "value": "hunter2"}, {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
                "args": ["--log-format=json", "--api-token=hunter2", "--password", "hunter2", "controller"],
            }],
        },
        "status": {"history": [{"number": 1, "config": {"level": "info"}}], "token": "hunter2"},
    });
    Scrubber::default().object(&mut object);
    insta::assert_snapshot!(serde_json::to_string_pretty(&object).unwrap(), @r#"
    {
      "metadata": {
        "annotations": {
          "chandler.dev/image": "registry.example.com/a:v1",
          "example.com/note": "(hidden)"
        },
        "name": "harbour"
      },
      "spec": {
        "config": {
          "level": "(hidden)",
          "none": null,
          "on": true,
          "users": [
            {
              "name": "(hidden)",
              "pin": "(hidden)"
            }
          ]
        },
        "containers": [
          {
            "args": [
              "--log-format=json",
              "--api-token=(hidden)",
              "--password",
              "(hidden)",
              "controller"
            ],
            "env": [
              {
                "name": "LEVEL",
                "value": "(hidden)"
              },
              {
                "name": "POD",
                "valueFrom": {
                  "fieldRef": {
                    "fieldPath": "x"
                  }
                }
              }
            ]
          }
        ],
        "source": {
          "image": {
            "pullSecret": "pull",
            "ref": "registry.example.com/a:v1"
          }
        }
      },
      "status": {
        "history": [
          {
            "config": {
              "level": "(hidden)"
            },
            "number": 1
          }
        ],
        "token": "(hidden)"
      }
    }
    "#);
}

#[test]
fn texts_lose_what_looks_like_a_secret() {
    for (text, expected) in [
        (
            "get https://ada:hunter2@example.com/a?token=hunter2&x=1#t=2 now",
            "get https://(hidden)@example.com/a?(hidden) now",
        ),
        ("get https://u:p/w@example.com/a", "get https://(hidden)@example.com/a"),
        ("get https://u:p?w@example.com/a", "get https://(hidden)?(hidden)"),
        ("get https://u:cut off", "get https://(hidden) off"),
        ("a=https://h/,b=https://u:p@h/", "a=https://(hidden)@h/"),
        ("https://example.com/cb?BARETOKEN", "https://example.com/cb?(hidden)"),
        ("GET /cb?code=x", "GET /cb?(hidden)"),
        ("ada:hunter2@tcp(db:3306)/x", "(hidden)@tcp(db:3306)/x"),
        ("https://10.0.0.1:443: connection refused", "https://10.0.0.1:443: connection refused"),
        ("https://[::1]:443/a", "https://[::1]:443/a"),
        ("oci://registry.example.com:5000/a@sha256:abc", "oci://registry.example.com:5000/a@sha256:abc"),
        ("registry.example.com:5000/a:v1@sha256:abc", "registry.example.com:5000/a:v1@sha256:abc"),
        ("Authorization: Bearer abcdefgh1", "Authorization: (hidden)"),
        ("Authorization: Token x", "Authorization: (hidden)"),
        ("Proxy-Authorization: Negotiate x", "Proxy-Authorization: (hidden)"),
        ("it sent Negotiate abcdefgh1", "it sent Negotiate (hidden)"),
        ("Cookie: a=b; session=x", "Cookie: (hidden)"),
        (r#"{"level":"info","password":"hunter2"}"#, r#"{"level":"info","password":"(hidden)"}"#),
        (r#"{"password":"two words","level":"info"}"#, r#"{"password":"(hidden)","level":"info"}"#),
        (r#"{"password":"a\",x","level":"info"}"#, r#"{"password":"(hidden)","level":"info"}"#),
        (r#"{"auth":"a,x"}"#, r#"{"auth":"(hidden)"}"#),
        (r#"{"message":"password=/abc+x y","level":"info"}"#, r#"{"message":"password=(hidden)","level":"info"}"#),
        (
            r#"{"message":"{\"password\":\"two words\",\"a\":1}"}"#,
            r#"{"message":"{\"password\":\"(hidden)\",\"a\":1}"}"#,
        ),
        (r#"5" password="two words" end"#, r#"5" password="(hidden)" end"#),
        (r#"password="a"b c"#, r#"password="(hidden)"#),
        (r#""passwords": ["x"]"#, r#""passwords": (hidden)"#),
        ("\"passwords\": [\n  \"x\"", "\"passwords\": [\n(hidden)"),
        ("password: |\n  x\nend", "password: |\n(hidden)\nend"),
        ("password=/abc+x", "password=(hidden)"),
        ("password:\tx", "password:\t(hidden)"),
        ("password%3Dx", "password%(hidden)"),
        ("<password>x</password>", "<password>(hidden)"),
        ("pwd=x", "pwd=(hidden)"),
        ("db_pass = x", "db_pass = (hidden)"),
        ("mysql --password x", "mysql --password (hidden)"),
        (r#"["--password","x"]"#, r#"["--password","(hidden)"]"#),
        ("token=hunter2, user=ada", "token=(hidden)"),
        ("a eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln b", "a (hidden) b"),
        ("https://h/a/eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln/b", "https://h/a/(hidden)/b"),
        ("x=ghp_0123456789abcdef", "x=(hidden)"),
        ("ASIA0123456789ABCDEF", "(hidden)"),
        ("login sha256~0123456789abcdef", "login (hidden)"),
        ("secretName: where", "secretName: where"),
        ("rollout of harbour: 3 of 4 objects", "rollout of harbour: 3 of 4 objects"),
        (
            "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io/v1",
        ),
        (
            r#"secrets "pull" is forbidden: User "ada" cannot get"#,
            r#"secrets "pull" is forbidden: User "ada" cannot get"#,
        ),
    ] {
        assert_eq!(Scrubber::default().text(text), expected, "{text}");
    }
}

#[test]
fn private_keys_are_hidden_to_their_end() {
    for (text, expected) in [
        ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nend", "(hidden)\nend"),
        ("-----BEGIN PRIVATE KEY-----\ncut", "(hidden)"),
        (
            "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nMII\n-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\nend",
            "-----BEGIN CERTIFICATE-----\nMII\n(hidden)\nend",
        ),
        (r"-----BEGIN PRIVATE KEY-----\nMIIEabc\nMIIE and more", r"(hidden)\nMIIE and more"),
        ("-----BEGIN PRIVATE KEY----- MIIEvQIBADANBgkqhkiG", "(hidden)"),
        (
            "2026-01-01T00:00:00Z -----BEGIN PRIVATE KEY-----\n2026-01-01T00:00:00Z MIIEvQIBADANBgkqhkiG\n2026-01-01T00:00:00Z an end",
            "2026-01-01T00:00:00Z (hidden)\n2026-01-01T00:00:00Z an end",
        ),
        (
            "expected -----BEGIN PRIVATE KEY----- in a file\nthe rest stays",
            "expected (hidden) in a file\nthe rest stays",
        ),
    ] {
        assert_eq!(Scrubber::default().text(text), expected, "{text}");
    }
}

#[test]
fn everything_below_a_telling_name_is_hidden() {
    let mut object = json!({
        "metadata": {"annotations": {"notchandler.dev/x": "1", "my-rukpak.io/x": "1", "x.chandler.dev/y": "1", "chandler.dev/y": "1"}},
        "passwords": ["x", {"a": "y"}],
        "credentials": {"user": "x"},
        "volume": {"secret": {"secretName": "pull"}},
        "status": {"webhookPath": "/hooks/0a1b"},
        "httpHeaders": [{"name": "X-Any", "value": "x"}],
        "command": ["sh", "-c", "mysql --password x"],
        "args": ["login", "password", "x"],
    });
    Scrubber::default().object(&mut object);
    let expected = json!({
        "metadata": {"annotations": {
            "notchandler.dev/x": HIDDEN, "my-rukpak.io/x": HIDDEN, "x.chandler.dev/y": "1", "chandler.dev/y": "1"}},
        "passwords": [HIDDEN, {"a": HIDDEN}],
        "credentials": {"user": HIDDEN},
        "volume": {"secret": {"secretName": "pull"}},
        "status": {"webhookPath": HIDDEN},
        "httpHeaders": [{"name": "X-Any", "value": HIDDEN}],
        "command": ["sh", "-c", "mysql --password (hidden)"],
        "args": ["login", "password", HIDDEN],
    });
    assert_eq!(object, expected);
}

#[test]
fn a_definition_stays_and_no_user_name_is_remembered() {
    let mut definition = json!({
        "kind": "CustomResourceDefinition", "metadata": {"annotations": {"example.com/a": "x"}, "managedFields": []},
        "spec": {"properties": {"token": {"type": "string", "description": "ssh://administrator@host"}}},
    });
    let mut expected = definition.clone();
    expected["metadata"] = json!({"annotations": {"example.com/a": HIDDEN}});
    let mut scrubber = Scrubber::default();
    scrubber.object(&mut definition);
    assert_eq!(definition, expected);
    scrubber.text("ssh://administrator@host, https://administrator:x@host");
    assert_eq!(scrubber.remembered(), 0, "{scrubber:?}");
}

#[test]
fn what_was_hidden_is_hidden_elsewhere() {
    let mut scrubber = Scrubber::default();
    scrubber.object(&mut json!({"config": {"greeting": "a long greeting", "password": "abc12345"}}));
    let finder = scrubber.finder().unwrap();
    assert_eq!(finder.text("it said a long greeting, abc12345"), "it said (hidden), (hidden)");
}

proptest! {
    #[test]
    fn no_text_panics_and_a_text_without_marks_stays(text in any::<String>(), plain in "[a-z ]{0,40}") {
        Scrubber::default().text(&text);
        let expected = plain.clone();
        let is_header = SCHEMES.iter().any(|scheme| plain.contains(scheme));
        prop_assert!(is_header || Scrubber::default().text(&plain) == expected);
    }

    #[test]
    fn a_secret_in_any_place_is_hidden(secret in "[A-Za-z0-9]{12,30}") {
        for text in [
            format!("https://u:{secret}@example.com"),
            format!("https://example.com/?access={secret}"),
            format!("password: {secret}"),
            format!("\"clientSecret\":\"{secret}\""),
            format!("Authorization: Basic {secret}"),
        ] {
            prop_assert!(!Scrubber::default().text(&text).contains(&secret), "{}", text);
        }
    }
}
