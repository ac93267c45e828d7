//! Charts that generate passwords and certificates: what they request of the host, and what is refused.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_helm::Helm;
use chandler_sdk::{
    Failure, Request,
    testing::{Bundle, run},
};
use serde_json::{Value as Json, json};

const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: NAME}\n";

fn secret(name: &str, rest: &str) -> String {
    format!("{}{rest}\n", SECRET.replace("NAME", name))
}

fn bundle(templates: &[(&str, String)]) -> Bundle {
    let chart = ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n");
    Bundle::new(std::iter::once(chart).chain(templates.iter().map(|(path, text)| (*path, text.as_str()))))
}

fn render(templates: &[(&str, String)]) -> Result<Vec<Json>, Vec<String>> {
    let request = Request::new().with_name("demo").with_namespace("ns");
    match run::<Helm>(&bundle(templates), &request) {
        Ok(recorder) => Ok(recorder.objects.into_iter().map(|object| object.value).collect()),
        Err(Failure::Unsupported(findings)) => Err(findings.into_iter().map(|finding| finding.message).collect()),
        Err(other) => panic!("{other:?}"),
    }
}

fn rendered(text: String) -> Vec<Json> {
    render(&[("templates/x.yaml", text)]).unwrap()
}

fn refusal(text: &str) -> String {
    match render(&[("templates/x.yaml", text.to_owned())]) {
        Ok(objects) => panic!("{text} gives {objects:?}"),
        Err(findings) => findings.join("\n"),
    }
}

fn annotation<'o>(object: &'o Json, name: &str) -> &'o str {
    object["metadata"]["annotations"][format!("secrets.chandler.dev/{name}")].as_str().unwrap_or_default()
}

fn decoded(object: &Json, key: &str) -> String {
    String::from_utf8(STANDARD.decode(object["data"][key].as_str().unwrap()).unwrap()).unwrap()
}

#[test]
fn a_key_of_a_secret_is_requested() {
    let objects = rendered(secret(
        "s",
        r#"data:
  user: {{ "admin" | b64enc }}
  a: {{ randAlphaNum 10 | b64enc | quote }}
  b: {{ randAlpha 12 | b64enc }}
  c: {{ randBytes 32 | b64enc }}
stringData:
  d: "{{ randNumeric 16 }}"
  e: {{ uuidv4 }}
  f: {{ randAlphaNum 40 | trunc 20 }}
  g: {{ (lookup "v1" "Secret" "ns" "s").data | default dict | dig "g" (randAlphaNum 8) }}"#,
    ));
    assert_eq!(
        annotation(&objects[0], "generate"),
        "a=password:10,b=letters:12,c=base64:32,d=digits:16,e=uuid,f=password:20,g=password:8"
    );
    assert_eq!(objects[0]["data"], json!({"user": "YWRtaW4="}));
    assert_eq!(objects[0]["stringData"], json!({}));
}

/// The library chart of Bitnami.
#[test]
fn a_password_may_pass_through_helpers() {
    let helper = r#"{{- define "manage" -}}
{{- $password := randAlphaNum 10 }}
{{- if .strong }}
{{- $subStr := list (lower (randAlpha 1)) (randNumeric 1) (upper (randAlpha 1)) | join "_" }}
{{- $password = randAscii 10 }}
{{- $password = regexReplaceAllLiteral "\\W" $password "@" | substr 5 10 }}
{{- $password = printf "%s%s" $subStr $password | toString | shuffle }}
{{- end }}
{{- printf "%s" ($password | b64enc) | quote -}}
{{- end -}}"#;
    let text = secret(
        "s",
        r#"data:
  plain: {{ include "manage" (dict) }}
  strong: {{ include "manage" (dict "strong" true) }}
  {{- $again := include "manage" (dict) | trimAll "\"" | b64dec }}
  root: {{ $again | b64enc }}
  uri: {{ printf "db://root:%s@host" $again | b64enc }}"#,
    );
    let objects = render(&[("templates/_h.tpl", helper.to_owned()), ("templates/x.yaml", text)]).unwrap();
    assert_eq!(annotation(&objects[0], "generate"), "plain=password:10,root=password:10,strong=strong:10");
    assert_eq!(annotation(&objects[0], "expand"), "uri");
    assert_eq!(decoded(&objects[0], "uri"), "db://root:$(secrets.chandler.dev/s/root)@host");
}

