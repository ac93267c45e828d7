//! What hostile templates cost.

use chandler_go_template::{Limits, Value};

use crate::support::render;

const LIMITS: Limits = Limits { steps: 1_000_000, bytes: 10 << 20, depth: 200 };

#[track_caller]
fn refused(template: &str, reason: &str) {
    let error = render(LIMITS, template, &Value::Nil).unwrap_err();
    assert!(error.contains(reason), "{error}");
}

#[test]
fn recursion_ends() {
    for template in [
        "{{ define \"a\" }}{{ template \"a\" . }}{{ end }}{{ template \"a\" . }}",
        "{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}",
        "{{ define \"a\" }}{{ tpl \"{{ include \\\"a\\\" . }}\" . }}{{ end }}{{ include \"a\" . }}",
        "{{ $d := dict }}{{ set $d \"a\" $d }}",
        "{{ $d := dict }}{{ $_ := set $d \"a\" (list $d) }}{{ printf \"%v\" $d }}",
    ] {
        refused(template, "are more than 200 deep");
    }
}

#[test]
fn a_deep_template_cannot_be_parsed() {
    refused(
        &format!("{}x{}", "{{ if 1 }}".repeat(100_000), "{{ end }}".repeat(100_000)),
        "max expression depth exceeded",
    );
    refused(&format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000)), "max expression depth exceeded");
    refused(
        &format!("{{{{ if 1 }}}}{}{{{{ end }}}}", "{{ else if 1 }}x".repeat(100_000)),
        "max expression depth exceeded",
    );
}

#[test]
fn exponential_work_ends() {
    refused("{{ range 2000 }}{{ range 2000 }}{{ end }}{{ end }}", "more than 1000000 steps");
    refused("{{ $d := list 1 }}{{ range 60 }}{{ $d = list $d $d }}{{ end }}{{ $d }}", "more than");
    refused("{{ $s := \"xxxxxxxxxx\" }}{{ range 60 }}{{ $s = print $s $s }}{{ end }}", "more than 10485760 bytes");
    refused(
        "{{ printf \"%999999d%999999d%999999d%999999d%999999d%999999d%999999d\" 1 2 3 4 5 6 7 }}",
        "more than 10485760 bytes",
    );
    refused("{{ range 100000000 }}{{ end }}", "more than 1000000 steps");
    refused(
        "{{ define \"a\" }}{{ range 10 }}{{ tpl $ . }}{{ end }}{{ end }}{{ range 2000000 }}{{ include \"a\" \"xx\" }}{{ end }}",
        "more than",
    );
}

#[test]
fn deep_templates_within_the_limit_fit_on_the_stack() {
    let limits = Limits::default();
    for template in [
        "{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}",
        "{{ define \"a\" }}{{ if 1 }}{{ with 1 }}{{ print (print (include \"a\" .)) }}{{ end }}{{ end }}{{ end }}{{ include \"a\" . }}",
    ] {
        let error = render(limits, template, &Value::Nil).unwrap_err();
        assert!(error.contains("are more than"), "{error}");
    }
}
