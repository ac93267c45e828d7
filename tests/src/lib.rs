//! End-to-end tests: on the embedded control plane, or unchanged on any API server.
