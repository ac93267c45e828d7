//! Trees and graphs as pictures: Mermaid for documents, SVG, and an HTML page without scripts.
//!
//! Names and messages come from untrusted objects: each format escapes them.

use std::fmt::Write as _;

use super::tree::{Branch, Mark, ObjectHealth};

/// The size of the pictures, in pixels.
const ROW: usize = 24;
const INDENT: usize = 22;
const MARGIN: usize = 16;
/// The width of a character of the font, in tenths of a pixel; a little more than fonts take.
const CHARACTER: usize = 82;
/// How many characters of a message a picture shows. The tooltip has the rest.
const MESSAGE: usize = 100;

const STYLE: &str = "\
:root { color-scheme: light dark; --text: #1f2328; --quiet: #59636e; --line: #b7bdc4; --page: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --quiet: #9198a1; --line: #4b535d; --page: #0d1117; } }
.healthy { --sign: #1a7f37; } .progressing { --sign: #bf8700; } .unhealthy { --sign: #cf222e; } .unknown { --sign: #8250df; }
.installed { --sign: #1a7f37; } .next { --sign: #bf8700; } .deprecated { --sign: #cf222e; }";

/// The width of arrows beside the rows, and how much more of it each row between their ends takes.
const ARROW: usize = 14;
const ARROW_STEP: usize = 4;
const ARROW_MOST: usize = 120;

/// An arrow from one row of a picture to another. Rows are counted from the top, from 0, without the title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// The row where it begins.
    pub from: usize,
    /// The row that it points to.
    pub to: usize,
    /// Whether it is dashed.
    pub dashed: bool,
}

/// The style of arrows, and their tip.
const ARROW_STYLE: &str = "\
<style>.dashed { stroke-dasharray: 4; }</style>\n\
<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
<path d=\"M0 0L8 4L0 8z\" style=\"fill: var(--line)\"/></marker></defs>\n";

/// The name of a mark, as the style sheet has it.
fn class(mark: Mark) -> &'static str {
    match mark {
        Mark::Health(ObjectHealth::Healthy) => "healthy",
        Mark::Health(ObjectHealth::Progressing) => "progressing",
        Mark::Health(ObjectHealth::Unhealthy) => "unhealthy",
        Mark::Health(ObjectHealth::Unknown) => "unknown",
        Mark::Installed => "installed",
        Mark::Next => "next",
        Mark::Deprecated => "deprecated",
    }
}

/// A flowchart in the language of Mermaid.
pub fn mermaid(title: &str, branches: &[Branch]) -> String {
    let mut text = String::from("flowchart LR\n");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  n0[\"{}\"]", mermaid_text(title));
    let mut count = 0;
    mermaid_below(&mut text, 0, branches, &mut count);
    text.push_str(
        "  classDef healthy stroke:#1a7f37,stroke-width:2px\n  classDef progressing stroke:#bf8700,stroke-width:2px\n  \
         classDef unhealthy stroke:#cf222e,stroke-width:2px\n  classDef unknown stroke:#8250df,stroke-width:2px\n",
    );
    text
}

fn mermaid_below(text: &mut String, parent: usize, branches: &[Branch], count: &mut usize) {
    for branch in branches {
        *count += 1;
        let (id, sign) = (*count, branch.mark.map(|mark| format!("{} ", mark.sign())).unwrap_or_default());
        let message = branch.message.as_deref().map(|it| format!("<br/>{}", mermaid_text(&shortened(it))));
        let class = branch.mark.map(|mark| format!(":::{}", class(mark))).unwrap_or_default();
        let label = mermaid_text(&format!("{sign}{}", branch.label));
        let _ = writeln!(text, "  n{parent} --> n{id}[\"{label}{}\"]{class}", message.unwrap_or_default());
        mermaid_below(text, id, &branch.branches, count);
    }
}

/// Text in a quoted label. Everything that Mermaid or HTML may understand becomes a character code.
pub(super) fn mermaid_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_punctuation() && !matches!(c, '.' | ',' | ':' | '/' | '-' | '_' | '(' | ')' | '@' | '=') {
            let _ = write!(escaped, "#{};", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// A row of the picture.
struct Row<'a> {
    depth: usize,
    /// The row of the parent.
    parent: usize,
    branch: &'a Branch,
}

fn rows<'a>(rows: &mut Vec<Row<'a>>, parent: usize, depth: usize, branches: &'a [Branch]) {
    for branch in branches {
        rows.push(Row { depth, parent, branch });
        // The first row is the title.
        let row = rows.len();
        self::rows(rows, row, depth + 1, &branch.branches);
    }
}

/// An SVG image of a tree. It follows the colour scheme of the reader.
pub fn svg(title: &str, branches: &[Branch]) -> String {
    graph_svg(title, branches, &[])
}

