//! Renders the charts of the oracle, and counts what is equal to what Helm gives.
//!
//! `cargo run --release -p chandler-helm --example oracle -- FOLDER [provision] [PUBLISHER[/NAME[/SET]] | from:PUBLISHER…]…`, where the folder is the
//! unpacked `dev.tar.xz`. With `provision`, it counts which charts the provisioner takes, with generated values, and prints why it refuses the others.

#![expect(clippy::print_stdout, reason = "an example for the terminal")]

#[path = "../tests/oracle/pairs.rs"]
mod pairs;

use std::{
    collections::BTreeMap,
    env,
    path::Path,
    time::{Duration, Instant},
};

use pairs::{Class, Pair, Provisioned};

fn main() {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().unwrap_or_default();
    let folder = Path::new(&folder);
    let mut wanted: Vec<String> = arguments.collect();
    if wanted.first().is_some_and(|first| first == "provision") {
        wanted.remove(0);
        return provision(
            pairs::pairs(folder)
                .iter()
                .filter(|pair| wanted.is_empty() || wanted.iter().any(|wanted| pair.id.starts_with(wanted))),
        );
    }
    let capabilities = pairs::capabilities(folder);
    let mut counts: BTreeMap<Class, usize> = BTreeMap::new();
    let mut slowest = Vec::new();
    for pair in pairs::pairs(folder) {
        let takes = |wanted: &String| {
            wanted.strip_prefix("from:").map_or(pair.id.starts_with(wanted), |first| *pair.id >= *first)
        };
        if !wanted.is_empty() && !wanted.iter().any(takes) {
            continue;
        }
        let start = Instant::now();
        let compared = pairs::compare(&pair, &capabilities);
        *counts.entry(compared.class).or_default() += 1;
        if !matches!(compared.class, Class::Equal | Class::SameError) {
            println!("{:?} {}\n  {}", compared.class, pair.id, compared.detail);
        }
        slowest.push((start.elapsed(), pair.id));
    }
    slowest.sort();
    for (time, id) in slowest.iter().rev().take(5) {
        println!("{time:?} {id}");
    }
    println!("total {:?}", slowest.iter().map(|(time, _)| *time).sum::<Duration>());
    for (class, count) in counts {
        println!("{count:5} {class:?}");
    }
}

/// Counts the pairs that the provisioner takes.
fn provision<'p>(pairs: impl Iterator<Item = &'p Pair>) {
    let (mut taken, mut requesting, mut refused, mut failed) = (0, 0, 0, 0);
    for pair in pairs {
        match pairs::provision(pair) {
            None => {}
            Some(Provisioned::Objects(_, requests)) => {
                taken += 1;
                requesting += usize::from(requests);
            }
            Some(Provisioned::Refused(why)) => {
                refused += 1;
                println!("refused {}\n  {why}", pair.id);
            }
            Some(Provisioned::Failed(why)) => {
                failed += 1;
                println!("failed {}\n  {why}", pair.id);
            }
        }
    }
    println!("{taken} taken, of which {requesting} request values; {refused} refused; {failed} failed otherwise");
}
