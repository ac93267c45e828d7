//! The messages of Kubernetes.

use std::{collections::HashMap, io::Read as _, sync::OnceLock};

/// Made by `examples/generate_messages`; the first line names the source.
static COMPRESSED: &[u8] = include_bytes!("generated/kubernetes-v1.36.txt.gz");

/// Where kinds are looked up that every group has, such as `DeleteOptions`.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The messages, decoded from the embedded table on first use.
#[derive(Debug, Default)]
pub struct Table {
    messages: Vec<Message>,
    names: HashMap<String, usize>,
    /// `apiVersion` to the package of its definitions.
    packages: HashMap<String, String>,
}

/// A message.
#[derive(Clone, Debug)]
pub struct Message {
    /// The name of its definition in OpenAPI documents, e.g. `io.k8s.api.apps.v1.Deployment`.
    pub name: String,
    /// How it looks in JSON.
    pub form: Form,
    /// By number.
    pub fields: Vec<Field>,
}

/// How a message looks in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An object with its fields.
    Object,
    /// The list that is its only field.
    List,
    /// JSON itself, as bytes.
    Json,
    /// `resource.Quantity`: its text.
    Quantity,
    /// `intstr.IntOrString`: a number or a text.
    IntegerOrText,
    /// `meta.v1.Time`: RFC 3339 with seconds.
    Time,
    /// `meta.v1.MicroTime`: RFC 3339 with microseconds.
    MicroTime,
    /// `JSONSchemaPropsOrArray`: its list, or else its schema.
    SchemaOrList,
    /// `JSONSchemaPropsOrBool`: its schema, or else its truth value.
    SchemaOrBoolean,
    /// `JSONSchemaPropsOrStringArray`: its list, or else its schema.
    SchemaOrTexts,
}

/// A field of a message.
#[derive(Clone, Debug)]
pub struct Field {
    /// Number on the wire.
    pub number: u32,
    /// Name in JSON.
    pub name: String,
    /// How often it may occur.
    pub cardinality: Cardinality,
    /// Its type; for a map, the type of its values.
    pub field_type: FieldType,
    /// When it is present in JSON.
    pub presence: Presence,
}

/// How often a field may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// Once; the last one counts.
    Single,
    /// Many times.
    List,
    /// Many times, each an entry with a key of text.
    Map,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// UTF-8.
    Text,
    /// Base64 in JSON.
    Bytes,
    /// A truth value.
    Boolean,
    /// 32 bits, signed.
    Integer32,
    /// 64 bits, signed.
    Integer64,
    /// A floating point number.
    Number,
    /// The message with this index; see [`Table::message`].
    Message(usize),
}

/// When a field is present in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// If it is on the wire: a pointer, list, map or struct in Go.
    AsSent,
    /// Unless it is zero: a plain value with `omitempty`.
    NonZero,
    /// Always: a plain value without `omitempty`.
    Always,
    /// Its own fields are inlined into the parent object: an embedded struct.
    Inline,
}

impl Table {
    /// The table.
    ///
    /// The bytes are part of the program and a test decodes them, so that a table that does not decode is never shipped; should
    /// it happen nonetheless, the table is empty and every kind is unknown.
    pub fn get() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| Self::embedded().unwrap_or_default())
    }

    fn embedded() -> Result<Self, String> {
        let mut text = String::new();
        flate2::read::GzDecoder::new(COMPRESSED).read_to_string(&mut text).map_err(|error| error.to_string())?;
        Self::parse(&text)
    }

    /// The message of a kind; kinds of `meta/v1`, such as `DeleteOptions`, are found under every version.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<usize> {
        let of = |package: &str| self.names.get(&format!("{package}.{kind}")).copied();
        self.packages.get(api_version).and_then(|package| of(package)).or_else(|| of(META))
    }

    /// The message with this index.
    pub fn message(&self, index: usize) -> Option<&Message> {
        self.messages.get(index)
    }

    /// Every message, ordered by name.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    fn parse(text: &str) -> Result<Self, String> {
        let lines = || text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
        let names: HashMap<String, usize> = lines()
            .filter_map(|(_, line)| line.strip_prefix("message "))
            .enumerate()
            .map(|(index, name)| (name.to_owned(), index))
            .collect();
        let mut table = Self { names, ..Self::default() };
        for (number, line) in lines() {
            table.add(line).ok_or_else(|| format!("line {}: not understood: {line}", number + 1))?;
        }
        for message in &mut table.messages {
            message.fields.sort_by_key(|field| field.number);
            message.form = form(message);
        }
        Ok(table)
    }

    fn add(&mut self, line: &str) -> Option<()> {
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["package", api_version, package] => {
                self.packages.insert((*api_version).to_owned(), (*package).to_owned());
            }
            ["message", name] => {
                let name = (*name).to_owned();
                self.messages.push(Message { name, form: Form::Object, fields: Vec::new() });
            }
            [number, name, cardinality, field_type, presence] => {
                let cardinality = match *cardinality {
                    "single" => Cardinality::Single,
                    "list" => Cardinality::List,
                    "map" => Cardinality::Map,
                    _ => return None,
                };
                let field_type = match *field_type {
                    "string" => FieldType::Text,
                    "bytes" => FieldType::Bytes,
                    "bool" => FieldType::Boolean,
                    "int32" => FieldType::Integer32,
                    "int64" => FieldType::Integer64,
                    "double" => FieldType::Number,
                    message => FieldType::Message(*self.names.get(message)?),
                };
                let presence = match *presence {
                    "plain" => Presence::AsSent,
                    "nonzero" => Presence::NonZero,
                    "always" => Presence::Always,
                    "inline" => Presence::Inline,
                    _ => return None,
                };
                let (number, name) = (number.parse().ok()?, (*name).to_owned());
                self.messages.last_mut()?.fields.push(Field { number, name, cardinality, field_type, presence });
            }
            _ => return None,
        }
        Some(())
    }
}

fn form(message: &Message) -> Form {
    match (message.name.rsplit('.').next().unwrap_or_default(), message.fields.as_slice()) {
        ("Quantity", _) => Form::Quantity,
        ("IntOrString", _) => Form::IntegerOrText,
        ("Time", _) => Form::Time,
        ("MicroTime", _) => Form::MicroTime,
        ("JSONSchemaPropsOrArray", _) => Form::SchemaOrList,
        ("JSONSchemaPropsOrBool", _) => Form::SchemaOrBoolean,
        ("JSONSchemaPropsOrStringArray", _) => Form::SchemaOrTexts,
        (_, [field]) if field.name == "=" => Form::List,
        (_, [field]) if field.name == "-" && field.field_type == FieldType::Bytes => Form::Json,
        _ => Form::Object,
    }
}
