//! Resolves symbolic links. Pure.

use std::collections::BTreeMap;

use super::node::{Node, RootedAt, is_directory};
use crate::{
    EntryProblem,
    path::{join, split},
    tree::Stored,
};

/// The most links in a chain, as in Linux.
const MOST_HOPS: usize = 40;
/// The parts that are walked for one link, so that links to links with long targets cost little.
const MOST_STEPS: usize = 1024;

/// The file that a link points to, if every step stays inside the tree.
pub(super) fn resolve(
    nodes: &BTreeMap<String, Node>,
    link: &str,
    target: &str,
    root: RootedAt,
) -> Result<Stored, EntryProblem> {
    let leaves = || EntryProblem::LinkLeaves(target.to_owned());
    let mut here = start(split(link).0, target, root).ok_or_else(leaves)?;
    let (mut hops, mut steps) = (0, 0);
    // The parts still to go, the next one last.
    let mut rest = parts(target);
    while let Some(part) = rest.pop() {
        steps += 1;
        if steps > MOST_STEPS {
            return Err(EntryProblem::LinkLoop(target.to_owned()));
        }
        if part == ".." {
            if here.is_empty() {
                return Err(leaves());
            }
            here = split(&here).0.to_owned();
            continue;
        }
        let next = join(&here, &part);
        match nodes.get(&next) {
            Some(Node::File(stored)) if rest.is_empty() => return Ok(stored.clone()),
            Some(Node::Link(onward)) => {
                hops += 1;
                if hops > MOST_HOPS {
                    return Err(EntryProblem::LinkLoop(target.to_owned()));
                }
                here = start(&here, onward, root).ok_or_else(leaves)?;
                rest.extend(parts(onward));
            }
            Some(Node::Directory) => here = next,
            None if is_directory(nodes, &next) => here = next,
            Some(Node::File(_)) | None => return Err(EntryProblem::LinkDangling(target.to_owned())),
        }
    }
    Err(EntryProblem::LinkToDirectory(target.to_owned()))
}

/// The directory in which a target is looked up.
fn start(directory: &str, target: &str, root: RootedAt) -> Option<String> {
    match (target.starts_with('/'), root) {
        (false, _) => Some(directory.to_owned()),
        (true, RootedAt::Tree) => Some(String::new()),
        (true, RootedAt::Nothing) => None,
    }
}

fn parts(target: &str) -> Vec<String> {
    target.split('/').rev().filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect()
}
