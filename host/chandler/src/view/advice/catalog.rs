//! Suggested actions for a Catalog.

use chandler_api::Reason;

/// The suggested action for the Catalog of this name.
pub(super) fn advice(reason: Reason, name: &str) -> Option<String> {
    Some(match reason {
        Reason::SourceNotResolved => format!(
            "check that the image, repository or URL in spec.source of the Catalog exists, and that its Secret in the system namespace is \
             valid; the controller retries, `chandler reconcile catalog/{name}` at once"
        ),
        Reason::UnpackFailed => format!(
            "check that the server of the source answers, and that the image has the label of catalogs; the controller retries while the \
             server may answer differently, `chandler reconcile catalog/{name}` at once"
        ),
        Reason::CatalogStale => {
            format!(
                "the earlier content stays in use; `chandler status catalog/{name}` shows the condition with the cause; the controller retries"
            )
        }
        Reason::ContentCacheFull => {
            "raise --content-cache-limit of the controller (docs/operations.md), or remove objects whose content is not needed; the controller \
             retries"
                .to_owned()
        }
        Reason::NoMatchingSignature => {
            "sign the image of the catalog as the message wants (`cosign sign`), name an image that is signed in spec.source of the \
             Catalog, or ask the administrator which signers the controller accepts; the controller retries"
                .to_owned()
        }
        Reason::CatalogInvalid => {
            "fix the files of the catalog and publish them again; `chandler catalog lint CATALOG` shows all errors"
                .to_owned()
        }
        Reason::ContentLimitExceeded => {
            "remove a Catalog that is not needed (`chandler catalog list`, `chandler catalog remove NAME`), or publish a catalog with only \
             the packages that are needed"
                .to_owned()
        }
        Reason::InvalidSpec => {
            format!(
                "correct the value that the message names: `kubectl edit catalog {name}`, `kubectl explain catalog.spec`; or upgrade the \
                 controller"
            )
        }
        Reason::Suspended => format!("to follow the source again: `chandler resume catalog/{name}`"),
        Reason::InternalError => {
            "wait: the controller retries; if it lasts, check the space in its cache directory, and report the message as a bug of Chandler"
                .to_owned()
        }
        _ => return None,
    })
}
