// Lanes of bars over an axis of time. All texts are inserted as text.

const timelines = new WeakMap(); // one per element, over all its runs

export default function (component) {
  const root = component.parentElement;
  if (!timelines.has(root)) timelines.set(root, new Timeline(root));
  timelines.get(root).update(component);
}

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const RELATIVE = 2 * MINUTE; // periods up to this length are counted from their start
const SHORT = [1, 2, 5, 10, 20, 50, 100, 200, 500].concat([1, 2, 5, 10, 15, 30].map((n) => n * SECOND));
const LONG = [1, 2, 5, 10, 15, 30].map((n) => n * SECOND).concat(
  [1, 2, 5, 10, 15, 30].map((n) => n * MINUTE), [1, 2, 3, 6, 12].map((n) => n * HOUR),
  [1, 2, 7, 14, 28, 91, 364].map((n) => n * DAY));
const TICK_WIDTH = 84, CHARACTER = 7; // pixels

const make = (tag, className = "", text = "") => Object.assign(document.createElement(tag), { className, textContent: text });
const set = (node, name, value) => { if (node[name] !== value) node[name] = value; };
const attribute = (node, name, value) => (value ? node.setAttribute(name, value) : node.removeAttribute(name));

const format = (options) => {
  const shown = new Intl.DateTimeFormat("en-GB", options);
  return (time) => shown.format(time);
};
const clock = format({ hour: "2-digit", minute: "2-digit" });
const seconds = format({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = format({ day: "numeric", month: "short" });

function duration(ms) {
  const rounded = (value) => String(Number(value.toPrecision(3)));
  if (ms < SECOND) return `${rounded(ms)} ms`;
  if (ms < MINUTE) return `${rounded(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min ${Math.round((ms % MINUTE) / SECOND)} s`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h ${Math.round((ms % HOUR) / MINUTE)} min`;
  return `${rounded(ms / DAY)} days`;
}

class Timeline {
  constructor(root) {
    this.box = make("div", "roost-timeline");
    this.box.setAttribute("role", "region");
    this.axis = make("div", "roost-timeline-axis");
    this.axis.setAttribute("aria-hidden", "true"); // each bar is read with its times
    this.list = make("ol", "roost-timeline-lanes");
    this.box.append(this.axis, this.list);
    root.append(this.box);
    this.lanes = [];
    this.list.addEventListener("keydown", (event) => this.#move(event));
    this.list.addEventListener("focusin", ({ target }) => this.#stopAt(target.closest(".roost-bar")));
    new ResizeObserver(() => this.#fit()).observe(this.box);
  }

  update({ data, setTriggerValue }) {
    Object.assign(this, { data, setTriggerValue });
    this.length = Math.max(data.end - data.start, 1);
    this.isRelative = this.length <= RELATIVE;
    this.box.setAttribute("aria-label", `${data.name}, ${this.#times(data.start, data.start + this.length)}`);
    while (this.lanes.length > data.lanes.length) this.lanes.pop().row.remove();
    data.lanes.forEach((lane, number) => this.#drawLane(number, lane));
    this.#stopAt(this.list.querySelector('.roost-bar[tabindex="0"]') ?? this.list.querySelector(".roost-bar"));
    this.width = 0;
    this.#fit();
  }

  // --- lanes and bars: elements stay, with the focus in them -------------------------------------------------

  #drawLane(number, { label, depth, bars }) {
    const lane = (this.lanes[number] ??= this.#newLane());
    lane.bars = bars.filter((bar) => bar.end >= this.data.start && bar.start <= this.data.end);
    set(lane.label, "textContent", label);
    set(lane.label, "title", label);
    lane.label.style.setProperty("--depth", depth);
    lane.row.classList.toggle("roost-timeline-one", lane.bars.length === 1 && Boolean(lane.bars[0].href));
    while (lane.track.children.length > lane.bars.length) lane.track.lastChild.remove();
    lane.bars.forEach((bar, position) => this.#drawBar(lane.track, position, bar));
  }

  #newLane() {
    const lane = { row: make("li", "roost-timeline-lane"), label: make("span", "roost-timeline-label"), track: make("ul", "roost-timeline-track") };
    lane.row.append(lane.label, lane.track);
    lane.row.addEventListener("click", (event) => { // the only bar of a lane may be too short to be hit
      if (event.target.closest(".roost-bar") || lane.bars.length !== 1) return;
      if (!getSelection().toString()) lane.track.querySelector("a")?.click();
    });
    this.list.append(lane.row);
    return lane;
  }

  #drawBar(track, position, bar) {
    const item = track.children[position] ?? track.appendChild(make("li"));
    const tag = bar.href ? "A" : "SPAN";
    let node = item.firstChild;
    if (node?.tagName !== tag) {
      node = this.#newBar(tag);
      item.replaceChildren(node);
    }
    if (bar.href && node.getAttribute("href") !== bar.href) node.setAttribute("href", bar.href);
    set(node.firstChild, "textContent", bar.text);
    const name = bar.title || `${bar.text}, ${this.#times(bar.start, bar.end)}`;
    node.setAttribute("aria-label", name);
    set(node, "title", name);
    set(node.dataset, "tone", bar.tone ?? "");
    attribute(node, "aria-current", bar.href && bar.href === this.data.selected ? "true" : "");
    const from = Math.max(bar.start, this.data.start), to = Math.min(bar.end, this.data.end);
    item.style.left = `${((from - this.data.start) / this.length) * 100}%`;
    item.style.width = `${(Math.max(to - from, 0) / this.length) * 100}%`;
  }

  #newBar(tag) {
    const node = make(tag, "roost-bar");
    node.append(make("span", "roost-bar-text"));
    node.tabIndex = -1;
    if (tag === "SPAN") node.setAttribute("role", "img");
    else node.addEventListener("click", (event) => { // opens here without loading everything again; in a new tab as any link does
      if (event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.setTriggerValue("open", node.getAttribute("href"));
    });
    return node;
  }

  #times(start, end) {
    const long = duration(end - start);
    if (this.isRelative) return `${long}, from ${duration(Math.max(start - this.data.start, 0))}`;
    const shown = (time) => `${day(time)} ${seconds(time)}`;
    return `${long}, ${shown(start)} to ${shown(end)}`;
  }

  // --- keyboard: one stop of the tabulator; arrows go from bar to bar -----------------------------------------

  #stopAt(bar) {
    if (!bar) return;
    for (const other of this.list.querySelectorAll('.roost-bar[tabindex="0"]')) other.tabIndex = -1;
    bar.tabIndex = 0;
  }

  #move(event) {
    const bars = this.lanes.map(({ track }) => [...track.querySelectorAll(".roost-bar")]).filter((lane) => lane.length);
    const lane = bars.findIndex((one) => one.includes(document.activeElement));
    if (lane < 0) return;
    const at = bars[lane].indexOf(document.activeElement);
    const all = bars.flat();
    const next = {
      ArrowRight: () => all[all.indexOf(document.activeElement) + 1],
      ArrowLeft: () => all[all.indexOf(document.activeElement) - 1],
      ArrowDown: () => bars[lane + 1]?.[Math.min(at, bars[lane + 1].length - 1)],
      ArrowUp: () => bars[lane - 1]?.[Math.min(at, bars[lane - 1].length - 1)],
      Home: () => all[0],
      End: () => all.at(-1),
    }[event.key];
    if (!next) return;
    event.preventDefault();
    next()?.focus();
  }

  // --- what depends on the width ------------------------------------------------------------------------------

  #fit() {
    const width = this.lanes[0]?.track.clientWidth ?? 0;
    if (!width || width === this.width) return;
    this.width = width;
    this.#drawAxis(width);
    for (const { bars, track } of this.lanes) {
      bars.forEach((bar, position) => this.#placeText(track.children[position], bar, bars.length === 1, width));
    }
  }

  // The text of a bar that is too short for it: beside it if the lane has no other bars, else only on hover.
  #placeText(item, bar, isAlone, width) {
    const needed = bar.text.length * CHARACTER + 14;
    const right = item.offsetLeft + item.offsetWidth;
    const fits = item.offsetWidth >= needed;
    item.dataset.text = fits ? "inside" : !isAlone ? "hidden" : right + needed <= width ? "after" : item.offsetLeft >= needed ? "before" : "inside";
  }

  #drawAxis(width) {
    const steps = this.isRelative ? SHORT : LONG;
    const least = (this.length / width) * TICK_WIDTH;
    const step = steps.find((one) => one >= least) ?? Math.ceil(least / steps.at(-1)) * steps.at(-1);
    const shift = this.isRelative ? this.data.start : new Date(this.data.start).getTimezoneOffset() * MINUTE;
    const ticks = [];
    let time = Math.ceil((this.data.start - shift) / step) * step + shift;
    for (; time <= this.data.start + this.length; time += step) ticks.push(this.#tick(time, step, width));
    // The label of a tick at the end stands before it, where that of the tick before may already be.
    if (ticks.at(-1)?.dataset.edge && ticks.length > 1 && (step / this.length) * width < 2 * TICK_WIDTH) ticks.pop();
    this.axis.replaceChildren(...ticks);
    this.box.style.setProperty("--roost-tick", `${(step / this.length) * 100}%`);
  }

  #tick(time, step, width) {
    const part = (time - this.data.start) / this.length;
    const tick = make("span", "", this.#label(time, step));
    tick.style.left = `${part * 100}%`;
    if (width * (1 - part) < TICK_WIDTH / 2) tick.dataset.edge = "end";
    return tick;
  }

  #label(time, step) {
    if (this.isRelative) {
      const passed = Math.round(time - this.data.start);
      return this.length > SECOND ? `${Number((passed / SECOND).toFixed(3))} s` : `${passed} ms`;
    }
    const date = new Date(time);
    const isMidnight = !date.getHours() && !date.getMinutes() && !date.getSeconds();
    return step >= DAY || isMidnight ? day(time) : step < MINUTE ? seconds(time) : clock(time);
  }
}
