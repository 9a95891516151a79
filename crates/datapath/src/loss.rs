//! A network that loses: a share of the UDP datagrams to and from one port of an interface, for measurements of what
//! losses do (VL2 5.5 loses 10 % between clients and directory servers). And a link that is silent: up, and nothing comes.

use libbpf_rs::{MapHandle, Object};

use crate::abi::{LOSS_OUTCOMES, LossConstants};
use crate::error::DatapathError;
use crate::hook::{self, Attached};
use crate::{counters, interface, object};

const COUNTERS: &str = "loss_counters";
const CONSTANTS: &str = ".rodata.loss";

/// Losses on one interface; they end when this is dropped.
#[derive(Debug)]
pub struct Loss {
    links: [Attached; 2],
    counters: MapHandle,
}

impl Loss {
    /// From now on loses `percent` of the datagrams that come to `port` by this interface of the calling thread's
    /// namespace, and of those that leave it from that port, each for itself. A burst in one super frame is lost whole.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for more than 100 %, or any other [`DatapathError`].
    pub fn attach(interface: &str, port: u16, percent: u32) -> Result<Self, DatapathError> {
        if percent > 100 {
            let why = format!("{percent} % cannot be lost; choose 0 to 100");
            return Err(DatapathError::Config { field: "percent", why });
        }
        let ifindex = interface::index_of(interface)?;
        let threshold = u32::try_from(u64::from(percent) * (1 << 32) / 100).unwrap_or(u32::MAX);
        let mut open = object::LOSS.open()?;
        let constants = LossConstants { threshold, port: port.to_be_bytes(), reserved: [0; 2] };
        object::set_constants(&mut open, CONSTANTS, &constants);
        let object = object::LOSS.load(open)?;
        let attach = |name| hook::attach(&object::program(&object, name), ifindex, interface);
        let links = [attach("lose_incoming")?, attach("lose_outgoing")?];
        Ok(Self { links, counters: object::map_handle(&object, COUNTERS)? })
    }

    /// What became of the frames: [`LOSS_OUTCOMES`] with their numbers.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn counters(&self) -> Result<Vec<(&'static str, u64)>, DatapathError> {
        counters::read(&self.counters, COUNTERS, &LOSS_OUTCOMES)
    }
}

impl Drop for Loss {
    fn drop(&mut self) {
        for link in &self.links {
            // Closing the link does the same a little later.
            let _ = link.detach();
        }
    }
}

/// Makes interfaces deaf.
#[derive(Debug)]
pub struct Silencer(Object);

/// An interface of which nothing comes in; it hears again when this is dropped.
#[derive(Debug)]
pub struct Silence(Attached);

impl Silencer {
    /// Loads the program, so that it can be attached at once later.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn load() -> Result<Self, DatapathError> {
        Ok(Self(object::LOSS.load(object::LOSS.open()?)?))
    }

    /// From now on everything that comes in by this interface of the calling thread's namespace is lost, in front of all
    /// other programs.
    ///
    /// # Errors
    /// [`DatapathError::NoInterface`] or any other [`DatapathError`].
    pub fn silence(&self, interface: &str) -> Result<Silence, DatapathError> {
        let [tc, xdp] = ["lose_everything", "lose_everything_xdp"].map(|name| object::program(&self.0, name));
        hook::take((&tc, &xdp), interface::index_of(interface)?, interface).map(Silence)
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // Closing the link does the same a little later.
        let _ = self.0.detach();
    }
}