/// How far an arrow is from the rows that it connects.
fn bow(arrow: &Arrow) -> usize {
    (ARROW + arrow.from.abs_diff(arrow.to) * ARROW_STEP).min(ARROW_MOST)
}

/// An SVG image of a graph: the rows of a tree, with arrows on the left instead of lines to their parents.
pub fn graph_svg(title: &str, branches: &[Branch], arrows: &[Arrow]) -> String {
    let mut all = Vec::new();
    rows(&mut all, 0, 1, branches);
    let room = arrows.iter().map(bow).max().unwrap_or_default();
    let characters = |row: &Row<'_>| {
        let message = row.branch.message.as_deref().map_or(0, |it| shortened(it).chars().count() + 2);
        (INDENT * (row.depth + 1) + room) * 10 + (row.branch.label.chars().count() + message) * CHARACTER
    };
    let widest = all.iter().map(characters).max().unwrap_or_default().max(title.chars().count() * CHARACTER);
    let (width, height) = (widest / 10 + 2 * MARGIN, (all.len() + 1) * ROW + 2 * MARGIN);
    let title = xml(title);
    let middle = |row: usize| MARGIN + row * ROW + ROW / 2;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n<style>\n{STYLE}\n\
         text {{ font: 13px ui-monospace, Menlo, Consolas, monospace; fill: var(--text); dominant-baseline: central; }}\n\
         .message {{ fill: var(--quiet); }}\npath {{ fill: none; stroke: var(--line); }}\ncircle {{ fill: var(--sign); }}\n</style>\n{}\
         <rect width=\"100%\" height=\"100%\" style=\"fill: var(--page)\"/>\n\
         <text x=\"{MARGIN}\" y=\"{}\" font-weight=\"bold\">{title}</text>\n",
        if arrows.is_empty() { "" } else { ARROW_STYLE },
        middle(0)
    );
    for (index, row) in all.iter().enumerate() {
        let Branch { label, mark, message, .. } = row.branch;
        let (x, y) = (MARGIN + room + row.depth * INDENT, middle(index + 1));
        if arrows.is_empty() {
            // A line from below the parent to this row.
            let stem = x - INDENT / 2 - 4;
            let _ = writeln!(text, "<path d=\"M{stem} {}V{y}H{}\"/>", middle(row.parent) + ROW / 2 - 3, x - 4);
        }
        let class = mark.map(class).unwrap_or_default();
        let _ = write!(text, "<g class=\"{class}\">");
        if let Some(message) = message {
            let _ = write!(text, "<title>{}</title>", xml(message));
        }
        let mut start = x;
        if mark.is_some() {
            let _ = write!(text, "<circle cx=\"{}\" cy=\"{y}\" r=\"5\"/>", x + 6);
            start += 18;
        }
        let _ = write!(text, "<text x=\"{start}\" y=\"{y}\">{}", xml(label));
        if let Some(message) = message {
            let _ = write!(text, "<tspan class=\"message\" dx=\"12\">{}</tspan>", xml(&shortened(message)));
        }
        text.push_str("</text></g>\n");
    }
    for arrow in arrows {
        let (Some(from), Some(to)) = (all.get(arrow.from), all.get(arrow.to)) else { continue };
        let x = |row: &Row<'_>| MARGIN + room + row.depth * INDENT - 4;
        let left = x(from).min(x(to)) - bow(arrow);
        let (start, end) = (middle(arrow.from + 1), middle(arrow.to + 1));
        let class = if arrow.dashed { " class=\"dashed\"" } else { "" };
        let _ = writeln!(
            text,
            "<path{class} d=\"M{} {start}C{left} {start} {left} {end} {} {end}\" marker-end=\"url(#tip)\"/>",
            x(from),
            x(to)
        );
    }
    text.push_str("</svg>\n");
    text
}

/// A page whose branches can be folded. It needs no script and loads nothing.
pub fn html(title: &str, branches: &[Branch]) -> String {
    let title = xml(title);
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>\n{STYLE}\n\
         body {{ font: 14px/1.6 system-ui, sans-serif; color: var(--text); background: var(--page); margin: 2rem; }}\n\
         ul {{ list-style: none; margin: 0; padding-left: 1.4rem; border-left: 1px solid var(--line); }}\n\
         summary {{ cursor: pointer; }}\n.message {{ color: var(--quiet); }}\n.sign {{ color: var(--sign); }}\n</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n"
    );
    html_below(&mut text, branches);
    text.push_str("</body>\n</html>\n");
    text
}