#[test]
fn a_value_at_several_places_is_one_value() {
    let text = [
        "{{- $word := randAlphaNum 16 }}".to_owned()
            + &secret("a", "stringData: {url: \"x://:{{ $word }}@h\", both: \"{{ $word }},{{ randAlphaNum 9 }}\"}"),
        secret(
            "b",
            "data: {first: {{ $word | b64enc }}, second: {{ $word | b64enc }}, twice: {{ $word | b64enc | b64enc }}}",
        ),
    ]
    .join("---\n");
    let objects = rendered(text);
    let own = "$(secrets.chandler.dev/b/first)";
    assert_eq!(annotation(&objects[1], "generate"), "first=password:16");
    assert_eq!(annotation(&objects[1], "expand"), "second,twice");
    assert_eq!(decoded(&objects[1], "second"), own);
    assert_eq!(decoded(&objects[1], "twice"), "$(secrets.chandler.dev/b/first:base64)");
    assert_eq!(
        objects[0]["stringData"],
        json!({"url": format!("x://:{own}@h"), "both": format!("{own},$(secrets.chandler.dev/a-generated/both)")})
    );
    // A value that is nowhere a whole key has a Secret of its own.
    assert_eq!(objects[2]["metadata"]["name"], "a-generated");
    assert_eq!(annotation(&objects[2], "generate"), "both=password:9");
}

