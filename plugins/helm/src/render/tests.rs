//! Whole charts through the engine: Helm's texts for templates that fail.

use chandler_go_template::Limits;

use crate::{
    chart::{File, values},
    functions::Environment,
    pipeline::{self, Failure, Request},
    render::{ApiVersions, Capabilities, Release},
};

const VALUES: &str = "number: 7\nname: web\nports: [80, 443]\nlabels: {a: x, b: 2}\n";

/// Renders a chart `web` with these templates.
fn render(templates: &[(&str, &str)], limits: Limits) -> Result<Vec<String>, Failure> {
    let own = [("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"), ("values.yaml", VALUES)];
    let rendered = pipeline::render(Request {
        files: own.iter().chain(templates).map(|(name, text)| File::new(*name, text.as_bytes().to_vec())).collect(),
        values: vec![values::read("").unwrap()],
        release: Release { name: "demo".to_owned(), namespace: "ns".to_owned(), revision: 1, upgrade: false },
        capabilities: Capabilities { kubernetes: "v1.33.0".to_owned(), api_versions: ApiVersions::new(Vec::new()) },
        environment: Environment::default(),
        limits,
    })?;
    let manifests = rendered.documents.manifests.into_iter();
    Ok(manifests.filter_map(|manifest| manifest.object).map(|object| object.to_json().to_string()).collect())
}

fn error(template: &str) -> String {
    render(&[("templates/x.yaml", template)], Limits::default()).unwrap_err().message
}

#[test]
fn values_have_the_methods_of_helm() {
    for (expression, expected) in [
        ("dig \"a\" \"-\" (.Values.Table \"labels\").AsMap", "x"),
        ("typeOf .Values.AsMap", "map[string]interface {}"),
        ("typeOf (.Values.Table \"labels\")", "chartutil.Values"),
        ("typeOf .", "chartutil.Values"),
        ("typeOf .Values.labels", "map[string]interface {}"),
        (".Values.PathValue \"labels.a\"", "x"),
        ("(.Values.Table \"labels\").YAML", "a: x\nb: 2\n"),
        ("\"labels\" | .Values.Table | len", "2"),
        ("$.Template.AsMap.BasePath", "web/templates"),
    ] {
        let template = format!("a: {{{{ {expression} | toString | quote }}}}");
        let expected = serde_json::json!({"a": expected});
        let rendered = render(&[("templates/x.yaml", &template)], Limits::default());
        assert_eq!(rendered.unwrap(), [expected.to_string()], "{expression}");
    }
    for (expression, text) in [
        (".Values.Table \"name\"", "error calling Table: \"name\" is not a table"),
        (".Values.PathValue \"labels\"", "error calling PathValue: \"labels\" is not a value"),
        (".Values.PathValue \"\"", "error calling PathValue: YAML path cannot be empty"),
        (".Values.AsMap 1", "wrong number of args for AsMap: want 0 got 1"),
        (".Values.Encode", "wrong number of args for Encode: want 1 got 0"),
        (".Values.labels.AsMap 1", "AsMap is not a method but has arguments"),
    ] {
        let message = error(&format!("a: {{{{ {expression} }}}}"));
        assert!(message.contains(text), "{message}");
    }
}

#[test]
fn files_as_configuration_keep_empty_lines_at_the_end() {
    // What follows keeps Helm from trimming the document there.
    let template = "data:\n{{ (.Files.Glob \"conf/*\").AsConfig | indent 2 }}\nkind: X\n";
    for (file, expected) in [("a\n\n", "a\n\n"), ("a\n", "a\n"), ("a", "a")] {
        let rendered = render(&[("templates/x.yaml", template), ("conf/one", file)], Limits::default()).unwrap();
        assert_eq!(rendered, [serde_json::json!({"data": {"one": expected}, "kind": "X"}).to_string()]);
    }
}

