// Lines between nodes on the screen: quadratic curves, of which straight ones are a kind, cut where boxes of nodes begin.
const Geometry = {
  // A curve from one point to another whose middle lies `bend` to the left.
  curve(from, to, bend) {
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const length = Math.hypot(dx, dy) || 1;
    const middle = { x: (from.x + to.x) / 2 + 2 * bend * dy / length, y: (from.y + to.y) / 2 - 2 * bend * dx / length };
    return { from, to, middle, straight: bend === 0 };
  },
  at({ from, middle, to }, t) {
    const u = 1 - t;
    return { x: u * u * from.x + 2 * u * t * middle.x + t * t * to.x, y: u * u * from.y + 2 * u * t * middle.y + t * t * to.y };
  },
  // The part of a curve between two of its places (blossoming).
  part(curve, t0, t1) {
    const { from, middle, to } = curve;
    const mix = (a, b) => (1 - a) * (1 - b);
    const blend = axis => mix(t0, t1) * from[axis] + ((1 - t0) * t1 + t0 * (1 - t1)) * middle[axis] + t0 * t1 * to[axis];
    return { from: Geometry.at(curve, t0), middle: { x: blend("x"), y: blend("y") }, to: Geometry.at(curve, t1), straight: curve.straight };
  },
  // Where a line from the middle of a box towards a point leaves it.
  exit(box, towards) {
    const [dx, dy] = [towards.x - box.x, towards.y - box.y];
    if (box.radius !== undefined) {
      const length = Math.hypot(dx, dy) || 1;
      return { x: box.x + dx / length * box.radius, y: box.y + dy / length * box.radius };
    }
    const reach = Math.min(box.width / 2 / Math.abs(dx || 1e-9), box.height / 2 / Math.abs(dy || 1e-9), 1);
    return { x: box.x + dx * reach, y: box.y + dy * reach };
  },
  length({ from, middle, to, straight }) {
    if (straight) return Math.hypot(to.x - from.x, to.y - from.y);
    return Math.hypot(middle.x - from.x, middle.y - from.y) / 2 + Math.hypot(to.x - middle.x, to.y - middle.y) / 2 + Math.hypot(to.x - from.x, to.y - from.y) / 2;
  },
  // How far a point is from a curve, and at which of its places it comes nearest.
  nearest(curve, point) {
    const pieces = curve.straight ? 1 : 12;
    let best = { distance: Infinity, t: 0 };
    for (let piece = 0; piece < pieces; piece += 1) {
      const [a, b] = [Geometry.at(curve, piece / pieces), Geometry.at(curve, (piece + 1) / pieces)];
      const [dx, dy] = [b.x - a.x, b.y - a.y];
      const along = Math.max(0, Math.min(1, ((point.x - a.x) * dx + (point.y - a.y) * dy) / (dx * dx + dy * dy || 1)));
      const distance = Math.hypot(a.x + along * dx - point.x, a.y + along * dy - point.y);
      if (distance < best.distance) best = { distance, t: (piece + along) / pieces };
    }
    return best;
  },
};
