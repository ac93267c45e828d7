//! The content that the source of a Catalog names now, found with as few requests as possible.

use std::time::{Duration, Instant};

use chandler_api::{Catalog, Reason};
use chandler_core::Content as _;
use chandler_decisions::problem::Problem;
use chandler_source::{Grantee, Obtained, Source, SourceError, Wanted, without_certificates};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;

use super::{
    index,
    reconciler::Catalogs,
    states::InUse,
    status::{Failed, Outcome, Step},
};
use crate::{monitoring::note_fetch, problem};

impl Catalogs {
    /// Puts the content that the source names now into use. With `again`, the source is resolved even if its interval has not passed.
    pub(super) async fn poll(&self, catalog: &Catalog, again: bool) -> Outcome {
        if catalog.spec.suspend {
            return Outcome::Suspended;
        }
        Outcome::Polled(match self.parse(catalog) {
            Ok((source, interval)) => self.update(catalog, &source, interval, again).await,
            Err(message) => {
                Err(Failed { step: Step::Resolve, problem: Problem::terminal(Reason::InvalidSpec, message) })
            }
        })
    }

    /// The source, and the interval of its polls.
    pub(super) fn parse(&self, catalog: &Catalog) -> Result<(Source, Duration), String> {
        let source = Source::parse(&catalog.spec.source).map_err(|error| error.to_string())?;
        let interval = catalog.spec.poll_interval().map_err(|error| error.to_string())?;
        Ok((source, interval.unwrap_or(self.cluster.options.image_poll_interval)))
    }

    async fn update(&self, catalog: &Catalog, source: &Source, interval: Duration, again: bool) -> Result<(), Failed> {
        let name = catalog.name_any();
        let began = Instant::now();
        let note = |failure| note_fetch(&self.cluster.metrics, &catalog.spec.source, began, failure);
        match self.known_verdict(&name, source, interval, again).await {
            Ok(Some(verdict)) => return verdict,
            Ok(None) => {}
            Err(error) => {
                note(Some(error.reason()));
                return Err(resolve(&error));
            }
        }
        let wanted = Wanted {
            grantee: Grantee::Catalog(&name),
            source,
            resolutions: &self.resolutions,
            interval: Some(interval),
            in_use: None,
        };
        let obtained = self.sources.obtain(&wanted).await;
        note(obtained.as_ref().err().map(|failed| failed.error.reason()));
        let verdict = match obtained {
            Ok(obtained) => self.put_into_use(catalog, obtained).await,
            Err(failed) if failed.resolved => Err(unpack(&failed.error)),
            Err(failed) => Err(resolve(&failed.error)),
        };
        let is_final = verdict.as_ref().err().is_none_or(|failed| failed.problem.terminal);
        if let Some(resolution) = self.resolutions.last(&name, source).filter(|_| is_final) {
            self.states.judge(&name, resolution.pinned, verdict.clone());
        }
        verdict
    }

    /// The earlier findings about the content, if the source still names it. `None` if the content has to be fetched.
    async fn known_verdict(
        &self,
        name: &str,
        source: &Source,
        interval: Duration,
        again: bool,
    ) -> Result<Option<Result<(), Failed>>, SourceError> {
        let Some(asked) = self.resolutions.last(name, source) else { return Ok(None) };
        let now = if !again && self.resolutions.recent(name, source, interval).is_some() {
            Some(asked.pinned)
        } else {
            let now = self.sources.check(Grantee::Catalog(name), &asked).await?;
            self.resolutions.renew(name, &asked, now.clone());
            now
        };
        Ok(now.and_then(|pinned| self.states.verdict(name, &pinned)))
    }

    /// Builds and checks the index of content, and puts it into use.
    async fn put_into_use(&self, catalog: &Catalog, obtained: Obtained) -> Result<(), Failed> {
        let (name, states) = (catalog.name_any(), &self.states);
        // One index is built at a time: that bounds memory, and no index is removed before it is in use.
        let _one = self.indexing.lock().await;
        let (digest, resolved_source) = (obtained.tree.digest().to_string(), without_certificates(&obtained.pinned));
        let same = states.in_use(&name).filter(|content| content.digest == digest);
        let content = if let Some(content) = same {
            InUse { resolved_source, ..content }
        } else {
            let (indexes, most_bytes) = (self.indexes.clone(), self.cluster.options.catalog_index_bytes);
            let checked = tokio::task::spawn_blocking(move || index::index(&indexes, &obtained.tree, most_bytes));
            let checked = checked.await.unwrap_or_else(|error| {
                Err(Problem::transient(Reason::InternalError, format!("the check of the catalog failed: {error}")))
            });
            match checked {
                Ok(contents) => InUse { digest, resolved_source, contents, unpacked: Timestamp::now() },
                Err(problem) => {
                    self.remove_unused();
                    return Err(Failed { step: Step::Check, problem });
                }
            }
        };
        self.record(catalog, &content);
        states.put_into_use(&name, content);
        self.remove_unused();
        Ok(())
    }
}

fn resolve(error: &SourceError) -> Failed {
    Failed { step: Step::Resolve, problem: problem::source(Reason::SourceNotResolved, error) }
}

fn unpack(error: &SourceError) -> Failed {
    Failed { step: Step::Unpack, problem: problem::unpack(error) }
}
