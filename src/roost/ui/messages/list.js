// The message list of the talk page. The server sends states of messages: HTML that it has rendered, and plain text.
// Nothing else is ever inserted as HTML, and nothing is evaluated.

const SILENCE = 40_000; // milliseconds without a frame after which the connection is given up
const PATIENCE = 3_000; // milliseconds without a connection after which the page polls instead
const SLOWEST = 2_000; // milliseconds between two attempts to connect
const LOOK = 500; // milliseconds between two looks at the page
const MOST_LOOKS = 200; // pages of older messages that are loaded for one that was found
const NEAR = 48; // pixels from the end that count as the end
// A run of the page would close an open menu, and remove an open dialog until it is drawn again, with what is typed in it.
const OPENED = '[role="menu"], [data-testid="stDialog"]';
const LEAVES = 1_000; // milliseconds in which a scroll upwards gets further than that

const lists = new WeakMap(); // one list per element, over all its runs

export default function (component) {
  const root = component.parentElement.querySelector(".roost-list");
  if (!lists.has(root)) lists.set(root, new MessageList(root));
  const list = lists.get(root);
  list.update(component);
  return () => { if (!root.isConnected) list.close(); };
}

const make = (tag, name = "", text = "") => {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text) node.textContent = text;
  return node;
};

const button = (name, label) => Object.assign(make("button", name, label), { type: "button" });

const moment = (seconds) => {
  const then = new Date(seconds * 1000);
  const now = new Date();
  const time = then.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  if (then.toDateString() === now.toDateString()) return time;
  const month = then.toLocaleString("en-GB", { month: "long" });
  const year = now - then < 300 * 86_400_000 ? "" : ` ${then.getFullYear()}`;
  return `${then.getDate()} ${month}${year}, ${time}`;
};

// The theme is chosen by Streamlit, which tells it only by its colours.
const isDark = (root) => {
  const shown = make("i");
  shown.style.color = "var(--st-background-color)";
  root.append(shown);
  const [red, green, blue] = getComputedStyle(shown).color.match(/[\d.]+/g).map(Number);
  shown.remove();
  return 0.3 * red + 0.59 * green + 0.11 * blue < 128;
};

// --- copying -----------------------------------------------------------------------------------------

const copyOtherwise = (text) => { // there is no clipboard API without a secure connection
  const active = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  active?.focus();
};

const copy = async (from, text) => {
  const label = from.dataset.label ??= from.textContent;
  try { await navigator.clipboard.writeText(text); } catch { copyOtherwise(text); }
  from.textContent = "Copied";
  setTimeout(() => { from.textContent = label; }, 2000);
};

// --- one message --------------------------------------------------------------------------------------

// Blocks of HTML in one place: `keep` of them stay, the others are replaced, unless they are the same.
const patch = (place, { keep, add }) => {
  while (place.childElementCount > keep + add.length) place.lastElementChild.remove();
  add.forEach((html, number) => {
    const block = place.children[keep + number] ?? place.appendChild(make("div", "roost-block"));
    if (block.rendered === html) return;
    block.innerHTML = block.rendered = html;
  });
};

const write = (place, text) => { if (place.textContent !== text) place.textContent = text; };

class MessageView {
  constructor(seq, sender, act) {
    this.seq = seq;
    this.act = act; // called with the name of an action and its text
    this.root = make("article", `roost-message roost-${sender}`);
    this.root.dataset.seq = seq;
    this.root.setAttribute("aria-label", sender === "user" ? "You" : "Agent");
    this.text = make("div", "roost-text");
    this.foot = make("div", "roost-foot");
    this.state = make("span");
    this.time = make("time");
    this.actions = make("div", "roost-actions"); // more buttons for a message go here
    this.versions = make("div", "roost-versions");
    this.versions.hidden = true;
    this.foot.append(this.state, this.time, this.versions, this.actions);
    this.root.append(this.text, this.foot);
  }