#[test]
fn annotations_have_constants() {
    let deployment = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  template:
    metadata:
      annotations:
        checksum/secret: {{ include (print $.Template.BasePath "/a.yaml") . | sha256sum | trunc 32 }}
        rollme: {{ randAlphaNum 5 | quote }}
"#;
    let templates = [
        ("templates/a.yaml", secret("a", "data: {a: {{ randAlphaNum 10 | b64enc }}}")),
        ("templates/b.yaml", deployment.to_owned()),
    ];
    let objects = render(&templates).unwrap();
    let annotations = &objects[1]["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["rollme"], "generated");
    assert_eq!(annotations["checksum/secret"].as_str().unwrap().len(), 32);
    assert_eq!(render(&templates).unwrap(), objects, "a render gives the same objects again");
}

#[test]
fn other_places_are_refused_by_name() {
    let config = |rest: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata:\n  a: {rest}\n");
    let refusals = [
        refusal(&config("{{ randAlphaNum 10 }}")),
        refusal(&config("{{ sha256sum (randAlphaNum 10) }}")),
        refusal(&config("{{ genCA `ca` 1 | toString | quote }}")),
        refusal("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"c-{{ randAlphaNum 10 }}\"}\n"),
        refusal(&secret("s", "data: {a: {{ randAlphaNum 7 | b64enc }}}")),
        refusal(&secret("s", "data: {a: {{ randAlphaNum 10 | lower | b64enc }}}")),
        refusal(&secret("s", "data: {a: {{ randNumeric 15 | b64enc }}}")),
        refusal(&secret("s", "data: {a: {{ randAlphaNum 10 }}}")),
        refusal(&secret("s", "data: {a: {{ randAlphaNum 10 | sha256sum | b64enc }}}")),
        refusal(&secret("s", "stringData: {a: {{ randAlphaNum 10 | sha256sum }}}")),
        refusal(&secret("s", "{{ $w := randAlphaNum 20 }}\nstringData: {a: {{ $w }}, b: {{ $w | trunc 10 }}}")),
        refusal(&secret("s", "stringData: {a: {{ printf `u:%s` (randAlphaNum 10) | b64enc | printf `x %s` }}}")),
        refusal(
            &[
                "{{- $w := randAlphaNum 20 }}\n".to_owned() + &secret("s", "stringData: {a: {{ $w }}}"),
                secret("s", "stringData: {b: {{ $w }}}").replace("{name: s}", "{name: s, namespace: other}"),
            ]
            .join("---\n"),
        ),
    ];
    assert_refusals(&refusals);
}

/// Each message names the call, its place and where the value would be.
fn assert_refusals(refusals: &[String]) {
    let place = "web/templates/x.yaml:";
    let expected = [
        "the result of randAlphaNum 10 would be in /data/a of ConfigMap c (web/templates/x.yaml); the host generates values only in Secrets",
        "/data/a of ConfigMap c (web/templates/x.yaml) contains the digest of a text with a generated value",
        "the result of genCA \"ca\" would be in /data/a of ConfigMap c (web/templates/x.yaml), and the host issues certificates only for webhooks",
        "the result of randAlphaNum 10 would be in /metadata/name of ConfigMap",
        "the result of randAlphaNum 7 has fewer than 8 characters",
        "the result of randAlphaNum 10 would be in a Secret in letters of one case",
        "the result of randNumeric 15 has fewer than 16 digits",
        "the result of randAlphaNum 10 would be in \"a\" of Secret s (web/templates/x.yaml), whose data must be in base64",
        "\"a\" of Secret s (web/templates/x.yaml) contains the digest",
        "\"a\" of Secret s (web/templates/x.yaml) contains the digest",
        "the result of randAlphaNum 20 is needed both whole and changed",
        "as a part of a text in base64 within another text",
        "a value cannot leave its namespace",
    ];
    assert_eq!(refusals.len(), expected.len());
    for (refusal, expected) in refusals.iter().zip(expected) {
        assert!(refusal.contains(expected), "{refusal}\n  instead of\n{expected}");
        assert!(refusal.contains("digest") || refusal.contains(place), "{refusal}");
        assert!(!refusal.contains("Chgen"), "{refusal}");
    }
}

/// A function that makes something else of a placeholder would make a constant.
#[test]
fn functions_that_change_a_value_are_refused() {
    for call in [
        "{{ randAlphaNum 10 | splitList `` | join `-` }}",
        "{{ randAlphaNum 10 | initials }}",
        "{{ randAlphaNum 10 | b64enc | trunc 9 }}",
        "{{ randAlphaNum 10 | b64enc | replace `=` `` }}",
        "{{ randAlphaNum 10 | b32enc }}",
        "{{ printf `%x` (randAlphaNum 10) }}",
        "{{ printf `%.20s` (randAlphaNum 30) }}",
        "{{ index (randAlphaNum 10) 0 }}",
        "{{ randAlphaNum 10 | swapcase }}",
        "{{ randAlphaNum 10 | sha256sum | upper }}",
        "{{ randAlphaNum 10 | sha256sum | trunc 5 }}",
        "{{ randAlphaNum 10 | adler32sum | int }}",
        "{{ randNumeric 16 | int }}",
        "{{ regexFind `[0-9]+` (randAlphaNum 10) }}",
        "{{ regexReplaceAll `[a-z]` (randAlphaNum 10) `` }}",
        "{{ derivePassword 1 `long` (randAlphaNum 10) `u` `s` }}",
        "{{ htpasswd `u` (randAlphaNum 10) }}",
    ] {
        let text = secret("s", &format!("stringData: {{a: \"{call}\"}}"));
        let refusal = refusal(&text);
        assert!(refusal.contains("is not available: "), "{call}: {refusal}");
    }
}

const WEBHOOK: &str = r#"{{- $ca := genCA "web-ca" 3650 }}
{{- $names := list (printf "hook.%s" .Release.Namespace) (printf "hook.%s.svc" .Release.Namespace) EXTRA }}
{{- $cert := genSignedCert "hook" nil $names 365 $ca }}
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata: {name: hook-tls}
data:
  tls.crt: {{ $cert.Cert | b64enc }}
  tls.key: {{ $cert.Key | b64enc }}
  ca.crt: {{ $ca.Cert | b64enc }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook}
webhooks:
- name: a.example.com
  clientConfig: {caBundle: {{ $ca.Cert | b64enc }}, service: {name: hook, namespace: {{ .Release.Namespace }}}}
---
apiVersion: v1
kind: Service
metadata: {name: hook}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: hook}
spec: {template: {spec: {volumes: [{name: tls, secret: {secretName: hook-tls}}]}}}
"#;

