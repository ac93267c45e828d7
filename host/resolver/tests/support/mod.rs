//! What several tests share.

#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests may panic as well")]

pub(crate) mod examples;
pub(crate) mod oracle;
pub(crate) mod random;