  update(message) {
    Object.assign(this, { status: message.status, sender: message.sender, source: message.source });
    this.root.dataset.status = message.status;
    this.root.setAttribute("aria-busy", String(message.status === "streaming"));
    if (message.sender === "user") this.#said(message);
    else this.#answer(message);
    this.#footing(message);
  }

  #said({ source, files, notes }) {
    const isResults = notes.keep + notes.add.length > 0; // of tools that a client has run
    if (isResults) patch(this.#notes("Tool results"), notes);
    write(this.text, isResults ? "" : source);
    if (!files || this.files) return;
    this.files = new Files(files).root;
    this.text.before(this.files);
  }

  #answer(message) {
    this.#remark(message.remark);
    if (message.notes.keep || message.notes.add.length) patch(this.#notes(), message.notes);
    patch(this.text, message.text);
    this.#failure(message);
  }

  #remark(remark) {
    if (!remark || this.remark) return;
    this.remark = make("p", "roost-remark", remark);
    this.root.prepend(this.remark);
  }

  #notes(label = "Thoughts and steps") {
    if (this.folded) return this.folded.lastElementChild;
    this.folded = make("details", "roost-notes");
    this.folded.append(make("summary", "", label), make("div"));
    this.text.before(this.folded);
    return this.folded.lastElementChild;
  }

  #failure({ error, details }) {
    if (!error || this.error) return;
    this.error = make("div", "roost-error", error);
    this.error.setAttribute("role", "alert");
    this.foot.before(this.error);
    if (!details) return;
    const more = make("details", "roost-details");
    const code = make("pre", "", details);
    code.tabIndex = 0;
    more.append(make("summary", "", "Details"), code);
    this.foot.before(more);
  }

  #footing({ status, created, waiting }) {
    const isDone = status !== "streaming";
    write(this.state, isDone ? (status === "interrupted" ? "Interrupted ·" : "") : waiting || "Writing…");
    write(this.time, isDone ? moment(created) : "");
    this.time.dateTime = new Date(created * 1000).toISOString();
    if (!isDone || this.actions.childElementCount) return;
    if (this.source) this.#copyable();
    if (this.sender === "user") this.#action("Edit", () => this.edit());
    else this.#action("Regenerate", () => this.act("regenerate"));
    this.#action("Fork", () => this.act("fork"));
  }

  #copyable() {
    const copier = button("roost-copy", "Copy");
    copier.setAttribute("aria-live", "polite");
    copier.addEventListener("click", () => copy(copier, this.source));
    this.actions.append(copier);
  }

  #action(label, chosen) {
    const node = button("", label);
    node.addEventListener("click", chosen);
    this.actions.append(node);
  }

  // A message is edited in its place; what is sent begins a branch of the talk.
  edit() {
    if (this.editor) return;
    this.editor = make("form", "roost-editor");
    const area = make("textarea");
    area.value = this.source;
    area.rows = Math.min(12, this.source.split("\n").length + 1);
    area.setAttribute("aria-label", "Edit message");
    const send = Object.assign(button("roost-send", "Send again"), { type: "submit" });
    const cancel = button("", "Cancel");
    const end = () => {
      this.editor.remove();
      this.editor = null;
      this.text.hidden = false;
      document.querySelector(".roost-input")?.focus();
    };
    cancel.addEventListener("click", end);
    this.editor.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!area.value.trim()) return;
      this.act("edit", area.value);
      end();
    });
    area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { event.stopPropagation(); end(); }
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); this.editor.requestSubmit(); }
    });
    const row = make("div", "roost-editing");
    row.append(cancel, send);
    this.editor.append(area, row);
    this.text.hidden = true;
    this.text.after(this.editor);
    this.editor.dispatchEvent(new CustomEvent("roost-show", { bubbles: true }));
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
  }

  // Other versions of this message are in branches of the talk: ‹ 2/3 ›
  showVersions(found) {
    const key = JSON.stringify(found ?? null);
    if (key === this.shown) return;
    this.shown = key;
    this.versions.hidden = !found;
    if (!found) return;
    const { talks, current } = found;
    const turn = (label, sign, to) => {
      const node = button("", sign);
      node.setAttribute("aria-label", label);
      node.disabled = talks[to] === undefined;
      node.addEventListener("click", () => this.act("version", talks[to]));
      return node;
    };
    this.versions.replaceChildren(
      turn("Previous version", "‹", current - 1),
      make("span", "", `${current + 1}/${talks.length}`),
      turn("Next version", "›", current + 1),
    );
  }
}

