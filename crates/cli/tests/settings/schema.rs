//! Keys of a scenario's file, from the schema that the types make.

use std::collections::BTreeSet;

use serde_json::Value;

/// The path of every key, such as `transport.rto_min`. Tables of several kinds have theirs in brackets (`workload[mix].duration`), names
/// that people choose are `*`, members of lists `[]`.
pub(crate) fn keys() -> BTreeSet<String> {
    let schema = weft_experiment::plan::scenario_schema().to_value();
    let mut walk = Walk { schema: &schema, keys: BTreeSet::new() };
    walk.table(&schema, "");
    walk.keys
}

struct Walk<'a> {
    schema: &'a Value,
    keys: BTreeSet<String>,
}

impl<'a> Walk<'a> {
    /// What a reference stands for.
    fn resolved(&self, node: &'a Value) -> &'a Value {
        match node.get("$ref").and_then(Value::as_str) {
            Some(reference) => {
                let pointer = reference.trim_start_matches('#');
                self.schema.pointer(pointer).unwrap_or_else(|| panic!("{reference} is nowhere"))
            }
            None => node,
        }
    }

    /// Everything below a table of this path.
    fn table(&mut self, node: &'a Value, path: &str) {
        let kind = node.pointer("/properties/kind/const").and_then(Value::as_str);
        let path = kind.map_or_else(|| path.to_owned(), |kind| format!("{path}[{kind}]"));
        if node.get("$ref").is_some() {
            self.members(self.resolved(node), &path);
        }
        self.members(node, &path);
    }

    fn members(&mut self, node: &'a Value, path: &str) {
        for (name, member) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let is_tag = member.get("const").is_some();
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            if !is_tag {
                self.value(member, &path);
            }
        }
        if let Some(member) = node.get("additionalProperties").filter(|member| member.is_object()) {
            self.value(member, &format!("{path}.*"));
        }
        choices(node).into_iter().for_each(|one| self.table(one, path));
    }

    /// What may stand behind a key; the key itself is one unless it is a table of one kind.
    fn value(&mut self, node: &'a Value, path: &str) {
        let resolved = self.resolved(node);
        let choices = choices(resolved);
        if is_table(resolved) && choices.is_empty() {
            return self.table(resolved, path);
        }
        if let Some(items) = resolved.get("items").map(|items| self.resolved(items)).filter(|items| is_table(items)) {
            return self.table(items, &format!("{path}[]"));
        }
        // A table that may be left out is one kind and nothing; the tag of a table of several kinds is no key of its own.
        let is_null = |one: &Value| one.get("type").and_then(Value::as_str) == Some("null");
        let is_tagged = |one: &Value| one.pointer("/properties/kind/const").is_some();
        let are_tables = choices.iter().all(|one| is_null(one) || is_tagged(one) || is_table(self.resolved(one)));
        let may_be_left_out = choices.iter().any(|one| is_null(one)) || choices.iter().all(|one| is_tagged(one));
        if choices.is_empty() || !are_tables || !may_be_left_out {
            self.keys.insert(path.to_owned());
        }
        for one in choices {
            self.table(one, path);
        }
    }
}

fn is_table(node: &Value) -> bool {
    node.get("properties").is_some() || node.get("additionalProperties").is_some_and(Value::is_object)
}

/// The kinds of which something may be.
fn choices(node: &Value) -> Vec<&Value> {
    ["oneOf", "anyOf"].iter().filter_map(|name| node.get(*name)?.as_array()).flatten().collect()
}
