// A network that runs: what happens comes from whoever served the page, and what people do goes there.
const RETRY_MS = 1000;
// Times that the page remembers, five minutes of ten a second; then the oldest tenth goes.
const REMEMBERED = 3000;
// Lines and slider are drawn anew this often while time goes on; the picture with every look.
const GROW_EVERY_MS = 500;
const CAPTURE_S = 5;

class Live {
  constructor() {
    // Behind the address, where browsers send it to nobody.
    this.token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
    this.page = null;
    this.what = null;
    this.done = document.getElementById("done");
    for (const button of document.querySelectorAll("#act [data-verb]")) button.addEventListener("click", () => this.act(button.dataset.verb, this.request(button.dataset.verb)));
    document.getElementById("repair-all").addEventListener("click", () => this.act("repair", { all: true }));
    this.capturing = document.getElementById("capture");
    this.capturing.addEventListener("click", () => this.capture());
    this.racks = document.getElementById("racks");
    this.racks.addEventListener("change", () => this.act("move", { server: this.what.server, edge: this.racks.value }));
    this.begin();
  }

  post(path, body) {
    return this.ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  }

  ask(path, { headers = {}, ...options } = {}) {
    return fetch(`/api/v1/${path}`, { ...options, headers: { ...headers, Authorization: `Bearer ${this.token}` } });
  }

  say(text, bad = false) {
    Lists.put(this.done, text);
    this.done.className = bad ? "bad" : "";
  }

  // The page of what is there now. One that shows something else already begins again.
  async begin() {
    const answer = await this.ask("document").catch(() => null);
    if (answer?.ok && this.page) {
      location.reload();
      return;
    }
    if (!answer?.ok) {
      const { error } = answer ? await answer.json().catch(() => ({})) : {};
      this.say(error ?? "Nobody answers. Does `weft lab watch` still run?", true);
      if (answer?.status !== 401) setTimeout(() => this.begin(), RETRY_MS);
      return;
    }
    const { document: given, next, may_change: mayChange, servers_move: moves } = await answer.json();
    Object.assign(this, { next, mayChange, moves });
    document.title = `${given.title} - weft`;
    document.getElementById("title").textContent = given.title;
    document.getElementById("subtitle").textContent = given.subtitle;
    this.say(mayChange ? "Choose a link or a switch to break it." : "A run has made this lab and says itself what fails.");
    this.page = globalThis.weftPage = new Page(given, this);
    this.probes(given.chunk);
    this.read();
  }

