//! What a built-in server offers: its tools, and how a call of one ends. Knows no JSON-RPC.

use super::stop::Stopped;
use crate::json::raw;
use crate::wire::id::Id;

/// One tool as `tools/list` shows it.
#[derive(Debug)]
pub struct Tool {
    pub name: &'static str,
    pub description: &'static str,
    /// JSON.
    pub input_schema: &'static str,
    /// JSON.
    pub annotations: &'static str,
}

/// How a call ended that was carried out.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A JSON object, sent as structured content and as text.
    Json(String),
    /// Text alone.
    Text(String),
    /// `isError` with this text: the work failed or the arguments were refused.
    Failed(String),
}

/// A set of tools behind one server name.
pub trait ToolSet: Send + Sync + 'static {
    /// `serverInfo.name`.
    fn name(&self) -> &'static str;
    fn tools(&self) -> &'static [Tool];
    /// Carries out `tool`, one of [`ToolSet::tools`]; `arguments` is a JSON object. Blocks.
    ///
    /// # Errors
    /// When the process ends before the work does: then there is no answer.
    fn call(&self, id: &Id, tool: &str, arguments: &str) -> Result<Outcome, Stopped>;
}

/// The string argument `key`.
///
/// # Errors
/// A sentence when it is missing or no string. A lone surrogate is refused: it has no UTF-8 form, and
/// replaced by U+FFFD two different request_ids could become one.
pub fn string(arguments: &str, key: &str) -> Result<String, String> {
    let value = raw::get(arguments, key).ok_or_else(|| format!("{key} is required"))?;
    serde_json::from_str(value).map_err(|_| format!("{key} must be a string"))
}

#[cfg(test)]
mod tests {
    use super::string;

    #[test]
    fn only_strings_with_a_utf8_form_are_strings() {
        let args = r#"{"a": "\u969c \ud83c\udf89" ,"n":1,"z":null,"lone":"\ud800"}"#;
        assert_eq!(string(args, "a").as_deref(), Ok("障 🎉"));
        assert_eq!(string(args, "b").as_deref(), Err(&"b is required".to_string()));
        for key in ["n", "z", "lone"] {
            assert_eq!(string(args, key), Err(format!("{key} must be a string")));
        }
    }
}
