// Colours of the style sheet, as the canvas needs them, and how far two of them are apart (WCAG 2.2, 1.4.3 and 1.4.11).
const USE_COLOURS = 6;
const SERIES_COLOURS = 6;

const Palette = {
  read() {
    const style = getComputedStyle(document.documentElement);
    const of = name => style.getPropertyValue(`--${name}`).trim();
    const names = ["text", "soft", "back", "panel", "line", "edge", "band", "wire", "node", "focus", "down", "drop", "queue", "good", "move"];
    const colours = Object.fromEntries(names.map(name => [name, of(name)]));
    colours.use = Array.from({ length: USE_COLOURS }, (_, step) => of(`use-${step}`));
    colours.series = Array.from({ length: SERIES_COLOURS }, (_, step) => of(`c${step}`));
    return colours;
  },
  // Which of the colours a use has.
  step(milli) {
    return Math.min(USE_COLOURS - 1, Math.floor(Math.min(milli, 999) * USE_COLOURS / 1000));
  },
  luminance(hex) {
    const parts = [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16) / 255);
    const [r, g, b] = parts.map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  },
  contrast(one, other) {
    const [low, high] = [Palette.luminance(one), Palette.luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  },
};