  // Looks as they come, one block of lines for each.
  async read() {
    try {
      const answer = await this.ask("stream", { headers: { "Last-Event-ID": String(this.next - 1) } });
      if (!answer.ok) throw new Error(`${answer.status}`);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const blocks = (text + value).split("\n\n");
        text = blocks.pop();
        if (blocks.some(block => this.take(block))) return;
      }
    } catch {
      this.say("Nobody answers. Does `weft lab watch` still run?", true);
    }
    setTimeout(() => this.read(), RETRY_MS);
  }

  // One block; whether it was the last of this network.
  take(block) {
    const fields = Object.fromEntries(block.split("\n").map(line => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]));
    if (fields.event) {
      this.say(fields.event === "gone" ? "The lab is down." : "Too much was missed; the page begins again.", true);
      setTimeout(() => this.begin(), RETRY_MS);
      return true;
    }
    this.next = Number(fields.id) + 1;
    const chunk = JSON.parse(fields.data);
    this.page.take(chunk);
    this.probes(chunk);
    if (chunk.events.length > 0) this.show();
    return false;
  }

  probes({ quiet, events }) {
    const [lost, all] = quiet ?? [0, 0];
    const outage = events.findLast(event => event.kind === "outage");
    if (outage) this.outage = outage.subject;
    const now = all === 0 ? "" : lost > 0 ? `${lost} of ${Words.count(all, "probe")} between servers hear nothing` : `${Words.count(all, "probe")} between servers arrive`;
    Lists.put(document.getElementById("probes"), [now, this.outage ? `last loss: ${this.outage}` : ""].filter(part => part !== "").join("; "));
  }

  // What buttons are about.
  touch({ link, node }) {
    if (!this.mayChange) return;
    const { nodes, links } = this.page.replay;
    const number = link ?? (nodes[node].is_switch ? undefined : nodes[node].links[0]);
    if (number === undefined && link === undefined && !nodes[node].is_switch) return;
    const found = number === undefined ? nodes[node] : links[number];
    const names = number === undefined ? [found.name] : [nodes[found.a].name, nodes[found.b].name];
    const server = number === undefined ? undefined : names.find((_, place) => nodes[[found.a, found.b][place]].role === "server");
    this.what = { names, link: number, node, server, whole: found.members === 1 };
    this.offerRacks();
    document.getElementById("act").hidden = false;
    this.show();
  }

  // Where a server may go: edge switches of other servers.
  offerRacks() {
    const { nodes, links } = this.page.replay;
    const { server } = this.what;
    const racks = nodes.filter(one => one.is_switch && one.links.some(link => nodes[links[link].a].role === "server" || nodes[links[link].b].role === "server"));
    document.getElementById("moving").hidden = !server || !this.what.whole || !this.moves || racks.length < 2;
    this.racks.replaceChildren(made("option", { textContent: "\u2026", value: "", disabled: true, selected: true }), ...racks.map(one => made("option", { textContent: Painter.line(one.name), value: one.name })));
  }

  // A link is slowed down to a tenth of what its fabric says.
  request(verb) {
    const { names, link } = this.what;
    if (verb !== "impair") return { what: names };
    return { from: names[0], to: names[1], rate: `${Math.round(this.page.replay.links[link].rate_bps / 10)} bit/s` };
  }

  show() {
    if (!this.what) return;
    const { names, link, node, whole } = this.what;
    const { replay } = this.page;
    const of = link === undefined ? replay.nodes[node].links : [link];
    const dead = of.length > 0 && of.every(one => replay.state(one, replay.end) === "down");
    Lists.put(document.getElementById("subject"), names.map(Painter.line).join(" \u2013 "));
    const may = { fail: whole && !dead, silence: whole && !dead, impair: whole && !dead && link !== undefined, repair: whole };
    for (const button of document.querySelectorAll("#act [data-verb]")) button.disabled = this.busy || !may[button.dataset.verb];
    this.capturing.disabled = !whole || this.captures;
    this.racks.disabled = this.busy;
    document.getElementById("repair-all").disabled = this.busy;
    if (!whole) this.say("Several are drawn as one here; break them by name: weft lab fail A B.");
  }

  // Frames of both ends of a link, or of all ports of a switch, as a file for Wireshark.
  async capture() {
    const { names, link } = this.what;
    const { a_interface: here, b_interface: there } = this.page.replay.links[link] ?? {};
    const ports = link === undefined ? names : [`${names[0]}:${here}`, `${names[1]}:${there}`];
    this.captures = true;
    this.show();
    this.say(`Frames of ${ports.join(" and ")} for ${CAPTURE_S} s \u2026`);
    try {
      const answer = await this.post("capture", { ports, seconds: CAPTURE_S });
      if (!answer.ok) throw new Error((await answer.json()).error);
      const file = await answer.blob();
      const save = made("a", { href: URL.createObjectURL(file), download: `${names.join("-")}.pcapng` });
      save.click();
      setTimeout(() => URL.revokeObjectURL(save.href), 60 * RETRY_MS);
      this.say(`${save.download}, ${Words.bytes(file.size)}`);
    } catch (error) {
      this.say(error.message, true);
    } finally {
      this.captures = false;
      this.show();
    }
  }

  async act(verb, body) {
    Object.assign(this, { busy: true });
    this.show();
    this.say(`${verb} \u2026`);
    try {
      const answer = await this.post(verb, body);
      const said = await answer.json();
      if (!answer.ok) throw new Error(said.error);
      if (verb === "move") {
        this.say(`${said.server} is at ${said.to} after ${Math.round(said.away_s * 1000)} ms; the directory knew after ${Math.round(said.told_s * 1000)} ms.`);
        return;
      }
      const routes = said.routes_s === null ? "" : `, routes followed ${Math.round(said.routes_s * 1000)} ms later`;
      this.say(`Done in ${Math.max(1, Math.round(said.kernel_s * 1000))} ms${routes}. ${Words.count(said.broken.length, "fault")} now${said.impaired?.length > 0 ? `, ${Words.count(said.impaired.length, "slow way")}` : ""}.`);
    } catch (error) {
      this.say(error.message, true);
    } finally {
      this.busy = false;
      this.show();
    }
  }
}