fn html_below(text: &mut String, branches: &[Branch]) {
    if branches.is_empty() {
        return;
    }
    text.push_str("<ul>\n");
    for branch in branches {
        let sign = branch.mark.map(|mark| {
            let class = class(mark);
            format!("<span class=\"sign {class}\" title=\"{class}\">{}</span> ", mark.sign())
        });
        let message = branch.message.as_deref().map(|it| format!(" <span class=\"message\">{}</span>", xml(it)));
        let line = format!("{}{}{}", sign.unwrap_or_default(), xml(&branch.label), message.unwrap_or_default());
        if branch.branches.is_empty() {
            let _ = writeln!(text, "<li>{line}</li>");
        } else {
            let _ = writeln!(text, "<li><details open><summary>{line}</summary>");
            html_below(text, &branch.branches);
            text.push_str("</details></li>\n");
        }
    }
    text.push_str("</ul>\n");
}

fn shortened(message: &str) -> String {
    match message.char_indices().nth(MESSAGE) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message.to_owned(),
    }
}

/// Text in XML or HTML, also in an attribute.
fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Vec<Branch> {
        let object = |label: &str, health, message: Option<&str>, branches| Branch {
            label: label.into(),
            mark: Some(Mark::Health(health)),
            message: message.map(Into::into),
            branches,
        };
        let pod =
            object("Pod crane-5f6-a", ObjectHealth::Unhealthy, Some("ImagePullBackOff: x:1: <not \"found\">"), vec![]);
        let crane = object("crane", ObjectHealth::Progressing, None, vec![pod]);
        let group = |label: &str, branches| Branch { label: label.into(), mark: None, message: None, branches };
        let kinds = vec![
            group("Service", vec![object("metrics", ObjectHealth::Healthy, None, vec![])]),
            group("Deployment.apps", vec![crane]),
        ];
        vec![group("namespace harbour", kinds)]
    }

    #[test]
    fn mermaid_labels_hold_no_markup_but_line_breaks() {
        insta::assert_snapshot!(mermaid("BundleDeployment harbour", &tree()), @r#"
        flowchart LR
          n0["BundleDeployment harbour"]
          n0 --> n1["namespace harbour"]
          n1 --> n2["Service"]
          n2 --> n3["✓ metrics"]:::healthy
          n1 --> n4["Deployment.apps"]
          n4 --> n5["… crane"]:::progressing
          n5 --> n6["✗ Pod crane-5f6-a<br/>ImagePullBackOff: x:1: #60;not #34;found#34;#62;"]:::unhealthy
          classDef healthy stroke:#1a7f37,stroke-width:2px
          classDef progressing stroke:#bf8700,stroke-width:2px
          classDef unhealthy stroke:#cf222e,stroke-width:2px
          classDef unknown stroke:#8250df,stroke-width:2px
        "#);
    }

    #[test]
    fn a_graph_has_arrows_and_no_lines_to_parents() {
        let arrows = [Arrow { from: 2, to: 0, dashed: false }, Arrow { from: 1, to: 9, dashed: true }];
        let text = graph_svg("graph", &tree(), &arrows);
        // The second arrow leads nowhere; the other path is the tip.
        assert_eq!((text.matches("<path").count(), text.matches("marker-end").count()), (2, 1), "{text}");
        insta::assert_snapshot!(text.lines().find(|line| line.contains("marker-end")).unwrap(), @r#"<path d="M124 100C58 100 58 52 80 52" marker-end="url(#tip)"/>"#);
    }

    #[test]
    fn markup_in_names_and_messages_is_text() {
        let hostile = "</text></svg><script>alert('x')</script>\" onload=\"x` #[] & |";
        let branch = Branch {
            label: hostile.into(),
            mark: Some(Mark::Health(ObjectHealth::Unknown)),
            message: Some(hostile.repeat(9)),
            branches: vec![],
        };
        for picture in [svg, html, mermaid] {
            let text = picture(hostile, std::slice::from_ref(&branch));
            for markup in ["<script", "\" onload", "alert('"] {
                assert!(!text.contains(markup), "{text}");
            }
        }
    }

    #[test]
    fn an_image_is_well_formed_and_has_a_row_for_every_branch() {
        for text in [svg("BundleDeployment harbour", &tree()), svg("nothing", &[])] {
            let opened = |tag: &str| text.matches(&format!("<{tag}")).count();
            let closed = |tag: &str| text.matches(&format!("</{tag}>")).count();
            for tag in ["svg", "style", "text", "tspan", "title"] {
                assert_eq!(opened(tag), closed(tag), "{tag} in {text}");
            }
            assert_eq!(opened("g "), closed("g"), "{text}");
        }
        let text = svg("BundleDeployment harbour", &tree());
        assert_eq!((text.matches("<path").count(), text.matches("<circle").count()), (6, 3));
        let page = html("BundleDeployment harbour", &tree());
        assert_eq!((page.matches("<li>").count(), page.matches("</li>").count()), (6, 6));
        assert_eq!(page.matches("<details open>").count(), 4);
    }
}
