//! Max-min fair rates of fluid flows over fixed shares of links (progressive filling, Bertsekas and Gallager 6.5.2).

/// One flow: where it goes and how much it wants.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// Links, and the share of the flow's rate that each carries.
    pub(super) links: Vec<(usize, f64)>,
    /// The rate that it would have on a perfect network.
    pub(super) wanted: f64,
}

/// A link this full takes no more.
const FULL: f64 = 1e-9;

/// What share of its wanted rate each flow gets: all rise together until a link of theirs is full, or to 1.
pub(super) fn shares(flows: &[Flow], rates: &[f64]) -> Vec<f64> {
    let mut demand = vec![0.0; rates.len()];
    let mut over: Vec<Vec<u32>> = vec![Vec::new(); rates.len()];
    for (number, flow) in flows.iter().enumerate() {
        for (link, share) in &flow.links {
            demand[*link] += share * flow.wanted;
            over[*link].push(number as u32);
        }
    }
    let mut left = rates.to_vec();
    let mut given: Vec<Option<f64>> = vec![None; flows.len()];
    let mut level = 0.0;
    loop {
        let room =
            |link: usize| if demand[link] > FULL * rates[link] { left[link] / demand[link] } else { f64::INFINITY };
        let step = (0..rates.len()).map(room).fold(f64::INFINITY, f64::min).min(1.0 - level).max(0.0);
        level += step;
        let mut full = Vec::new();
        for link in 0..rates.len() {
            left[link] -= step * demand[link];
            if left[link] <= FULL * rates[link] && demand[link] > FULL * rates[link] {
                full.push(link);
            }
        }
        if full.is_empty() || level >= 1.0 {
            return given.into_iter().map(|share| share.unwrap_or(1.0)).collect();
        }
        for number in full.into_iter().flat_map(|link| std::mem::take(&mut over[link])) {
            let (number, flow) = (number as usize, &flows[number as usize]);
            if given[number].is_none() {
                given[number] = Some(level);
                flow.links.iter().for_each(|(link, share)| demand[*link] -= share * flow.wanted);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(links: &[usize], wanted: f64) -> Flow {
        Flow { links: links.iter().map(|link| (*link, 1.0)).collect(), wanted }
    }

    fn assert_near(got: &[f64], wanted: &[f64]) {
        assert_eq!(got.len(), wanted.len());
        assert!(got.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6), "{got:?} is not {wanted:?}");
    }

    #[test]
    fn flows_on_one_link_share_it_and_what_one_leaves_is_for_the_others() {
        assert_near(&shares(&[flow(&[0], 1.0), flow(&[0], 1.0)], &[1.0]), &[0.5, 0.5]);
        // The first shares link 0 of 1 with the second; the third has what they leave of link 1, at most all it wants.
        let flows = [flow(&[0], 1.0), flow(&[0, 1], 1.0), flow(&[1], 1.0)];
        assert_near(&shares(&flows, &[1.0, 2.0]), &[0.5, 0.5, 1.0]);
        assert_near(&shares(&flows, &[1.0, 1.2]), &[0.5, 0.5, 0.7]);
    }

    #[test]
    fn nobody_gets_more_than_it_wants() {
        assert_near(&shares(&[flow(&[0], 1.0)], &[5.0]), &[1.0]);
        assert_near(&shares(&[], &[5.0]), &[]);
    }

    #[test]
    fn a_flow_over_two_links_is_held_by_the_fuller_one() {
        let split = Flow { links: vec![(0, 0.5), (1, 0.5)], wanted: 4.0 };
        assert_near(&shares(&[split], &[1.0, 9.0]), &[0.5]);
    }
}
