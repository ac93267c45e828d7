//! From a [`Config`] to a client.

use chandler_proxies::Proxy;
use http::{
    Request, Response,
    header::{HeaderValue, USER_AGENT},
    uri::Scheme,
};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::{client::legacy, rt::TokioExecutor};
use kube::{
    Client, Config, Error,
    client::{Body, ClientBuilder, ConfigExt as _, DynBody, retry::RetryPolicy},
};
use tower::{BoxError, ServiceBuilder, ServiceExt as _, retry::RetryLayer, util::BoxService};

use crate::{
    connection::{Endpoint, KeepAlive},
    connector::Connector,
    repeated::NoteAnswers,
    transport::{Transport, TransportError},
};

/// What the API server and its audit log call this client, unless the configuration has a `User-Agent` of its own.
const AGENT: &str = concat!("chandler/", env!("CARGO_PKG_VERSION"));

/// The layers of a client, as in kube's [`ClientBuilder`].
pub type Stack = BoxService<Request<Body>, Response<Box<DynBody>>, BoxError>;

/// A client with this configuration.
pub fn client(config: Config) -> Result<Client, Error> {
    Ok(builder(config)?.build())
}

/// A client with this configuration, to which layers can be added.
///
/// `Config::proxy_url` is used for any server: [`configuration`](crate::configuration) decides whether there is one. `Config::read_timeout` limits the wait for the head of a response, and over
/// HTTP/2 not the time between two parts of a body: an idle watch is alive while the server answers pings.
pub fn builder(config: Config) -> Result<ClientBuilder<Stack>, Error> {
    with_keep_alive(config, KeepAlive::default())
}

/// [`builder`] with other times than the usual ones.
pub fn with_keep_alive(config: Config, keep_alive: KeepAlive) -> Result<ClientBuilder<Stack>, Error> {
    let connector = connector(&config)?;
    stack(config, keep_alive, connector)
}

/// A client that connects with this connector, or through the proxy of the configuration.
pub(crate) fn guarded(config: Config, guarded: Option<Connector>) -> Result<Client, Error> {
    let connector = match guarded {
        Some(guarded) => guarded,
        None => connector(&config)?,
    };
    Ok(stack(config, KeepAlive::default(), connector)?.build())
}

fn stack(mut config: Config, keep_alive: KeepAlive, connector: Connector) -> Result<ClientBuilder<Stack>, Error> {
    if !config.headers.iter().any(|(name, _)| name == USER_AGENT) {
        config.headers.push((USER_AGENT, HeaderValue::from_static(AGENT)));
    }
    let transport = transport(&config, keep_alive, connector)?;
    let namespace = config.default_namespace.clone();
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.default_retry.then(|| RetryLayer::new(RetryPolicy::server_retry())))
        .layer(NoteAnswers)
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(|error: TransportError| match error {
            // The client of kube recognizes this type.
            TransportError::Send(error) => BoxError::from(error),
            error => error.into(),
        })
        .service(transport);
    let service = service.map_response(|response: Response<_>| response.map(|body| Box::new(body) as Box<DynBody>));
    Ok(ClientBuilder::new(service.boxed(), namespace))
}

fn transport(config: &Config, keep_alive: KeepAlive, connector: Connector) -> Result<Transport, Error> {
    let mut http1 = TimeoutConnector::new(config.rustls_https_connector_with_connector(connector.clone())?);
    http1.set_connect_timeout(config.connect_timeout);
    http1.set_read_timeout(config.read_timeout);
    http1.set_write_timeout(config.write_timeout);
    http1.set_reset_reader_on_write(config.reset_reader_on_write);
    let http1 = legacy::Client::builder(TokioExecutor::new()).build(http1);
    if config.cluster_url.scheme() != Some(&Scheme::HTTPS) {
        return Ok(Transport::http1(http1));
    }
    let endpoint = Endpoint {
        connector: any_version(config, connector)?,
        server: config.cluster_url.clone(),
        timeout: config.connect_timeout,
        keep_alive,
    };
    Ok(Transport::negotiated(endpoint, http1, config.read_timeout))
}

/// The connector that offers HTTP/2 and HTTP/1.1.
fn any_version(config: &Config, connector: Connector) -> Result<HttpsConnector<Connector>, Error> {
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    // kube reports an invalid name for the connector of HTTP/1.1.
    if let Some(Ok(name)) = config.tls_server_name.clone().map(TryInto::try_into) {
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(builder.enable_all_versions().wrap_connector(connector))
}

fn connector(config: &Config) -> Result<Connector, Error> {
    let Some(url) = &config.proxy_url else { return Ok(Connector::direct()) };
    let proxy =
        Proxy::parse(&url.to_string(), "the proxy of the cluster").map_err(|error| Error::Service(error.into()))?;
    Connector::through(proxy).map_err(|error| Error::Service(error.into()))
}
