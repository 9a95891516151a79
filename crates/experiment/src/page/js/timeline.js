// The slider with what happened on it: traffic as an area, outages as bars, faults, repairs and moves as marks.
const SVG = "http://www.w3.org/2000/svg";
const THUMB = 8;
const AREA_HEIGHT = 54;
const LANES = 6;
const LANE_HEIGHT = 4.6;

function drawn(tag, attributes, children = []) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) element.append(child);
  return element;
}

class Timeline {
  constructor(replay, goTo) {
    this.replay = replay;
    this.marks = document.getElementById("marks");
    this.slider = document.getElementById("time");
    this.slider.addEventListener("input", () => goTo(Number(this.slider.value)));
    new ResizeObserver(() => this.redraw()).observe(this.marks);
    this.redraw();
  }

  x(place) { return THUMB + place / Math.max(1, this.replay.length - 1) * (this.width - 2 * THUMB); }

  redraw() {
    this.width = this.marks.clientWidth;
    if (this.width === 0) return;
    const outages = this.outages();
    this.height = AREA_HEIGHT + (outages.length > 0 ? 4 + Math.min(LANES, this.lanes) * LANE_HEIGHT : 0);
    this.marks.style.height = `${this.height}px`;
    this.marks.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.head = drawn("line", { class: "head", y1: 15, y2: this.height, x1: 0, x2: 0 });
    this.marks.replaceChildren(...this.area(), ...outages, ...this.events(), this.head);
    this.show(Number(this.slider.value));
  }

  area() {
    const values = this.replay.delivered();
    const most = Math.max(...values, 1);
    const y = value => 52 - 34 * value / most;
    const points = values.slice(1).map((value, place) => `${this.x(place + 0.5).toFixed(1)} ${y(value).toFixed(1)}`);
    if (points.length === 0) return [];
    const ends = [`M${this.x(0.5).toFixed(1)} 52L`, `L${this.x(values.length - 1.5).toFixed(1)} 52Z`];
    const hosts = this.replay.nodes.some(node => !node.is_switch);
    const text = drawn("text", { x: THUMB, y: 12 }, [`${hosts ? "to servers" : "all links"}, at most ${Words.rate(most)}`]);
    return [drawn("path", { class: "area", d: ends[0] + points.join("L") + ends[1] }), drawn("path", { class: "edge", d: `M${points.join("L")}` }), text];
  }

  outages() {
    const spans = new Map();
    for (const outage of this.replay.outages.flat()) spans.set(`${outage.subject} ${outage.from}`, outage);
    const lanes = [];
    this.lanes = 0;
    return [...spans.values()].sort((a, b) => a.from - b.from).map(({ from, to, silent }) => {
      let lane = lanes.findIndex(end => end <= from);
      if (lane < 0) lane = lanes.push(0) - 1;
      lanes[lane] = to;
      this.lanes = lanes.length;
      const [x1, x2] = [from, Math.min(to, this.replay.end)].map(time => this.x(this.replay.placeOf(time)).toFixed(1));
      const y = AREA_HEIGHT + 4 + (lane % LANES) * LANE_HEIGHT;
      return drawn("line", { class: silent ? "outage silent" : "outage", x1, x2, y1: y, y2: y });
    });
  }

  events() {
    return this.replay.marked.map(event => {
      const x = this.x(this.replay.placeOf(event.time_ns));
      const shape = { fault: `M${x - 4.5} 17h9l-4.5 8z`, repair: `M${x - 4} 24.5h8l-4 -7z`, move: `M${x} 16l4.5 5l-4.5 5l-4.5 -5z` }[event.kind];
      const title = drawn("title", {}, [Words.event(event)]);
      return drawn("g", {}, [drawn("line", { class: "tick", x1: x, x2: x, y1: 26, y2: this.height }), drawn("path", { class: event.kind, d: shape }, [title])]);
    });
  }

  show(index) {
    this.slider.max = this.replay.length - 1;
    this.slider.value = index;
    const x = this.x(index).toFixed(1);
    this.head.setAttribute("x1", x);
    this.head.setAttribute("x2", x);
  }
}