#[test]
fn the_certificate_of_a_webhook_is_requested() {
    let objects = rendered(WEBHOOK.replace("EXTRA", ""));
    let of = |kind: &str| objects.iter().find(|object| object["kind"] == kind);
    let annotation = |kind: &str, name: &str| {
        of(kind).unwrap()["metadata"]["annotations"][format!("certificates.chandler.dev/{name}")].clone()
    };
    assert_eq!(of("Secret"), None);
    assert_eq!(annotation("Service", "serving-secret"), "hook-tls");
    assert_eq!(annotation("ValidatingWebhookConfiguration", "inject-ca"), "true");
    assert_eq!(annotation("Deployment", "restart-on-rotation"), "true");
    let client = &of("ValidatingWebhookConfiguration").unwrap()["webhooks"][0]["clientConfig"];
    assert_eq!(client, &json!({"service": {"name": "hook", "namespace": "ns"}}));
}

/// Charts keep the authority in a Secret for `lookup`, where nothing else reads it.
#[test]
fn a_kept_authority_is_left_out() {
    let kept = secret("ca", "data: {tls.crt: {{ $ca.Cert | b64enc }}, tls.key: {{ $ca.Key | b64enc }}}");
    let text = format!("{}---\n{kept}", WEBHOOK.replace("EXTRA", "`hook.ns.svc.cluster.local.`"));
    assert!(rendered(text.clone()).iter().all(|object| object["kind"] != "Secret"));
    let used = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {authority: ca}\n";
    assert!(refusal(&format!("{text}{used}")).contains("would be in \"tls.crt\" of Secret ca"));
}

/// The host's certificate would not have the name, or the Secret not the key.
#[test]
fn a_certificate_of_another_form_is_refused() {
    for text in [
        WEBHOOK.replace("EXTRA", "`hook.example.com`"),
        WEBHOOK.replace("EXTRA", "").replace("  ca.crt:", "  cacert.pem:"),
        WEBHOOK.replace("EXTRA", "").replace("kind: Service\n", "kind: Other\n"),
        WEBHOOK.replace("EXTRA", "").replace("tls.key: {{ $cert.Key", "tls.key: {{ $ca.Key"),
    ] {
        let refusal = refusal(&text);
        assert!(refusal.contains("the host issues certificates only for webhooks"), "{refusal}");
    }
}

const SERVER: &str = r#"{{- $ca := genCA "db-ca" 365 }}
{{- $names := list "*.db.ns.svc.cluster.local" "db.ns.svc" "localhost" "db" }}
{{- $cert := genSignedCert "db" (list "127.0.0.1") $names 365 $ca }}
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata: {name: db-crt}
data:
  tls.crt: {{ $cert.Cert | b64enc }}
  tls.key: {{ $cert.Key | b64enc }}
  ca.crt: {{ $ca.Cert | b64enc }}
---
apiVersion: v1
kind: Service
metadata: {name: db}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec: {template: {spec: {volumes: [{name: tls, secret: {secretName: db-crt}}]}}}
"#;

