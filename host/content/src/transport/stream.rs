//! Connections without HTTP.

use std::net::SocketAddr;

use reqwest::Url;
use tokio::{net::TcpStream, time::timeout};

use super::{
    ConnectionError, ServerFailure,
    addresses::{Guard, NoAddress},
    connection::{no_descriptor, without_code},
};
use crate::ImageOptions;

/// Connects to a port of the host of a URL, if its address is allowed. No proxy is used. Messages call the server `name`.
pub(crate) async fn connect(
    url: &Url,
    port: u16,
    name: &str,
    options: &ImageOptions,
) -> Result<TcpStream, ConnectionError> {
    let addresses = Guard::new(url).addresses().await.map_err(|error| match error {
        NoAddress::Forbidden(error) => {
            ConnectionError::new(ServerFailure::Address, format!("{name} is not connected to: {error}"))
        }
        NoAddress::NotResolved(error) => {
            if let Some(error) = no_descriptor(name, &error) {
                return error;
            }
            let message = format!("the host name of {name} is not in DNS: {}", without_code(&error.to_string()));
            ConnectionError::new(ServerFailure::NameNotResolved, message)
        }
    })?;
    // As hyper does, so that one address that does not answer leaves time for the others.
    let each = options.connect_timeout / u32::try_from(addresses.len().max(1)).unwrap_or(1);
    let mut cause = "it has no address".to_owned();
    for address in addresses {
        match timeout(each, TcpStream::connect(SocketAddr::new(address, port))).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) if let Some(error) = no_descriptor(name, &error) => return Err(error),
            Ok(Err(error)) => without_code(&error.to_string()).clone_into(&mut cause),
            Err(_) => "it did not answer in time".clone_into(&mut cause),
        }
    }
    Err(ConnectionError::new(ServerFailure::Network, format!("{name} cannot be reached: {cause}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_address_of_a_machine_of_a_cloud_is_not_connected_to() {
        for url in ["https://169.254.169.254", "https://[fe80::1]", "https://0xa9fea9fe"] {
            let error = connect(&Url::parse(url).unwrap(), 22, "x", &ImageOptions::default()).await.err().unwrap();
            assert_eq!(error.failure, ServerFailure::Address, "{url}");
            assert!(error.message.starts_with("x is not connected to: its address is one that"), "{}", error.message);
        }
    }
}
