use std::rc::Rc;

use chandler_go_template::{Functions, Limits, Machine};
use proptest::prelude::*;

use super::*;

struct All;

impl Functions for All {
    fn find(&self, name: &str) -> Option<Function> {
        super::find(name)
    }
}

const VALUES: &str = "million: 1000000\nbig: 12345678\nf: 1.50\nm: {b: 1, a: 2}\nnul: null\nempty: {}\nstr: \"yes\"\nhtml: \"a<b>&c\"\nlist: [3, 1]\nlong: abcdefghijklmnop\n";

fn render(text: &str) -> std::result::Result<String, String> {
    render_within(text, Limits::default())
}

fn render_within(text: &str, limits: Limits) -> std::result::Result<String, String> {
    let mut machine = Machine::new(Rc::new(All), Rc::new(Environment::default()), limits);
    machine.parse("t", text).map_err(|error| error.to_string())?;
    let values = crate::yaml::read(VALUES).unwrap();
    let dot: Map = [("Values", values)].into_iter().collect();
    machine.execute("t", &Value::Map(dot)).map(|out| out.text().into_owned()).map_err(|error| error.to_string())
}

#[test]
fn methods_take_arguments() {
    for (text, expected) in [
        (
            r#"{{ "2.9.0" | semver | (semver "3.0.0").Compare }} {{ (semver "1.2").LessThan (semver "1.10") }} {{ (semver "1.2").Equal (semver "1.2.0") }}"#,
            "1 true true",
        ),
        (
            r#"{{ $t := toDate "2006-01-02" "2024-01-31" }}{{ $t.Format "02.01.06" }} {{ ($t.AddDate 0 1 0).Format "2006-01-02" }} {{ ($t.AddDate -1 -13 1).Format "2006-01-02" }} {{ $t.Before ($t.AddDate 0 0 1) }} {{ $t.After $t }} {{ $t.Equal $t }} {{ $t.UnixMilli }}"#,
            "31.01.24 2024-03-02 2022-01-01 true false true 1706659200000",
        ),
    ] {
        assert_eq!(render(text).as_deref(), Ok(expected), "{text}");
    }
    for (text, expected) in [
        (
            r#"{{ (semver "1").Compare "2" }}"#,
            r#"template: t:1:24: executing "t" at <"2">: can't handle "2" for arg of type *semver.Version"#,
        ),
        (
            r#"{{ (toDate "2006" "2024").Format 1 }}"#,
            r#"template: t:1:33: executing "t" at <1>: expected string; found 1"#,
        ),
    ] {
        assert_eq!(render(text).unwrap_err(), expected);
    }
}