/// The charts of databases, as Bitnami's and Elastic's.
#[test]
fn the_certificate_of_a_server_is_requested_with_its_names() {
    let objects = rendered(SERVER.to_owned());
    let of = |kind: &str| objects.iter().find(|object| object["kind"] == kind);
    let annotation = |kind: &str, name: &str| {
        of(kind).unwrap()["metadata"]["annotations"][format!("certificates.chandler.dev/{name}")].clone()
    };
    assert_eq!(of("Secret"), None);
    assert_eq!(annotation("Service", "serving-secret"), "db-crt");
    assert_eq!(annotation("Service", "peer-names"), "*.db.ns.svc.cluster.local,127.0.0.1,db,localhost");
    assert_eq!(annotation("StatefulSet", "restart-on-rotation"), "true");
}

/// The host makes an authority for each Secret, and puts it nowhere else.
#[test]
fn a_certificate_whose_authority_is_elsewhere_is_refused() {
    let other = "{{- $other := genSignedCert `client` nil (list `db`) 365 $ca }}\n";
    let client = secret(
        "client",
        "data: {tls.crt: {{ $other.Cert | b64enc }}, tls.key: {{ $other.Key | b64enc }}, ca.crt: {{ $ca.Cert | b64enc }}}",
    );
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\nbinaryData: {ca: {{ $ca.Cert | b64enc }}}\n";
    for text in [
        format!("{SERVER}---\n{other}{client}"),
        format!("{SERVER}---\n{map}"),
        SERVER.replace("  ca.crt: {{ $ca.Cert | b64enc }}\n", ""),
        SERVER.replace("kind: Service", "kind: Other"),
        SERVER.replace("\"localhost\"", "\"not a name\""),
        SERVER.replace("list \"*.db.ns.svc.cluster.local\" \"db.ns.svc\" \"localhost\" \"db\"", "list \"other\""),
    ] {
        let refusal = refusal(&text);
        assert!(refusal.contains("the host issues certificates only for"), "{refusal}");
    }
}

/// Charts name the Pods of their tests so.
#[test]
fn a_value_in_an_object_that_is_not_installed_does_not_matter() {
    let request = Request::new().with_name("demo").with_namespace("ns");
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: \"t-{{ randAlphaNum 5 | lower }}\", annotations: {helm.sh/hook: test}}\n";
    let recorder = run::<Helm>(&bundle(&[("templates/t.yaml", pod.to_owned())]), &request).unwrap();
    assert!(recorder.objects.is_empty());
    assert_eq!(recorder.findings[0].message, "the Pod \"t-(generated)\" is a test, which is not installed");
    let pod = pod.replace("helm.sh/hook: test", "a: b");
    assert!(refusal(&pod).contains("the result of randAlphaNum 5 would be in /metadata/name of Pod t-(generated)"));
}

/// Each level has the one before twice.
#[test]
fn nested_placeholders_take_no_time() {
    let double = "{{- $x := randAlphaNum 9 }}{{ range until 3000 }}{{ $x = printf `%s%s` $x $x | b64enc }}{{ end }}";
    let refusal = refusal(&secret("s", &format!("{double}\ndata: {{a: {{{{ $x }}}}}}")));
    assert!(refusal.contains("as a part of a text in base64"), "{refusal}");
    let shuffled = "{{- $x := randAlphaNum 9 }}{{- $y := $x }}{{ range until 100 }}{{ $z := shuffle (print $x $y) }}{{ $y = shuffle (print $y $x) }}{{ $x = $z }}{{ end }}";
    let text = secret("s", &format!("{shuffled}\nstringData: {{a: {{{{ $x }}}}}}"));
    assert!(render(&[("templates/x.yaml", text)]).unwrap_err()[0].contains("has more than 1024 characters"));
}

#[test]
fn notes_show_no_placeholder() {
    let request = Request::new().with_name("demo").with_namespace("ns");
    let templates = [("templates/NOTES.txt", "the password is {{ randAlphaNum 10 }}".to_owned())];
    let recorder = run::<Helm>(&bundle(&templates), &request).unwrap();
    assert_eq!(recorder.findings[0].message, "the password is (generated)");
}
