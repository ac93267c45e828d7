//! YAML as people read it.

use serde::Serialize;

use crate::ManifestsError;

/// YAML whose lines are the lines of strings.
pub(crate) fn yaml(value: &impl Serialize) -> Result<String, ManifestsError> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let text = serde_saphyr::to_string_with_options(value, options);
    text.map_err(|error| ManifestsError::Yaml { message: error.to_string() })
}
