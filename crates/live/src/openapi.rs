//! The API for programs that make clients: OpenAPI 3.1, from the list of verbs.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::capture::ToCapture;
use crate::verbs;

/// The document, as in `schemas/lab-api.json`.
pub fn document() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for verb in verbs::all() {
        let (request, answer) = ((verb.request)(&mut generator), (verb.answer)(&mut generator));
        let json_of = |schema| json!({ "application/json": { "schema": schema } });
        let operation = json!({
            "operationId": verb.word,
            "summary": verb.about,
            "requestBody": { "required": true, "content": json_of(request.to_value()) },
            "responses": responses(json_of(answer.to_value())),
        });
        paths.insert(format!("/api/v1/{}", verb.word), json!({ "post": operation }));
    }
    let wanted = generator.subschema_for::<ToCapture>().to_value();
    let capture = json!({
        "operationId": "capture",
        "summary": "Frames of ports as a pcapng file, which grows until enough is in it or nobody reads it any more",
        "requestBody": { "required": true, "content": { "application/json": { "schema": wanted } } },
        "responses": responses(json!({ "application/x-pcapng": {} })),
    });
    paths.insert("/api/v1/capture".to_owned(), json!({ "post": capture }));
    let any = || json!({ "application/json": { "schema": { "type": "object" } } });
    let looks = json!({ "text/event-stream": { "schema": { "type": "string" } } });
    for (path, about, content) in [
        ("lab", "What is on disk about the lab: nodes, processes, what is broken (`weft lab ps NAME -o json`)", any()),
        ("document", "What the page begins with: nodes with places, links, the last two minutes", any()),
        (
            "stream",
            "Ten times a second what happened, as server-sent events; `Last-Event-ID` says what is known",
            looks,
        ),
    ] {
        let operation = json!({ "operationId": path, "summary": about, "responses": responses(content) });
        paths.insert(format!("/api/v1/{path}"), json!({ "get": operation }));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "A lab of weft",
            "version": "1",
            "description": "Served by `weft lab watch` on loopback. Every request says `Authorization: Bearer TOKEN`.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": generator.take_definitions(true),
            "responses": {
                "Refused": {
                    "description": "Nothing was done, and why",
                    "content": { "application/json": { "schema": {
                        "type": "object", "required": ["error"], "properties": { "error": { "type": "string" } },
                    } } },
                },
            },
        },
    })
}

/// What comes back if all is well, and why else nothing was done.
fn responses(content: Value) -> Value {
    let mut all = Map::new();
    all.insert("200".to_owned(), json!({ "description": "Done", "content": content }));
    for status in ["400", "401", "403", "404", "409", "415", "421"] {
        all.insert(status.to_owned(), json!({ "$ref": "#/components/responses/Refused" }));
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_file_is_what_the_list_of_verbs_says() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/lab-api.json");
        let text = serde_json::to_string_pretty(&document()).unwrap() + "\n";
        if std::env::var_os("WEFT_BLESS").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(found == text, "schemas/lab-api.json is not current: run this test with WEFT_BLESS=1");
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn walk(value: &Value, root: &Value) {
            match value {
                Value::Object(map) => {
                    if let Some(Value::String(to)) = map.get("$ref") {
                        assert!(root.pointer(to.trim_start_matches('#')).is_some(), "{to}");
                    }
                    map.values().for_each(|value| walk(value, root));
                }
                Value::Array(array) => array.iter().for_each(|value| walk(value, root)),
                _ => {}
            }
        }
        let document = document();
        walk(&document, &document);
        assert_eq!(document["paths"].as_object().unwrap().len(), verbs::all().len() + 4);
    }
}
