//! Findings with the lines of the bundle that they refer to, drawn by miette.

use std::{fmt, path::PathBuf};

use chandler_core::{Content, Diagnostic, Related, Severity};
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};

use super::{
    excerpt::Excerpt,
    lines::Lines,
    position::{Position, Positions},
    terminal::{Look, Terminal},
    text::{one_line, printable},
};

/// The path of a location in the configuration.
pub(crate) const CONFIG: &str = "config";

/// The texts that locations refer to.
#[derive(Clone, Copy, Default)]
pub struct Sources<'a> {
    /// The bundle.
    pub content: Option<&'a dyn Content>,
    /// The directory of the bundle on disk, if there is one. Printed paths then start with it, so that the user can open them.
    pub directory: Option<&'a PathBuf>,
    /// The configuration.
    pub configuration: Option<NamedText<'a>>,
}

/// A text and its name.
#[derive(Clone, Copy, Debug)]
pub struct NamedText<'a> {
    /// The name of the file.
    pub name: &'a str,
    /// The content.
    pub text: &'a str,
}

impl Sources<'_> {
    /// The name of a file, as printed.
    pub fn name(&self, path: &str) -> String {
        match (path, self.configuration, self.directory) {
            (CONFIG, Some(configuration), _) => configuration.name.to_owned(),
            (CONFIG, None, _) | (_, _, None) => path.to_owned(),
            (_, _, Some(directory)) => directory.join(path).display().to_string(),
        }
    }

    /// At most `most` bytes of a file, from a position; none after its end. `None` if it cannot be read.
    pub(super) fn read(&self, path: &str, from: u64, most: usize) -> Option<Vec<u8>> {
        if path == CONFIG {
            let rest = self.configuration?.text.as_bytes().get(usize::try_from(from).ok()?..).unwrap_or_default();
            return Some(rest.get(..most).unwrap_or(rest).to_vec());
        }
        self.content?.read(path, from, most).ok()
    }
}

/// A finding with the lines around its location.
#[derive(Debug)]
pub struct Finding {
    diagnostic: Diagnostic,
    name: Option<String>,
    excerpt: Option<Excerpt>,
}

impl Finding {
    /// Looks up the text of the location. If there is none, the message names the location.
    pub fn new(diagnostic: Diagnostic, sources: &Sources<'_>) -> Self {
        let place = Positions::new(sources).of(&diagnostic);
        Self::at(diagnostic, place, sources, &mut Lines::new(sources))
    }

    fn at(diagnostic: Diagnostic, place: Option<Position>, sources: &Sources<'_>, lines: &mut Lines<'_>) -> Self {
        let location = diagnostic.location.as_ref();
        let name = location.map(|location| sources.name(&location.path));
        let excerpt = location.zip(place).and_then(|(location, (line, column))| {
            let window = lines.around(&location.path, line, column)?;
            Some(Excerpt::new(name.as_deref()?, &window, column))
        });
        Self { diagnostic, name, excerpt }
    }

    /// The severity.
    pub fn severity(&self) -> Severity {
        self.diagnostic.severity
    }

    /// Whether the provisioner reports this about the field of the configuration with this pointer.
    pub fn is_about(&self, code: &str, pointer: &str) -> bool {
        self.diagnostic.code == code
            && self.diagnostic.location.as_ref().is_some_and(|location| location.path == CONFIG)
            && self.pointer() == Some(pointer)
    }

    fn pointer(&self) -> Option<&str> {
        self.diagnostic.location.as_ref()?.pointer.as_deref().filter(|pointer| !pointer.is_empty())
    }
}

/// The findings of one call, in the same order. Each file is read once, whatever the number of findings about it.
pub fn findings(diagnostics: &[Diagnostic], sources: &Sources<'_>) -> Vec<Finding> {
    let file = |diagnostic: &Diagnostic| diagnostic.location.as_ref().map(|location| location.path.clone());
    let mut sorted: Vec<(usize, &Diagnostic)> = diagnostics.iter().enumerate().collect();
    sorted.sort_by_cached_key(|(_, diagnostic)| file(diagnostic));
    let mut positions = Positions::new(sources);
    let mut placed: Vec<(usize, &Diagnostic, Option<Position>)> =
        sorted.into_iter().map(|(number, diagnostic)| (number, diagnostic, positions.of(diagnostic))).collect();
    placed.sort_by_cached_key(|(_, diagnostic, place)| (file(diagnostic), *place));
    let mut lines = Lines::new(sources);
    let found = placed
        .into_iter()
        .map(|(number, diagnostic, place)| (number, Finding::at(diagnostic.clone(), place, sources, &mut lines)));
    let mut found: Vec<(usize, Finding)> = found.collect();
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, finding)| finding).collect()
}

/// The findings as text for this terminal. An empty line follows each.
pub fn render<'a>(findings: impl IntoIterator<Item = &'a Finding>, terminal: &Terminal) -> String {
    let theme = match terminal.look() {
        Look::Colour => GraphicalTheme::unicode(),
        Look::Unicode => GraphicalTheme::unicode_nocolor(),
        Look::Plain => GraphicalTheme::none(),
    };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(terminal.width()).with_context_lines(1);
    let mut text = String::new();
    for finding in findings {
        let mut report = String::new();
        // miette fails only if a span is outside its text. The message is printed without the excerpt.
        if handler.render_report(&mut report, finding).is_err() {
            report = finding.diagnostic.to_string();
        }
        text.push_str(report.trim_end_matches('\n'));
        text.push_str("\n\n");
    }
    text
}

