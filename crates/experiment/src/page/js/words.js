// Numbers and events as people read them. Nothing here knows the page.
const Words = {
  rate(bps) {
    return Words.scaled(bps, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
  },
  bytes(bytes) {
    return Words.scaled(bytes, ["B", "kB", "MB", "GB"]);
  },
  scaled(value, units) {
    let place = 0;
    while (value >= 999.5 && place + 1 < units.length) {
      value /= 1000;
      place += 1;
    }
    const digits = place === 0 || value >= 99.5 ? 0 : value >= 9.95 ? 1 : 2;
    return `${Number(value.toFixed(digits))} ${units[place]}`;
  },
  percent(milli) {
    return `${milli > 0 && milli < 10 ? (milli / 10).toFixed(1) : Math.round(milli / 10)} %`;
  },
  // One unit for all times of a run, so that a running clock does not jump.
  clock(longestNs) {
    const [unit, size] = longestNs < 2e6 ? ["us", 1e3] : longestNs < 2e9 ? ["ms", 1e6] : ["s", 1e9];
    const digits = longestNs / size < 20 ? 2 : longestNs / size < 200 ? 1 : 0;
    return { unit, size, text: (ns, more = 0) => `${(ns / size).toFixed(digits + more)} ${unit}` };
  },
  count(number, word) {
    return `${number} ${word}${number === 1 ? "" : "s"}`;
  },
  event(event) {
    const { kind, subject, silent, nodes } = event;
    const what = nodes.length > 0 ? `switch ${subject}` : subject;
    switch (kind) {
      case "fault": return silent ? `${what} falls silent` : `${what} fails`;
      case "repair": return silent ? `${what} is heard again` : `${what} is repaired`;
      case "routes-restored": return `routes use ${subject} again`;
      case "ready": return `${subject} takes part again`;
      case "adjacency": return `adjacency ${subject}`;
      default: return subject;
    }
  },
};
