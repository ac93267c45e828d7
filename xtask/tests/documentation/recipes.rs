//! The recipes of CONTRIBUTING.md follow the code: their files exist, and contain the symbols that they name.

use std::fs;

use crate::files;

/// What there are recipes for.
const RECIPES: &[&str] = &[
    "To add a source",
    "To add a reason with advice",
    "To add a column",
    "To add a metric",
    "To add a built-in provisioner",
    "To add a setting",
    "To add a setting of the installation",
    "To add a command",
    "To add a field of our API",
    "To add a kind",
];

/// A row of a recipe: a file, and a symbol in it.
struct Row<'a> {
    file: &'a str,
    symbol: &'a str,
}

/// The rows of a recipe: `| file | what | symbol |`, with file and symbol as code.
fn rows(recipe: &str) -> Vec<Row<'_>> {
    let rows = recipe.lines().filter(|line| line.starts_with("| `")).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        assert_eq!(cells.len(), 3, "{line}");
        Row { file: cells[0].trim_matches('`'), symbol: cells[2].trim_matches('`') }
    });
    rows.collect()
}

#[test]
fn recipes_name_files_and_symbols_that_exist() {
    let page = files::read("CONTRIBUTING.md");
    let section = page.split("\n## Recipes\n").nth(1).expect("the recipes");
    let section = section.split("\n## ").next().unwrap();
    let (mut titles, mut problems) = (Vec::new(), Vec::new());
    for recipe in section.split("\n### ").skip(1) {
        let title = recipe.lines().next().unwrap();
        titles.push(title);
        let rows = rows(recipe);
        assert!(rows.len() > 2, "{title}: the rows are found");
        for Row { file, symbol } in rows {
            assert!(!symbol.is_empty(), "{title}: {file} has a symbol");
            match fs::read_to_string(files::root().join(file)) {
                Err(error) => problems.push(format!("{title}: {file}: {error}")),
                Ok(text) if !text.contains(symbol) => {
                    problems.push(format!("{title}: {file} does not contain {symbol}"));
                }
                Ok(_) => {}
            }
        }
    }
    assert_eq!(titles, RECIPES);
    assert!(problems.is_empty(), "{problems:#?}");
}