/// Each at `web/templates/x.yaml:2:`, the column and the text.
#[test]
fn failing_templates_have_the_texts_of_helm() {
    for (expression, column, text) in [
        (".Values.none.deep.er", 13, "<.Values.none.deep.er>: nil pointer evaluating interface {}.deep"),
        (
            "eq .Values.name 3",
            6,
            "<eq .Values.name 3>: error calling eq: incompatible types for comparison: string and int",
        ),
        ("lt 1.5 2", 6, "<lt 1.5 2>: error calling lt: incompatible types for comparison: float64 and int"),
        ("len .Values.none", 6, "<len .Values.none>: error calling len: len of nil pointer"),
        ("range .Values.name }}{{ end", 19, "<.Values.name>: range can't iterate over web"),
        ("index .Values.ports 3", 6, "<index .Values.ports 3>: error calling index: index out of range: 3"),
        // Go checks the place behind the last item elsewhere.
        ("index .Values.ports 2", 6, "<index .Values.ports 2>: error calling index: reflect: slice index out of range"),
        (
            "include \"web.labels\" .",
            6,
            "<include \"web.labels\" .>: error calling include: template: no template \"web.labels\" associated with template \"gotpl\"",
        ),
        ("repeat \"a\" \"b\"", 13, "<\"a\">: expected integer; found \"a\""),
        ("upper .Values.number", 19, "<.Values.number>: wrong type for value; expected string; got float64"),
        (".Chart.Nothing", 12, "<.Chart.Nothing>: can't evaluate field Nothing in type interface {}"),
        (
            "dig \"a\" \"z\" 0 .Values.labels",
            6,
            "<dig \"a\" \"z\" 0 .Values.labels>: error calling dig: interface conversion: interface {} is string, not map[string]interface {}",
        ),
    ] {
        let expected =
            format!("template: web/templates/x.yaml:2:{column}: executing \"web/templates/x.yaml\" at {text}");
        assert_eq!(error(&format!("a: 1\nb: {{{{ {expression} }}}}\n")), expected);
    }
}

#[test]
fn some_errors_are_shortened() {
    for (template, expected) in [
        ("a: {{ .Values.name | frob }}", "parse error at (web/templates/x.yaml:1): function \"frob\" not defined"),
        ("a: {{ required \"set color\" .Values.color }}", "execution error at (web/templates/x.yaml:1:6): set color"),
        ("a: 1\nb: {{ fail \"never\" }}", "execution error at (web/templates/x.yaml:2:6): never"),
    ] {
        assert_eq!(error(template), expected);
    }
}

#[test]
fn what_is_missing_is_nothing() {
    let template = "{a: {{ .Release.Nothing }}, b: {{ .Files.Get \"none\" | quote }}, c: {{ lookup \"v1\" \"Secret\" \"x\" \"y\" | toJson }}, d: {{ .Values.none }}}";
    let rendered = render(&[("templates/x.yaml", template)], Limits::default()).unwrap();
    assert_eq!(rendered, [r#"{"a":null,"b":"","c":{},"d":null}"#]);
}

#[test]
fn hostile_charts_end_with_a_limit() {
    let limits = Limits { steps: 1_000_000, bytes: 32 << 20, ..Limits::default() };
    for (template, reason) in [
        ("{{ define \"a\" }}{{ include \"a\" . }}{{ end }}a: {{ include \"a\" . }}", "deep"),
        ("{{ $t := \"{{ tpl .t . }}\" }}a: {{ tpl $t (dict \"t\" $t) }}", "deep"),
        ("a: {{ range 2000 }}{{ range 2000 }}{{ end }}{{ end }}", "more than 1000000 steps"),
        ("{{ $s := \"xxxxxxxxxx\" }}{{ range 60 }}{{ $s = print $s $s }}{{ end }}", "more than 33554432 bytes"),
        ("{{ $d := list 1 }}{{ range 60 }}{{ $d = list $d $d }}{{ end }}a: {{ $d }}", "more than"),
    ] {
        let message = render(&[("templates/x.yaml", template)], limits).unwrap_err().message;
        assert!(message.contains(reason), "{template}: {message}");
    }
}
