//! What can be asked of a lab that is up. One list: the router and the OpenAPI file are made from it.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weft_lab::validate::{self, Validation, Wanted};
use weft_lab::{Change, Impairment, LabError, LabOptions};
use weft_scenario::engine::Progress;
use weft_scenario::fault::FaultKind;
use weft_scenario::topology::from_yaml;

/// A verb: `POST /api/v1/WORD`.
pub struct Verb {
    pub word: &'static str,
    /// One line of what it does.
    pub about: &'static str,
    /// Whether it changes the lab; else it only looks.
    pub changes: bool,
    pub(crate) request: fn(&mut SchemaGenerator) -> Schema,
    pub(crate) answer: fn(&mut SchemaGenerator) -> Schema,
    pub(crate) act: Act,
}

type Act = Box<dyn Fn(&str, &[u8], &dyn Progress) -> Result<Value, Refusal> + Send + Sync>;

/// Why a verb did nothing.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The request is none.
    Request(String),
    Lab(LabError),
}

impl Verb {
    fn of<Q: DeserializeOwned + JsonSchema + 'static, A: Serialize + JsonSchema + 'static>(
        (word, changes): (&'static str, bool),
        about: &'static str,
        act: fn(&str, Q, &dyn Progress) -> Result<A, Refusal>,
    ) -> Self {
        let acts = move |lab: &str, body: &[u8], progress: &dyn Progress| {
            let request: Q = serde_json::from_slice(body).map_err(|error| Refusal::Request(error.to_string()))?;
            let answer = act(lab, request, progress)?;
            Ok(serde_json::to_value(answer).expect("an answer is plain data"))
        };
        let (request, answer) = (SchemaGenerator::subschema_for::<Q>, SchemaGenerator::subschema_for::<A>);
        Self { word, about, changes, request, answer, act: Box::new(acts) }
    }
}

/// All of them.
pub fn all() -> Vec<Verb> {
    const CHANGES: bool = true;
    const LOOKS: bool = false;
    vec![
        Verb::of(("fail", CHANGES), "Takes a switch or a link down; both ends see it", |lab, what: What, progress| {
            let switch = |node| FaultKind::SwitchDown { node };
            broken(lab, &what.fault(switch, |a, b| FaultKind::LinkDown { a, b })?, progress)
        }),
        Verb::of(
            ("silence", CHANGES),
            "Lets a switch or a link lose everything and stay up: nobody is told",
            |lab, what: What, progress| {
                let switch = |node| FaultKind::SwitchSilent { node };
                broken(lab, &what.fault(switch, |a, b| FaultKind::LinkSilent { a, b })?, progress)
            },
        ),
        Verb::of(
            ("impair", CHANGES),
            "Makes the links between two nodes lose, slow down or be late",
            |lab, to: Worse, progress| Ok(weft_lab::impair(lab, [&to.from, &to.to], &to.by, to.one_way, progress)?),
        ),
        Verb::of(("repair", CHANGES), "Mends what is named, or everything", |lab, what: Mended, progress| {
            Ok(weft_lab::repair(lab, what.named()?, progress)?)
        }),
        Verb::of(
            ("apply", CHANGES),
            "Makes another fabric of the lab, by the difference",
            |lab, to: Wished, progress| {
                let fabric = from_yaml(&to.fabric, "fabric").map_err(|error| Refusal::Request(error.to_string()))?;
                Ok(weft_lab::apply(lab, &fabric, &options()?, progress)?)
            },
        ),
        Verb::of(
            ("move", CHANGES),
            "Takes a server of a VL2 lab to another rack, or home",
            |lab, to: Moving, progress| Ok(weft_lab::move_server(lab, [&to.server, &to.edge], &options()?, progress)?),
        ),
        Verb::of(
            ("validate", LOOKS),
            "Checks daemons, shortest ways and their width, loops, who answers whom, packet length",
            |lab, wanted: Wanted, progress| -> Result<Validation, _> {
                let wanted = wanted.checked().map_err(Refusal::Request)?;
                Ok(validate::validate(lab, &wanted, progress)?)
            },
        ),
    ]
}

fn broken(lab: &str, fault: &FaultKind, progress: &dyn Progress) -> Result<Change, Refusal> {
    Ok(weft_lab::fail(lab, fault, progress)?)
}

/// A switch, or the two ends of a link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct What {
    /// One name or two.
    #[schemars(length(min = 1, max = 2))]
    what: Vec<String>,
}

