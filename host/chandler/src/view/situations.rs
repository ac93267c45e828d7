//! What an administrator reads in each situation: every view of one status, side by side, so that a reader can compare their sentences.
//!
//! The controller's own derivation writes the statuses, from what its reconciles find.

pub(super) mod agreement;
mod deployments;
mod harbour;
mod histories;
mod problems;
mod sets;
mod sides;
