//! The documents of Catalogs, as catalogd of OLM v1 serves them: one JSON document per line.

use std::io::{self, Write as _};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use chandler_catalog::{Index, Indexes, Limits, Query};
use chandler_content::{Store, Tree};
use chandler_core::Digest;
use headers::{ETag, HeaderMapExt as _};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header::CONTENT_TYPE};

use crate::{
    body, conditional,
    places::{Caller, Places},
    refusal::Refusal,
};

/// How many answers are sent at once.
const ANSWERS: usize = 4;

/// Which documents to return, by schema, package and name. Empty parameters count as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    schema: Option<String>,
    package: Option<String>,
    name: Option<String>,
}

impl Wanted {
    /// Parses the query of a URL.
    pub(crate) fn parse(query: &str) -> Result<Self, Refusal> {
        let mut wanted = Self::default();
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            let field = match &*key {
                "schema" => &mut wanted.schema,
                "package" => &mut wanted.package,
                "name" => &mut wanted.name,
                other => {
                    let other = chandler_core::text::printable(other);
                    return Err(Refusal::Malformed(format!(
                        "{other:?} is not a parameter: they are schema, package and name"
                    )));
                }
            };
            if !value.is_empty() && field.replace(value.into_owned()).is_some() {
                return Err(Refusal::Malformed(format!("the parameter {key} is given twice")));
            }
        }
        Ok(wanted)
    }

    fn query(&self) -> Query<'_> {
        let Self { schema, package, name } = self;
        Query { schema: schema.as_deref(), package: package.as_deref(), name: name.as_deref() }
    }
}

/// Writes documents of catalogs.
pub(crate) struct Catalogs {
    store: Store,
    indexes: Indexes,
    places: Places,
}

impl Catalogs {
    pub(crate) fn new(store: Store, indexes: Indexes) -> Self {
        Self { store, indexes, places: Places::new(ANSWERS) }
    }

    /// The answer to a request for documents of the catalog of this digest.
    pub(crate) async fn answer(
        &self,
        caller: &Caller,
        method: &Method,
        headers: &HeaderMap,
        digest: &Digest,
        wanted: Wanted,
    ) -> Result<Response, Refusal> {
        // Weak, since the bytes differ with the compression.
        let tag: ETag = format!("W/\"{}\"", digest.hex()).parse().map_err(|_| Refusal::Failed)?;
        let mut response = if conditional::is_known(headers, &tag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let body = if method == Method::HEAD {
                Body::empty()
            } else {
                self.documents(caller, digest.clone(), wanted).await?
            };
            ([(CONTENT_TYPE, HeaderValue::from_static("application/jsonl"))], body).into_response()
        };
        response.headers_mut().typed_insert(tag);
        Ok(response)
    }

    async fn documents(&self, caller: &Caller, digest: Digest, wanted: Wanted) -> Result<Body, Refusal> {
        let place = self.places.take(caller)?;
        let (store, indexes) = (self.store.clone(), self.indexes.clone());
        let opened = tokio::task::spawn_blocking(move || (store.tree(&digest), indexes.get(&digest)));
        match opened.await {
            Ok((Some(tree), Ok(Some(index)))) => {
                Ok(body::written(place, move |sink| write(&index, &tree, &wanted, sink)))
            }
            Ok((_, Ok(_))) => {
                Err(Refusal::Absent("its content is no longer in the cache of the controller".to_owned()))
            }
            Ok((_, Err(error))) => Err(Refusal::failed("a catalog cannot be read", &error)),
            Err(error) => Err(Refusal::failed("a catalog cannot be read", &error)),
        }
    }
}

fn write(index: &Index, tree: &Tree, wanted: &Wanted, sink: &mut body::Sink) -> io::Result<()> {
    let limits = Limits::default();
    for record in index.metas(wanted.query()).map_err(io::Error::other)? {
        let mut line = record.map_err(io::Error::other)?.span.json(tree, &limits).map_err(io::Error::other)?;
        line.push(b'\n');
        sink.write_all(&line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_those_of_catalogd() {
        let own = |text: &str| Some(text.to_owned());
        let parsed = Wanted::parse("schema=olm.bundle&package=etcd%20x&name=").unwrap();
        assert_eq!(parsed, Wanted { schema: own("olm.bundle"), package: own("etcd x"), name: None });
        assert_eq!(Wanted::parse("").unwrap(), Wanted::default());
        for (query, part) in [
            ("pkg=etcd", "\"pkg\" is not a parameter"),
            ("name=a&name=b", "given twice"),
            ("%1b=1", "is not a parameter"),
        ] {
            let Err(Refusal::Malformed(why)) = Wanted::parse(query) else { panic!("{query}") };
            assert!(why.contains(part) && !why.contains('\u{1b}'), "{why}");
        }
    }
}
