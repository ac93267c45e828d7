//! Which modules of a crate the modules of a folder use: the folders of some crates depend on each other in one direction only.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test reads its own sources")]

use std::{fs, path::Path};

/// Every Rust file of a module and of the modules below it: the path of the module, and the text. `source` is the directory of the crate's root.
///
/// # Panics
/// A directory cannot be read.
pub fn files(source: &Path, module: &[String]) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    let file = source.join(module.join("/")).with_extension("rs");
    if let Ok(text) = fs::read_to_string(file) {
        found.push((module.to_vec(), text));
    }
    for entry in fs::read_dir(source.join(module.join("/"))).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let below = [module, [name].as_slice()].concat();
        // The file of a module lists the files of its folder.
        if path.is_file() {
            found.extend(files(source, &below));
        }
    }
    found
}

/// The paths that begin with `crate`, `super` or one of these crates, each as its segments, in code and in groups such as `crate::{a::B, c}`.
fn paths(code: &str, crates: &[(&str, &[&str])]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("::") {
        let before = &code[..at];
        let begin = before.rfind(|c: char| !is_name(c)).map_or(0, |at| at + 1);
        // A path at the beginning of a string literal is text.
        let is_first = !before[..begin].ends_with("::") && !before[..begin].ends_with('"');
        let name = &before[begin..];
        if is_first && (["crate", "super"].contains(&name) || crates.iter().any(|(other, _)| *other == name)) {
            found.extend(expanded(&code[begin..]));
        }
    }
    found
}

/// The paths of a use tree.
fn expanded(text: &str) -> Vec<Vec<String>> {
    let mut segments = Vec::new();
    let mut rest = text.trim_start();
    loop {
        let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        segments.push(rest[..end].to_owned());
        let Some(more) = rest[end..].strip_prefix("::") else { return vec![segments] };
        rest = more;
        if let Some(group) = rest.strip_prefix('{') {
            let members = members(group).into_iter().flat_map(expanded);
            return members.map(|member| [segments.as_slice(), member.as_slice()].concat()).collect();
        }
    }
}

/// The members of a group, of which the opening brace was read.
fn members(group: &str) -> Vec<&str> {
    let (mut members, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                members.push(group[begin..at].trim());
                begin = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    members.retain(|member| !member.is_empty());
    members
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The paths in the text of a module that it must not use: items of the crate's root that are not among `may_use`, and these items of other
/// crates.
#[must_use]
pub fn refused(module: &[String], text: &str, may_use: &[&str], others: &[(&str, &[&str])]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (code, depth) in blocks(text) {
        for path in paths(&code, others) {
            let used = match path[0].as_str() {
                "crate" => path.get(1),
                "super" => {
                    let up = path.iter().take_while(|segment| *segment == "super").count();
                    // Further down it is a module of the same folder.
                    path.get(up).filter(|_| up == module.len() + depth)
                }
                other => {
                    let items = others.iter().find(|(name, _)| *name == other).map_or(&[][..], |(_, items)| items);
                    wrong.extend(path.get(1).filter(|item| items.contains(&item.as_str())).map(|_| path.join("::")));
                    continue;
                }
            };
            wrong.extend(used.filter(|used| !may_use.contains(&used.as_str())).map(|_| path.join("::")));
        }
    }
    wrong
}

/// The code without comments, in blocks: outside of inline modules, and inside of each, where a path has one `super` more.
fn blocks(text: &str) -> Vec<(String, usize)> {
    let mut inner = 0;
    let mut blocks = vec![(String::new(), 0)];
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        // rustfmt begins and ends an inline module in the first column.
        let begins = (line.starts_with("mod ") || line.starts_with("pub mod ")) && line.ends_with('{');
        if begins || (inner > 0 && line == "}") {
            inner = usize::from(begins);
            blocks.push((String::new(), inner));
        } else if let Some((code, _)) = blocks.last_mut() {
            code.extend([line, "\n"]);
        }
    }
    blocks
}

/// The path of a module from its path in the directory of sources, such as `read/cluster`.
#[must_use]
pub fn module(path: &str) -> Vec<String> {
    path.split('/').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAP: &[(&str, &[&str])] = &[("clap", &["Args", "Parser", "Subcommand"])];

    #[test]
    fn paths_are_found_in_groups_in_code_and_above() {
        let found =
            |module_path: &str, text: &str| refused(&module(module_path), text, &["read", "CommandError"], CLAP);
        assert_eq!(
            found("read/a", "// crate::command::A\nuse crate::{\n    CommandError,\n    read::{b, c},\n};"),
            [""; 0]
        );
        assert_eq!(
            found("read/a", "use crate::{\n    arguments::{b::C, d},\n};\nfn f() { crate::command::g(); }"),
            ["crate::arguments::b::C", "crate::arguments::d", "crate::command::g"]
        );
        assert_eq!(found("read/a", "use super::super::command::A;"), ["super::super::command::A"]);
        assert_eq!(found("read/a", "use super::{super::{arguments::b, read::c}, d};"), ["super::super::arguments::b"]);
        assert_eq!(
            found("read/a/b", "use super::super::c;\nuse super::super::super::view::d;"),
            ["super::super::super::view::d"]
        );
        let tests = "mod tests {\n    use super::super::b;\n    use super::super::super::command::c;\n}\n";
        assert_eq!(found("read/a", tests), ["super::super::super::command::c"]);
        assert_eq!(found("read/a", "#[derive(clap::ValueEnum)]\n#[derive(Debug, clap::Args)]"), ["clap::Args"]);
        assert_eq!(found("read/a", "use clap::{Subcommand, ValueEnum};"), ["clap::Subcommand"]);
        let text =
            "// crate::comment\nuse crate::{\n    pure::{a::B, c},\n    read::d,\n};\nfn f() { crate::write::g(); }";
        let all = ["crate::pure::a::B", "crate::pure::c", "crate::read::d", "crate::write::g"];
        assert_eq!(refused(&module("pure/a"), text, &[], &[]), all);
    }
}
