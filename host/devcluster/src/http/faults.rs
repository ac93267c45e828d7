//! Lists and changes faults while the cluster runs: `/chandler.dev/faults`.
//!
//! | request | does |
//! |---|---|
//! | `GET /chandler.dev/faults` | lists the faults and what they did |
//! | `POST /chandler.dev/faults` | adds those in the body, one per line, as on the command line |
//! | `DELETE /chandler.dev/faults` | removes all |
//! | `DELETE /chandler.dev/faults/<id>` | removes one |
//!
//! `kubectl get`, `create` and `delete` do so with `--raw`. The path is authorized like every other non-resource path:
//! unless RBAC says otherwise, only the administrator may use it.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};

use crate::{
    api::Api,
    faults::{Fault, Report},
    respond::{self, Body},
    status::Status,
};

/// The most faults at a time: each is looked at for each request.
const MOST: usize = 1000;

/// Answers a request for all faults, or for the one that is named.
///
/// # Errors
/// When the body holds no faults, the fault is not there, or the method is another one.
pub fn answer(api: &Api, request: &Request<Bytes>, id: Option<&str>) -> Result<Response<Body>, Status> {
    let missing = |id: &str| Status::unknown_fault(id);
    let (code, reports) = match (request.method(), id) {
        (&Method::GET | &Method::HEAD, None) => (StatusCode::OK, api.faults.list()),
        (&Method::GET | &Method::HEAD, Some(id)) => {
            let found = api.faults.list().into_iter().find(|report| report.id.to_string() == id);
            (StatusCode::OK, vec![found.ok_or_else(|| missing(id))?])
        }
        (&Method::POST, None) => (StatusCode::CREATED, add(api, request.body())?),
        (&Method::DELETE, None) => (StatusCode::OK, api.faults.clear()),
        (&Method::DELETE, Some(id)) => {
            let removed = id.parse().ok().and_then(|id| api.faults.remove(id));
            (StatusCode::OK, vec![removed.ok_or_else(|| missing(id))?])
        }
        (method, _) => {
            return Err(Status::method_not_allowed(format!("the server does not allow {method} on faults")));
        }
    };
    let items: Vec<Value> = reports.iter().map(shown).collect();
    Ok(respond::value(code, &json!({"kind": "FaultList", "apiVersion": "chandler.dev/v1alpha1", "items": items})))
}

fn add(api: &Api, body: &[u8]) -> Result<Vec<Report>, Status> {
    let text = std::str::from_utf8(body).map_err(|_| Status::bad_request("the body is not UTF-8"))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parse =
        |line: &str| line.parse::<Fault>().map_err(|error| Status::bad_request(format!("fault {line:?}: {error}")));
    // All or none.
    let faults = lines.map(parse).collect::<Result<Vec<_>, _>>()?;
    if faults.is_empty() {
        return Err(Status::bad_request(
            "the body holds no fault; write one a line, such as conflict,verb=patch,times=3",
        ));
    }
    if api.faults.list().len() + faults.len() > MOST {
        return Err(Status::bad_request(format!("there may be {MOST} faults at a time")));
    }
    Ok(faults
        .into_iter()
        .map(|fault| Report { id: api.faults.add(fault.clone()), fault, matched: 0, struck: 0 })
        .collect())
}

fn shown(report: &Report) -> Value {
    let Report { id, fault, matched, struck } = report;
    json!({"id": id, "fault": fault.to_string(), "matched": matched, "struck": struck})
}
