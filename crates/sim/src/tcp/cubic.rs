//! CUBIC (RFC 9438) in integers: windows in segments with 16 binary places, time in units of 2^-20 s.

use super::congestion::Delivery;
use super::hystart::HyStart;
use super::window::{SSTHRESH_MIN, Window};

const WINDOW_SHIFT: u32 = 16;
/// C = 0.4 segments per cubed second (RFC 9438 5.1), as a fraction.
const C: (u64, u64) = (2, 5);
/// beta_cubic = 0.7 (RFC 9438 4.6), in tenths.
const BETA_TENTHS: u64 = 7;
/// alpha_cubic = 3 (1 - beta) / (1 + beta) = 9 / 17 (RFC 9438 4.3), in units of 2^-16 segments.
const ALPHA: u64 = (9 << WINDOW_SHIFT) / 17;
/// Epochs do not grow the target further after this long; keeps cubes within 64 bits.
const ELAPSED_MAX: u64 = 1_000 << 20;

/// CUBIC's state. All windows are in units of 2^-16 segments.
#[derive(Debug)]
pub(super) struct Cubic {
    /// W_max; 0: no reduction yet, or a timeout since.
    w_max: u64,
    /// cwnd_prior: the window before the last reduction.
    prior: u64,
    /// The current stage of congestion avoidance.
    epoch: Option<Epoch>,
    hystart: Option<HyStart>,
}

/// One stage of congestion avoidance.
#[derive(Debug)]
struct Epoch {
    start_ps: u64,
    /// K: the time at which the window reaches the origin again.
    k: u64,
    /// The plateau, W_max.
    origin: u64,
    /// W_est: the window that Reno would have.
    reno: u64,
    /// What the integer window leaves out.
    fraction: u64,
}

impl Cubic {
    pub(super) fn new(hystart: bool) -> Self {
        Self { w_max: 0, prior: 0, epoch: None, hystart: hystart.then(HyStart::default) }
    }

    pub(super) fn observe(&mut self, window: &mut Window, delivery: &Delivery) {
        if let Some(hystart) = &mut self.hystart
            && window.in_slow_start()
            && hystart.says_stop(window.cwnd, delivery)
        {
            window.ssthresh = window.cwnd;
        }
    }

    /// Slow start as Reno's, then the cubic or the Reno-friendly window.
    pub(super) fn grow(&mut self, window: &mut Window, delivery: &Delivery) {
        let mut segments = delivery.segments;
        if window.in_slow_start() {
            segments = window.slow_start(segments);
        }
        if segments > 0 {
            let (w_max, prior) = (self.w_max, self.prior);
            let epoch = self.epoch.get_or_insert_with(|| Epoch::new(delivery.now_ps, w_max, window.cwnd));
            let cwnd = epoch.window(delivery, segments, window.cwnd, prior);
            window.raise(cwnd);
        }
    }

    /// Remembers the window of a loss and returns the threshold (RFC 9438 4.6, fast convergence of 4.7).
    pub(super) fn reduce(&mut self, window: &Window) -> u32 {
        let cwnd = u64::from(window.cwnd) << WINDOW_SHIFT;
        self.w_max = if cwnd < self.w_max { cwnd * (10 + BETA_TENTHS) / 20 } else { cwnd };
        self.prior = cwnd;
        self.epoch = None;
        // 0.7 of a u32.
        ((u64::from(window.cwnd) * BETA_TENTHS / 10) as u32).max(SSTHRESH_MIN)
    }

    /// After a timeout the next stage begins on its plateau, and slow start may be left early again (RFC 9438 4.8).
    pub(super) fn timed_out(&mut self) {
        self.w_max = 0;
        self.epoch = None;
        self.hystart = self.hystart.take().map(|_| HyStart::default());
    }

    /// The window was set from outside: a new stage.
    pub(super) fn restart(&mut self) {
        self.epoch = None;
    }
}