impl Finding {
    /// The location as text, for a finding without an excerpt.
    fn place(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (None, Some(name)) = (&self.excerpt, &self.name) else {
            return Ok(());
        };
        write!(f, "\nat {}", one_line(name))?;
        if let Some(line) = self.diagnostic.location.as_ref().and_then(|location| location.line) {
            write!(f, ":{line}")?;
        }
        match self.pointer() {
            Some(pointer) => write!(f, " ({})", one_line(pointer)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.diagnostic.message))?;
        self.place(f)?;
        let related = |Related { location, message }: &Related| format!("{location}: {message}");
        self.diagnostic.related.iter().try_for_each(|other| write!(f, "\nsee {}", one_line(&related(other))))
    }
}

impl std::error::Error for Finding {}

impl miette::Diagnostic for Finding {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let severity = match self.diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        };
        Some(Box::new(format!("{severity}[{}]", one_line(&self.diagnostic.code))))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.diagnostic.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Info => miette::Severity::Advice,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let help = self.diagnostic.help.as_deref()?;
        Some(Box::new(printable(help)))
    }

    fn url<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let url = self.diagnostic.url.as_deref()?;
        Some(Box::new(one_line(url)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let excerpt = self.excerpt.as_ref()?;
        let label = self.pointer().map_or_else(|| "here".to_owned(), one_line);
        Some(Box::new(std::iter::once(LabeledSpan::new_primary_with_span(Some(label), excerpt.span()))))
    }
}

#[cfg(test)]
mod tests {
    use chandler_core::{Location, MemoryContent};

    use super::*;

    const CSV: &str =
        "kind: ClusterServiceVersion\nspec:\n  install:\n    strategy: helm\n    spec:\n      deployments: []\n";

    fn diagnostic(severity: Severity, location: Option<Location>) -> Diagnostic {
        let message = "install strategy \"helm\" is not supported";
        let help = Some("write `strategy: deployment`".into());
        Diagnostic { location, help, ..Diagnostic::new(severity, "UnknownStrategy", message) }
    }

    fn location(path: &str, place: Option<(u32, u32)>, pointer: Option<&str>) -> Location {
        Location {
            path: path.into(),
            line: place.map(|(line, _)| line),
            column: place.map(|(_, column)| column),
            pointer: pointer.map(Into::into),
            ..Location::default()
        }
    }

    fn plain(diagnostics: &[Diagnostic], directory: Option<&PathBuf>, configuration: Option<NamedText<'_>>) -> String {
        let content = MemoryContent::new([("manifests/csv.yaml", CSV)]);
        let sources = Sources { content: Some(&content), directory, configuration };
        render(&findings(diagnostics, &sources), &Terminal::new(Look::Plain, 100))
    }

    #[test]
    fn a_finding_shows_its_line_and_marks_the_location() {
        let place = location("manifests/csv.yaml", Some((4, 15)), Some("/spec/install/strategy"));
        let directory = PathBuf::from("./harbour");
        insta::assert_snapshot!(plain(&[diagnostic(Severity::Error, Some(place))], Some(&directory), None), @r#"
        error[UnknownStrategy]

          x install strategy "helm" is not supported
           ,-[./harbour/manifests/csv.yaml:4:15]
         3 |   install:
         4 |     strategy: helm
           :               ^^|^
           :                 `-- /spec/install/strategy
         5 |     spec:
           `----
          help: write `strategy: deployment`
        "#);
    }

    #[test]
    fn a_finding_without_text_names_its_location() {
        let far = location("manifests/csv.yaml", Some((99, 1)), None);
        let gone = location("manifests/gone.yaml", None, Some("/metadata"));
        let text = plain(
            &[
                diagnostic(Severity::Error, Some(far)),
                diagnostic(Severity::Warning, Some(gone)),
                diagnostic(Severity::Info, None),
            ],
            None,
            None,
        );
        insta::assert_snapshot!(text, @r#"
        error[UnknownStrategy]

          x install strategy "helm" is not supported
          | at manifests/csv.yaml:99
          help: write `strategy: deployment`

        warning[UnknownStrategy]

          ! install strategy "helm" is not supported
          | at manifests/gone.yaml (/metadata)
          help: write `strategy: deployment`

        info[UnknownStrategy]

          > install strategy "helm" is not supported
          help: write `strategy: deployment`
        "#);
    }

    #[test]
    fn a_pointer_into_the_configuration_is_shown_in_the_file_of_the_user() {
        let text = "# for production\ninstallMode: own\nwatchNamespace: [a]\n";
        let configuration = NamedText { name: "values.yaml", text };
        let place = location("config", None, Some("/watchNamespace"));
        let text = plain(&[diagnostic(Severity::Error, Some(place))], None, Some(configuration));
        insta::assert_snapshot!(text, @r#"
        error[UnknownStrategy]

          x install strategy "helm" is not supported
           ,-[values.yaml:3:1]
         2 | installMode: own
         3 | watchNamespace: [a]
           : ^^^^^^^|^^^^^^
           :        `-- /watchNamespace
           `----
          help: write `strategy: deployment`
        "#);
    }

    #[test]
    fn only_the_colour_look_writes_escape_sequences() {
        let place = location("manifests/csv.yaml", Some((4, 15)), None);
        let content = MemoryContent::new([("manifests/csv.yaml", CSV)]);
        let sources = Sources { content: Some(&content), ..Sources::default() };
        let found = findings(&[diagnostic(Severity::Error, Some(place))], &sources);
        let text = render(&found, &Terminal::new(Look::Colour, 100));
        assert!(text.contains("\u{1b}["), "{text}");
        assert!(!render(&found, &Terminal::new(Look::Unicode, 100)).contains('\u{1b}'));
    }
}
