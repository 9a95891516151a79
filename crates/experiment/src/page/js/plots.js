// Chosen links over time, beneath the picture: use and queue of both directions, the second one dashed.
const PLOT_HEIGHT = 170;

class Plots {
  constructor(replay, goTo) {
    this.replay = replay;
    this.goTo = goTo;
    this.place = document.getElementById("plots");
    this.charts = [];
    new ResizeObserver(() => this.resize()).observe(this.place);
  }

  show(selected) {
    this.selected = selected;
    this.charts.forEach(({ chart }) => chart.destroy());
    this.charts = [];
    this.place.replaceChildren();
    if (selected.length === 0) return;
    const percent = rows => rows.map(one => one / 10);
    this.add("Use of the rate, %", this.replay.use, percent, value => `${value}`);
    if (this.replay.hasQueues) this.add("Bytes that wait", this.replay.queued, rows => rows, value => Words.bytes(value));
    this.moveTo(this.index ?? 0);
  }

  add(title, rows, turned, said) {
    const { clock } = this.replay;
    const colours = Palette.read();
    const ways = this.selected.flatMap(link => [2 * link, 2 * link + 1]);
    const series = ways.map((way, number) => ({
      stroke: colours.series[(number >> 1) % SERIES_COLOURS], width: 1.6, dash: number % 2 === 0 ? [] : [5, 4], points: { show: false },
    }));
    const hooks = { drawClear: [chart => this.drawEvents(chart, colours)], draw: [chart => this.drawNumbers(chart, colours)] };
    const data = [this.replay.times.map(time => time / clock.size), ...ways.map(way => turned(rows[way]))];
    const drawn = Plots.chart(this.place, title, clock, said, data, series, hooks);
    drawn.chart.over.addEventListener("click", event => this.goTo(drawn.chart.posToIdx(event.offsetX)));
    this.charts.push(drawn);
  }

  // Lines over time with a heading, and what marks the time that is shown.
  static chart(place, title, clock, said, data, series, hooks = {}) {
    const holder = made("div", { className: "plot" }, [made("h3", { textContent: title })]);
    place.append(holder);
    const colours = Palette.read();
    const axis = { stroke: colours.soft, grid: { stroke: colours.line, width: 1 }, ticks: { stroke: colours.line, width: 1 }, font: "11px system-ui, sans-serif" };
    const options = {
      width: place.clientWidth, height: PLOT_HEIGHT, legend: { show: false }, scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(high * 1.05, 1)] } },
      cursor: { y: false, drag: { x: false, y: false } },
      axes: [{ ...axis, size: 30, values: (_, all) => all.map(one => `${one} ${clock.unit}`) }, { ...axis, size: 64, values: (_, all) => all.map(said) }],
      series: [{}, ...series], hooks,
    };
    const chart = new uPlot(options, data, holder);
    const head = made("div", { className: "playhead" });
    chart.over.append(head);
    return { chart, head, size: clock.size };
  }

  drawEvents(chart, colours) {
    const { ctx: context, bbox } = chart;
    const size = this.replay.clock.size;
    context.save();
    context.lineWidth = devicePixelRatio;
    for (const event of this.replay.marked) {
      context.strokeStyle = event.kind === "fault" ? colours.down : event.kind === "repair" ? colours.good : colours.move;
      context.globalAlpha = 0.55;
      context.setLineDash(event.kind === "fault" ? [] : [3 * devicePixelRatio, 3 * devicePixelRatio]);
      const x = Math.round(chart.valToPos(event.time_ns / size, "x", true));
      context.beginPath();
      context.moveTo(x, bbox.top);
      context.lineTo(x, bbox.top + bbox.height);
      context.stroke();
    }
    context.restore();
  }

  // Each line has the number of its link, at places of their own, so that none needs its colour.
  drawNumbers(chart, colours) {
    const { ctx: context } = chart;
    const count = chart.series.length - 1;
    context.save();
    context.setLineDash([]);
    Object.assign(context, { textAlign: "center", textBaseline: "middle", font: `600 ${10 * devicePixelRatio}px system-ui, sans-serif` });
    for (let number = 0; number < count; number += 1) {
      const place = Math.floor((number + 0.5) / count * (chart.data[0].length - 1));
      const [x, y] = [chart.valToPos(chart.data[0][place], "x", true), chart.valToPos(chart.data[number + 1][place], "y", true)];
      context.beginPath();
      context.arc(x, y, 7 * devicePixelRatio, 0, 2 * Math.PI);
      Object.assign(context, { fillStyle: colours.back, strokeStyle: colours.series[(number >> 1) % SERIES_COLOURS], lineWidth: 1.4 * devicePixelRatio });
      context.fill();
      context.stroke();
      context.fillStyle = colours.text;
      context.fillText(String((number >> 1) + 1), x, y);
    }
    context.restore();
  }

  moveTo(index) {
    this.index = index;
    for (const { chart, head, size } of this.charts) head.style.left = `${chart.valToPos(this.replay.times[index] / size, "x")}px`;
  }

  resize() {
    const width = this.place.clientWidth;
    for (const { chart } of this.charts) {
      if (width > 0 && chart.width !== width) chart.setSize({ width, height: PLOT_HEIGHT });
    }
    if (this.charts.length > 0) this.moveTo(this.index ?? 0);
  }
}
