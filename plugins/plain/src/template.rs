//! The templates in `manifests/` of a release image.
//!
//! The cluster-version operator renders these files with Go's `text/template` and three fields (`manifestRenderConfig` in
//! `pkg/payload/render.go`). Its manifests use four forms, which are supported here; everything else in `{{ }}` is an error:
//!
//! | form | result |
//! |---|---|
//! | `{{ .ReleaseImage }}` | the image of the release |
//! | `{{ .ClusterProfile }}` | the profile of the cluster |
//! | `{{ index .Images "name" }}` | an image of `image-references` |
//! | `{{ "text" }}` | the text, often a template of another program |
//!
//! A general engine would add loops and recursion, which bundles could use to exhaust memory. No result and no action contains a line
//! break, so each line keeps its number, and [`Rendered::origin`] finds the columns.

use std::collections::BTreeMap;

use crate::{
    config::is_image,
    template_lexer::{Token, action},
};

/// The maximum number of actions in a file. The files of a release have up to thirty.
const ACTIONS: usize = 10_000;
/// The maximum number of errors that are reported about a file.
const ERRORS: usize = 20;
/// The maximum number of characters of a name in a message.
const SHOWN: usize = 60;

/// The values of the fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields<'a> {
    /// `.ReleaseImage`, if it is configured.
    pub(crate) release_image: Option<&'a str>,
    /// `.ClusterProfile`.
    pub(crate) cluster_profile: &'a str,
    /// `.Images`.
    pub(crate) images: BTreeMap<&'a str, &'a str>,
}

/// Why an action cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The action is not one of the supported forms.
    Unsupported(String),
    /// The field has no value, because the configuration does not set the image of the release.
    ReleaseImageMissing,
    /// `image-references` has no image of this name.
    UnknownImage(String),
    /// The value in `image-references` is not an image.
    InvalidImage(String),
    /// The file has too many actions.
    TooMany,
}

/// An action that cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TemplateError {
    /// Its line, counted from 1.
    pub(crate) line: u32,
    /// Its column, counted from 1 in characters.
    pub(crate) column: u32,
    /// The reason.
    pub(crate) reason: Reason,
}

/// An action and its result, in columns of their line.
#[derive(Clone, Copy, Debug)]
struct Replaced {
    /// The column of the result.
    result: usize,
    /// The characters of the result.
    result_length: usize,
    /// The column of the action.
    action: usize,
    /// The characters of the action.
    action_length: usize,
}

/// A rendered file.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    /// The text.
    pub(crate) text: String,
    /// The actions by line, in order.
    lines: BTreeMap<usize, Vec<Replaced>>,
}

impl Rendered {
    /// Whether the file has no actions.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.lines.is_empty()
    }

    /// The position in the file of a position in the text.
    pub(crate) fn origin(&self, line: u32, column: u32) -> (u32, u32) {
        let at = column as usize;
        let last = self.lines.get(&(line as usize)).and_then(|all| {
            all.get(..all.partition_point(|replaced| replaced.result <= at)).and_then(|before| before.last())
        });
        let original = last.map_or(at, |last| match (at - last.result).checked_sub(last.result_length) {
            None => last.action,
            Some(behind) => last.action + last.action_length + behind,
        });
        (line, u32::try_from(original).unwrap_or(u32::MAX))
    }
}

