//! Runs the health checks of docs/gitops.md with Lua 5.1, as Argo CD does. `statuses.json` has the statuses; the end-to-end test
//! `gitops.rs` checks that the controller writes them, and what kstatus makes of them.

#[cfg(test)]
mod tests {
    use mlua::{Lua, LuaOptions, StdLib, Table};
    use serde_json::{Value, json};

    fn examples() -> Vec<Value> {
        let page = include_str!("../../../docs/gitops.md");
        // A test handles a block by its language.
        let blocks = page.split("```yaml").skip(1).filter_map(|rest| rest.split_once('\n')?.1.split_once("```"));
        blocks.map(|(block, _)| serde_saphyr::from_str(block).unwrap()).collect()
    }

    /// The status and the message that the health check of the page has for an object. Argo CD runs it with the base and table
    /// libraries alone.
    fn health(resource: &str, object: &Value) -> (String, String) {
        let examples = examples();
        let checks = examples.iter().find(|example| example["metadata"]["name"] == "argocd-cm").unwrap();
        let check = checks["data"][format!("resource.customizations.health.{resource}")].as_str().unwrap();
        let lua = Lua::new_with(StdLib::TABLE, LuaOptions::default()).unwrap();
        lua.globals().set("obj", lua_value(&lua, object)).unwrap();
        let health: Table = lua.load(check).eval().unwrap();
        (health.get("status").unwrap(), health.get("message").unwrap())
    }

    /// A JSON value as Argo CD passes it: null is absent.
    fn lua_value(lua: &Lua, value: &Value) -> mlua::Value {
        let table = |members: Vec<(mlua::Value, mlua::Value)>| {
            let members = members.into_iter().filter(|(_, value)| !value.is_nil());
            mlua::Value::Table(lua.create_table_from(members).unwrap())
        };
        let string = |text: &str| mlua::Value::String(lua.create_string(text).unwrap());
        match value {
            Value::Null => mlua::Value::Nil,
            Value::Bool(value) => mlua::Value::Boolean(*value),
            Value::Number(number) => mlua::Value::Number(number.as_f64().unwrap()),
            Value::String(text) => string(text),
            Value::Array(items) => table(
                (1..).zip(items).map(|(index, item)| (mlua::Value::Integer(index), lua_value(lua, item))).collect(),
            ),
            Value::Object(members) => {
                table(members.iter().map(|(name, value)| (string(name), lua_value(lua, value))).collect())
            }
        }
    }

    /// An object with these conditions, as `Type=Status/Reason`.
    fn object(conditions: &[&str], observed: i64) -> Value {
        let conditions = conditions.iter().map(|condition| {
            let (kind, rest) = condition.split_once('=').unwrap();
            let (status, reason) = rest.split_once('/').unwrap();
            json!({"type": kind, "status": status, "reason": reason, "message": format!("about {kind}")})
        });
        let conditions: Vec<Value> = conditions.collect();
        json!({"metadata": {"generation": 2}, "status": {"observedGeneration": observed, "conditions": conditions}})
    }

    #[test]
    fn every_status_of_a_bundle_deployment_has_the_health_of_the_page() {
        let cases: Vec<Value> = serde_json::from_str(include_str!("../statuses.json")).unwrap();
        assert!(cases.len() > 5);
        for case in cases {
            let name = case["case"].as_str().unwrap();
            let conditions = case["conditions"].as_array();
            let conditions: Option<Vec<&str>> = conditions.map(|all| all.iter().filter_map(Value::as_str).collect());
            let object = |observed| match &conditions {
                Some(conditions) => object(conditions, observed),
                None => json!({"metadata": {"generation": 2}, "status": case["status"]}),
            };
            let (status, message) = health("core.rukpak.io_BundleDeployment", &object(2));
            assert_eq!(case["argocd"], status.as_str(), "{name}");
            assert!(!message.is_empty(), "{name}");
            let stale = health("core.rukpak.io_BundleDeployment", &object(1)).0;
            assert_eq!(stale, "Progressing", "{name}: the controller has not observed the spec");
        }
        let without_status = json!({"metadata": {"generation": 1}});
        assert_eq!(health("core.rukpak.io_BundleDeployment", &without_status).0, "Progressing");
    }

    #[test]
    fn a_stalled_status_is_explained() {
        let stalled = object(&["Progressing=True/UnsafeCRDUpgrade", "Stalled=True/UnsafeCRDUpgrade"], 2);
        let (_, message) = health("core.rukpak.io_BundleDeployment", &stalled);
        assert_eq!(message, "UnsafeCRDUpgrade: about Stalled");
    }

    #[test]
    fn a_provisioner_class_is_healthy_stalled_or_at_work() {
        for (condition, observed, expected) in [
            ("Ready=True/ProvisionerReady", 2, "Healthy"),
            ("Ready=True/ProvisionerReady", 1, "Progressing"),
            ("Ready=False/ImageNotResolved", 2, "Progressing"),
            ("Stalled=True/MissingImports", 2, "Degraded"),
        ] {
            let status = health("chandler.dev_ProvisionerClass", &object(&[condition], observed)).0;
            assert_eq!(status, expected, "{condition}");
        }
    }
}