// --- the list -------------------------------------------------------------------------------------------

class MessageList {
  constructor(root) {
    this.root = root;
    this.older = root.querySelector(".roost-older");
    this.log = root.querySelector(".roost-log");
    this.waiting = root.querySelector(".roost-waiting");
    this.again = root.querySelector(".roost-again");
    this.jump = root.querySelector(".roost-jump");
    this.data = {};
    this.cards = new ApprovalCards(root.querySelector(".roost-asked"), (name, text) => this.trigger("action", { name, seq: 0, text }));
    this.feed = new Feed((frame) => this.#receive(frame), (isLive) => this.#report(isLive));
    this.#clear(null);
    this.older.addEventListener("click", () => this.#showOlder());
    this.again.addEventListener("click", () => this.#act("retry", this.#last()?.seq));
    this.jump.addEventListener("click", () => this.#toEnd());
    this.log.addEventListener("click", (event) => this.#copyCode(event));
    this.place = new Place(root, () => this.#showJump());
    const { signal } = this.ending = new AbortController();
    document.addEventListener("roost-edit-last", () => this.#editLast(), { signal });
    this.timer = setInterval(() => this.#compare(), LOOK);
  }

  // Called when the page has run, with what it knows.
  update({ data, setTriggerValue }) {
    this.data = data;
    this.trigger = setTriggerValue;
    this.root.dataset.theme = isDark(this.root) ? "dark" : "light";
    this.asked = 0;
    if (data.talk !== this.talk) this.#clear(data.talk);
    this.feed.follow(data.live, data.talk, this.cursor);
    const { talk, messages, running, more, approvals } = data;
    if (messages) this.#receive({ talk, messages, running, more, approvals, whole: true, whole_approvals: true });
    else if (this.cards.isDeciding) this.feed.send({ approvals: true });
    if (data.sent && data.sent > this.sent) this.#showSent(data.sent);
    if (data.focus && data.focus.id !== this.focused) [this.focused, this.wanted, this.looked] = [data.focus.id, data.focus.seq, 0];
    this.#showWanted();
    this.#indicate();
  }

  close() {
    clearInterval(this.timer);
    this.ending.abort();
    this.feed.close();
    this.place.close();
  }

  #clear(talk) {
    this.talk = talk;
    this.cursor = null;
    this.running = false;
    this.around = null;
    this.awaited = 0; // the message of this tab that is to be shown when it arrives
    this.sent = this.data.talk === talk ? this.data.sent ?? 0 : 0;
    this.cards?.clear();
    this.#drop();
  }

  // Remove the messages; approvals stay: they may come before the first message.
  #drop() {
    this.views = new Map();
    this.log.replaceChildren();
    this.older.hidden = true;
    this.place?.toEnd();
  }

  // --- what the server sends --------------------------------------------------------------------------

  #receive(frame) {
    if (!this.root.isConnected) return this.close();
    if (frame.around !== undefined) this.around = frame.around;
    if (frame.talk === undefined || frame.talk !== this.talk) return this.#compare();
    if (frame.gone) return this.#refresh();
    if (frame.reset) return this.#clear(this.talk);
    this.place.keep(() => this.#apply(frame));
    if (frame.cursor) this.cursor = this.feed.cursor = frame.cursor;
    if (frame.running !== undefined) this.running = frame.running;
    if (this.awaited && this.views.has(this.awaited)) this.#showSent(this.awaited);
    this.#showWanted();
    this.#indicate();
    this.#compare();
  }

  #apply({ messages = [], more, older, whole, approvals, whole_approvals }) {
    const start = messages[0]?.seq;
    const isNewest = more !== undefined && !older;
    if (isNewest && start > Math.max(...this.views.keys()) + 1) this.#drop(); // a gap: known ones are too old
    const first = Math.min(...this.views.keys());
    for (const message of messages) {
      if (message.seq < first && !older && !whole && !this.older.hidden) continue; // comes when older ones are shown
      this.#put(message);
    }
    if (whole) this.#keepOnly(new Set(messages.map((message) => message.seq)));
    if (more !== undefined && (older || whole || !(first < start))) this.older.hidden = !more;
    if (older && more !== undefined) this.older.disabled = false;
    if (approvals) this.cards.put(approvals, whole_approvals);
    this.cards.place(this.views);
  }

  #put(message) {
    let view = this.views.get(message.seq);
    if (message.status === "withdrawn") {
      view?.root.remove();
      this.views.delete(message.seq);
      return;
    }
    if (!view) {
      view = new MessageView(message.seq, message.sender, (name, text) => this.trigger("action", { name, seq: message.seq, text }));
      view.since = performance.now();
      this.views.set(message.seq, view);
      this.#insert(view);
    }
    view.update(message);
  }

  #insert(view) {
    let after = this.log.lastElementChild;
    while (after && Number(after.dataset.seq) > view.seq) after = after.previousElementSibling;
    if (after) after.after(view.root);
    else this.log.prepend(view.root);
  }

  #keepOnly(seqs) {
    for (const [seq, view] of this.views) {
      if (seqs.has(seq)) continue;
      view.root.remove();
      this.views.delete(seq);
    }
  }

  #editLast() {
    const own = [...this.views.values()].filter(({ sender, editor }) => sender === "user" && !editor);
    own.sort((one, other) => other.seq - one.seq)[0]?.edit();
  }

  #last() {
    return this.views.get(Number(this.log.lastElementChild?.dataset.seq));
  }