impl Epoch {
    fn new(start_ps: u64, w_max: u64, cwnd: u32) -> Self {
        let reno = u64::from(cwnd) << WINDOW_SHIFT;
        let origin = w_max.max(reno);
        Self { start_ps, k: time_to(origin - reno), origin, reno, fraction: 0 }
    }

    /// The window in segments after `segments` more were delivered.
    fn window(&mut self, delivery: &Delivery, segments: u32, cwnd: u32, prior: u64) -> u32 {
        let (segments, whole) = (u64::from(segments), u64::from(cwnd));
        let mut exact = (whole << WINDOW_SHIFT) + self.fraction;
        let alpha = if self.reno < prior { ALPHA } else { 1 << WINDOW_SHIFT };
        self.reno += alpha * segments / whole;

        let elapsed_ps = delivery.now_ps.saturating_sub(self.start_ps);
        if self.at(elapsed_ps) < self.reno {
            exact = exact.max(self.reno);
        } else {
            let target = self.at(elapsed_ps + delivery.srtt_ps).clamp(exact, exact + exact / 2);
            exact += (target - exact) * segments / whole;
        }
        self.fraction = exact & ((1 << WINDOW_SHIFT) - 1);
        u32::try_from(exact >> WINDOW_SHIFT).unwrap_or(u32::MAX)
    }

    /// W_cubic(t) = C (t - K)^3 + W_max (RFC 9438 equation 1).
    fn at(&self, elapsed_ps: u64) -> u64 {
        let t = fine_time(elapsed_ps).min(ELAPSED_MAX);
        let change = cubed(t.abs_diff(self.k));
        if t < self.k { self.origin.saturating_sub(change) } else { self.origin + change }
    }
}

/// Picoseconds in units of 2^-20 s: times 2^20 / 10^12, which is 2^11 / 5^9 per nanosecond.
fn fine_time(ps: u64) -> u64 {
    ((ps / 1000) << 11) / 1_953_125
}

/// C t^3 in units of 2^-16 segments, for a time in units of 2^-20 s.
fn cubed(t: u64) -> u64 {
    let t = u128::from(t);
    // 60 binary places to 32: at most 2^62 at ELAPSED_MAX.
    let cube = ((t * t * t) >> 28) as u64;
    (cube / C.1 * C.0) >> WINDOW_SHIFT
}

/// The time in which the cubic rises by `windows`: K = cbrt(windows / C) (RFC 9438 equation 2).
fn time_to(windows: u64) -> u64 {
    // 16 binary places to 60, times 5/2.
    cube_root((u128::from(windows) << 44) / u128::from(C.0) * u128::from(C.1))
}

/// The largest integer whose cube is at most `value`, digit by binary digit.
fn cube_root(value: u128) -> u64 {
    let mut root = 0u128;
    for bit in (0..42).rev() {
        let tried = root | 1 << bit;
        if tried * tried * tried <= value {
            root = tried;
        }
    }
    // Below 2^42.
    root as u64
}

#[cfg(test)]
mod tests {
    use super::super::{MS, SECOND};
    use super::*;

    fn delivery(now_ps: u64, segments: u32, srtt_ps: u64) -> Delivery {
        Delivery { now_ps, segments, rtt_ps: None, srtt_ps, ece: false, una: 0, next: 0 }
    }

    fn segments(window: u64) -> f64 {
        window as f64 / f64::from(1 << WINDOW_SHIFT)
    }

    #[test]
    fn cube_roots() {
        for root in [0u128, 1, 2, 3, 1000, 123_456, (1 << 42) - 1] {
            assert_eq!(u128::from(cube_root(root * root * root)), root);
            assert_eq!(u128::from(cube_root(root * root * root + 3 * root)), root);
        }
        assert_eq!(cube_root(26), 2);
    }

