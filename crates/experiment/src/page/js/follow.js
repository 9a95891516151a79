// One flow followed: its way at the time that is shown, link by link, with the headers there and why it is the next.
class Follow {
  constructor(replay, changed) {
    Object.assign(this, { replay, flow: null, shown: undefined });
    this.field = document.getElementById("flow");
    this.list = document.getElementById("way");
    const option = flow => made("option", { value: String(flow.number), textContent: `${flow.number}: ${Painter.line(flow.from)} \u2192 ${Painter.line(flow.to)}` });
    this.field.append(...replay.flows.map(option));
    this.field.addEventListener("change", () => {
      this.choose(this.field.value === "" ? null : Number(this.field.value));
      changed();
    });
    for (const id of ["following", "way-part"]) document.getElementById(id).hidden = replay.flows.length === 0;
    this.choose(null);
  }

  choose(number) {
    this.flow = this.replay.flows.find(flow => flow.number === number) ?? null;
    this.field.value = this.flow ? String(number) : "";
    this.shown = undefined;
    this.plot();
    this.show(this.index ?? 0);
  }

  // Its congestion window and round-trip time, where they were recorded.
  plot() {
    this.charts?.forEach(({ chart }) => chart.destroy());
    const place = document.getElementById("windows");
    place.replaceChildren();
    const windows = this.flow?.windows ?? [];
    const { clock } = this.replay;
    const micros = windows.map(window => window[2] > 0 ? window[2] / 1000 : null);
    const times = windows.map(window => window[0] / clock.size);
    const seen = windows.length < 2 ? [] : [["Congestion window, segments", windows.map(window => window[1])], ["Smoothed round-trip time, us", micros]];
    this.charts = seen.map(([title, values]) => Plots.chart(place, title, clock, value => `${value}`, [times, values], [{ stroke: Palette.read().series[0], width: 1.6, points: { show: false } }]));
  }

  // The way at a time; `null` before the flow begins.
  way(index) {
    const now = this.replay.times[index];
    return this.flow?.ways.findLast(way => way.time_ns <= now) ?? null;
  }

  show(index) {
    this.index = index;
    for (const { chart, head, size } of this.charts ?? []) {
      const left = chart.valToPos(this.replay.times[index] / size, "x");
      head.hidden = !(left >= 0 && left <= chart.over.clientWidth);
      if (!head.hidden) head.style.left = `${left}px`;
    }
    const way = this.way(index);
    Lists.put(document.getElementById("way-said"), this.said(way));
    if (way === this.shown) return;
    this.shown = way;
    this.list.replaceChildren(...(way ? way.hops.map((hop, place) => this.item(hop, place, way.hops)) : []));
  }

  said(way) {
    if (!this.flow) return "Choose a flow: its way, the headers on each link, and why it goes there.";
    const clock = Words.clock(this.replay.end);
    const { ways } = this.flow;
    if (!way) return `Flow ${this.flow.number} begins at ${clock.text(ways[0].time_ns)}.`;
    const number = ways.indexOf(way) + 1;
    const until = ways[number] ? ` until ${clock.text(ways[number].time_ns)}` : "";
    return `Flow ${this.flow.number}, way ${number} of ${ways.length}, taken from ${clock.text(way.time_ns)}${until}.`;
  }

  item(hop, place, hops) {
    const { replay } = this;
    const [from, to] = [replay.sender(hop.way), replay.receiver(hop.way)].map(node => Painter.line(node.name));
    const before = place > 0 ? hops[place - 1].headers : [];
    const box = (name, text) => made("li", { className: name, textContent: text });
    const stack = [box("", "Ethernet"), ...hop.headers.map(header => box("outer", header)), box("own", `IPv4 to ${Painter.line(this.flow.to)}`), box("own", "TCP")];
    const [on, off] = [hop.headers.filter(header => !before.includes(header)), before.filter(header => !hop.headers.includes(header))];
    const why = [`${from}: ${this.reason(hop)}.`];
    if (on.length > 0) why.push(`It puts on ${Words.count(on.length, "header")}, ${hop.header_bytes} bytes.`);
    if (off.length > 0) why.push(`It takes off ${Words.count(off.length, "header")}; ${hop.header_bytes} bytes are left.`);
    return made("li", {}, [made("h3", { textContent: `${place + 1}. ${from} \u2192 ${to}` }), made("ol", { className: "stack" }, stack), made("p", { className: "soft", textContent: why.join(" ") })]);
  }

  reason(hop) {
    const { next_hops: all, chosen, hash, toward } = hop;
    if (all > 1) return `toward ${toward} it has ${all} equal next hops; hash ${hash.slice(0, 8)} takes number ${chosen}`;
    return toward === this.replay.receiver(hop.way).name ? "its one link there" : `the one next hop toward ${toward}`;
  }
}