  #indicate() {
    const last = this.#last();
    const isAnswering = last?.status === "streaming";
    const isAsking = Boolean(this.data.asking);
    this.place.keep(() => {
      const words = isAsking ? "Waiting for your approval…" : "Thinking…";
      this.waiting.hidden = !this.running || isAnswering;
      write(this.waiting, this.waiting.hidden ? "" : words);
      if (isAnswering && isAsking) write(last.state, words);
      this.again.hidden = this.running || last?.status !== "failed" || last.sender === "user";
      for (const [seq, view] of this.views) view.showVersions(this.data.versions?.[seq]);
    });
    if (!this.again.hidden && this.again.dataset.seq !== String(last.seq)) {
      this.again.dataset.seq = last.seq;
      this.again.disabled = false;
    }
  }

  // --- reports to the page -------------------------------------------------------------------------------

  get #isConnected() {
    return document.querySelector('[data-testid="stApp"]')?.dataset.testConnectionState === "CONNECTED";
  }

  // The page shows something else than the server has: it is asked to run again.
  #compare() {
    if (!this.root.isConnected) return this.close();
    this.root.dataset.stream = this.feed.isLive ? "live" : "lost";
    // A run that was asked for before the browser had a new URL may have drawn the page of the old one.
    if (new URL(location.href).searchParams.get("talk") !== (this.data.talk ?? null)) this.#refresh();
    if (!this.feed.isLive) return;
    this.#report(true);
    if (document.querySelector(OPENED)) return;
    const isOther = this.around !== null && this.around !== this.data.around;
    if (isOther || (this.talk && this.cursor && this.running !== Boolean(this.data.running))) this.#refresh();
  }

  #refresh() {
    const now = performance.now();
    if (!this.#isConnected || (this.asked && now - this.asked < 1500)) return;
    this.asked = now;
    this.trigger("refresh", now);
  }

  #report(isLive) {
    if (isLive === !this.data.live_lost || !this.#isConnected) return;
    this.trigger("stream", isLive ? "live" : "lost");
  }

  #act(name, seq) {
    this.again.disabled = true;
    this.trigger("action", { name, seq });
  }

  #showOlder() {
    const first = Math.min(...this.views.keys());
    if (!this.feed.isLive) return this.trigger("action", { name: "older", seq: first });
    this.older.disabled = true;
    this.feed.send({ older: first });
  }

  // --- what people see ------------------------------------------------------------------------------------

  #showSent(seq) {
    this.sent = Math.max(this.sent, seq);
    const view = this.views.get(seq);
    this.awaited = view ? 0 : seq;
    if (!view || this.log.querySelector(".roost-editor")) return; // an editor stays in view
    if (!(view.since < this.place.left)) this.#toEnd(); // the reader may have scrolled up since it was shown
  }

  // A message that was found by a search is brought into view; older ones are loaded until it is there.
  #showWanted() {
    if (!this.wanted || !(this.cursor || this.data.messages)) return; // the newest ones are not there yet
    const view = this.views.get(this.wanted);
    if (view) {
      this.wanted = 0;
      this.place.toElement(view.root);
      view.root.classList.add("roost-found");
      setTimeout(() => view.root.classList.remove("roost-found"), 3000);
    } else if (this.older.hidden || this.looked >= MOST_LOOKS) this.wanted = 0;
    else if (!this.older.disabled) {
      this.looked += 1;
      this.#showOlder();
    }
  }

  #toEnd() {
    this.place.toEnd();
    this.#showJump();
  }

  #showJump() {
    this.jump.hidden = this.place.isFollowing || !this.views.size;
  }

  #copyCode(event) {
    const from = event.target.closest?.("button.code-copy");
    if (!from) return;
    let block = from.parentElement;
    while (block !== this.log && !block.querySelector("pre")) block = block.parentElement;
    copy(from, block.querySelector("pre").textContent);
  }
}

