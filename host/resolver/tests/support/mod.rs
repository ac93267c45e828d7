//! What several tests share.

#![allow(dead_code, reason = "each test binary uses a part")]

pub(crate) mod examples;
pub(crate) mod oracle;
pub(crate) mod random;
