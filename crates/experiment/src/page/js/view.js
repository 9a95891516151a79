// How the picture is moved and how large it is: d3-zoom says, and everything asks here.
const SCALE_MOST = 6;
const STRETCH_MOST = 1.7;
// Pixels that the network leaves free: for names of tiers and for bars below servers; names have no room on narrow screens.
const ROOM = { wide: { left: 84, right: 12, top: 4, bottom: 28 }, narrow: { left: 4, right: 4, top: 4, bottom: 28 } };

class View {
  constructor(canvas, layout, changed) {
    this.canvas = canvas;
    this.layout = layout;
    this.changed = changed;
    this.zoom = d3.zoom()
      .filter(event => this.wants(event))
      .on("zoom", ({ transform }) => {
        Object.assign(this, { x: transform.x, y: transform.y, k: transform.k });
        this.changed();
      });
    this.selection = d3.select(canvas);
    this.selection.call(this.zoom).on("dblclick.zoom", null);
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.resize();
  }

  // The wheel scrolls the page unless the picture was chosen; a finger moves the picture only where there is more of it.
  wants(event) {
    if (event.type === "wheel") return event.ctrlKey || event.metaKey || document.activeElement === this.canvas;
    if (event.type.startsWith("touch")) return event.touches.length > 1 || this.k > this.fitted * 1.02;
    return !event.button;
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = window.devicePixelRatio || 1;
    if (width === 0 || (width === this.width && height === this.height && ratio === this.ratio)) return;
    Object.assign(this, { width, height, ratio });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.fit();
  }

  // All of the network, in the middle.
  fit() {
    const room = this.width < 600 ? ROOM.narrow : ROOM.wide;
    const [across, down] = [this.width - room.left - room.right, this.height - room.top - room.bottom];
    this.stretch(across / down);
    const [width, height] = [this.layout.width * this.sx, this.layout.height * this.sy];
    this.fitted = Math.min(across / width, down / height, 1.5);
    this.zoom.scaleExtent([this.fitted * 0.8, Math.max(SCALE_MOST, this.fitted * 4)]);
    const x = room.left + (across - width * this.fitted) / 2;
    const y = room.top + (down - height * this.fitted) / 2;
    this.selection.call(this.zoom.transform, d3.zoomIdentity.translate(x, y).scale(this.fitted));
  }

  // Tiers may be as wide or as high as the screen is; a circle stays one.
  stretch(aspect) {
    const by = aspect / (this.layout.width / this.layout.height);
    const tiers = this.layout.tiers.length > 0;
    this.sx = tiers ? Math.max(1, Math.min(by, STRETCH_MOST)) : 1;
    this.sy = tiers ? Math.max(1, Math.min(1 / by, STRETCH_MOST)) : 1;
  }

  by(factor) { this.selection.call(this.zoom.scaleBy, factor); }

  move(dx, dy) { this.selection.call(this.zoom.translateBy, dx / this.k, dy / this.k); }
}
