//! Receivers: webhooks of registries and git servers that have sources polled at once.
//!
//! | module | contents | I/O |
//! |---|---|---|
//! | `reconciler` | the token and the status of a Receiver | yes |
//! | `issuers` | the issuers of identity tokens, and their keys | yes |
//! | `webhooks` | the Receivers that accept requests, and the objects whose sources a request concerns | no |
//! | `listen` | the address of the requests | yes |
//!
//! Authentication, payloads and limits are in `host/receivers` and `host/serve`.

mod issuers;
mod listen;
mod reconciler;
mod webhooks;

pub(crate) use self::{
    issuers::KnownIssuers,
    listen::listen,
    reconciler::{Receivers, TokenChanges},
    webhooks::{Polled, Webhooks},
};
