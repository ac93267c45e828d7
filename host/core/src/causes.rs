//! The causes of an error.

use std::{error::Error, io, iter, sync::Arc};

/// An error and its causes, outermost first. Unlike a walk over `source`, this includes the error that an `io::Error` or an `Arc` wraps,
/// such as an error of the input of a decompressor, or of TLS.
pub fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |error| cause(*error))
}

fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    if let Some(wrapped) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        return Some(wrapped);
    }
    match error.downcast_ref::<Arc<dyn Error + Send + Sync>>() {
        Some(shared) => Some(shared.as_ref()),
        None => error.source(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_errors_are_causes() {
        let error = io::Error::other(io::Error::other("innermost"));
        assert_eq!(causes(&error).count(), 3);
        assert_eq!(causes(&error).last().unwrap().to_string(), "innermost");
        let shared: Arc<dyn Error + Send + Sync> = Arc::new(error);
        assert!(causes(&shared).nth(1).unwrap().is::<io::Error>());
    }
}
