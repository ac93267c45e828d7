//! A release onto an API server: plan, apply in stages, prune, probe, delete.
