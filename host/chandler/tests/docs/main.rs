//! The pages for users are executed: README.md, docs/*.md and docs/contributing/*.md.
//!
//! Each fenced block names after its language what a test does with it:
//!
//! | block | what happens |
//! |---|---|
//! | `console run` | each line after `$` is run in the shell of the page, and its output is compared ([`compare`]) |
//! | `console background` | the command is started and runs until the end of the page |
//! | `yaml`, `json` | parsed, and validated against the type of its kind ([`validate`]); a block without `kind` is a part of a BundleDeployment |
//! | `yaml of=KIND.FIELD` | a part of this field of an object of this kind |
//! | `... file=PATH` | also: equals the file at this path below docs/tutorial |
//! | `... parsed: REASON` | parsed only |
//! | `... skip: REASON` | not executed; the commands in it are still parsed |
//!
//! A comment `<!-- console run ... -->` is a block that readers do not see. A command that fails is shown with `# exits with N`.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test helpers may panic, too")]

mod commands;
mod compare;
mod console;
mod page;
mod session;
mod validate;

use page::{Action, Page};

/// The pages, in order.
fn pages() -> Vec<Page> {
    let folders = ["docs", "docs/contributing"].map(|folder| std::fs::read_dir(page::root().join(folder)).unwrap());
    let mut paths: Vec<_> = folders.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.push(page::root().join("README.md"));
    paths.push(page::root().join("ARCHITECTURE.md"));
    paths.sort();
    paths.iter().map(|path| Page::read(path)).collect()
}

/// Fails with all problems at once.
#[track_caller]
fn none(problems: &[String]) {
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn every_block_is_executed_or_validated_or_says_why_not() {
    let pages = pages();
    assert!(pages.iter().map(|page| page.blocks.len()).sum::<usize>() > 50, "the blocks were not found");
    let undecided = pages.iter().flat_map(|page| &page.blocks).filter_map(|block| match &block.action {
        Err(problem) => Some(format!("{}: {problem}", block.place)),
        Ok(Action::Skip(reason) | Action::Parse(reason)) if reason.len() < 5 => {
            Some(format!("{}: without a reason", block.place))
        }
        Ok(_) => None,
    });
    none(&undecided.collect::<Vec<_>>());
}

#[test]
fn examples_are_valid() {
    let schemas = validate::Schemas::new();
    let blocks: Vec<_> = pages().into_iter().flat_map(|page| page.blocks).collect();
    none(&blocks.iter().flat_map(|block| schemas.problems(block)).collect::<Vec<_>>());
}

#[test]
fn shown_files_are_the_files() {
    let tutorial = page::root().join("docs/tutorial");
    let mut shown = 0;
    for block in pages().into_iter().flat_map(|page| page.blocks) {
        if let Some(file) = &block.file {
            shown += 1;
            assert_eq!(block.text, std::fs::read_to_string(tutorial.join(file)).unwrap(), "{}", block.place);
        }
    }
    assert!(shown > 0);
}

#[test]
fn commands_in_the_pages_exist() {
    none(&pages().iter().flat_map(commands::problems).collect::<Vec<_>>());
}

#[test]
fn the_page_of_commands_lists_every_command() {
    let page = Page::read(&page::root().join(commands::PAGE));
    none(&commands::missing_in_table(&page.text));
}

#[test]
fn pages_run_as_shown() {
    if !chandler_test_support::needs::kubectl() {
        return;
    }
    let executed: Vec<Page> = pages().into_iter().filter(Page::is_executed).collect();
    assert!(executed.iter().any(|page| page.name == "docs/tutorial.md"), "the tutorial is executed");
    none(&executed.iter().flat_map(session::run).collect::<Vec<_>>());
}