// --- the place on the page: follow the end, or stay ------------------------------------------------------

class Place {
  constructor(root, changed) {
    this.root = root;
    this.pane = root.closest('[data-testid="stMain"]') ?? document.scrollingElement;
    this.changed = changed;
    this.isFollowing = true;
    this.left = 0; // when the reader last began to scroll up
    this.top = this.pane.scrollTop;
    const { signal } = this.ending = new AbortController();
    this.pane.addEventListener("scroll", () => this.#scrolled(), { signal, passive: true });
    this.pane.addEventListener("wheel", ({ deltaY }) => { if (deltaY < 0) this.#leave(); }, { signal, passive: true });
    this.pane.addEventListener("touchmove", () => this.#leave(), { signal, passive: true });
    document.addEventListener("keydown", (event) => this.#pressed(event), { signal });
    root.addEventListener("roost-show", (event) => this.toElement(event.target), { signal });
    this.sizes = new ResizeObserver(() => this.#settle());
    this.sizes.observe(root);
    this.sizes.observe(this.pane);
    const bottom = document.querySelector('[data-testid="stBottom"]');
    if (bottom) this.sizes.observe(bottom);
  }

  close() {
    this.ending.abort();
    this.sizes.disconnect();
    clearTimeout(this.leaving);
  }

  get #distance() {
    return this.pane.scrollHeight - this.pane.clientHeight - this.pane.scrollTop;
  }

  #scrolled() {
    const isUp = this.pane.scrollTop < this.top - 1;
    this.top = this.pane.scrollTop;
    if (this.#distance <= NEAR) this.#follow(true);
    else if (isUp) this.#follow(false);
  }

  // A smooth scroll begins with a few pixels: text that grows meanwhile must not end it.
  #leave() {
    this.left = performance.now();
    clearTimeout(this.leaving);
    this.leaving = setTimeout(() => { this.leaving = 0; this.#settle(); }, LEAVES);
  }

  #follow(isFollowing) {
    if (this.isFollowing === isFollowing) return;
    this.isFollowing = isFollowing;
    this.changed();
  }

  #pressed(event) {
    if (["ArrowUp", "PageUp", "Home"].includes(event.key)) this.#leave();
    if (event.key !== "End" || event.altKey || event.shiftKey || event.metaKey) return;
    const field = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (field && (field.value || !field.matches(".roost-input"))) return;
    this.toEnd();
  }

  toEnd() {
    clearTimeout(this.leaving);
    this.leaving = 0;
    this.top = this.pane.scrollTop;
    this.#follow(true);
    this.#settle();
  }

  toElement(element) {
    this.#follow(false);
    element.scrollIntoView({ block: "center" });
    this.top = this.pane.scrollTop;
  }

  #settle() {
    const bottom = document.querySelector('[data-testid="stBottom"]');
    this.root.style.setProperty("--roost-bottom", `${bottom?.offsetHeight ?? 0}px`);
    if (!this.isFollowing || this.leaving || !this.root.querySelector(".roost-message")) return; // an empty talk begins at its top
    this.pane.scrollTop = this.pane.scrollHeight;
    this.top = this.pane.scrollTop;
  }

  // Change the page; what is being read stays where it is.
  keep(change) {
    this.#scrolled(); // its event may not have arrived yet
    const [anchor, before] = this.isFollowing ? [] : this.#anchor();
    change();
    if (this.isFollowing) this.#settle();
    else if (anchor?.isConnected) {
      const moved = anchor.getBoundingClientRect().top - before;
      if (Math.abs(moved) >= 1) this.pane.scrollTop += moved;
      this.top = this.pane.scrollTop;
    }
  }

  #anchor() {
    const top = this.pane.getBoundingClientRect().top;
    for (const message of this.root.querySelectorAll(".roost-message")) {
      const box = message.getBoundingClientRect();
      if (box.bottom > top) return [message, box.top];
    }
    return [];
  }
}

// --- the connection ---------------------------------------------------------------------------------------

class Feed {
  constructor(receive, report) {
    this.receive = receive;
    this.report = report;
    this.isLive = false;
    this.pause = 100;
  }

  // Follow a talk at this address; without an address the page polls.
  follow(url, talk, cursor) {
    if (!url) return;
    const isOther = talk !== this.talk;
    [this.talk, this.cursor] = [talk, cursor];
    if (!this.url) {
      this.url = url;
      this.#connect();
    } else if (isOther) this.#open();
  }

  send(content) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(content));
  }