/// What Helm 3.21 answers.
#[test]
fn functions_answer_as_in_helm() {
    for (text, expected) in [
        (
            r"{{ .Values.million | toString }} {{ .Values.million | quote }} {{ toYaml .Values.million }} {{ toJson .Values.million }} {{ int .Values.million }}",
            r#"1e+06 "1e+06" 1000000 1000000 1000000"#,
        ),
        (r"{{ typeOf .Values.million }} {{ kindOf .Values.m }} {{ kindOf .Values.nul }}", "float64 map invalid"),
        (
            r"[{{ .Values.missing | quote }}] [{{ .Values.missing | toString }}] [{{ toYaml .Values.missing }}]",
            "[] [<nil>] [null]",
        ),
        (
            r#"{{ default "d" 0 }} {{ default "d" false }} {{ empty .Values.empty }} {{ ternary "t" "f" true }}"#,
            "d d true t",
        ),
        (
            r"{{ toJson .Values.html }} {{ toRawJson .Values.html }} {{ .Values.html | quote }} {{ .Values.html | squote }}",
            r#""a\u003cb\u003e\u0026c" "a<b>&c" "a<b>&c" 'a<b>&c'"#,
        ),
        (
            r#"{{ toYaml (dict "a" "yes" "m" "x\ny\n" "n" " lead" "q" "=") }}"#,
            "a: \"yes\"\nm: |\n  x\n  y\n\"n\": ' lead'\nq: =",
        ),
        (
            r#"{{ $d := dict "a" (dict "x" 1) }}{{ $_ := merge $d (dict "a" (dict "x" 2 "y" 3)) }}{{ toJson $d }}"#,
            r#"{"a":{"x":1,"y":3}}"#,
        ),
        (
            r#"{{ toJson (merge (dict "a" "" "b" false "c" 0) (dict "a" "z" "b" true "c" 5)) }} {{ toJson (mergeOverwrite (dict "a" "z" "b" true) (dict "a" "" "b" false)) }}"#,
            r#"{"a":"z","b":true,"c":5} {"a":"","b":false}"#,
        ),
        (
            r#"{{ toJson (mergeOverwrite (dict "a" "x" "l" (list 1) "m" (dict "q" 1) "s" "str") (dict "a" (dict "b" 1) "l" list "m" nil "s" (list 2))) }}"#,
            r#"{"a":{"b":1},"l":[],"m":null,"s":[2]}"#,
        ),
        (
            r#"{{ toJson (merge (dict "a" "x" "l" (list 1) "m" (dict "q" 1) "e" "") (dict "a" (dict "b" 1) "l" list "m" nil "e" (list 1))) }}"#,
            r#"{"a":"x","e":[1],"l":[1],"m":{"q":1}}"#,
        ),
        (
            r#"{{ trunc -5 .Values.long }} {{ trunc 3 .Values.long }} {{ "a,b" | split "," }} {{ (split "," "a,b")._1 }} {{ splitList "," "" | toJson }} {{ cat "a" nil "b" }} {{ list 1 2 | join "-" }}"#,
            r#"lmnop abc map[_0:a _1:b] b [""] a b 1-2"#,
        ),
        (
            r#"{{ "foo bar" | title }} {{ "fooBar" | snakecase }} {{ substr 0 3 "héllo" }} {{ trunc 2 "é" | toJson }} {{ "héllo" | upper }}"#,
            r#"Foo Bar foo_bar hé "é" HÉLLO"#,
        ),
        (
            r#"{{ semverCompare "<1.25-0" "v1.33.0" }} {{ semverCompare ">=1.19" "v1.33.0-gke.1" }} {{ semverCompare ">=1.19-0" "v1.33.0-gke.1" }}"#,
            "false false true",
        ),
        (
            r#"{{ regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W" }} {{ regexReplaceAll "a(x*)b" "-ab-axxb-" "$1W" }} {{ regexFind "z" "abc" }}| {{ b64enc "x" }} {{ sha256sum "x" | trunc 8 }}"#,
            "-W-xxW- --- | eA== 2d711642",
        ),
        (
            r#"{{ add 1 "2" 3.7 }} {{ div 7 2 }} {{ int "08" }} {{ int "0x1F" }} {{ int "abc" }} {{ int 3.9 }} {{ round 2.5 0 }} {{ atoi "12" }} {{ until 3 }} {{ mul 2 3 }} {{ max 1 5 }}"#,
            "6 3 0 31 0 3 3 12 [0 1 2] 6 5",
        ),
        (
            r#"{{ fromYaml "a: [1" | toJson }} {{ fromYaml "- 1" | toJson }} {{ fromJson "x" | toJson }} {{ fromYamlArray "a: 1" | toJson }}"#,
            r#"{"Error":"error converting YAML to JSON: yaml: line 1: did not find expected ',' or ']'"} {"Error":"error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}"} {"Error":"invalid character 'x' looking for beginning of value"} ["error unmarshaling JSON: while decoding JSON: json: cannot unmarshal object into Go value of type []interface {}"]"#,
        ),
        (
            r#"{{ hasKey .Values "x" }} {{ urlParse "https://u:p@h:80/p?q=1#f" | toJson }} {{ toToml (dict "a" 1 "b" (dict "c" true)) | quote }}"#,
            r#"false {"fragment":"f","host":"h:80","hostname":"h","opaque":"","path":"/p","query":"q=1","scheme":"https","userinfo":"u:p"} "a = 1\n\n[b]\n  c = true\n""#,
        ),
        (
            r#"{{ has 3 .Values.list }} {{ has 3.0 .Values.list }} {{ without .Values.list 3.0 | toJson }} {{ uniq (list 1 1.0 1) | toJson }} {{ first .Values.list }} {{ .Values.list | sortAlpha }} {{ coalesce nil "" 0 "z" }} {{ kindIs "float64" .Values.million }}"#,
            "false true [1] [1,1] 3 [1 3] z true",
        ),
        (
            r#"{{ date "2006-01-02" 0 }} {{ dateInZone "2006-01-02T15:04:05Z07:00" (toDate "2006-01-02" "2024-02-03") "UTC" }} {{ duration 95 }} {{ indent 2 "a\nb" | toJson }} {{ nindent 2 "" | toJson }} {{ "x" | repeat 3 }} {{ wrap 3 "aaa bbb" | toJson }}"#,
            r#"1970-01-01 2024-02-03T00:00:00Z 0s "  a\n  b" "\n  " xxx "aaa\nbbb""#,
        ),
        (
            r#"{{ nospace "a b" }} {{ trimSuffix "-" "a--" }} {{ trimAll "-" "--a--" }} {{ replace "." "-" "a.b" }} {{ squote nil "a" }} {{ quote nil 1.0 true }}"#,
            r#"ab a- a a-b 'a' "1" "true""#,
        ),
    ] {
        assert_eq!(render(text).as_deref(), Ok(expected), "{text}");
    }
}

