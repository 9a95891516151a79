//! Where the log lives: `"/path"` or `{"redb": "/path"}` for the built-in store, `{"etcd": {..}}` for a cluster.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::error::NodeError;
use crate::store::{EtcdSettings, RedbStore, Store};

/// The store behind a directory server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreConfig {
    /// Built in: one file, one server. Made if it is missing.
    Redb(PathBuf),
    /// A cluster that several servers share.
    Etcd(EtcdSettings),
}

impl StoreConfig {
    /// Opens it.
    pub(in crate::directory) fn open(&self) -> Result<Arc<dyn Store>, NodeError> {
        match self {
            Self::Redb(path) => Ok(Arc::new(RedbStore::open(path)?)),
            #[cfg(feature = "etcd")]
            Self::Etcd(settings) => Ok(Arc::new(crate::store::EtcdStore::open(settings)?)),
            #[cfg(not(feature = "etcd"))]
            Self::Etcd(settings) => {
                let why =
                    "this weft was built without etcd; build it with the feature `etcd`, or use `redb` for one server";
                Err(settings.fault(why).into())
            }
        }
    }
}

impl<P: Into<PathBuf>> From<P> for StoreConfig {
    fn from(path: P) -> Self {
        Self::Redb(path.into())
    }
}

/// The form with a name.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Named {
    Redb(PathBuf),
    Etcd(EtcdSettings),
}

struct Forms;

impl<'de> Visitor<'de> for Forms {
    type Value = StoreConfig;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the path of a file, {\"redb\": PATH} or {\"etcd\": {\"endpoints\": [URL, ..]}}")
    }

    fn visit_str<E>(self, path: &str) -> Result<StoreConfig, E> {
        Ok(StoreConfig::Redb(path.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<StoreConfig, A::Error> {
        Named::deserialize(MapAccessDeserializer::new(map)).map(|named| match named {
            Named::Redb(path) => StoreConfig::Redb(path),
            Named::Etcd(settings) => StoreConfig::Etcd(settings),
        })
    }
}

impl<'de> Deserialize<'de> for StoreConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Forms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_alone_is_the_built_in_store_and_what_is_written_is_read() {
        let redb = StoreConfig::from("/var/lib/store");
        assert_eq!(serde_json::from_str::<StoreConfig>("\"/var/lib/store\"").unwrap(), redb);
        assert_eq!(serde_json::to_string(&redb).unwrap(), r#"{"redb":"/var/lib/store"}"#);
        assert_eq!(serde_json::from_str::<StoreConfig>(r#"{"redb":"/var/lib/store"}"#).unwrap(), redb);
    }

    #[test]
    fn a_cluster_is_named_by_its_endpoints() {
        let text = r#"{"etcd":{"endpoints":["http://10.0.0.1:2379"],"prefix":"weft/blue/"}}"#;
        let etcd = serde_json::from_str::<StoreConfig>(text).unwrap();
        assert_eq!(etcd, StoreConfig::Etcd(EtcdSettings::plain(["http://10.0.0.1:2379".to_owned()], "weft/blue/")));
        assert_eq!(serde_json::from_str::<StoreConfig>(&serde_json::to_string(&etcd).unwrap()).unwrap(), etcd);
        let error = serde_json::from_str::<StoreConfig>(r#"{"etcd":{"endpoints":[],"speed":9}}"#).unwrap_err();
        assert!(error.to_string().contains("speed"), "{error}");
    }

    #[test]
    fn what_is_no_store_is_refused_by_name() {
        for (text, says) in
            [("7", "the path of a file"), (r#"{"sqlite":"/x"}"#, "sqlite"), (r#"{"redb":7}"#, "path string")]
        {
            let error = serde_json::from_str::<StoreConfig>(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
