//! What would be installed next.

use std::sync::Arc;

use chandler_catalog::Index;
use chandler_resolver::{Dependencies, Installed, Policy, Problem, Required, ResolveError, Source, resolve};

use crate::IndexCatalogs;

/// The bundle that the next step of an upgrade within one catalog leads to, dependencies aside; none if the installed bundle stays.
///
/// # Errors
/// If the version of the installed bundle is malformed, or the index cannot be read.
pub fn next(index: &Arc<Index>, installed: Installed, channels: &[String]) -> Result<Option<String>, ResolveError> {
    let catalogs =
        IndexCatalogs::new().with(Source { name: "catalog".to_owned(), ..Source::default() }, Arc::clone(index));
    let package = installed.package.clone();
    let required = Required { package: package.clone(), channels: channels.to_vec(), ..Required::default() };
    let policy = Policy { dependencies: Dependencies::Ignore, ..Policy::default() };
    let problem = Problem {
        required: vec![required],
        installed: vec![installed],
        catalogs: catalogs.sources(),
        policy,
        ..Problem::default()
    };
    let answer = resolve(&problem, &catalogs)?;
    let member = answer.decision().and_then(|decision| decision.member(&package));
    Ok(member.and_then(|member| member.steps.first()).map(|step| step.name.clone()))
}
