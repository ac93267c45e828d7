//! Why a TLS connection is not trusted, in words.

use std::error::Error;

use chandler_core::causes;
use rustls::CertificateError;

/// What is wrong with the TLS connection that failed with this error; `None` if TLS is not the cause.
pub fn problem(error: &(dyn Error + 'static)) -> Option<String> {
    causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>()).map(|error| match error {
        rustls::Error::InvalidCertificate(certificate) => of_certificate(certificate),
        rustls::Error::InvalidMessage(_) => "the server does not speak TLS".to_owned(),
        rustls::Error::AlertReceived(_) => "the server refused the TLS connection".to_owned(),
        error => error.to_string(),
    })
}

/// Whether a connection failed because the server does not speak TLS: its first bytes do not begin a message of TLS. A server that closes the
/// connection, or refuses with an alert, may speak it.
pub(crate) fn speaks_no_tls(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| matches!(cause.downcast_ref(), Some(rustls::Error::InvalidMessage(_))))
}

fn of_certificate(error: &CertificateError) -> String {
    let text = match error {
        CertificateError::UnknownIssuer => "its certificate is signed by an unknown authority",
        CertificateError::BadSignature => "its certificate is not signed by the authority that it names",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet; check the clock of this machine"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another host name"
        }
        CertificateError::Revoked => "its certificate is revoked",
        CertificateError::BadEncoding => "its certificate cannot be parsed",
        CertificateError::UnknownRevocationStatus => "it is unknown whether its certificate is revoked",
        // rustls has no name for this error of webpki.
        CertificateError::Other(other) if other.to_string() == "CaUsedAsEndEntity" => {
            "its certificate is a CA certificate (CA:TRUE); trust exactly this certificate (certificateData), or issue one \
             with CA:FALSE"
        }
        _ => "its certificate is not one for a server",
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn the_words_hold_no_names_of_rust() {
        let of = |error| problem(&io::Error::other(rustls::Error::InvalidCertificate(error))).unwrap();
        assert_eq!(of(CertificateError::UnknownIssuer), "its certificate is signed by an unknown authority");
        assert_eq!(of(CertificateError::Expired), "its certificate has expired");
        assert_eq!(problem(&io::Error::other("no")), None);
    }
}