/// Renders a file.
///
/// # Errors
/// All actions that cannot be rendered, up to a limit, and up to the first one whose end cannot be found.
pub(crate) fn render(template: &str, fields: &Fields<'_>) -> Result<Rendered, Vec<TemplateError>> {
    let mut rendered = Rendered { text: String::with_capacity(template.len()), ..Rendered::default() };
    let mut errors = Vec::new();
    let (mut line, mut column, mut result_column, mut count) = (1, 1, 1, 0);
    let mut rest = template;
    while let Some(start) = rest.find("{{") {
        let (literal, found) = rest.split_at(start);
        rendered.text.push_str(literal);
        if let Some((before, last)) = literal.rsplit_once('\n') {
            line += before.matches('\n').count() + 1;
            column = 1 + last.chars().count();
            result_column = column;
        } else {
            let length = literal.chars().count();
            (column, result_column) = (column + length, result_column + length);
        }
        count += 1;
        let position = |reason| TemplateError { line: number(line), column: number(column), reason };
        if count > ACTIONS {
            errors.push(position(Reason::TooMany));
            return Err(errors);
        }
        let (tokens, length) = match action(found) {
            Ok(parsed) => parsed,
            Err(what) => {
                errors.push(position(Reason::Unsupported(what)));
                return Err(errors);
            }
        };
        let (source, behind) = found.split_at_checked(length).unwrap_or((found, ""));
        let source_length = source.chars().count();
        match evaluate(&tokens, fields) {
            Ok(value) => {
                let replaced = Replaced {
                    result: result_column,
                    result_length: value.chars().count(),
                    action: column,
                    action_length: source_length,
                };
                rendered.text.push_str(value);
                rendered.lines.entry(line).or_default().push(replaced);
                result_column += replaced.result_length;
            }
            Err(reason) => errors.push(position(reason)),
        }
        if errors.len() >= ERRORS {
            return Err(errors);
        }
        column += source_length;
        rest = behind;
    }
    rendered.text.push_str(rest);
    if errors.is_empty() { Ok(rendered) } else { Err(errors) }
}

/// The result of an action.
fn evaluate<'a>(tokens: &'a [Token<'_>], fields: &Fields<'a>) -> Result<&'a str, Reason> {
    match tokens {
        [Token::Field("ReleaseImage")] => fields.release_image.ok_or(Reason::ReleaseImageMissing),
        [Token::Field("ClusterProfile")] => Ok(fields.cluster_profile),
        [Token::Text(text)] => Ok(text),
        [Token::Word("index"), Token::Space, Token::Field("Images"), Token::Space, Token::Text(name)] => {
            let image = fields.images.get(name.as_str()).copied();
            let image = image.ok_or_else(|| Reason::UnknownImage(shown(name)))?;
            if is_image(image) { Ok(image) } else { Err(Reason::InvalidImage(shown(name))) }
        }
        [] => Err(Reason::Unsupported("an empty action".to_owned())),
        [Token::Word(word), ..] => Err(Reason::Unsupported(format!("{:?}", shown(word)))),
        [Token::Field("Images"), ..] => Err(Reason::Unsupported("the field Images without `index`".to_owned())),
        [Token::Field(field)] => Err(Reason::Unsupported(format!("the field {:?}", shown(field)))),
        _ => Err(Reason::Unsupported("an expression of several parts".to_owned())),
    }
}

