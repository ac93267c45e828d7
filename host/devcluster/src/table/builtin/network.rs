//! Services, EndpointSlices, Ingresses and their relatives.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    metadata,
    table::{
        cell::{AGE, NAME, NONE, UNKNOWN, UNSET, first_of, integer, labels, list, plain, selector, text},
        column::{Column, Row},
    },
};

/// Services.
pub(super) const SERVICE: &[Column] = &[
    NAME,
    Column::text("Type", |row| row.text("/spec/type").into()),
    Column::text("Cluster-IP", |row| row.text_or("/spec/clusterIPs/0", row.text_or("/spec/clusterIP", NONE)).into()),
    Column::text("External-IP", external_addresses),
    Column::text("Port(s)", ports),
    AGE,
    Column::text("Selector", |row| labels(row.object.pointer("/spec/selector")).into()).wide(),
];

fn external_addresses(row: Row<'_>) -> Value {
    let stated = row.joined("/spec/externalIPs");
    let given = load_balancer(row);
    let both = [given.as_str(), stated.as_str()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
    match row.text("/spec/type") {
        "ClusterIP" | "NodePort" if stated.is_empty() => NONE.into(),
        "ClusterIP" | "NodePort" => stated.into(),
        "LoadBalancer" if both.is_empty() => "<pending>".into(),
        "LoadBalancer" => both.join(",").into(),
        "ExternalName" => row.text("/spec/externalName").into(),
        _ => UNKNOWN.into(),
    }
}

/// Addresses and host names that a load balancer was given, each once and in order.
fn load_balancer(row: Row<'_>) -> String {
    let ingress = row.list("/status/loadBalancer/ingress");
    let names = ingress.map(|ingress| match text(ingress, "/ip") {
        "" => text(ingress, "/hostname"),
        address => address,
    });
    names.filter(|name| !name.is_empty()).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(",")
}

fn ports(row: Row<'_>) -> Value {
    let shown = row.list("/spec/ports").map(|port| {
        let (number, protocol) = (integer(port, "/port"), text(port, "/protocol"));
        match integer(port, "/nodePort") {
            0 => format!("{number}/{protocol}"),
            node_port => format!("{number}:{node_port}/{protocol}"),
        }
    });
    let shown = shown.collect::<Vec<_>>().join(",");
    if shown.is_empty() { NONE.into() } else { shown.into() }
}

/// Endpoints.
pub(super) const ENDPOINTS: &[Column] = &[NAME, Column::text("Endpoints", endpoints), AGE];

fn endpoints(row: Row<'_>) -> Value {
    let mut all = Vec::new();
    for subset in row.list("/subsets") {
        let addresses = || list(subset, "/addresses").map(|address| text(address, "/ip"));
        if list(subset, "/ports").len() == 0 {
            all.extend(addresses().map(str::to_owned));
        }
        for port in list(subset, "/ports") {
            let port = integer(port, "/port");
            all.extend(addresses().map(|address| {
                if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
            }));
        }
    }
    let empty = if row.count("/subsets") == 0 { NONE } else { "" };
    first_of(all, 3, ",", empty).into()
}

/// EndpointSlices.
pub(super) const ENDPOINT_SLICE: &[Column] = &[
    NAME,
    Column::text("AddressType", |row| row.text("/addressType").into()),
    Column::text("Ports", |row| {
        let port = |port: &Value| plain(port.get("port"), &plain(port.get("name"), "*"));
        first_of(row.list("/ports").map(port).collect(), 3, ",", UNSET).into()
    }),
    Column::text("Endpoints", |row| {
        let addresses = row.list("/endpoints").flat_map(|endpoint| list(endpoint, "/addresses"));
        first_of(addresses.filter_map(Value::as_str).map(str::to_owned).collect(), 3, ",", UNSET).into()
    }),
    AGE,
];

/// Ingresses.
pub(super) const INGRESS: &[Column] = &[
    NAME,
    Column::text("Class", |row| plain(row.object.pointer("/spec/ingressClassName"), NONE).into()),
    Column::text("Hosts", hosts),
    Column::text("Address", |row| load_balancer(row).into()),
    Column::text("Ports", |row| if row.count("/spec/tls") > 0 { "80, 443".into() } else { "80".into() }),
    AGE,
];

/// The first three hosts; rules without one take part in the count of what is omitted.
fn hosts(row: Row<'_>) -> Value {
    const MOST: usize = 3;
    let mut shown: Vec<&str> = Vec::new();
    let mut more = false;
    for rule in row.list("/spec/rules") {
        more = more || shown.len() == MOST;
        let host = text(rule, "/host");
        if !more && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.is_empty(), more) {
        (true, _) => "*".into(),
        (false, false) => shown.join(",").into(),
        (false, true) => format!("{} + {} more...", shown.join(","), row.count("/spec/rules") - MOST).into(),
    }
}

/// IngressClasses.
pub(super) const INGRESS_CLASS: &[Column] = &[
    Column::text("Name", |row| {
        let name = metadata::name(row.object);
        let default = metadata::annotation(row.object, "ingressclass.kubernetes.io/is-default-class") == Some("true");
        if default { format!("{name} (default)").into() } else { name.into() }
    })
    .names(),
    Column::text("Controller", |row| row.text("/spec/controller").into()),
    Column::text("Parameters", |row| {
        let Some(parameters) = row.object.pointer("/spec/parameters") else { return NONE.into() };
        let group = match parameters.get("apiGroup").and_then(Value::as_str) {
            Some(group) => format!(".{group}"),
            None => String::new(),
        };
        format!("{}{group}/{}", text(parameters, "/kind"), text(parameters, "/name")).into()
    }),
    AGE,
];

/// NetworkPolicies.
pub(super) const NETWORK_POLICY: &[Column] =
    &[NAME, Column::text("Pod-Selector", |row| selector(row.object.pointer("/spec/podSelector")).into()), AGE];

/// ServiceCIDRs.
pub(super) const SERVICE_CIDR: &[Column] = &[NAME, Column::text("CIDRs", |row| row.joined("/spec/cidrs").into()), AGE];

/// IPAddresses. kube-apiserver sends an age too, for which it announces no column.
pub(super) const IP_ADDRESS: &[Column] = &[
    NAME,
    Column::text("ParentRef", |row| {
        let Some(parent) = row.object.pointer("/spec/parentRef") else { return NONE.into() };
        let mut shown = text(parent, "/resource").to_lowercase();
        for (separator, field) in [(".", "/group"), ("/", "/namespace"), ("/", "/name")] {
            let part = text(parent, field);
            if !part.is_empty() {
                shown.push_str(separator);
                shown.push_str(part);
            }
        }
        shown.into()
    }),
];
