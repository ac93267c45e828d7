//! `operatorConditionName` and `proxy`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

use serde_json::{Value, json};

use crate::support::small::{Small, one};

fn environment(small: &Small, config: &Value) -> Vec<Value> {
    let release = small.render(config).unwrap();
    let pod = &one(&release, "Deployment")["spec"]["template"]["spec"];
    pod["containers"].as_array().unwrap().iter().map(|container| container["env"].clone()).collect()
}

#[test]
fn variables_are_set_in_every_container_and_deployment_config_wins() {
    let mut small = Small::new(&["AllNamespaces"]);
    let pod = &mut small.csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"];
    pod["containers"][0]["env"] = json!([{"name": "HTTP_PROXY", "value": "http://old"}, {"name": "A", "value": "a"}]);
    pod["containers"].as_array_mut().unwrap().push(json!({"name": "side"}));
    pod["initContainers"] = json!([{"name": "init"}]);
    let config = json!({
        "operatorConditionName": "op.v1",
        "proxy": {"httpProxy": "http://proxy:3128", "noProxy": ".cluster.local,10.0.0.0/8", "httpsProxy": null},
        "deploymentConfig": {"env": [{"name": "NO_PROXY", "value": "*"}]},
    });
    assert_eq!(
        environment(&small, &config),
        [
            json!([
                {"name": "HTTP_PROXY", "value": "http://proxy:3128"},
                {"name": "A", "value": "a"},
                {"name": "OPERATOR_CONDITION_NAME", "value": "op.v1"},
                {"name": "NO_PROXY", "value": "*"},
            ]),
            json!([
                {"name": "OPERATOR_CONDITION_NAME", "value": "op.v1"},
                {"name": "HTTP_PROXY", "value": "http://proxy:3128"},
                {"name": "NO_PROXY", "value": "*"},
            ]),
        ]
    );
    let release = small.render(&config).unwrap();
    let pod = &one(&release, "Deployment")["spec"]["template"]["spec"];
    assert_eq!(pod["initContainers"][0].get("env"), None);
    // By default nothing is set.
    assert_eq!(environment(&Small::new(&["AllNamespaces"]), &json!({"proxy": null})), [Value::Null]);
}

#[test]
fn invalid_variables_are_refused() {
    let config = json!({
        "operatorConditionName": "Not a name",
        "proxy": {"httpProxy": "", "httpsProxy": 7, "ftpProxy": "x"},
    });
    insta::assert_snapshot!(Small::new(&["AllNamespaces"]).refusal(&config), @r#"
    config
    InvalidValue config (/operatorConditionName): invalid value for field "operatorConditionName": not a name
      name an OperatorCondition, such as harbour-operator.v0.1.0
    UnknownField config (/proxy/ftpProxy): unknown field "ftpProxy"
      the members of proxy are httpProxy, httpsProxy and noProxy
    InvalidValue config (/proxy/httpProxy): field "proxy.httpProxy" must have minimum length of 1 (len=0)
      omit the field to keep the variable
    InvalidType config (/proxy/httpsProxy): invalid type for field "proxy.httpsProxy": got integer, want string
      put the value into quotes
    "#);
    let config = json!({"operatorConditionName": 7, "proxy": "http://user:secret@proxy"});
    let refusal = Small::new(&["AllNamespaces"]).refusal(&config);
    insta::assert_snapshot!(refusal, @r#"
    config
    InvalidType config (/operatorConditionName): invalid type for field "operatorConditionName": got integer, want string
      put the value into quotes
    InvalidType config (/proxy): invalid type for field "proxy": got string, want object
      its members are httpProxy, httpsProxy and noProxy
    "#);
    assert!(!refusal.contains("secret"));
}