/// What Helm 4.2, with the same Sprig, answers.
#[test]
fn rarer_functions_answer_as_in_helm() {
    for (text, expected) in [
        (
            r#"{{ range list "fooBar" "HTTPServer" "foo-bar_baz qux" "HTTP2xx" "Bld4Floor" "foo.bar" "a1b2" "FooBar99" "__x__" "aB-c" "1a" "fooBAR" "my-Foo Bar" }}{{ snakecase . }} {{ kebabcase . }} {{ camelcase . }} {{ untitle . }} {{ title . }} {{ initials . }} {{ swapcase . }}|{{ end }}"#,
            "foo_bar foo-bar FooBar fooBar FooBar f FOObAR|http_server http-server Httpserver hTTPServer HTTPServer H httpsERVER|foo_bar_baz_qux foo-bar-baz-qux FooBarBazQux foo-bar_baz qux Foo-Bar_baz Qux fq FOO-BAR_BAZ QUX|http_2xx http-2xx Http2xx hTTP2xx HTTP2xx H http2XX|bld4_floor bld4-floor Bld4Floor bld4Floor Bld4Floor B bLD4fLOOR|foo.bar foo.bar Foo.bar foo.bar Foo.Bar f FOO.BAR|a_1b2 a-1b2 A1b2 a1b2 A1b2 a A1B2|foo_bar99 foo-bar99 FooBar99 fooBar99 FooBar99 F fOObAR99|__x__ --x-- __X__ __x__ __x__ _ __X__|a_b_c a-b-c ABC aB-c AB-C a Ab-C|1a 1a 1a 1a 1a 1 1A|foo_bar foo-bar FooBAR fooBAR FooBAR f FOObar|my_foo_bar my-foo-bar MyFooBar my-Foo bar My-Foo Bar mB MY-fOO bAR|",
        ),
        (
            r#"{{ addf 0.1 0.2 }} {{ mulf 1.5 2 }} {{ divf 1 3 }} {{ subf 1 0.9 }} {{ round 2.345 2 }} {{ round -2.5 0 }} {{ ceil 1.2 }} {{ floor 1.7 }} {{ float64 "1.5" }} {{ int64 1e10 }} {{ int "12.0" }} {{ int "1_000" }} {{ int true }} {{ atoi "99999999999999999999" }} {{ add1 1 }} {{ maxf 1 2.5 }} {{ min 3 1 }} {{ mod 7 3 }} {{ seq 5 }} {{ seq 2 -2 }} {{ seq 0 2 10 }} {{ untilStep 1 10 3 }} {{ toDecimal "777" }}"#,
            "0.3 3 0.3333333333333333 0.1 2.35 -3 2 1 1.5 10000000000 12 1000 1 9223372036854775807 2 2.5 1 1 1 2 3 4 5 2 1 0 -1 -2 0 2 4 6 8 10 [1 4 7] 511",
        ),
        (
            r#"{{ b64dec "eA=" }} {{ b64dec "!!!!" }} {{ b64dec "eHk=\n" }} {{ b32enc "abc" }} {{ b32dec "MFRGG===" }} {{ b32dec "x" }} {{ sha1sum "a" }} {{ adler32sum "abc" }}"#,
            "illegal base64 data at input byte 3 illegal base64 data at input byte 0 xy MFRGG=== abc illegal base32 data at input byte 0 86f7e437faa5a7fce15d1ddcb9eaeaea377667b8 38600999",
        ),
        (
            r#"{{ abbrev 5 "hello world" }} {{ abbrevboth 5 10 "1234 5678 9123" }} {{ wrap 5 "hello world foo" | quote }} {{ wrapWith 3 "-" "abcdef gh" }} {{ plural "one" "many" 2 }} {{ substr 1 3 "hello" }} {{ substr -1 3 "hello" }} {{ cat 1 nil "x" 2.0 }}"#,
            r#"he... ...5678... "hello\nworld\nfoo" abc-def-gh many el hel 1 x 2"#,
        ),
        (
            r#"{{ toToml (dict "a" 1 "b" 1.5 "c" "x\"y" "e" (list 1 2) "f" (dict "g" (dict "h" 1) "i" 2) "l" (list (dict "a" 1) (dict "a" 2)) "k v" 1 "nest" (dict "x" (list (dict "y" 1))) "big" 1e6 "fl" 2.0) }}"#,
            "a = 1\nb = 1.5\nbig = 1e+06\nc = \"x\\\"y\"\ne = [1, 2]\nfl = 2.0\n\"k v\" = 1\n\n[f]\n  i = 2\n  [f.g]\n    h = 1\n\n[[l]]\n  a = 1\n\n[[l]]\n  a = 2\n\n[nest]\n\n  [[nest.x]]\n    y = 1\n",
        ),
        (
            r#"{{ clean "a/../b//c" }} {{ dir "/a/b/c.txt" }} {{ base "/a/b/" }} {{ ext "a.tar.gz" }} {{ isAbs "/a" }} {{ base "" }} {{ dir "" }}"#,
            "b/c /a/b b .gz true . .",
        ),
        (
            r#"{{ slice (list 1 2 3 4) 1 3 }} {{ chunk 2 (list 1 2 3) }} {{ concat (list 1) (list 2 3) }} {{ dig "a" "b" "def" (dict "a" (dict "b" 1)) }} {{ dig "a" "x" "def" (dict "a" (dict "b" 1)) }} {{ pluck "a" (dict "a" 1) (dict "b" 2) (dict "a" 3) }} {{ splitn "." 2 "a.b.c" }} {{ split "" "ab" }} {{ rest (list 1 2 3) }} {{ initial (list 1 2 3) }} {{ compact (list 1 "" 0 nil "x") }} {{ reverse (list 1 2) }} {{ pick (dict "a" 1 "b" 2) "a" }} {{ omit (dict "a" 1 "b" 2) "a" }} {{ toStrings (list 1 nil 2.5) }} {{ sortAlpha (list "b" 1 "a") }} {{ join "," nil }}| {{ all 1 0 }} {{ any 0 1 }}"#,
            "[2 3] [[1 2] [3]] [1 2 3] 1 def [1 3] map[_0:a _1:b.c] map[_0:a _1:b] [2 3] [1 2] [1 x] [2 1] map[a:1] map[b:2] [1 2.5] [1 a b] | false true",
        ),
        (
            r#"{{ regexFindAll "a.?" "abacad" -1 }} {{ regexFindAll "a" "aaa" 2 }} {{ regexSplit "b" "abcbd" -1 | toJson }} {{ regexSplit "b" "abcbd" 2 | toJson }} {{ regexSplit "" "abc" -1 | toJson }} {{ regexReplaceAllLiteral "a" "banana" "$1" }} {{ regexQuoteMeta "a.b" }} {{ regexMatch "^\\w+$" "é" }} {{ regexReplaceAll "(?P<x>a)" "banana" "<${x}$$>" }} {{ regexReplaceAll "x*" "abc" "-" }} {{ regexReplaceAll "(a)(b)?" "ab a" "$2$1x" }} {{ regexReplaceAll "(a)" "ab" "${1}x$1_y" }}"#,
            r#"[ab ac ad] [a a] ["a","c","d"] ["a","cbd"] ["a","b","c"] b$1n$1n$1 a\.b false b<a$>n<a$>n<a$> -a-b-c- b  axb"#,
        ),
        (
            r#"{{ urlJoin (dict "scheme" "http" "host" "h:80" "path" "/p" "query" "q=1" "fragment" "f" "userinfo" "u:p") }} {{ urlParse "mailto:a@b" | toJson }} {{ urlParse "/a%20b?x=y z#é" | toJson }} {{ urlJoin (dict "host" "h" "path" "a b") }} {{ (urlParse "http://[::1]:80/").hostname }}"#,
            r#"http://u:p@h:80/p?q=1#f {"fragment":"","host":"","hostname":"","opaque":"a@b","path":"","query":"","scheme":"mailto","userinfo":""} {"fragment":"é","host":"","hostname":"","opaque":"","path":"/a b","query":"x=y z","scheme":"","userinfo":""} //h/a%20b ::1"#,
        ),
        (
            r#"{{ durationRound "2h10m5s" }} {{ duration "3700" }} {{ toDate "2006-01-02" "2024-02-03" }} {{ toDate "2006-01-02" "x" }} {{ unixEpoch (toDate "2006-01-02" "2024-02-03") }} {{ dateModify "-1.5h" (toDate "2006-01-02" "2024-02-03") }} {{ htmlDate 0 }} {{ toDate "2006-01-02" "2024-02-03" | toJson }}"#,
            r#"2h 1h1m40s 2024-02-03 00:00:00 +0000 UTC 0001-01-01 00:00:00 +0000 UTC 1706918400 2024-02-02 22:30:00 +0000 UTC 1970-01-01 "2024-02-03T00:00:00Z""#,
        ),
        (
            r#"{{ quote "a\u00a0\u200bé\x00\x7f\U0001F600\"\\" }} {{ toString (list 1 "a" nil) }} {{ semver "1.2" }} {{ (semver "1.2.3-a+b").Prerelease }} {{ typeOf (semver "1") }} {{ typeOf (split "," "a") }} {{ typeOf (splitList "," "a") }} {{ typeOf (until 2) }} {{ typeOf (keys dict) }} {{ typeOf (tuple 1) }} {{ typeOf (chunk 1 (list 1)) }}"#,
            r#""a\u00a0\u200bé\x00\x7f😀\"\\" [1 a <nil>] 1.2.0 a *semver.Version map[string]string []string []int []string []interface {} [][]interface {}"#,
        ),
    ] {
        assert_eq!(render(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn errors_are_those_of_helm() {
    for (text, expected) in [
        (
            r#"{{ dig "a" "b" "d" .Values.m }}"#,
            r#"template: t:1:3: executing "t" at <dig "a" "b" "d" .Values.m>: error calling dig: interface conversion: interface {} is float64, not map[string]interface {}"#,
        ),
        (r#"{{ trunc "a" "b" }}"#, r#"template: t:1:9: executing "t" at <"a">: expected integer; found "a""#),
        (
            r"{{ b64enc .Values.million }}",
            r#"template: t:1:17: executing "t" at <.Values.million>: wrong type for value; expected string; got float64"#,
        ),
        (
            r"{{ first 1 }}",
            r#"template: t:1:3: executing "t" at <first 1>: error calling first: Cannot find first on type int"#,
        ),
        (
            r"{{ div 1 0 }}",
            r#"template: t:1:3: executing "t" at <div 1 0>: error calling div: runtime error: integer divide by zero"#,
        ),
        (
            r"{{ repeat -1 `a` }}",
            r#"template: t:1:3: executing "t" at <repeat -1 `a`>: error calling repeat: strings: negative Repeat count"#,
        ),
        (
            r"{{ semverCompare `x y` `1` }}",
            r#"template: t:1:3: executing "t" at <semverCompare `x y` `1`>: error calling semverCompare: improper constraint: x y"#,
        ),
    ] {
        assert_eq!(render(text).unwrap_err(), expected);
    }
}

#[test]
fn what_a_renderer_cannot_know_is_refused_by_name() {
    for (text, name) in [
        ("{{ randAlphaNum 3 }}", "randAlphaNum"),
        ("{{ genCA `a` 1 }}", "genCA"),
        ("{{ now }}", "now"),
        ("{{ uuidv4 }}", "uuidv4"),
    ] {
        let error = render(text).unwrap_err();
        assert!(error.contains(&format!("{name} is not available: its result differs each time")), "{error}");
    }
    assert!(render("{{ env `HOME` }}").unwrap_err().contains("function \"env\" not defined"));
}

#[test]
fn costly_calls_end_with_a_limit() {
    for text in [
        "{{ repeat 2000000000 `aaaa` }}",
        "{{ indent 2147483647 `a\nb` }}",
        "{{ until 2147483647 }}",
        "{{ $a := list 1 }}{{ $b := list 1 }}{{ range until 60 }}{{ $a = list $a $a }}{{ $b = list $b $b }}{{ end }}{{ deepEqual $a $b }}",
        "{{ $a := dict }}{{ $_ := set $a `x` $a }}{{ $_ := set $a `y` $a }}{{ $b := dict }}{{ $_ := set $b `x` $b }}{{ $_ := merge $a $b }}{{ toYaml $a | len }}{{ toJson $a | len }}",
        "{{ $a := list 1 }}{{ range until 60 }}{{ $a = list $a $a $a }}{{ end }}{{ $a | toJson | len }}{{ $a | toYaml | len }}{{ $a | toString | len }}",
    ] {
        let rendered = render_within(text, Limits { steps: 1_000_000, ..Limits::default() });
        // A text that is too long is left out by functions that leave out what they cannot write.
        assert!(
            rendered.is_err() || rendered.as_ref().is_ok_and(|text| text.len() < 100),
            "{text}: {:?}",
            rendered.map(|text| text.len())
        );
    }
}

proptest! {
    #[test]
    fn parsers_of_texts_never_panic(text in "\\PC{0,30}|[-0-9.xv<>=~^|, *+]{0,20}") {
        let _ = time::parse("2006-01-02T15:04:05.999Z07:00 Mon Jan PM", &text);
        let _ = time::parse(&text, "2024-01-02");
        let _ = time::Time::utc(0).format(&text);
        let _ = super::pattern::compile_default(&text);
        let _ = crate::manifest::split(&text);
        let _ = crate::chart::path_matches(&text, "a/b");
    }
}

/// What Helm 3.21 answers.
#[test]
fn texts_with_decimals_lists_without_items_and_toml_answer_as_in_helm() {
    for (text, expected) in [
        (
            r#"{{ int64 "3.75" }} {{ int "-1.9" }} {{ add "1.10" 1 }} {{ int "5." }} {{ int ".5" }} {{ int "1.5x" }} {{ int "1e3" }}"#,
            "3 -1 2 5 0 0 0",
        ),
        (
            r"{{ divf 100 511 1e6 }} {{ divf 0.0 -5 3 2.5 1e6 }} {{ divf 3.14159 1e5 10 1e5 97 }}",
            "1.956947162e-07 0 3.239e-13",
        ),
        (
            r#"{{ regexFindAll "x" "abc" -1 | toJson }} {{ rest list | toJson }} {{ initial list | toYaml }} {{ concat list | toJson }} {{ regexSplit "a" "b" 0 | toJson }} {{ regexFindAll "b" "abc" -1 | toJson }} {{ printf "%#v" (rest list) }} {{ rest list }}"#,
            r#"null null null null null ["b"] []interface {}(nil) []"#,
        ),
        (
            r"{{ chunk -1 (list 1 2) | toJson }} {{ chunk -5 (list 1 2 3 4) | len }} {{ urlquery nil 1 }}",
            "[] 0 %3Cno+value%3E1",
        ),
        (r#"{{ toToml (list 1 (dict "a" (dict "c" 1) "b" 2)) }}"#, "[1, {b = 2, a = {c = 1}}]"),
        (
            r#"{{ toToml 0.1 }} {{ toToml "a" }} {{ toToml (list 1 "b") }} {{ toToml true }}"#,
            r#"0.1 "a" [1, "b"] true"#,
        ),
        (
            r#"{{ fromToml "a = 1\nb = [1, 2.5]\n[c]\nd = \"x\"\n[[e]]\nf = true\n" | toJson }} {{ typeOf (fromToml "a = 1").a }}"#,
            r#"{"a":1,"b":[1,2.5],"c":{"d":"x"},"e":[{"f":true}]} int64"#,
        ),
        (r#"{{ hasKey (fromToml "a = ") "Error" }} {{ initials "äb c" }} {{ nospace "a b" }}"#, "true Ãc ab"),
    ] {
        assert_eq!(render(text).as_deref(), Ok(expected), "{text}");
    }
    for (text, message) in [
        (r"{{ chunk 0 (list 1 2) }}", "makeslice: len out of range"),
        (r"{{ chunk -1 (list 1 2 3 4) }}", "makeslice: len out of range"),
        (r#"{{ add1f "NaN" }}"#, "Cannot create a Decimal from NaN"),
        (r#"{{ fromToml "a = 2024-01-01" }}"#, "fromToml"),
    ] {
        let error = render(text).expect_err(text);
        assert!(error.contains(message), "{text}: {error}");
    }
}
