// Lines, stacked areas or bars over time. All texts are inserted as text.

const charts = new WeakMap(); // one chart per element, over all its runs

export default function (component) {
  const root = component.parentElement;
  if (!charts.has(root)) charts.set(root, new Chart(root));
  charts.get(root).update(component.data);
}

const NS = "http://www.w3.org/2000/svg";
const LEFT = 46, RIGHT = 8, TOP = 8, BOTTOM = 20;
const DASHES = ["", "6 4", "2 4", "10 4 2 4", "14 5", "2 2", "8 3 2 3 2 3", "4 6"];
const STEPS = [10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
let charted = 0;

const make = (tag, className = "", text = "") => Object.assign(document.createElement(tag), { className, textContent: text });
const draw = (tag, attributes, text = "") => {
  const element = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  return element;
};
const colour = (number) => `var(--c${(number % 8) + 1})`;

class Chart {
  constructor(root) {
    this.id = `roost-chart-${++charted}`;
    this.box = make("div", "roost-chart");
    this.title = make("h2");
    this.legend = make("ul", "roost-chart-legend");
    this.svg = draw("svg", { class: "roost-chart-plot", role: "img", tabindex: "0" });
    this.empty = make("p", "roost-chart-empty");
    this.tip = make("div", "roost-chart-tip");
    this.live = make("div", "roost-chart-live");
    this.live.setAttribute("aria-live", "polite");
    this.details = make("details");
    this.scroll = make("div", "roost-chart-scroll");
    this.details.append(make("summary", "", "Values as a table"), this.scroll);
    this.box.append(this.title, this.legend, this.svg, this.empty, this.tip, this.live, this.details);
    root.append(this.box);
    this.tip.hidden = true;
    this.svg.addEventListener("pointermove", (event) => this.#point(this.#bucket(event)));
    this.svg.addEventListener("pointerleave", () => this.#point(null));
    this.svg.addEventListener("blur", () => this.#point(null));
    this.svg.addEventListener("keydown", (event) => this.#key(event));
    this.details.addEventListener("toggle", () => this.#table());
    new ResizeObserver(() => this.#plot()).observe(this.box);
  }

  update(data) {
    const text = JSON.stringify(data);
    if (text === this.known) return;
    Object.assign(this, { known: text, data, count: Math.max(0, ...data.series.map((one) => one.values.length)) });
    const isEmpty = !data.series.length;
    this.title.textContent = data.name;
    this.empty.textContent = data.empty;
    this.empty.hidden = !isEmpty;
    for (const part of [this.legend, this.svg, this.details]) part.style.display = isEmpty ? "none" : "";
    this.legend.replaceChildren(...data.series.map((one, number) => this.#legend(one, number)));
    this.svg.setAttribute("aria-label", this.#summary());
    this.#plot();
    this.#table();
  }

  // --- drawing -------------------------------------------------------------------------------------------------

  #legend({ label, total }, number) {
    const item = make("li");
    item.append(this.#swatch(number), make("span", "", label));
    if (total) item.append(make("b", "", total));
    return item;
  }

  #swatch(number) {
    const swatch = draw("svg", { class: "roost-chart-swatch", viewBox: "0 0 22 11", "aria-hidden": "true" });
    if (this.data.kind === "line") swatch.append(this.#line("M1 5.5H21", number));
    else swatch.append(draw("rect", { width: 22, height: 11, rx: 2, fill: this.#fill(number), stroke: colour(number) }));
    return swatch;
  }

  #line(path, number) {
    return draw("path", { class: "roost-chart-line", d: path, style: `stroke: ${colour(number)}`, "stroke-dasharray": DASHES[number % 8] });
  }

  #fill(number) {
    return `url(#${this.id}-${number})`;
  }

  #plot() {
    const { data, svg } = this;
    const width = this.box.clientWidth, height = svg.clientHeight || 176;
    if (!data?.series.length || width < 60) return;
    Object.assign(this, { width, height, slot: (width - LEFT - RIGHT) / this.count });
    const stacked = data.kind === "line" ? null : this.#stack();
    const tops = stacked ? stacked.at(-1) : data.series.flatMap((one) => one.values);
    this.top = niceTop(Math.max(...tops.map((value) => value ?? 0)), data.unit);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.cursor = draw("line", { class: "roost-chart-cursor", y1: TOP, y2: height - BOTTOM, visibility: "hidden" });
    const drawn = data.series.flatMap((one, number) => (stacked ? this.#area(stacked, number) : this.#lines(one.values, number)));
    svg.replaceChildren(this.#patterns(), ...this.#axes(), ...drawn, this.cursor);
    this.#point(null);
  }

  // Each series has its hatching.
  #patterns() {
    const all = draw("defs", {});
    const marks = ["", "M0 8L8 0", "M0 0L8 8", "M0 4H8", "M4 0V8", "M0 8L8 0M0 0L8 8", "M2 2h1M6 6h1", "M0 4H8M4 0V8"];
    this.data.series.forEach((_, number) => {
      const pattern = draw("pattern", { id: `${this.id}-${number}`, width: 8, height: 8, patternUnits: "userSpaceOnUse" });
      const opacity = this.data.kind === "bar" ? 0.75 : 0.45;
      pattern.append(draw("rect", { width: 8, height: 8, style: `fill: ${colour(number)}; opacity: ${opacity}` }));
      pattern.append(draw("path", { d: marks[number % 8] || "M0 0", style: "stroke: var(--roost-background); stroke-width: 1.5; fill: none" }));
      all.append(pattern);
    });
    return all;
  }

  #axes() {
    const { width, height, data } = this;
    const parts = [];
    for (const value of ticks(this.top)) {
      const y = this.#y(value);
      parts.push(draw("line", { class: "roost-chart-grid", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }));
      parts.push(draw("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, format(value, data.unit)));
    }
    const span = this.count * data.step, most = Math.max(2, Math.floor((width - LEFT) / 90));
    const every = STEPS.find((step) => step >= data.step && span / step <= most) ?? span;
    const shift = new Date(data.start * 1000).getTimezoneOffset() * 60; // ticks at whole local hours and days
    for (let time = Math.ceil((data.start - shift) / every) * every + shift; time <= data.start + span; time += every) {
      const x = LEFT + ((time - data.start) / data.step) * this.slot;
      const edge = x > width - 24 ? "end" : x < LEFT + 12 ? "start" : "middle";
      parts.push(draw("text", { x, y: height - 5, "text-anchor": edge }, clock(time, every)));
    }
    return parts;
  }

  #lines(values, number) {
    let path = "", isOpen = false;
    values.forEach((value, at) => {
      if (value !== null) path += `${isOpen ? "L" : "M"}${this.#x(at)} ${this.#y(value)}${isOpen ? "" : "h0.01"}`;
      isOpen = value !== null;
    });
    return [this.#line(path, number)];
  }

  #stack() {
    let below = Array(this.count).fill(0);
    return this.data.series.map((one) => (below = below.map((sum, at) => sum + (one.values[at] ?? 0))));
  }

  #area(stacked, number) {
    const upper = stacked[number], lower = stacked[number - 1] ?? upper.map(() => 0);
    const style = `fill: ${this.#fill(number)}; stroke: ${colour(number)}; stroke-width: 1`;
    if (this.data.kind === "bar") {
      const gap = this.slot > 4 ? 1 : 0;
      return upper.flatMap((value, at) => {
        if (value <= lower[at]) return [];
        const y = this.#y(value), size = { width: Math.max(1, this.slot - gap), height: this.#y(lower[at]) - y };
        return [draw("rect", { x: LEFT + at * this.slot + gap / 2, y, ...size, style })];
      });
    }
    const along = (line) => line.map((value, at) => `${this.#x(at)} ${this.#y(value)}`);
    return [draw("path", { d: `M${along(upper).join("L")}L${along(lower).reverse().join("L")}Z`, style })];
  }

  #x(at) {
    return LEFT + (at + 0.5) * this.slot;
  }

  #y(value) {
    return TOP + (1 - value / this.top) * (this.height - TOP - BOTTOM);
  }

  // --- values under the pointer, and by keyboard -----------------------------------------------------------------

  #bucket(event) {
    const at = Math.floor((event.clientX - this.svg.getBoundingClientRect().left - LEFT) / this.slot);
    return at >= 0 && at < this.count ? at : null;
  }

  #key(event) {
    const jump = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape") this.#point(null);
    if (jump === undefined) return;
    event.preventDefault();
    const from = this.at ?? (jump > 0 ? -1 : this.count);
    this.#point(Math.min(this.count - 1, Math.max(0, from + jump)));
    this.live.textContent = this.#told(this.at).flat().join(", ");
  }

  #point(at) {
    this.at = at;
    this.tip.hidden = at === null;
    this.cursor?.setAttribute("visibility", at === null ? "hidden" : "visible");
    if (at === null) return;
    const x = this.#x(at);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    const [time, ...values] = this.#told(at);
    const rows = values.map(([label, value], number) => {
      const row = make("div");
      row.append(this.#swatch(number), make("span", "", label), make("b", "", value));
      return row;
    });
    this.tip.replaceChildren(make("strong", "", time), ...rows);
    this.tip.style.top = `${this.legend.offsetTop + this.legend.offsetHeight + TOP}px`;
    const right = x + 12 + this.tip.offsetWidth > this.width;
    this.tip.style.left = `${Math.max(0, right ? x - 12 - this.tip.offsetWidth : x + 12)}px`;
  }

  #told(at) {
    const { series, unit, step, start } = this.data;
    const values = series.map((one) => [one.label, one.values[at] == null ? "–" : format(one.values[at], unit)]);
    return [moment(start + at * step), ...values];
  }

  // --- the same for screen readers -------------------------------------------------------------------------------

  #summary() {
    const { name, series, unit, start, step } = this.data;
    const told = series.map((one) => {
      const values = one.values.filter((value) => value !== null);
      return `${one.label}: highest ${format(Math.max(...values), unit)}, last ${format(values.at(-1), unit)}`;
    });
    return `${name}, from ${moment(start)} to ${moment(start + this.count * step)}. ${told.join("; ")}. Arrow keys read the values.`;
  }

  #table() {
    this.scroll.replaceChildren();
    if (!this.details.open) return;
    const table = make("table"), head = table.createTHead().insertRow();
    this.scroll.tabIndex = 0; // so that it can be scrolled by keyboard
    this.scroll.setAttribute("role", "region");
    this.scroll.setAttribute("aria-label", `Values: ${this.data.name}`);
    for (const label of ["Time", ...this.data.series.map((one) => one.label)]) head.append(Object.assign(make("th", "", label), { scope: "col" }));
    const body = table.createTBody();
    for (let at = this.count - 1; at >= 0; at--) {
      if (this.data.series.every((one) => !one.values[at])) continue;
      const [time, ...values] = this.#told(at), row = body.insertRow();
      row.append(make("td", "", time), ...values.map(([, value]) => make("td", "", value)));
    }
    this.scroll.append(table);
  }
}

// --- numbers and times -----------------------------------------------------------------------------------------

function niceTop(value, unit) {
  if (!(value > 0)) return unit === "count" ? 4 : 1;
  const least = unit === "count" ? Math.max(value, 4) : value, power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 4, 5, 8, 10].map((one) => one * power).find((top) => top >= least * 0.999);
}

function ticks(top) {
  return [0, 1, 2, 3, 4].map((part) => (top * part) / 4);
}

const short = (value) => (value >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(2))));

function format(value, unit) {
  if (unit === "dollars") return `$${value >= 1 ? value.toFixed(2) : Number(value.toPrecision(2))}`;
  if (unit === "seconds") {
    if (value === 0) return "0 s";
    if (value < 1) return `${short(value * 1000)} ms`;
    return value < 120 ? `${short(value)} s` : value < 7200 ? `${short(value / 60)} min` : `${short(value / 3600)} h`;
  }
  for (const [size, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (value >= size) return `${Number((value / size).toPrecision(3))}${name}`;
  return String(Number(value.toPrecision(3)));
}

function clock(time, every) {
  const date = new Date(time * 1000);
  if (every >= 86400) return date.toLocaleDateString([], { day: "numeric", month: "short" });
  const parts = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(every < 60 ? { second: "2-digit" } : {}) };
  return date.toLocaleTimeString([], parts);
}

function moment(time) {
  const parts = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
  return new Date(time * 1000).toLocaleString([], parts);
}
