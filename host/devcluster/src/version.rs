//! What the server says it is.

use serde_json::{Value, json};

/// The version that clients read; it names the Kubernetes version whose types are served, and that this is not a real cluster.
pub const GIT_VERSION: &str = "v1.36.0-chandler.devcluster";

/// The response to `/version`.
pub fn document() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
