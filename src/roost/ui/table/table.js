// A table: rows that can be opened by their links, and chosen by their boxes. All texts are inserted as text.

const tables = new WeakMap(); // one table per element, over all its runs

export default function (component) {
  const root = component.parentElement;
  if (!tables.has(root)) tables.set(root, new Table(root));
  tables.get(root).update(component);
}

const make = (tag, className = "", text = "") => Object.assign(document.createElement(tag), { className, textContent: text });

class Table {
  constructor(root) {
    this.chosen = new Set();
    this.bar = make("div", "roost-table-bar");
    this.bar.setAttribute("role", "group");
    this.count = make("span");
    this.count.setAttribute("role", "status");
    const box = make("div", "roost-table-box");
    box.tabIndex = 0; // so that a wide one can be scrolled by keyboard
    box.setAttribute("role", "region");
    this.table = make("table", "roost-table");
    this.head = this.table.createTHead();
    this.body = this.table.createTBody();
    this.box = box;
    box.append(this.table);
    root.append(this.bar, box);
    this.rows = new Map(); // by id: [JSON of the row, its element]
  }

  update({ data, setTriggerValue }) {
    Object.assign(this, { data, setTriggerValue });
    this.box.setAttribute("aria-label", data.name);
    const head = JSON.stringify([data.columns, data.actions]);
    if (head !== this.drawn) {
      this.drawn = head;
      this.rows.clear();
      this.body.replaceChildren();
      this.#drawBar();
      this.#drawHead();
    }
    this.#drawRows();
  }

  get #canChoose() {
    return this.data.actions.length > 0;
  }

  #drawBar() {
    this.buttons = this.data.actions.map((label) => {
      const button = Object.assign(make("button", "", label), { type: "button" });
      button.addEventListener("click", () => this.setTriggerValue("action", { label, chosen: [...this.chosen] }));
      return button;
    });
    this.bar.setAttribute("aria-label", `Actions on chosen rows of ${this.data.name}`);
    this.bar.hidden = !this.#canChoose;
    this.bar.replaceChildren(...this.buttons, this.count);
  }

  #drawHead() {
    const row = make("tr");
    if (this.#canChoose) {
      const cell = make("th", "roost-choice");
      this.all = this.#box("Choose all", () => this.#chooseAll());
      cell.append(this.all);
      row.append(cell);
    }
    for (const { label, kind } of this.data.columns) {
      const cell = make("th", kind === "number" ? "roost-number" : "", label);
      cell.scope = "col";
      row.append(cell);
    }
    this.head.replaceChildren(row);
  }

  // Rows that are as they were stay, with the focus in them.
  #drawRows() {
    const ids = new Set(this.data.rows.map((row) => row.id));
    for (const [id, [, element]] of this.rows) {
      if (ids.has(id)) continue;
      element.remove();
      this.rows.delete(id);
    }
    let next = this.body.firstChild;
    for (const row of this.data.rows) {
      const text = JSON.stringify(row.cells);
      let [known, element] = this.rows.get(row.id) ?? [];
      if (known !== text) {
        const drawn = this.#row(row);
        if (element) {
          const focused = element.contains(document.activeElement) && document.activeElement.tagName;
          if (next === element) next = drawn;
          element.replaceWith(drawn);
          if (focused) drawn.querySelector(focused)?.focus();
        }
        element = drawn;
        this.rows.set(row.id, [text, element]);
      }
      if (element === next) next = next.nextSibling;
      else this.body.insertBefore(element, next);
    }
    this.#showChosen();
  }

  #row({ id, cells }) {
    const row = make("tr");
    row.dataset.id = id;
    if (this.#canChoose) {
      const cell = make("td", "roost-choice");
      const name = typeof cells[0] === "string" ? cells[0] : cells[0].text;
      cell.append(this.#box(`Choose ${name}`, (box) => this.#choose(id, box.checked)));
      row.append(cell);
    }
    cells.forEach((value, number) => row.append(this.#cell(id, value, this.data.columns[number])));
    return row;
  }

  #cell(id, value, { label, kind }) {
    const { text, href, tone, title, light } = typeof value === "string" ? { text: value } : value;
    const cell = make("td", { number: "roost-number", long: "roost-long" }[kind] ?? "");
    cell.dataset.label = label;
    if (!text) cell.classList.add("roost-empty");
    if (title) cell.title = title;
    if (light) cell.classList.add("roost-light");
    if (href) cell.append(this.#link(id, text, href));
    else if (tone) cell.append(Object.assign(make("span", "roost-tone", text)));
    else cell.textContent = text;
    if (tone) cell.firstElementChild.dataset.tone = tone;
    return cell;
  }

  #link(id, text, href) { // opens here without loading everything again; in a new tab as any link does
    const link = Object.assign(make("a", "", text), { href });
    link.addEventListener("click", (event) => {
      if (event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.setTriggerValue("open", href === `#${id}` ? id : href);
    });
    return link;
  }

  // --- choosing ----------------------------------------------------------------------------------------------

  #box(label, changed) {
    const box = Object.assign(make("input"), { type: "checkbox" });
    box.setAttribute("aria-label", label);
    box.addEventListener("change", () => changed(box));
    return box;
  }

  #choose(id, isChosen) {
    if (isChosen) this.chosen.add(id);
    else this.chosen.delete(id);
    this.#showChosen();
  }

  #chooseAll() {
    const isChosen = this.all.checked;
    for (const { id } of this.data.rows) isChosen ? this.chosen.add(id) : this.chosen.delete(id);
    this.#showChosen();
  }

  #showChosen() {
    if (!this.#canChoose) return;
    const ids = this.data.rows.map((row) => row.id);
    for (const id of this.chosen) if (!ids.includes(id)) this.chosen.delete(id);
    for (const [id, [, element]] of this.rows) element.querySelector("input").checked = this.chosen.has(id);
    this.all.checked = ids.length > 0 && this.chosen.size === ids.length;
    for (const button of this.buttons) button.disabled = !this.chosen.size;
    this.count.textContent = this.chosen.size ? `${this.chosen.size} chosen` : "";
  }
}
