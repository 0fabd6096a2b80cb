// A graph, laid out by forces. All texts are inserted as text.

const graphs = new WeakMap(); // one graph per element, over all its runs

export default function (component) {
  const root = component.parentElement;
  if (!graphs.has(root)) graphs.set(root, new Graph(root));
  graphs.get(root).update(component);
}

const NS = "http://www.w3.org/2000/svg";
const RADIUS = 13, EDGE = 46, LONGEST = 22;
const SHAPES = { circle: "● Agent", square: "■ Person", diamond: "◆ Schedule or other users" };

const draw = (tag, attributes, text = "") => {
  const element = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  return element;
};

class Graph {
  constructor(root) {
    this.places = new Map(); // by node: where it is, as parts of width and height
    this.box = Object.assign(document.createElement("div"), { className: "roost-graph" });
    this.svg = draw("svg", { role: "group" });
    this.legend = document.createElement("ul");
    this.box.append(this.svg, this.legend);
    root.append(this.box);
    new ResizeObserver(() => this.#draw()).observe(this.box);
  }

  update({ data, setTriggerValue }) {
    this.open = (href) => setTriggerValue("open", href);
    const text = JSON.stringify(data);
    if (text === this.known) return;
    Object.assign(this, { known: text, data });
    this.svg.setAttribute("aria-label", data.name);
    const shapes = Object.keys(SHAPES).filter((shape) => data.nodes.some((node) => node.shape === shape));
    this.legend.replaceChildren(...shapes.map((shape) => Object.assign(document.createElement("li"), { textContent: SHAPES[shape] })));
    this.#place();
    this.#draw();
  }

  // Nodes push each other away, edges pull; those that were there stay near their places.
  #place() {
    const { nodes, edges } = this.data;
    const ids = new Set(nodes.map((node) => node.id));
    for (const id of this.places.keys()) if (!ids.has(id)) this.places.delete(id);
    nodes.forEach(({ id }, number) => {
      const angle = (2 * Math.PI * number) / nodes.length;
      if (!this.places.has(id)) this.places.set(id, { x: 0.5 + 0.35 * Math.cos(angle), y: 0.5 + 0.35 * Math.sin(angle) });
    });
    const all = nodes.map((node) => this.places.get(node.id)), ideal = 0.9 / Math.sqrt(nodes.length + 1);
    for (let round = 0; round < 250; round++) {
      const reach = 0.06 * (1 - round / 250);
      const moves = all.map(() => ({ x: 0, y: 0 }));
      const push = (a, b, force, dx, dy) => {
        moves[a].x += dx * force; moves[a].y += dy * force;
        moves[b].x -= dx * force; moves[b].y -= dy * force;
      };
      for (let a = 0; a < all.length; a++) for (let b = a + 1; b < all.length; b++) {
        const dx = all[a].x - all[b].x || 1e-4 * (a - b), dy = all[a].y - all[b].y || 1e-4;
        push(a, b, (ideal * ideal) / (dx * dx + dy * dy), dx, dy);
      }
      const at = new Map(nodes.map((node, number) => [node.id, number]));
      for (const edge of edges) {
        const a = at.get(edge.from), b = at.get(edge.to), dx = all[a].x - all[b].x, dy = all[a].y - all[b].y;
        if (a !== b) push(a, b, -Math.hypot(dx, dy) / ideal, dx, dy);
      }
      all.forEach((place, number) => {
        const { x, y } = moves[number], length = Math.hypot(x, y) || 1, far = Math.min(length, reach) / length;
        place.x = Math.min(1, Math.max(0, place.x + x * far));
        place.y = Math.min(1, Math.max(0, place.y + y * far));
      });
    }
  }

