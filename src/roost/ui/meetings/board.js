// Board of tic-tac-toe: nine buttons. Arrow keys move the focus.
const boards = new WeakMap(); // one board per element, over all its runs

export default function (component) {
  const root = component.parentElement;
  if (!boards.has(root)) boards.set(root, new Board(root));
  boards.get(root).update(component);
}

const [AGAIN, TRIES] = [1_000, 20]; // milliseconds after which a click is reported again, and how often
const STEPS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -3, ArrowDown: 3 };

class Board {
  constructor(root) {
    this.grid = Object.assign(document.createElement("div"), { className: "roost-board" });
    this.grid.setAttribute("role", "group");
    this.grid.setAttribute("aria-label", "Board");
    this.cells = Array.from({ length: 9 }, (_, number) => this.cell(number));
    this.grid.append(...this.cells);
    this.grid.addEventListener("keydown", (event) => this.step(event));
    root.append(this.grid);
  }

  cell(number) {
    const cell = Object.assign(document.createElement("button"), { type: "button", className: "roost-cell" });
    cell.addEventListener("click", () => {
      if (this.data.playable && !this.click) this.send({ cell: number + 1, key: `${Date.now()} ${Math.random()}` }, TRIES);
    });
    return cell;
  }

  // Report a click until the page has received it.
  send(click, tries) {
    this.click = click;
    this.trigger("click", click);
    this.again = setTimeout(() => tries > 1 ? this.send(click, tries - 1) : (this.click = null), AGAIN);
  }

  update({ data, setTriggerValue }) {
    this.data = data;
    this.trigger = setTriggerValue;
    if (data.received === this.click?.key) {
      clearTimeout(this.again);
      this.click = null;
    }
    this.cells.forEach((cell, number) => {
      const mark = data.cells[number];
      cell.textContent = mark;
      cell.dataset.mark = mark;
      cell.dataset.last = data.last === number + 1;
      cell.dataset.wins = data.row.includes(number + 1);
      const more = [data.last === number + 1 && "last move", data.row.includes(number + 1) && "wins"].filter(Boolean);
      cell.setAttribute("aria-label", [`Cell ${number + 1}`, mark || "empty", ...more].join(", "));
      cell.setAttribute("aria-disabled", String(!data.playable || Boolean(mark))); // a taken one says why
    });
  }

  step(event) {
    const from = this.cells.indexOf(document.activeElement);
    const to = from + STEPS[event.key];
    if (!(event.key in STEPS) || from < 0) return;
    event.preventDefault();
    if (Math.abs(STEPS[event.key]) === 1 && Math.floor(to / 3) !== Math.floor(from / 3)) return;
    this.cells[to]?.focus();
  }
}
