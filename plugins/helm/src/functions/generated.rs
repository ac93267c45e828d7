//! What a renderer cannot know: random values, certificates, the time, names in the network.
//!
//! Each render would give other values, so passwords would change with each upgrade. A provisioner gives placeholders instead, and the host
//! generates the values ([`crate::placeholders`]). Functions for which no value can be given are refused by name.

use std::{any::Any, fmt, rc::Rc};

use chandler_go_template::{Call, Function, FunctionError, Map, Object, Returned, Type, Value};

use super::Result;

/// Gives the results of these functions.
pub trait Entropy {
    /// The result of a function: of `randAlphaNum` a string, of `genCA` a [`Certificate`], of `now` a [`super::time::Time`]. `None` refuses it.
    fn generate(&self, function: &str, arguments: &[Value]) -> Option<std::result::Result<Value, String>>;

    /// Whether [`Entropy::returned`] must see the calls of all functions at this time.
    fn is_watching(&self) -> bool {
        false
    }

    /// Looks at a call that succeeded, and gives the result that the template gets.
    ///
    /// # Errors
    /// The call fails with this error.
    fn returned(&self, returned: Returned<'_>) -> Result {
        Ok(returned.result)
    }
}

/// What functions need of the program around the templates: the extension of their [`chandler_go_template::Machine`].
#[derive(Default)]
pub struct Environment {
    /// Where generated values come from, if there are any.
    pub entropy: Option<Rc<dyn Entropy>>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Environment").field("entropy", &self.entropy.is_some()).finish()
    }
}

/// A certificate and its key, in PEM: what `genCA` gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

impl Object for Certificate {
    fn type_name(&self) -> &'static str {
        "sprig.certificate"
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Cert" => Some(Value::from(self.certificate.as_str())),
            "Key" => Some(Value::from(self.key.as_str())),
            _ => None,
        }
    }

    fn data(&self) -> Value {
        Value::Map([("Cert", self.certificate.as_str()), ("Key", self.key.as_str())].into_iter().collect::<Map>())
    }

    fn fields(&self) -> Option<Vec<(&'static str, Value)>> {
        Some(vec![("Cert", Value::from(self.certificate.as_str())), ("Key", Value::from(self.key.as_str()))])
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The result of a function that only the host can give.
pub(super) fn generate(call: &mut Call<'_>, function: &str, arguments: &[Value]) -> Result {
    let entropy = call.extension::<Environment>().and_then(|environment| environment.entropy.clone());
    match entropy.and_then(|entropy| entropy.generate(function, arguments)) {
        Some(Ok(value)) => {
            call.charge(64)?;
            Ok(value)
        }
        Some(Err(message)) => super::error(message),
        None => Err(FunctionError::Refused {
            function: function.to_owned(),
            reason: "its result differs each time, and a render must give the same objects again; set the value that it is for".to_owned(),
        }),
    }
}

macro_rules! generated {
    ($name:ident, $($function:literal $parameters:expr, $rest:expr;)*) => {
        match $name {
            $($function => Function { parameters: $parameters, rest: $rest, body: |call, a| generate(call, $function, a) },)*
            _ => return None,
        }
    };
}

pub(super) fn find(name: &str) -> Option<Function> {
    use Type::{Any, Int, List, String};
    const CERTIFICATE: Type = Type::Object("sprig.certificate");
    Some(generated! {
        name,
        "randAlphaNum" &[Int], None;
        "randAlpha" &[Int], None;
        "randAscii" &[Int], None;
        "randNumeric" &[Int], None;
        "randBytes" &[Int], None;
        "randInt" &[Int, Int], None;
        "shuffle" &[String], None;
        "uuidv4" &[], None;
        "bcrypt" &[String], None;
        "htpasswd" &[String, String], Some(String);
        "derivePassword" &[Any, String, String, String, String], None;
        "genPrivateKey" &[String], None;
        "buildCustomCert" &[String, String], None;
        "genCA" &[String, Int], None;
        "genCAWithKey" &[String, Int, String], None;
        "genSelfSignedCert" &[String, List, List, Int], None;
        "genSelfSignedCertWithKey" &[String, List, List, Int, String], None;
        "genSignedCert" &[String, List, List, Int, CERTIFICATE], None;
        "genSignedCertWithKey" &[String, List, List, Int, CERTIFICATE, String], None;
        "encryptAES" &[String, String], None;
        "decryptAES" &[String, String], None;
        "getHostByName" &[String], None;
    })
}
