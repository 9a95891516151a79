// Joins the parts: what is shown now, playing, choosing, keys.
const CHOSEN_MOST = 6;
// Tables are read, not watched: while it plays they follow at this distance.
const LIST_EVERY_MS = 250;

class Page {
  constructor(given, live = null) {
    const replay = new Replay(given, live !== null);
    Object.assign(this, { replay, live, index: 0, playing: false, hover: null, selected: replay.notable(3), listed: 0, grown: 0 });
    this.clock = replay.clock;
    if (!live) document.getElementById("report").href = replay.report;
    this.painter = new Painter(document.getElementById("canvas"), replay);
    this.view = new View(document.getElementById("canvas"), replay.layout, () => this.moved());
    this.timeline = new Timeline(replay, index => this.goTo(index));
    this.plots = new Plots(replay, index => this.goTo(index));
    this.lists = new Lists(replay, link => this.choose(link), node => this.visit(node), index => this.goTo(index));
    this.follow = new Follow(replay, () => this.paint());
    this.legend();
    this.buttons();
    this.pointer();
    document.addEventListener("keydown", event => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
    this.lists.rebuild();
    this.showChosen();
    this.goTo(this.firstMoment());
  }

  // A picture that says something: the first fault, or the middle of the run.
  firstMoment() {
    if (this.live) return this.replay.length - 1;
    const fault = this.replay.marked.find(event => event.kind === "fault");
    return fault ? this.replay.placeAfter(fault) : Math.floor(this.replay.length / 2);
  }

  // More of the same run, from a live source.
  take(chunk) {
    const follows = this.index === this.replay.length - 1;
    this.replay.take(chunk);
    const old = this.replay.length > REMEMBERED ? REMEMBERED / 10 : 0;
    if (old > 0) this.replay.forget(old);
    if (chunk.events.length > 0) {
      this.lists.events();
      this.legend();
      this.marks();
    }
    const now = performance.now();
    if (now - this.grown > GROW_EVERY_MS) {
      this.grown = now;
      this.timeline.redraw();
      this.plots.show(this.selected);
    }
    this.goTo(follows ? this.replay.length - 1 : this.index - old);
  }

  moved() {
    if (!this.view) {
      requestAnimationFrame(() => this.moved());
      return;
    }
    document.getElementById("tip").hidden = true;
    this.painter.place(this.view);
    this.paint();
  }

  paint() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (!this.painter.curves) return;
      this.painter.draw({ index: this.index, selected: this.selected, hover: this.hover, way: this.follow.way(this.index) });
      if (performance.getEntriesByName("first picture").length === 0) performance.mark("first picture");
    });
  }

  goTo(index) {
    this.index = Math.max(0, Math.min(this.replay.length - 1, index));
    const [timeNs, { end }] = [this.replay.times[this.index], this.replay];
    document.getElementById("clock").replaceChildren(this.clock.text(timeNs), made("small", { textContent: ` of ${this.clock.text(end)}` }));
    this.timeline.slider.setAttribute("aria-valuetext", this.clock.text(timeNs));
    this.timeline.show(this.index);
    this.plots.moveTo(this.index);
    this.say();
    this.follow.show(this.index);
    const now = performance.now();
    if (!this.playing || now - this.listed > LIST_EVERY_MS) {
      this.listed = now;
      this.lists.show(this.index);
    }
    this.paint();
  }

  // The last thing that happened, and how many links are down.
  say() {
    const event = this.replay.lastEvent(this.index);
    const timeNs = this.replay.times[this.index];
    const down = this.replay.links.filter(link => this.replay.state(link.number, timeNs) !== "").length;
    const parts = [event ? `${this.clock.text(event.time_ns)}: ${Words.event(event)}` : "", down > 0 ? `${Words.count(down, "link")} down` : ""];
    const place = document.getElementById("now");
    place.setAttribute("aria-live", this.playing ? "off" : "polite");
    Lists.put(place, parts.filter(part => part !== "").join("; "));
  }

  play(wanted) {
    this.playing = wanted;
    const button = document.getElementById("play");
    button.className = wanted ? "playing" : "";
    button.setAttribute("aria-label", wanted ? "Pause" : "Play");
    if (!wanted) {
      this.goTo(this.index);
      return;
    }
    if (this.index === this.replay.length - 1) this.index = 0;
    let [before, place] = [performance.now(), this.index];
    const step = now => {
      if (!this.playing) return;
      const seconds = Number(document.getElementById("seconds").value);
      place = (Math.floor(place) === this.index ? place : this.index) + (now - before) / 1000 * (this.replay.length - 1) / seconds;
      before = now;
      if (Math.floor(place) !== this.index) this.goTo(Math.floor(place));
      if (this.index >= this.replay.length - 1) this.play(false); else requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  step(by) {
    this.play(false);
    this.goTo(this.index + by);
  }

  jump(event) {
    this.play(false);
    if (event) this.goTo(this.replay.placeAfter(event));
  }

  choose(link) {
    const others = this.selected.filter(one => one !== link);
    this.selected = others.length < this.selected.length ? others : [...others, link].slice(-CHOSEN_MOST);
    this.showChosen();
    this.live?.touch({ link });
    this.paint();
  }

  // A switch's links in the list; a host's in the plots.
  visit(node) {
    const { links, is_switch: isSwitch, name } = this.replay.nodes[node];
    if (isSwitch) this.lists.find(name); else links.forEach(one => this.choose(one));
    this.live?.touch({ node });
  }

  showChosen() {
    const items = this.selected.map((link, place) => {
      const { a, b, name } = this.replay.links[link];
      const text = `${Painter.line(this.replay.nodes[a].name)} \u2192 ${Painter.line(this.replay.nodes[b].name)}`;
      const button = made("button", { title: `Take ${name} away` }, [made("b", { className: `s${place % SERIES_COLOURS}`, textContent: place + 1 }), text, " \u00d7"]);
      button.addEventListener("click", () => this.choose(link));
      return made("li", {}, [button]);
    });
    document.getElementById("chosen").replaceChildren(...items);
    document.getElementById("plots-hint").textContent = this.selected.length > 0
      ? "Choose links in the picture or in the list. Lines are the direction of the arrow, dashed ones the other."
      : "Choose links in the picture or in the list.";
    this.plots.show(this.selected);
    this.lists.select(this.selected);
  }

  restyle() {
    this.painter.restyle();
    this.painter.place(this.view);
    this.plots.show(this.selected);
    this.paint();
  }

  buttons() {
    const on = (id, act) => document.getElementById(id).addEventListener("click", act);
    on("play", () => this.play(!this.playing));
    on("back", () => this.step(-1));
    on("forward", () => this.step(1));
    on("previous", () => this.jump(this.replay.previousEvent(this.index)));
    on("next", () => this.jump(this.replay.nextEvent(this.index)));
    on("zoom-in", () => this.view.by(1.4));
    on("zoom-out", () => this.view.by(1 / 1.4));
    on("zoom-fit", () => this.view.fit());
    this.marks();
  }

  marks() {
    for (const id of ["previous", "next"]) document.getElementById(id).disabled = this.replay.marked.length === 0;
  }

  key(event) {
    const { target, key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input[type=search], select")) return;
    const onSlider = target.id === "time", onCanvas = target.id === "canvas", onButton = target.matches("button, a");
    const far = event.shiftKey ? 10 : 1;
    const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    const acts = {
      " ": onButton ? null : () => this.play(!this.playing),
      ArrowLeft: onSlider ? null : () => this.step(-far),
      ArrowRight: onSlider ? null : () => this.step(far),
      Home: onSlider ? null : () => this.jump({ time_ns: 0 }),
      End: onSlider ? null : () => this.step(this.replay.length),
      n: () => this.jump(this.replay.nextEvent(this.index)),
      p: () => this.jump(this.replay.previousEvent(this.index)),
      "+": () => this.view.by(1.4), "=": () => this.view.by(1.4), "-": () => this.view.by(1 / 1.4), 0: () => this.view.fit(),
      "/": () => document.getElementById("filter").focus(),
    };
    const act = onCanvas && moves[key] ? () => this.view.move(...moves[key]) : acts[key];
    if (act) {
      event.preventDefault();
      act();
    }
  }

  pointer() {
    const { canvas } = this.painter;
    const point = event => ({ x: event.offsetX, y: event.offsetY });
    canvas.addEventListener("pointermove", event => this.pointAt(event.buttons ? {} : this.painter.hit(point(event)), point(event)));
    canvas.addEventListener("pointerleave", () => this.pointAt({}));
    canvas.addEventListener("click", event => {
      const { node, link } = this.painter.hit(point(event));
      if (link !== undefined) this.choose(link);
      if (node !== undefined) this.visit(node);
    });
  }

  // The link or node under the pointer, in words beside it.
  pointAt({ node, link }, point) {
    const tip = document.getElementById("tip");
    const hover = link ?? null;
    if (hover !== this.hover) {
      this.hover = hover;
      this.paint();
    }
    this.painter.canvas.style.cursor = node !== undefined || link !== undefined ? "pointer" : "default";
    tip.hidden = node === undefined && link === undefined;
    if (tip.hidden) return;
    tip.replaceChildren(...(link !== undefined ? this.linkTip(link) : this.nodeTip(node)));
    const left = Math.min(point.x + 14, this.view.width - tip.offsetWidth - 8);
    const top = point.y + 16 + tip.offsetHeight > this.view.height ? point.y - tip.offsetHeight - 10 : point.y + 16;
    Object.assign(tip.style, { left: `${Math.max(4, left)}px`, top: `${Math.max(4, top)}px` });
  }

  linkTip(number) {
    const { replay, index } = this;
    const link = replay.links[number];
    const rows = [2 * number, 2 * number + 1].map(way => {
      const texts = [`${Painter.line(replay.sender(way).name)} \u2192`, Words.percent(replay.use[way][index])];
      if (replay.hasQueues) texts.push(`${Words.bytes(replay.queued[way][index])} wait`);
      if (replay.droppedSoFar[way][index] > 0) texts.push(`${replay.droppedSoFar[way][index]} dropped`);
      return made("tr", {}, texts.map(text => made("td", { textContent: text })));
    });
    const state = replay.state(number, replay.times[index]);
    return [made("b", { textContent: link.name }), ` ${Words.rate(link.rate_bps)}${link.members > 1 ? ` in ${link.members} links` : ""}${state ? `, ${state}` : ""}`, made("table", {}, [made("tbody", {}, rows)])];
  }

  nodeTip(number) {
    const { name, role, members, links } = this.replay.nodes[number];
    const what = members > 1 ? `${members} of role ${role}` : role;
    const cpu = this.replay.cpuAt(this.replay.times[this.index]).get(number);
    return [made("b", { textContent: name }), ` ${what}, ${Words.count(this.linksOf(links), "link")}${cpu ? `, daemons ${Words.percent(cpu)} of a core` : ""}`];
  }

  linksOf(links) { return links.reduce((sum, link) => sum + this.replay.links[link].members, 0); }

  legend() {
    const { replay } = this;
    const entry = (picture, text) => made("span", {}, [picture, text]);
    const art = (width, height, children) => drawn("svg", { width, height, "aria-hidden": "true" }, children);
    const line = (x1, x2, y, width, name) => drawn("line", { class: name, x1, x2, y1: y, y2: y, "stroke-width": width });
    const gauges = [100, 300, 500, 800, 1000].flatMap((milli, place) => {
      const x = place * 46;
      return [line(x, x + 40, 5, 5, "band"), line(x, x + 40, 5, 1, "wire"), line(x, x + 40 * milli / 1000, 5, 5, `use-${Palette.step(milli)}`), drawn("text", { x: x + 20, y: 20 }, [`${milli / 10} %`])];
    });
    const entries = [entry(art(224, 22, gauges), "of the rate used: a half-link fills from its sender towards the middle")];
    const { slowest, fastest } = this.painter;
    if (slowest < fastest) entries.push(entry(art(34, 14, [line(0, 34, 3, 2.5, "wire"), line(0, 34, 10, 6, "wire")]), `${Words.rate(slowest)} to ${Words.rate(fastest)}`));
    if (replay.outages.some(all => all.some(one => !one.silent))) entries.push(entry(art(34, 14, [drawn("path", { class: "dashed", d: "M0 7h10m14 0h10", "stroke-width": 2, "stroke-dasharray": "6 4" }), drawn("path", { class: "dashed", d: "M13.5 3.5l7 7m0-7l-7 7", "stroke-width": 1.6 })]), "down"));
    if (replay.outages.some(all => all.some(one => one.silent))) entries.push(entry(art(34, 14, [drawn("path", { class: "dashed", d: "M0 7h12m10 0h12", "stroke-width": 2, "stroke-dasharray": "2 3" }), drawn("path", { class: "dashed", d: "M13.5 10.5l7-7", "stroke-width": 1.6 })]), "silent: up, and loses everything"));
    if (replay.mostDropped > 0) entries.push(entry(art(22, 16, [drawn("path", { class: "lost", d: "M4 4l4 4l-4 4l-4-4z" }), drawn("path", { class: "lost", d: "M15 1l7 7l-7 7l-7-7z" })]), "frames dropped, the larger the more"));
    if (replay.hasQueues && replay.longestQueue > 0) entries.push(entry(art(34, 16, [drawn("circle", { class: "waits", cx: 4, cy: 8, r: 2.5 }), drawn("circle", { class: "waits", cx: 15, cy: 8, r: 6 }), drawn("rect", { class: "waits", x: 27, y: 1, width: 5, height: 14 })]), `bytes that wait, longest ${Words.bytes(replay.longestQueue)}; for a server behind it`));
    document.getElementById("legend").replaceChildren(...entries);
  }
}

const given = JSON.parse(document.getElementById("document").textContent);
if (given) globalThis.weftPage = new Page(given); else globalThis.weftLive = new Live();