  close() {
    this.url = null;
    this.isClosed = true;
    clearTimeout(this.retry);
    clearTimeout(this.silence);
    this.socket?.close();
  }

  #open() {
    this.send({ open: this.talk, after: this.cursor });
  }

  #connect() {
    if (this.isClosed) return;
    const address = new URL(this.url, location.href);
    address.protocol = address.protocol.replace("http", "ws");
    const socket = this.socket = new WebSocket(address);
    this.lostAt ??= performance.now();
    socket.onopen = () => { this.#open(); this.#listen(); };
    socket.onmessage = ({ data }) => {
      if (socket !== this.socket || this.isClosed) return;
      this.#listen();
      this.#alive();
      this.receive(JSON.parse(data));
    };
    socket.onclose = () => { if (socket === this.socket) this.#lost(); };
  }

  #alive() {
    this.lostAt = null;
    this.pause = 100;
    if (!this.isLive) {
      this.isLive = true;
      this.report(true);
    }
  }

  #listen() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => { this.socket.close(); this.#lost(); }, SILENCE);
  }

  #lost() {
    if (this.isClosed) return;
    clearTimeout(this.silence);
    this.socket.onclose = this.socket.onmessage = null;
    this.lostAt ??= performance.now();
    this.isLive = false;
    if (performance.now() - this.lostAt >= PATIENCE) this.report(false);
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.#connect(), this.pause * (0.75 + Math.random() / 2));
    this.pause = Math.min(this.pause * 2, SLOWEST);
  }
}

