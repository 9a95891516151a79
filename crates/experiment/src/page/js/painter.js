// Draws the fabric at one time. A link is two half-links: each fills from its sender towards the middle, as far as its rate is used.
const FONT = "system-ui, sans-serif";
const BOX_HEIGHT = 22;
const QUEUE_BAR = 40;
const QUEUE_DISC = 11;

class Painter {
  constructor(canvas, replay) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.replay = replay;
    const rates = replay.links.map(link => link.rate_bps);
    [this.slowest, this.fastest] = [Math.min(...rates), Math.max(...rates)];
    this.textWidths = replay.nodes.map(() => 0);
    this.restyle();
  }

  // From each node to the next one of its kind.
  static room(nodes, { sx, sy }) {
    const nearest = nodes.map(() => 400);
    for (let one = 0; one < nodes.length; one += 1) {
      for (let other = one + 1; other < nodes.length; other += 1) {
        if (nodes[one].is_switch !== nodes[other].is_switch) continue;
        const distance = Math.hypot((nodes[one].x - nodes[other].x) * sx, (nodes[one].y - nodes[other].y) * sy);
        nearest[one] = Math.min(nearest[one], distance);
        nearest[other] = Math.min(nearest[other], distance);
      }
    }
    return nearest;
  }

  // After a change of light and dark.
  restyle() {
    this.colours = Palette.read();
    this.context.font = `12px ${FONT}`;
    this.textWidths = this.replay.nodes.map(node => this.context.measureText(Painter.line(node.name)).width);
  }

  // A name on one line, and not endless.
  static line(name) {
    const line = name.replace(/\s+/g, " ");
    return line.length > 24 ? `${line.slice(0, 23)}\u2026` : line;
  }

  // Everything that depends on where the picture is moved and on its size.
  place(view) {
    const { k, sx, sy } = view;
    if (this.stretched !== `${sx} ${sy}`) this.room = Painter.room(this.replay.nodes, view);
    this.stretched = `${sx} ${sy}`;
    this.view = view;
    this.boxes = this.replay.nodes.map((node, number) => {
      const [x, y, room] = [node.x * sx * k + view.x, node.y * sy * k + view.y, this.room[number] * k];
      if (!node.is_switch) return { x, y, radius: Math.max(1.2, Math.min(node.members > 1 ? 8 : 5, room * 0.32)), room };
      const width = Math.max(8, Math.min(this.textWidths[number] + 16, room - 6));
      return { x, y, width, height: width < 20 ? 12 : BOX_HEIGHT, named: this.textWidths[number] + 6 <= width };
    });
    this.curves = this.replay.links.map(link => this.curve(link));
    this.widths = this.replay.links.map(link => this.width(link));
  }

  curve(link) {
    const [a, b] = [this.boxes[link.a], this.boxes[link.b]];
    const whole = Geometry.curve(a, b, link.bend * this.view.k);
    const ends = [Geometry.exit(a, link.bend === 0 ? b : whole.middle), Geometry.exit(b, link.bend === 0 ? a : whole.middle)];
    const curve = Geometry.curve(ends[0], ends[1], link.bend * this.view.k);
    return { ...curve, length: Geometry.length(curve) };
  }

  // In pixels, by rate.
  width(link) {
    const share = this.fastest > this.slowest ? Math.log(link.rate_bps / this.slowest) / Math.log(this.fastest / this.slowest) : 0.4;
    const host = [link.a, link.b].find(node => !this.replay.nodes[node].is_switch);
    const most = host === undefined ? Infinity : Math.max(1, this.boxes[host].room * 0.5);
    return Math.min(most, (2.5 + 4 * share) * Math.max(0.6, Math.min(1.6, this.view.k)));
  }

  draw(now) {
    const { context, view } = this;
    context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
    context.clearRect(0, 0, view.width, view.height);
    context.lineCap = "butt";
    this.now = now;
    this.timeNs = this.replay.times[now.index];
    this.states = this.replay.links.map(link => this.replay.state(link.number, this.timeNs));
    this.drawHalos();
    this.drawTracks();
    this.drawUse();
    this.drawWay();
    this.drawBroken();
    this.drawTiers();
    this.drawNodes();
    this.drawQueues();
    this.drawDrops();
    this.drawNumbers();
  }

  trace(path, { from, middle, to, straight }) {
    path.moveTo(from.x, from.y);
    if (straight) path.lineTo(to.x, to.y); else path.quadraticCurveTo(middle.x, middle.y, to.x, to.y);
  }

  strokeAll(paths, style) {
    for (const [width, path] of paths) {
      Object.assign(this.context, style, { lineWidth: width });
      this.context.stroke(path);
    }
  }

  // Links by their width, so that a width is stroked once.
  byWidth(wanted, width) {
    const paths = new Map();
    for (const link of this.replay.links) {
      if (!wanted(link.number)) continue;
      const key = width(link.number);
      if (!paths.has(key)) paths.set(key, new Path2D());
      this.trace(paths.get(key), this.curves[link.number]);
    }
    return paths;
  }

  drawHalos() {
    this.now.selected.forEach((number, place) => {
      const path = new Path2D();
      this.trace(path, this.curves[number]);
      this.context.globalAlpha = 0.32;
      this.strokeAll([[this.widths[number] + 8, path]], { strokeStyle: this.colours.series[place % SERIES_COLOURS] });
      this.context.globalAlpha = 1;
    });
    if (this.now.hover !== null) {
      const path = new Path2D();
      this.trace(path, this.curves[this.now.hover]);
      this.context.globalAlpha = 0.25;
      this.strokeAll([[this.widths[this.now.hover] + 9, path]], { strokeStyle: this.colours.text });
      this.context.globalAlpha = 1;
    }
  }

  drawTracks() {
    const whole = number => this.states[number] === "";
    this.strokeAll(this.byWidth(number => whole(number) && this.widths[number] >= 3, number => this.widths[number]), { strokeStyle: this.colours.band });
    this.strokeAll(this.byWidth(whole, () => 1), { strokeStyle: this.colours.wire });
  }

  drawUse() {
    const paths = new Map();
    for (const link of this.replay.links) {
      if (this.states[link.number] === "down") continue;
      const curve = this.curves[link.number];
      const most = Math.max(0, 0.5 - 1.25 / Math.max(curve.length, 4));
      for (const side of [0, 1]) {
        const milli = this.replay.use[2 * link.number + side][this.now.index];
        const reach = most * Math.min(1, milli / 1000);
        if (reach * curve.length < 0.5) continue;
        const key = `${Palette.step(milli)} ${this.widths[link.number]}`;
        if (!paths.has(key)) paths.set(key, new Path2D());
        this.trace(paths.get(key), side === 0 ? Geometry.part(curve, 0, reach) : Geometry.part(curve, 1 - reach, 1));
      }
    }
    for (const [key, path] of paths) {
      const [step, width] = key.split(" ").map(Number);
      this.strokeAll([[width, path]], { strokeStyle: this.colours.use[step] });
    }
  }

  // The way of the flow that is followed: a line beside each of its links, with an arrow in the middle.
  drawWay() {
    if (!this.now.way) return;
    const { colours } = this;
    for (const hop of this.now.way.hops) {
      const curve = this.curves[hop.way >> 1];
      const path = new Path2D();
      this.trace(path, curve);
      this.strokeAll([[this.widths[hop.way >> 1] + 7, path]], { strokeStyle: colours.panel });
      this.strokeAll([[this.widths[hop.way >> 1] + 3.5, path]], { strokeStyle: colours.focus });
      this.arrow(curve, hop.way % 2 === 0, Math.max(6, this.widths[hop.way >> 1] + 3));
    }
  }

  arrow(curve, forth, size) {
    const { context, colours } = this;
    const [from, to] = [0.47, 0.53].map(t => Geometry.at(curve, forth ? t : 1 - t));
    const { x, y } = Geometry.at(curve, 0.5);
    context.save();
    context.translate(x, y);
    context.rotate(Math.atan2(to.y - from.y, to.x - from.x));
    context.beginPath();
    context.moveTo(size, 0);
    context.lineTo(-size * 0.8, size * 0.9);
    context.lineTo(-size * 0.8, -size * 0.9);
    context.closePath();
    Object.assign(context, { fillStyle: colours.focus, strokeStyle: colours.panel, lineWidth: 1.5 });
    context.fill();
    context.stroke();
    context.restore();
  }

  // Links that are down are dashed with a cross; silent ones are dotted with a slash, since their ends still send.
  drawBroken() {
    const { context, colours } = this;
    for (const [state, dash] of [["down", [7, 5]], ["silent", [2, 4]]]) {
      context.setLineDash(dash);
      this.strokeAll(this.byWidth(number => this.states[number] === state, () => 2), { strokeStyle: colours.down });
      context.setLineDash([]);
      for (const link of this.replay.links) {
        if (this.states[link.number] !== state || this.curves[link.number].length < 26) continue;
        const { x, y } = Geometry.at(this.curves[link.number], 0.4);
        context.beginPath();
        context.arc(x, y, 7.5, 0, 2 * Math.PI);
        Object.assign(context, { fillStyle: colours.panel, strokeStyle: colours.down, lineWidth: 1.6 });
        context.fill();
        context.stroke();
        context.beginPath();
        context.moveTo(x - 3.2, y + 3.2);
        context.lineTo(x + 3.2, y - 3.2);
        if (state === "down") {
          context.moveTo(x - 3.2, y - 3.2);
          context.lineTo(x + 3.2, y + 3.2);
        }
        context.stroke();
      }
    }
  }

  drawTiers() {
    const { context, view } = this;
    if (view.width < 600) return;
    context.font = `11px ${FONT}`;
    context.textAlign = "left";
    for (const tier of this.replay.layout.tiers) this.label(tier.name, 12, tier.y * view.sy * view.k + view.y + 4, this.colours.soft);
  }

  label(text, x, y, colour) {
    const { context } = this;
    Object.assign(context, { lineWidth: 4, lineJoin: "round", strokeStyle: this.colours.panel, fillStyle: colour });
    context.strokeText(text, x, y);
    context.fillText(text, x, y);
  }

  drawNodes() {
    const { context, colours } = this;
    this.replay.nodes.forEach((node, number) => {
      const box = this.boxes[number];
      const cut = node.links.length > 0 && node.links.every(link => this.states[link] !== "");
      Object.assign(context, { fillStyle: colours.node, strokeStyle: cut ? colours.down : colours.edge, lineWidth: 1.25 });
      context.setLineDash(cut ? [4, 3] : []);
      context.beginPath();
      if (node.is_switch) context.roundRect(box.x - box.width / 2, box.y - box.height / 2, box.width, box.height, 5);
      else context.arc(box.x, box.y, box.radius, 0, 2 * Math.PI);
      context.fill();
      context.stroke();
      context.setLineDash([]);
      this.drawName(node, box);
    });
  }

  drawName(node, box) {
    const { context, colours } = this;
    const name = Painter.line(node.name);
    context.textAlign = "center";
    if (node.is_switch && box.named) {
      Object.assign(context, { font: `12px ${FONT}`, fillStyle: colours.text });
      context.fillText(name, box.x, box.y + 4);
    } else if (!node.is_switch && this.isNamed(node, box)) {
      context.font = `11px ${FONT}`;
      this.label(name, box.x + node.out[0] * (box.radius + 14), box.y + node.out[1] * (box.radius + 12) + 4, colours.soft);
    }
  }

  isNamed(node, box) { return box.room > this.textWidths[node.number] + 4; }

  // What waits for an end host stands behind it as a bar, what waits elsewhere at its sender as a disc.
  drawQueues() {
    const { context, colours, replay } = this;
    if (!replay.hasQueues || replay.longestQueue === 0) return;
    Object.assign(context, { fillStyle: colours.queue, strokeStyle: colours.panel, lineWidth: 1.2 });
    replay.queued.forEach((bytes, way) => {
      const share = bytes[this.now.index] / replay.longestQueue;
      if (share < 0.006 || this.states[way >> 1] === "down") return;
      if (replay.isToHost(way)) {
        const { x, y, out, width } = this.stand(way);
        context.lineWidth = width;
        context.strokeStyle = colours.queue;
        context.beginPath();
        context.moveTo(x, y);
        context.lineTo(x + out[0] * QUEUE_BAR * share, y + out[1] * QUEUE_BAR * share);
        context.stroke();
        return;
      }
      const { x, y } = this.beside(way, 16);
      Object.assign(context, { strokeStyle: colours.panel, lineWidth: 1.2 });
      context.beginPath();
      context.arc(x, y, Math.max(2, QUEUE_DISC * Math.sqrt(share)), 0, 2 * Math.PI);
      context.fill();
      context.stroke();
    });
  }

  // Where the bar of an end host begins.
  stand(way) {
    const node = this.replay.receiver(way);
    const box = this.boxes[node.number];
    const from = box.radius + (this.isNamed(node, box) ? 22 : 3);
    return { x: box.x + node.out[0] * from, y: box.y + node.out[1] * from, out: node.out, width: Math.max(1.5, Math.min(8, box.room * 0.6)) };
  }

  // A point of a link so many pixels from its sender.
  beside(way, pixels) {
    const curve = this.curves[way >> 1];
    const t = Math.min(0.4, pixels / Math.max(curve.length, 1));
    return Geometry.at(curve, way % 2 === 0 ? t : 1 - t);
  }

  // Frames dropped just now, as diamonds; more of them are larger.
  drawDrops() {
    const { context, colours, replay } = this;
    const window = Math.max(1, Math.round(replay.length / 150));
    Object.assign(context, { fillStyle: colours.drop, strokeStyle: colours.panel, lineWidth: 1.2 });
    replay.dropped.forEach((frames, way) => {
      let sum = 0;
      for (let place = Math.max(0, this.now.index - window + 1); place <= this.now.index; place += 1) sum += frames[place];
      if (sum === 0) return;
      const size = Math.min(9, 3.5 + 1.8 * Math.log10(sum));
      const { x, y } = replay.isToHost(way) ? this.behind(way, size) : this.beside(way, 34);
      context.beginPath();
      context.moveTo(x, y - size);
      context.lineTo(x + size, y);
      context.lineTo(x, y + size);
      context.lineTo(x - size, y);
      context.closePath();
      context.fill();
      context.stroke();
    });
  }

  // Which of the plots beneath a chosen link is.
  drawNumbers() {
    const { context, colours } = this;
    Object.assign(context, { textAlign: "center", font: `600 10px ${FONT}` });
    this.now.selected.forEach((link, place) => {
      const { x, y } = Geometry.at(this.curves[link], 0.68);
      context.beginPath();
      context.arc(x, y, 7.5, 0, 2 * Math.PI);
      Object.assign(context, { fillStyle: colours.node, strokeStyle: colours.series[place % SERIES_COLOURS], lineWidth: 1.8 });
      context.fill();
      context.stroke();
      context.fillStyle = colours.text;
      context.fillText(String(place + 1), x, y + 3.6);
    });
  }

  behind(way, size) {
    const { x, y, out } = this.stand(way);
    const share = this.replay.longestQueue > 0 ? this.replay.queued[way][this.now.index] / this.replay.longestQueue : 0;
    const far = QUEUE_BAR * share + size + 2;
    return { x: x + out[0] * far, y: y + out[1] * far };
  }

  // What is at a point: a node before a link.
  hit(point) {
    const node = this.boxes.findIndex(box => box.radius !== undefined
      ? Math.hypot(point.x - box.x, point.y - box.y) <= Math.max(7, box.radius + 2)
      : Math.abs(point.x - box.x) <= box.width / 2 + 1 && Math.abs(point.y - box.y) <= box.height / 2 + 1);
    if (node >= 0) return { node };
    let best = { distance: 8, link: null };
    this.curves.forEach((curve, link) => {
      const { distance } = Geometry.nearest(curve, point);
      if (distance < best.distance) best = { distance, link };
    });
    return best.link === null ? {} : { link: best.link };
  }
}
