//! Server-side apply, field ownership and strategic merge patch, as pure functions over JSON and a schema.
