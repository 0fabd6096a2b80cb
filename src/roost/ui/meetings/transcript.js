// A transcript: messages in order, which stays at the newest one unless the reader has scrolled up. All texts are
// inserted as text.
const NEAR = 40; // pixels from the end that count as the end
const LEAVES = 1_000; // milliseconds in which a scroll upwards gets further than that
const FOLLOWS = 300_000; // milliseconds within which messages of one sender are drawn together

const transcripts = new WeakMap(); // one transcript per element, over all its runs

export default function (component) {
  const root = component.parentElement;
  if (!transcripts.has(root)) transcripts.set(root, new Transcript(root));
  transcripts.get(root).update(component);
}

// Enter sends, Shift+Enter begins a new line; the input that replaces the one that was sent gets the focus, however long
// that takes, unless the focus has been moved elsewhere meanwhile.
const SPEAK = ".st-key-speak";
let sent = null;
const replaced = new MutationObserver(() => {
  const input = document.querySelector(`${SPEAK} textarea`);
  if (!input || input === sent) return;
  replaced.disconnect();
  if ([document.body, sent].includes(document.activeElement)) input.focus();
});
addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || !event.target.matches?.(`${SPEAK} textarea`)) return;
  event.preventDefault();
  if (event.repeat) return; // the key is held down
  sent = event.target;
  replaced.observe(document.body, { childList: true, subtree: true });
  document.querySelector(`${SPEAK} [data-testid="stFormSubmitButton"] button:not(:disabled)`)?.click();
}, { capture: true });

const make = (tag, className = "", text = "") => Object.assign(document.createElement(tag), { className, textContent: text });

class Transcript {
  constructor(root) {
    this.items = new Map(); // by id: [JSON of the item, its element]
    const frame = make("section", "roost-transcript");
    frame.setAttribute("aria-label", "Transcript");
    this.log = make("div", "roost-transcript-log");
    this.log.tabIndex = 0; // so that it can be scrolled by keyboard
    this.log.setAttribute("role", "log");
    this.log.setAttribute("aria-label", "Messages");
    this.older = Object.assign(make("button", "roost-older"), { type: "button", hidden: true });
    this.older.addEventListener("click", () => this.trigger("older", `${this.items.size}`));
    this.empty = make("p", "roost-nothing", "Nothing has been said yet.");
    this.list = make("ol", "roost-said");
    this.newer = Object.assign(make("button", "roost-newer"), { type: "button", hidden: true });
    this.newer.addEventListener("click", () => this.toEnd());
    this.log.addEventListener("scroll", () => { if (this.isAtEnd()) this.seenAll(); }, { passive: true });
    this.log.addEventListener("wheel", ({ deltaY }) => { if (deltaY < 0) this.leave(); }, { passive: true });
    this.log.addEventListener("touchmove", () => this.leave(), { passive: true });
    this.log.append(this.older, this.empty, this.list);
    frame.append(this.log, this.newer);
    root.append(frame);
    new ResizeObserver(() => { if (!this.unseen && this.wasAtEnd && !this.leaving) this.toEnd(); }).observe(this.log);
  }

  update({ data, setTriggerValue }) {
    this.trigger = setTriggerValue;
    const isOther = this.meeting !== data.meeting;
    this.meeting = data.meeting;
    if (isOther) this.clear();
    const wasAtEnd = isOther || this.isAtEnd();
    const [height, top, first] = [this.log.scrollHeight, this.log.scrollTop, this.list.firstChild];
    const added = this.draw(data.items);
    this.older.hidden = !data.more;
    this.older.textContent = `Show earlier messages (${data.left})`;
    this.empty.hidden = data.items.length > 0;
    if (wasAtEnd && !this.leaving) return this.toEnd();
    if (first && this.list.firstChild !== first) this.log.scrollTop = top + this.log.scrollHeight - height;
    else if (added) this.tell(added);
  }

  clear() {
    this.items.clear();
    this.list.replaceChildren();
    this.seenAll();
  }

  // Draw what has changed; return the number of new items at the end.
  draw(items) {
    const ids = new Set(items.map((item) => item.id));
    for (const [id, [, element]] of this.items) if (!ids.has(id)) { element.remove(); this.items.delete(id); }
    let next = this.list.firstChild;
    let added = 0;
    items.forEach((item, number) => {
      const before = items[number - 1];
      const follows = before?.kind === "message" && item.kind === "message" && before.name === item.name
        && !item.to && Date.parse(item.iso) - Date.parse(before.iso) < FOLLOWS;
      const text = JSON.stringify([item, follows]);
      const [known, element] = this.items.get(item.id) ?? [];
      let drawn = element;
      if (known !== text) {
        drawn = this.item(item, follows);
        if (element === next && element) next = element.nextSibling;
        element?.remove();
        this.items.set(item.id, [text, drawn]);
        if (!element) added += 1;
      }
      if (drawn === next) next = next.nextSibling;
      else this.list.insertBefore(drawn, next);
    });
    return added;
  }

  item({ kind, name, initials, hue, own, mine, time, iso, to, text, note }, follows) {
    const item = make("li", `roost-item roost-${kind}`);
    Object.assign(item.dataset, { own, mine: Boolean(mine), follows });
    const avatar = make("span", "roost-avatar", initials);
    avatar.style.setProperty("--hue", hue);
    avatar.style.setProperty("--size", "1.9rem");
    avatar.setAttribute("aria-hidden", "true");
    const head = make("div", "roost-by");
    head.append(make("strong", "", name));
    if (to) head.append(make("span", "roost-to", to));
    head.append(Object.assign(make("time", "", time), { dateTime: iso }));
    const body = make("div", "roost-body");
    body.append(head, make("div", "roost-text", text));
    if (note) body.append(make("div", "roost-why", note));
    item.append(avatar, body);
    return item;
  }

  isAtEnd() {
    this.wasAtEnd = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < NEAR;
    return this.wasAtEnd;
  }

  // A smooth scroll begins with a few pixels: a message that arrives meanwhile must not end it.
  leave() {
    clearTimeout(this.leaving);
    this.leaving = setTimeout(() => { this.leaving = 0; if (this.wasAtEnd) this.toEnd(); }, LEAVES);
  }

  toEnd() {
    clearTimeout(this.leaving);
    this.leaving = 0;
    this.log.scrollTop = this.log.scrollHeight;
    this.wasAtEnd = true;
    this.seenAll();
  }

  tell(added) {
    this.unseen += added;
    this.newer.textContent = `${this.unseen} new ↓`;
    this.newer.hidden = false;
  }

  seenAll() {
    this.unseen = 0;
    this.newer.hidden = true;
  }
}