/// The beginning of a name, for a message.
fn shown(name: &str) -> String {
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", name.get(..end).unwrap_or_default()),
        None => name.to_owned(),
    }
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields() -> Fields<'static> {
        Fields {
            release_image: Some("example.com/release@sha256:12"),
            cluster_profile: "p",
            images: [("console", "example.com/console:v1"), ("broken", "a\nb: c")].into(),
        }
    }

    fn rendered(template: &str) -> String {
        render(template, &fields()).unwrap_or_else(|errors| panic!("{errors:?}")).text
    }

    /// The results of `text/template`.
    #[test]
    fn the_forms_of_the_manifests_are_rendered_as_by_go() {
        for (template, text) in [
            ("", ""),
            ("a: {b: {c: d}}", "a: {b: {c: d}}"),
            ("image: '{{.ReleaseImage}}'\n", "image: 'example.com/release@sha256:12'\n"),
            ("x/{{ .ClusterProfile }}: \"true\"", "x/p: \"true\""),
            ("{{\t.ClusterProfile  }}{{.ClusterProfile}}", "pp"),
            ("{{index .Images \"console\"}}", "example.com/console:v1"),
            ("{{ index  .Images  \"console\" }}", "example.com/console:v1"),
            (r#"{{ "{{ $labels.name }}" }}"#, "{{ $labels.name }}"),
            (r#"{{ "{{ if ne \"a\\b\" }}"}} end"#, r#"{{ if ne "a\b" }} end"#),
            ("}} {{\"\"}} }", "}}  }"),
            ("{{{.ReleaseImage}}", "?"),
        ] {
            if text == "?" {
                assert!(render(template, &fields()).is_err(), "{template}");
            } else {
                assert_eq!(rendered(template), text, "{template}");
            }
        }
    }

    #[test]
    fn every_other_action_is_refused_by_name_with_its_position() {
        let long = format!("{{{{ .{} }}}}", "x".repeat(5000));
        let mut refused = Vec::new();
        for template in [
            "a\n  {{ if .ReleaseImage }}b{{ end }}",
            "{{ range .Images }}",
            "{{ .Version }} and {{ .Other }}",
            "{{ .Images }}",
            "{{ . }}",
            "{{ $x := 1 }}",
            "{{ .ReleaseImage | printf \"%s\" }}",
            "{{ .ReleaseImage.Length }}",
            "{{index.Images \"console\"}}",
            "{{ printf \"%s\" .ReleaseImage }}",
            "{{- .ReleaseImage }}",
            "{{ .ReleaseImage -}}",
            "{{/* comment */}}",
            "{{ `raw` }}",
            r#"{{ "a\nb" }}"#,
            "{{ \"a\nb\" }}",
            "{{ .ReleaseImage\n}}",
            "{{ \"open }}",
            "{{ .ReleaseImage",
            "{{ .ReleaseImage }",
            "{{",
            "{{}}",
            "{{ 1 }}",
            "{{ 'a' }}",
            "{{ .\u{e4} }}",
            "{{ \"\u{7}\" }}",
            "{{ index .Images \"unknown\" }}",
            "{{ index .Images \"broken\" }}",
            long.as_str(),
        ] {
            let errors = render(template, &fields()).expect_err(template);
            let errors = errors.into_iter().map(|it| format!("{}:{} {:?}", it.line, it.column, it.reason));
            refused.push(format!("{:?}: {}", shown(template), errors.collect::<Vec<_>>().join(", ")));
        }
        insta::assert_snapshot!(refused.join("\n"), @r##"
        "a\n  {{ if .ReleaseImage }}b{{ end }}": 2:3 Unsupported("\"if\""), 2:26 Unsupported("\"end\"")
        "{{ range .Images }}": 1:1 Unsupported("\"range\"")
        "{{ .Version }} and {{ .Other }}": 1:1 Unsupported("the field \"Version\""), 1:20 Unsupported("the field \"Other\"")
        "{{ .Images }}": 1:1 Unsupported("the field Images without `index`")
        "{{ . }}": 1:1 Unsupported("a dot without a field")
        "{{ $x := 1 }}": 1:1 Unsupported("a variable")
        "{{ .ReleaseImage | printf \"%s\" }}": 1:1 Unsupported("a pipeline")
        "{{ .ReleaseImage.Length }}": 1:1 Unsupported("an expression of several parts")
        "{{index.Images \"console\"}}": 1:1 Unsupported("\"index\"")
        "{{ printf \"%s\" .ReleaseImage }}": 1:1 Unsupported("\"printf\"")
        "{{- .ReleaseImage }}": 1:1 Unsupported("the removal of white space (-)")
        "{{ .ReleaseImage -}}": 1:1 Unsupported("the removal of white space (-)")
        "{{/* comment */}}": 1:1 Unsupported("a comment")
        "{{ `raw` }}": 1:1 Unsupported("a raw string")
        "{{ \"a\\nb\" }}": 1:1 Unsupported("the escape \"\\\\n\" in a string")
        "{{ \"a\nb\" }}": 1:1 Unsupported("a string of several lines")
        "{{ .ReleaseImage\n}}": 1:1 Unsupported("an action of several lines")
        "{{ \"open }}": 1:1 Unsupported("a string without an end")
        "{{ .ReleaseImage": 1:1 Unsupported("an action without an end")
        "{{ .ReleaseImage }": 1:1 Unsupported("the character '}'")
        "{{": 1:1 Unsupported("an action without an end")
        "{{}}": 1:1 Unsupported("an empty action")
        "{{ 1 }}": 1:1 Unsupported("the character '1'")
        "{{ 'a' }}": 1:1 Unsupported("the character '\\''")
        "{{ .ä }}": 1:1 Unsupported("a dot without a field")
        "{{ \"\u{7}\" }}": 1:1 Unsupported("a control character in a string")
        "{{ index .Images \"unknown\" }}": 1:1 UnknownImage("unknown")
        "{{ index .Images \"broken\" }}": 1:1 InvalidImage("broken")
        "{{ .xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...": 1:1 Unsupported("the field \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\"")
        "##);
        let without = Fields { release_image: None, ..fields() };
        let errors = render("\n {{ .ReleaseImage }}", &without).unwrap_err();
        assert_eq!(errors, [TemplateError { line: 2, column: 2, reason: Reason::ReleaseImageMissing }]);
    }

    #[test]
    fn the_number_of_actions_and_errors_is_bounded() {
        let errors = render(&"{{.ReleaseImage}}".repeat(ACTIONS + 1), &fields()).unwrap_err();
        assert_eq!(errors.iter().map(|it| &it.reason).collect::<Vec<_>>(), [&Reason::TooMany]);
        let most = render(&"{{.ReleaseImage}}".repeat(ACTIONS), &fields()).unwrap();
        assert_eq!(most.text.len(), ACTIONS * "example.com/release@sha256:12".len());
        assert_eq!(render(&"{{.X}}".repeat(ACTIONS), &fields()).unwrap_err().len(), ERRORS);
    }

    #[test]
    fn positions_are_those_of_the_file() {
        let rendered = render("a\n\u{e4}{{.ReleaseImage}}: {{.ClusterProfile}} b\nc", &fields()).unwrap();
        assert_eq!(rendered.text, "a\n\u{e4}example.com/release@sha256:12: p b\nc");
        for (line, column, original) in
            [(1, 1, 1), (2, 1, 1), (2, 2, 2), (2, 9, 2), (2, 30, 2), (2, 31, 19), (2, 33, 21), (2, 34, 40), (3, 1, 1)]
        {
            assert_eq!(rendered.origin(line, column), (line, original), "{line}:{column}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_rendered_or_refused_with_a_position_in_it(
            pieces in proptest::collection::vec(prop_oneof![
                Just("{{".to_owned()), Just("}}".to_owned()), Just("{{.ReleaseImage}}".to_owned()), Just("\"".to_owned()), Just("\\".to_owned()),
                Just("index .Images \"console\"".to_owned()), "[ .a{}\n\u{e4}\u{7}-]{0,4}",
            ], 0..20)
        ) {
            let template = pieces.concat();
            let position = |line: u32, column: u32| {
                let text = template.split('\n').nth(line as usize - 1);
                text.is_some_and(|text| column as usize <= text.chars().count() + 1)
            };
            match render(&template, &fields()) {
                Ok(rendered) => {
                    prop_assert_eq!(rendered.text.matches('\n').count(), template.matches('\n').count());
                    for (line, text) in rendered.text.split('\n').enumerate() {
                        for column in 1..=text.chars().count() + 1 {
                            let (line, column) = rendered.origin(number(line + 1), number(column));
                            prop_assert!(position(line, column), "{}:{}", line, column);
                        }
                    }
                }
                Err(errors) => {
                    prop_assert!(!errors.is_empty());
                    prop_assert!(errors.iter().all(|error| position(error.line, error.column)), "{:?}", errors);
                }
            }
        }

        #[test]
        fn text_without_actions_is_not_changed(text in "[^{]*") {
            let rendered = render(&text, &fields()).unwrap();
            prop_assert!(rendered.is_unchanged());
            prop_assert_eq!(rendered.text, text);
        }
    }
}