    /// W_max = 1000, so the window after the loss is 700 and K = cbrt(300 / 0.4) = 9.0856 s.
    #[test]
    fn k_and_the_window_at_given_times() {
        let epoch = Epoch::new(0, 1000 << WINDOW_SHIFT, 700);
        assert_eq!((epoch.k * 10_000) >> 20, 90_856);
        let at = |seconds: u64| segments(epoch.at(seconds * SECOND));
        // 1000 + 0.4 (t - 9.08560296416)^3, worked with independent arithmetic.
        for (t, want) in [(0, 700.0), (1, 788.5551), (5, 972.7210), (9, 999.9997), (12, 1009.9016), (20, 1520.0669)] {
            assert!((at(t) - want).abs() < 0.001, "t = {t}: {} instead of {want}", at(t));
        }
    }

    #[test]
    fn a_loss_leaves_seven_tenths_and_fast_convergence_forgets_more() {
        let mut cubic = Cubic::new(false);
        let mut window = Window::new(1000, u32::MAX);
        assert_eq!(cubic.reduce(&window), 700);
        assert_eq!(cubic.w_max, 1000 << WINDOW_SHIFT);
        window.set(800);
        assert_eq!(cubic.reduce(&window), 560);
        // 800 (1 + 0.7) / 2.
        assert_eq!(cubic.w_max, 680 << WINDOW_SHIFT);
        window.set(1);
        assert_eq!(cubic.reduce(&window), 2);
    }

    /// Round trips of 100 ms with a full window of ACKs each: the real window follows W_cubic(t).
    #[test]
    fn the_window_follows_the_cubic() {
        let mut cubic = Cubic::new(false);
        let mut window = Window::new(1000, u32::MAX);
        window.ssthresh = cubic.reduce(&window);
        window.set(700);
        for round in 0..200u64 {
            for _ in 0..window.cwnd {
                cubic.grow(&mut window, &delivery(round * 100 * MS, 1, 100 * MS));
            }
            if round == 90 {
                // At 9.1 s, the plateau; growing towards W(t + RTT) per ACK reaches it almost.
                assert!((995..=1001).contains(&window.cwnd), "{}", window.cwnd);
            }
        }
        // W(20 s) = 1520; Reno would be at 700 + 200 * 9/17 = 806.
        assert!((1480..=1521).contains(&window.cwnd), "{}", window.cwnd);
    }

    /// Round trips of 1 ms: Reno is faster than the cubic, 9/17 per round trip up to the prior window, then 1.
    #[test]
    fn short_round_trips_follow_reno() {
        let mut cubic = Cubic::new(false);
        let mut window = Window::new(100, u32::MAX);
        window.ssthresh = cubic.reduce(&window);
        window.set(70);
        let mut rounds = |count: u64, from: u64| {
            for round in from..from + count {
                for _ in 0..window.cwnd {
                    cubic.grow(&mut window, &delivery(round * MS, 1, MS));
                }
            }
            window.cwnd
        };
        // 70 + 34 * 9/17 = 88, 70 + 57 * 9/17 = 100.2.
        assert!((87..=88).contains(&rounds(34, 0)));
        assert!((99..=100).contains(&rounds(23, 34)));
        assert!((118..=121).contains(&rounds(20, 57)));
    }

    #[test]
    fn time_is_exact_where_it_can_be() {
        assert_eq!(fine_time(SECOND), 1 << 20);
        assert_eq!(fine_time(125 * MS), 1 << 17);
        assert_eq!(fine_time(604_800 * SECOND), 604_800 << 20);
    }

    #[test]
    fn absurd_times_do_not_overflow() {
        let mut epoch = Epoch::new(0, u64::from(u32::MAX) << WINDOW_SHIFT, 2);
        assert!(epoch.at(u64::MAX >> 1) > 0);
        assert!(epoch.window(&delivery(u64::MAX >> 5, 5, SECOND), 5, u32::MAX, 0) > 0);
    }
}