impl What {
    fn fault(
        self,
        switch: impl FnOnce(String) -> FaultKind,
        link: impl FnOnce(String, String) -> FaultKind,
    ) -> Result<FaultKind, Refusal> {
        let mut names = self.what.into_iter();
        match (names.next(), names.next(), names.next()) {
            (Some(node), None, _) => Ok(switch(node)),
            (Some(a), Some(b), None) => Ok(link(a, b)),
            _ => Err(Refusal::Request("`what` is a switch, or the two ends of a link".to_owned())),
        }
    }
}

/// A link that is to be worse.
#[derive(Debug, Deserialize, JsonSchema)]
struct Worse {
    /// Node that sends.
    from: String,
    /// Node that receives.
    to: String,
    /// Only what the one sends to the other.
    #[serde(default)]
    one_way: bool,
    #[serde(flatten)]
    by: Impairment,
}

/// What is mended.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Mended {
    /// A switch, or the two ends of a link.
    #[serde(default)]
    #[schemars(length(max = 2))]
    what: Vec<String>,
    /// Everything that is broken, in the place of `what`.
    #[serde(default)]
    all: bool,
}

impl Mended {
    /// None of them: all.
    fn named(&self) -> Result<&[String], Refusal> {
        match (self.what.len(), self.all) {
            (0, true) | (1 | 2, false) => Ok(&self.what),
            _ => Err(Refusal::Request("name `what` is mended, or say `all`".to_owned())),
        }
    }
}

/// Daemons that a verb starts are those of this program.
fn options() -> Result<LabOptions, Refusal> {
    std::env::current_exe().map(LabOptions::new).map_err(|error| Refusal::Request(error.to_string()))
}

/// A fabric that a lab is to have.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wished {
    /// The text of a fabric's file.
    fabric: String,
}

/// A server and where it is to be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Moving {
    server: String,
    /// An edge switch with a rack.
    edge: String,
}

impl From<LabError> for Refusal {
    fn from(error: LabError) -> Self {
        Self::Lab(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl Progress for Nobody {
        fn phase(&self, _: &str, _: &str) {}

        fn advance(&self, _: f64, _: &str) {}

        fn note(&self, _: &str) {}

        fn interrupted(&self) -> bool {
            true
        }
    }

    /// What a verb says to a request that never comes to a lab.
    fn refused(word: &str, body: &str) -> String {
        let verb = all().into_iter().find(|verb| verb.word == word).unwrap();
        match (verb.act)("no such lab", body.as_bytes(), &Nobody) {
            Err(Refusal::Request(why)) => why,
            Err(Refusal::Lab(_)) => "the lab was asked".to_owned(),
            Ok(_) => "done".to_owned(),
        }
    }

    #[test]
    fn requests_that_are_none_come_to_no_lab() {
        for body in [
            "",
            "{",
            "[]",
            "{\"what\":[]}",
            "{\"what\":[\"a\",\"b\",\"c\"]}",
            "{\"what\":\"a\"}",
            "{\"what\":[\"a\"],\"x\":1}",
        ] {
            assert_ne!(refused("fail", body), "the lab was asked", "{body}");
        }
        assert_eq!(refused("fail", "{\"what\":[\"a\"]}"), "the lab was asked");
        for body in ["{}", "{\"what\":[\"a\"],\"all\":true}", "{\"all\":1}"] {
            assert_ne!(refused("repair", body), "the lab was asked", "{body}");
        }
        assert_eq!(refused("repair", "{\"all\":true}"), "the lab was asked");
        assert_eq!(refused("validate", "{}"), "the lab was asked");
        assert_ne!(refused("validate", "{\"mtu\":-1}"), "the lab was asked");
    }
}