class Files { // of a person's message: images as thumbnails, other files as named chips
  constructor(files) {
    this.root = make("div", "roost-files");
    for (const file of files) this.root.append(file.isImage ? this.#thumbnail(file) : this.#chip(file));
  }

  #thumbnail(file) {
    const link = Object.assign(make("a", "roost-thumbnail"), { href: file.url, target: "_blank", rel: "noopener" });
    const image = Object.assign(make("img"), { alt: file.name, title: `${file.name}, ${file.size}` });
    image.addEventListener("error", () => link.replaceWith(this.#chip(file))); // deleted, or no such picture
    image.src = file.url;
    link.append(image);
    return link;
  }

  #chip(file) {
    const link = Object.assign(make("a", "roost-file"), { href: file.url, download: file.name });
    link.append(make("span", "roost-file-name", file.name), make("span", "roost-file-size", file.size));
    return link;
  }
}

// --- approvals: at the end of the answer that asks, or after the messages while there is none ----------------------

class ApprovalCards {
  constructor(tail, act) {
    this.tail = tail;
    this.act = act; // called with the name of an action and its text
    this.clear();
  }

  clear() {
    for (const card of this.cards?.values() ?? []) card.root.remove();
    this.cards = new Map();
  }

  get isDeciding() {
    return [...this.cards.values()].some((card) => card.isDeciding);
  }

  put(states, isWhole) {
    const known = this.cards;
    if (isWhole) this.cards = new Map();
    for (const state of states) {
      const card = known.get(state.id) ?? this.#make(state);
      this.cards.set(state.id, card);
      this.#update(card, state);
    }
    for (const [id, card] of known) if (!this.cards.has(id)) card.root.remove();
  }

  #make({ id, label }) {
    const card = { id, root: make("section", "roost-approval tool"), about: make("div"), foot: make("div", "roost-decision") };
    card.root.setAttribute("aria-label", label);
    card.root.dataset.approval = id;
    card.root.append(card.about, card.foot);
    return card;
  }

  #update(card, state) {
    card.seq = state.seq;
    const key = JSON.stringify(state);
    if (card.key === key) return;
    card.key = key;
    card.isDeciding = false;
    if (card.html !== state.html) card.about.innerHTML = card.html = state.html;
    const isPending = Object.keys(state.actions).length > 0;
    card.root.classList.toggle("roost-pending", isPending);
    card.foot.replaceChildren(...(isPending ? this.#buttons(card, state.actions) : this.#verdict(state)));
  }

  #buttons(card, actions) {
    const reason = Object.assign(make("input"), { type: "text", maxLength: 1000, placeholder: "Reason, if you decline" });
    reason.setAttribute("aria-label", "Reason");
    const buttons = Object.entries(actions).map(([name, label]) => {
      const node = button(`roost-${name}`, label);
      node.addEventListener("click", () => {
        card.isDeciding = true;
        for (const other of buttons) other.disabled = true;
        setTimeout(() => { for (const other of buttons) other.disabled = false; }, 5000);
        this.act(name, `${card.id} ${reason.value}`);
      });
      return node;
    });
    return [...buttons, reason];
  }

  #verdict({ verdict, decided, note }) {
    const time = decided ? `, ${moment(decided)}` : "";
    const words = make("span", "", `${verdict}${time}${note ? ": " : ""}`);
    if (!note) return [words];
    const reason = make("span");
    reason.innerHTML = note;
    return [words, reason];
  }

  // A card whose message is not loaded is not shown.
  place(views) {
    for (const card of this.cards.values()) {
      const place = card.seq === null ? this.tail : this.#in(views, card.seq);
      if (!place) card.root.remove();
      else if (card.root.parentElement !== place) place.append(card.root);
    }
  }

  #in(views, seq) {
    const view = views.get(seq) ?? views.get(Math.max(...[...views.keys()].filter((known) => known < seq)));
    if (!view) return null;
    if (!view.cards) {
      view.cards = make("div", "roost-cards");
      if (view.sender === "user") view.root.append(view.cards);
      else view.foot.before(view.cards);
    }
    return view.cards;
  }
}
