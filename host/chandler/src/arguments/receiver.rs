//! Where the controller receives webhooks.

use std::net::SocketAddr;

use chandler_controller::ServiceOptions;

use super::values;

/// Where the controller receives webhooks.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ReceiverArguments {
    /// Receive webhooks of registries and git servers over HTTPS on this address, such as 0.0.0.0:8444 [default: none are received]
    ///
    /// A Receiver decides which requests are accepted: deploy/receiver.yaml, docs/receivers.md.
    #[arg(long, value_name = "ADDRESS")]
    pub receiver_address: Option<SocketAddr>,

    /// Name of the Service in front of the address for webhooks, for the certificate
    #[arg(long, value_name = "NAME", default_value = "chandler-receiver", requires = "receiver_address", value_parser = values::dns_label)]
    pub receiver_service: String,

    /// Secret of type kubernetes.io/tls with the certificate for webhooks [default: the controller makes one]
    #[arg(long, value_name = "SECRET", requires = "receiver_address", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub receiver_tls_secret: Option<String>,
}

impl ReceiverArguments {
    /// Where webhooks are received, if they are wanted.
    pub fn options(&self) -> Option<ServiceOptions> {
        Some(ServiceOptions {
            address: self.receiver_address?,
            service: self.receiver_service.clone(),
            tls_secret: self.receiver_tls_secret.clone(),
        })
    }
}
