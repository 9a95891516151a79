//! JSON schemas of the files that people write and of what weft prints, from the types that read and print them: `schemas/`.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::json;
use weft_scenario::topology::fabric_schema;

use crate::comparison::Reading;
use crate::measurement::MeasurementSummary;
use crate::plan::{PlanSpec, scenario_schema};
use crate::run_folder::Manifest;
use crate::summary::RunSummary;
use crate::trend::Row;

/// Every schema with the name of its file.
pub fn all() -> Vec<(&'static str, Schema)> {
    vec![
        ("fabric.json", titled(fabric_schema(), "A fabric: `fabrics/*.yaml`")),
        ("plan.json", titled(plan(), "A plan: `plans/**/*.toml`")),
        ("scenario.json", titled(scenario_schema(), "A scenario: `weft sim FILE.toml`")),
        ("manifest.json", titled(written::<Manifest>(), "`manifest.json` of a run")),
        ("run.json", titled(written::<RunSummary>(), "`weft run -o json`, and `summary.json` of a run")),
        (
            "measurement.json",
            titled(written::<MeasurementSummary>(), "`summary.json` of `weft measure` and `weft bench`"),
        ),
        ("reading.json", titled(written::<Reading>(), "An entry of `readings` of `weft report -o json`")),
        ("trend-row.json", titled(written::<Row>(), "An entry of `rows` of `weft trend -o json`")),
    ]
}

/// What weft writes.
fn written<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// The fields of a plan, and the tables that are laid over it, which hold some of them again.
fn plan() -> Schema {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<PlanSpec>();
    if let Some(properties) = schema.get_mut("properties").and_then(|properties| properties.as_object_mut()) {
        let layers = [
            ("quick", "laid over the plan by `--quick`"),
            ("full", "laid over the plan by `--full`"),
            ("engine", "laid over the plan on an engine: `[engine.sim]`"),
            ("sweep", "axes, each with the tables that are laid over the plan at its places"),
        ];
        for (name, about) in layers {
            properties.insert(name.to_owned(), json!({ "type": "object", "description": about }));
        }
        let steps = "lower rates, each laid over the plan in a lab whose machine has no time for those above: `weft run --step`";
        let step = json!({ "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] });
        properties.insert("steps".to_owned(), json!({ "type": "array", "description": steps, "items": step }));
    }
    schema
}

fn titled(mut schema: Schema, title: &str) -> Schema {
    schema.insert("title".to_owned(), json!(title));
    schema
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn schemas_are_those_of_the_types() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
        for (name, schema) in all() {
            let text = format!("{:#}\n", schema.as_value());
            let path = folder.join(name);
            if std::env::var_os("WEFT_BLESS").is_some() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&path, &text).unwrap();
            }
            let stored = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(stored == text, "schemas/{name} is out of date; WEFT_BLESS=1 writes it anew");
        }
    }
}
