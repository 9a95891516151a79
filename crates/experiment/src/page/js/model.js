// What the page knows: a fabric, and what its links did over time. Chunks of time are taken one after another: one with the document,
// and as many later as a live source sends.
class Replay {
  constructor(given, isLive = false) {
    this.isLive = isLive;
    this.title = given.title;
    this.report = given.report;
    this.layout = given.layout;
    this.flows = given.flows;
    this.nodes = given.nodes.map((node, number) => ({ ...node, number, links: [] }));
    this.links = given.links.map((link, number) => ({ ...link, number, name: `${given.nodes[link.a].name} \u2013 ${given.nodes[link.b].name}` }));
    for (const link of this.links) {
      this.nodes[link.a].links.push(link.number);
      this.nodes[link.b].links.push(link.number);
    }
    const directions = Array.from({ length: 2 * this.links.length }, (_, number) => number);
    this.times = [];
    this.use = directions.map(() => []);
    this.queued = directions.map(() => []);
    this.dropped = directions.map(() => []);
    this.droppedSoFar = directions.map(() => []);
    this.events = [];
    this.outages = this.links.map(() => []);
    this.hasQueues = false;
    this.longestQueue = 0;
    this.mostDropped = 0;
    this.cpu = [];
    this.take(given.chunk);
  }

  // One unit for all of its times.
  get clock() { return Words.clock(this.isLive ? 100e9 : this.end); }

  // Appends what happened next.
  take(chunk) {
    const begin = this.times.length;
    this.times.push(...chunk.times_ns);
    this.hasQueues ||= chunk.queued_bytes.length > 0;
    for (let way = 0; way < this.use.length; way += 1) {
      this.use[way].push(...chunk.use_milli[way]);
      const queued = chunk.queued_bytes[way] ?? chunk.times_ns.map(() => 0);
      this.queued[way].push(...queued);
      this.longestQueue = queued.reduce((most, one) => Math.max(most, one), this.longestQueue);
      this.takeDrops(way, begin, chunk.dropped[way]);
    }
    for (const event of chunk.events) this.takeEvent(event);
    for (const [place, nodes] of chunk.cpu_milli ?? []) this.cpu.push({ timeNs: this.times[begin + place], nodes: new Map(nodes) });
  }

  // Forgets its first times and what happened then, but for outages that last.
  forget(count) {
    this.times.splice(0, count);
    for (const rows of [this.use, this.queued, this.dropped, this.droppedSoFar]) rows.forEach(row => row.splice(0, count));
    const [first] = this.times;
    this.outages = this.outages.map(all => all.filter(one => one.to >= first));
    this.cpu = this.cpu.filter(one => one.timeNs >= first);
    const open = this.broken;
    this.events = this.events.filter(event => event.time_ns >= first || (event.kind === "fault" && open.has(event.subject)));
  }

  // What is broken at the end.
  get broken() {
    const open = new Set();
    for (const { kind, subject } of this.events) {
      if (kind === "fault") open.add(subject);
      if (kind === "repair") open.delete(subject);
    }
    return open;
  }

  get hasCpu() { return this.isLive || this.cpu.length > 0; }

  // Thousandths of a core that the daemons of nodes used, by the last reading at a time, or by the first one before there was any.
  cpuAt(timeNs) { return (this.cpu.findLast(one => one.timeNs <= timeNs) ?? this.cpu[0])?.nodes ?? new Map(); }

  takeDrops(way, begin, pairs) {
    const [now, sum] = [this.dropped[way], this.droppedSoFar[way]];
    while (now.length < this.times.length) now.push(0);
    for (let place = 0; place < pairs.length; place += 2) {
      now[begin + pairs[place]] = pairs[place + 1];
      this.mostDropped = Math.max(this.mostDropped, pairs[place + 1]);
    }
    for (let place = begin; place < now.length; place += 1) sum.push((place > 0 ? sum[place - 1] : 0) + now[place]);
  }

  takeEvent(event) {
    this.events.push(event);
    for (const link of event.links) {
      const outages = this.outages[link];
      if (event.kind === "fault") outages.push({ from: event.time_ns, to: Infinity, silent: event.silent, subject: event.subject });
      if (event.kind === "repair") {
        const open = outages.find(one => one.subject === event.subject && one.to === Infinity);
        if (open) open.to = event.time_ns;
      }
    }
  }

  get length() { return this.times.length; }
  get end() { return this.times[this.times.length - 1]; }

  // The last time that is not after this one.
  indexAt(timeNs) {
    let [low, high] = [0, this.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.times[middle] <= timeNs) low = middle; else high = middle - 1;
    }
    return low;
  }

  // Where a time lies among all, as a number between places.
  placeOf(timeNs) {
    const low = this.indexAt(timeNs);
    if (low + 1 >= this.length) return low;
    const step = this.times[low + 1] - this.times[low];
    return low + Math.max(0, Math.min(1, (timeNs - this.times[low]) / step));
  }

  // The place of the first sample that has seen an event.
  placeAfter(event) { return Math.min(this.length - 1, Math.ceil(this.placeOf(event.time_ns) - 1e-9)); }

  // "down", "silent" or "" at a time.
  state(link, timeNs) {
    let found = "";
    for (const one of this.outages[link]) {
      if (one.from <= timeNs && timeNs < one.to) {
        if (!one.silent) return "down";
        found = "silent";
      }
    }
    return found;
  }

  // Events that the slider marks.
  get marked() { return this.events.filter(event => ["fault", "repair", "move"].includes(event.kind)); }

  nextEvent(index) { return this.marked.find(event => this.placeAfter(event) > index); }
  previousEvent(index) { return this.marked.findLast(event => this.placeAfter(event) < index); }

  // What happened from the sample before to this one, or the last thing before it.
  lastEvent(index) { return this.events.findLast(event => event.time_ns <= this.times[index]); }

  sender(way) { return this.nodes[way % 2 === 0 ? this.links[way >> 1].a : this.links[way >> 1].b]; }
  receiver(way) { return this.sender(way ^ 1); }
  isToHost(way) { return !this.receiver(way).is_switch; }

  // Bits per second that reach end hosts at each time; all links of a network that has none.
  delivered() {
    const all = this.use.map((_, way) => way);
    const toHosts = all.filter(way => this.isToHost(way));
    const ways = toHosts.length > 0 ? toHosts : all;
    return this.times.map((_, place) => ways.reduce((sum, way) => sum + this.use[way][place] * this.links[way >> 1].rate_bps / 1000, 0));
  }

  // Links worth looking at first: those that fail; else those that drop most, wait most or are used most.
  notable(most) {
    const failing = this.links.filter(link => this.outages[link.number].length > 0);
    const sum = (rows, link) => [0, 1].reduce((all, side) => all + rows[2 * link.number + side].reduce((a, b) => a + b, 0), 0);
    const weight = link => [sum(this.dropped, link), this.hasQueues ? sum(this.queued, link) : 0, sum(this.use, link)];
    const weighed = this.links.map(link => ({ link, weight: weight(link) }));
    weighed.sort((one, other) => other.weight[0] - one.weight[0] || other.weight[1] - one.weight[1] || other.weight[2] - one.weight[2]);
    const order = [...failing, ...weighed.map(one => one.link)];
    return [...new Set(order)].slice(0, most).map(link => link.number);
  }
}
