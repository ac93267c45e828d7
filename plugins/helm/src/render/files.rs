//! `.Files`.

use std::{any::Any, collections::BTreeMap, rc::Rc};

use base64::Engine as _;
use chandler_go_template::{Element, FunctionError, List, Map, Object, Str, Type, Value};

use super::{base_name, glob::Glob};

/// The files of a chart, by their paths.
#[derive(Clone, Debug)]
pub struct Files(Rc<BTreeMap<String, Str>>);

impl Files {
    /// Files with these paths and contents.
    pub fn new(files: impl IntoIterator<Item = (String, Str)>) -> Self {
        Self(Rc::new(files.into_iter().collect()))
    }

    fn by_base_name(&self, text: impl Fn(&Str) -> Value) -> Value {
        Value::Map(self.0.iter().map(|(path, data)| (base_name(path), text(data))).collect::<Map>())
    }

    fn yaml(value: &Value) -> Value {
        // As Helm does, an error gives nothing. Only one line feed goes: others belong to a last file that ends in empty lines.
        let text = crate::yaml::write(value).unwrap_or_default();
        Value::from(text.strip_suffix('\n').unwrap_or(&text))
    }
}

impl Object for Files {
    fn type_name(&self) -> &'static str {
        "engine.files"
    }

    fn kind(&self) -> &'static str {
        "map"
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.0.get(name).map(|data| Value::List(List::bytes(data.as_bytes())))
    }

    fn parameters(&self, name: &str) -> &'static [Type] {
        match name {
            "Get" | "GetBytes" | "Glob" | "Lines" => &[Type::String],
            _ => &[],
        }
    }

    fn has_method(&self, name: &str) -> bool {
        matches!(name, "Get" | "GetBytes" | "Glob" | "Lines" | "AsConfig" | "AsSecrets")
    }

    fn method(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, FunctionError>> {
        let argument = arguments.first().and_then(Value::as_string).cloned().unwrap_or_default();
        let file = self.0.get(&*argument.text());
        Some(Ok(match name {
            "Get" => Value::String(file.cloned().unwrap_or_default()),
            "GetBytes" => Value::List(List::bytes(file.map(Str::as_bytes).unwrap_or_default())),
            "Glob" => {
                let glob = Glob::new(&argument.text());
                let found = self.0.iter().filter(|(path, _)| glob.matches(path));
                Value::Object(Rc::new(Self::new(found.map(|(path, data)| (path.clone(), data.clone())))))
            }
            "Lines" => {
                let text = file.map(Str::text).unwrap_or_default();
                if text.is_empty() {
                    Value::strings::<Str>([])
                } else {
                    Value::strings(text.strip_suffix('\n').unwrap_or(&text).split('\n'))
                }
            }
            "AsConfig" => Self::yaml(&self.by_base_name(|data| Value::String(data.clone()))),
            "AsSecrets" => {
                Self::yaml(&self.by_base_name(|data| {
                    Value::from(base64::engine::general_purpose::STANDARD.encode(data.as_bytes()))
                }))
            }
            _ => return None,
        }))
    }

    fn data(&self) -> Value {
        let map = Map::of(Element::Bytes);
        for (path, data) in self.0.iter() {
            map.insert(path.as_str(), Value::List(List::bytes(data.as_bytes())));
        }
        Value::Map(map)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