  #draw() {
    const width = this.box.clientWidth;
    if (!this.data || width < 60) return;
    const height = Math.round(Math.min(540, Math.max(320, width * 0.55)));
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.style.height = `${height}px`;
    const xs = [...this.places.values()].map((one) => one.x), ys = [...this.places.values()].map((one) => one.y);
    const along = (value, values, size) => {
      const low = Math.min(...values), span = Math.max(...values) - low;
      return span < 0.01 ? size / 2 : EDGE + ((value - low) / span) * (size - 2 * EDGE);
    };
    const place = ({ x, y }) => ({ x: along(x, xs, width), y: along(y, ys, height) });
    this.at = new Map([...this.places].map(([id, one]) => [id, place(one)]));
    const most = Math.max(1, ...this.data.edges.map((edge) => edge.weight));
    this.edges = this.data.edges.flatMap((edge) => this.#edge(edge, most));
    const arrow = draw("marker", { id: "roost-graph-arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" });
    arrow.append(draw("path", { class: "roost-graph-arrow", d: "M0 0L8 4L0 8Z" }));
    const defs = draw("defs", {});
    defs.append(arrow);
    const focused = this.svg.contains(document.activeElement) && document.activeElement.dataset.id;
    this.svg.replaceChildren(defs, ...this.edges, ...this.data.nodes.map((node) => this.#node(node)));
    if (focused) this.svg.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  }

  #edge({ from, to, weight }, most) {
    const a = this.at.get(from), b = this.at.get(to), ends = { "data-from": from, "data-to": to };
    const thick = 1 + 4 * (Math.log(1 + weight) / Math.log(1 + most));
    let path, middle;
    if (from === to) {
      path = `M${a.x - 8} ${a.y - RADIUS}C${a.x - 30} ${a.y - 48} ${a.x + 30} ${a.y - 48} ${a.x + 8} ${a.y - RADIUS}`;
      middle = { x: a.x, y: a.y - 38 };
    } else {
      const dx = b.x - a.x, dy = b.y - a.y, length = Math.hypot(dx, dy) || 1, bend = Math.min(26, length / 5);
      const turn = { x: (a.x + b.x) / 2 - (dy / length) * bend, y: (a.y + b.y) / 2 + (dx / length) * bend };
      const cut = (end, from) => {
        const far = Math.hypot(from.x - end.x, from.y - end.y) || 1;
        return `${end.x + ((from.x - end.x) / far) * (RADIUS + 4)} ${end.y + ((from.y - end.y) / far) * (RADIUS + 4)}`;
      };
      path = `M${cut(a, turn)}Q${turn.x} ${turn.y} ${cut(b, turn)}`;
      middle = { x: (a.x + b.x) / 4 + turn.x / 2, y: (a.y + b.y) / 4 + turn.y / 2 };
    }
    const line = draw("path", { class: "roost-graph-edge", d: path, "stroke-width": thick, "marker-end": "url(#roost-graph-arrow)", ...ends });
    return [line, draw("text", { class: "roost-graph-count", x: middle.x, y: middle.y + 4, ...ends }, weight.toLocaleString())];
  }

  #node({ id, label, shape, href }) {
    const { x, y } = this.at.get(id), r = RADIUS;
    const node = draw("g", { class: "roost-graph-node", "data-shape": shape });
    if (shape === "circle") node.append(draw("circle", { class: "roost-graph-shape", cx: x, cy: y, r }));
    else if (shape === "square") node.append(draw("rect", { class: "roost-graph-shape", x: x - r, y: y - r, width: 2 * r, height: 2 * r, rx: 3 }));
    else node.append(draw("path", { class: "roost-graph-shape", d: `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z` }));
    const short = label.length > LONGEST ? `${label.slice(0, LONGEST - 1)}…` : label;
    node.append(draw("text", { x, y: y + RADIUS + 15 }, short), draw("title", {}, label));
    node.addEventListener("pointerenter", () => this.#choose(id));
    node.addEventListener("pointerleave", () => this.#choose(null));
    if (!href) return node;
    const link = draw("a", { href, "aria-label": label, "data-id": id });
    link.append(node);
    link.addEventListener("focus", () => this.#choose(id));
    link.addEventListener("blur", () => this.#choose(null));
    link.addEventListener("click", (event) => {
      if (event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.open(href);
    });
    return link;
  }

  // Edges of the chosen node stand out.
  #choose(id) {
    this.box.toggleAttribute("data-chosen", id !== null);
    for (const edge of this.edges) edge.toggleAttribute("data-near", id !== null && [edge.dataset.from, edge.dataset.to].includes(id));
  }
}
