// The same as the picture, as tables: for keyboards, screen readers, and for looking up a number.
const ROWS_MOST = 150;

function made(tag, properties = {}, children = []) {
  const element = document.createElement(tag);
  Object.assign(element, properties);
  element.append(...children);
  return element;
}

class Lists {
  constructor(replay, choose, visit, goTo) {
    Object.assign(this, { replay, choose, visit, goTo, filter: "", order: "place", rows: [] });
    this.links = document.getElementById("links");
    this.nodes = document.getElementById("nodes");
    const field = document.getElementById("filter");
    field.addEventListener("input", () => this.find(field.value));
    const order = document.getElementById("order");
    order.addEventListener("change", () => {
      this.order = order.value;
      this.rebuild();
    });
    this.events();
    this.nodeTable();
  }

  find(text) {
    document.getElementById("filter").value = text;
    this.filter = text.toLowerCase();
    this.rebuild();
  }

  head(table, words) {
    const cells = words.map(([word, number]) => made("th", { scope: "col", className: number ? "number" : "", textContent: word }));
    table.replaceChildren(made("thead", {}, [made("tr", {}, cells)]), made("tbody"));
  }

  // A link's numbers of now, for sorting: the larger of its directions.
  weight(link) {
    const rows = { use: this.replay.use, queued: this.replay.queued, dropped: this.replay.droppedSoFar }[this.order];
    return Math.max(rows[2 * link.number][this.index], rows[2 * link.number + 1][this.index]);
  }

  rebuild() {
    const { replay } = this;
    let links = replay.links.filter(link => link.name.toLowerCase().includes(this.filter));
    if (this.order !== "place") links = links.map(link => [this.weight(link), link]).sort((a, b) => b[0] - a[0]).map(pair => pair[1]);
    const more = links.length - ROWS_MOST;
    document.getElementById("links-more").textContent = more > 0 ? `${more} more; find them by name or in another order.` : links.length === 0 ? "No link has that in its name." : "";
    const queues = replay.hasQueues ? [["waits \u2192", true], ["waits \u2190", true]] : [];
    this.head(this.links, [["link", false], ["rate", true], ["use \u2192", true], ["use \u2190", true], ...queues, ["dropped so far", true], ["state", false]]);
    this.rows = links.slice(0, ROWS_MOST).map(link => {
      const button = made("button", { textContent: Painter.line(replay.nodes[link.a].name) + " \u2192 " + Painter.line(replay.nodes[link.b].name), title: `${link.a_interface}, ${link.b_interface}: ${link.class}` });
      button.addEventListener("click", () => this.choose(link.number));
      const cells = [1, 2, 3, ...(replay.hasQueues ? [4, 5] : []), 6].map(() => made("td", { className: "number" }));
      cells[0].textContent = `${Words.rate(link.rate_bps)}${link.members > 1 ? ` in ${link.members}` : ""}`;
      const state = made("td");
      this.links.tBodies[0].append(made("tr", {}, [made("td", {}, [button]), ...cells, state]));
      return { link, button, cells, state };
    });
    this.select(this.selected ?? []);
    this.show(this.index ?? 0);
  }

  select(selected) {
    this.selected = selected;
    for (const { link, button } of this.rows) button.setAttribute("aria-pressed", String(selected.includes(link.number)));
  }

  show(index) {
    this.index = index;
    const { replay } = this;
    const timeNs = replay.times[index];
    for (const { link, cells, state } of this.rows) {
      const ways = [2 * link.number, 2 * link.number + 1];
      const use = ways.map(way => Words.percent(replay.use[way][index]));
      const queues = replay.hasQueues ? ways.map(way => Words.bytes(replay.queued[way][index])) : [];
      const dropped = ways.reduce((sum, way) => sum + replay.droppedSoFar[way][index], 0);
      const texts = [...use, ...queues, String(dropped)];
      texts.forEach((text, place) => Lists.put(cells[place + 1], text));
      const word = replay.state(link.number, timeNs);
      Lists.put(state, word || "up");
      state.className = word ? "bad" : "";
    }
    this.showNodes(index, timeNs);
    for (const { item, event } of this.items) item.className = event.time_ns <= timeNs ? "past" : "";
  }

  // Only what has changed is written: a reader is not told the same again.
  static put(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  nodeTable() {
    const { replay } = this;
    const queues = replay.hasQueues ? [["waits at it", true]] : [];
    const cpu = replay.hasCpu ? [["daemons' CPU", true]] : [];
    this.head(this.nodes, [["node", false], ["role", false], ["links", true], ["down", true], ["sends", true], ["receives", true], ...queues, ...cpu, ["dropped at it so far", true]]);
    this.nodeRows = replay.nodes.slice(0, 2 * ROWS_MOST).map(node => {
      const button = made("button", { textContent: Painter.line(node.name), title: "its links" });
      button.addEventListener("click", () => this.visit(node.number));
      const cells = Array.from({ length: 5 + queues.length + cpu.length }, () => made("td", { className: "number" }));
      cells[0].textContent = String(node.links.length);
      this.nodes.tBodies[0].append(made("tr", {}, [made("td", {}, [button]), made("td", { textContent: node.members > 1 ? `${node.members} \u00d7 ${node.role}` : node.role }), ...cells]));
      return { node, cells };
    });
  }

  showNodes(index, timeNs) {
    const { replay } = this;
    const cpu = replay.cpuAt(timeNs);
    for (const { node, cells } of this.nodeRows) {
      const out = node.links.map(link => 2 * link + (replay.links[link].a === node.number ? 0 : 1));
      const sum = (rows, ways) => ways.reduce((all, way) => all + rows[way][index], 0);
      const rate = ways => ways.reduce((all, way) => all + replay.use[way][index] * replay.links[way >> 1].rate_bps / 1000, 0);
      const down = node.links.filter(link => replay.state(link, timeNs) !== "").length;
      const texts = [String(down), Words.rate(rate(out)), Words.rate(rate(out.map(way => way ^ 1)))];
      if (replay.hasQueues) texts.push(Words.bytes(sum(replay.queued, out)));
      if (replay.hasCpu) texts.push(Words.percent(cpu.get(node.number) ?? 0));
      texts.push(String(sum(replay.droppedSoFar, out)));
      texts.forEach((text, place) => Lists.put(cells[place + 1], text));
    }
  }

  events() {
    const { clock } = this.replay;
    this.items = this.replay.events.slice(0, 400).map(event => {
      const button = made("button", { textContent: clock.text(event.time_ns) });
      button.addEventListener("click", () => this.goTo(this.replay.placeAfter(event)));
      return { event, item: made("li", {}, [button, Words.event(event)]) };
    });
    const nothing = made("li", { className: "soft", textContent: "No fault, repair or move in this run." });
    document.getElementById("events").replaceChildren(...(this.items.length > 0 ? this.items.map(one => one.item) : [nothing]));
  }
}
