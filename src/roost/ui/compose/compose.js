// The message input of the talk page. A message has a key of its own and is sent until the server has received it, so
// that none is lost and none is doubled, whatever happens to the connection. Nothing is inserted as HTML.

const AGAIN = 1_500; // milliseconds after which a message that was not received is sent again
const LOOK = 250; // milliseconds between two looks at what is not sent yet
const LATE = 1_000; // milliseconds after which the page says that a message is not sent yet

const COMMANDS = [
  ["new", "Start a new talk"],
  ["stop", "Stop the answer"],
  ["regenerate", "Answer the last message again"],
  ["edit", "Edit your last message"],
  ["fork", "Continue from here in a new talk"],
  ["rename", "Rename this talk"],
  ["export", "Save this talk as Markdown or JSON"],
  ["import", "Import a talk from a file"],
  ["delete", "Delete this talk"],
  ["search", "Search your talks: /search words"],
  ["shortcuts", "Show the keyboard shortcuts"],
];
const SHORTCUTS = [
  ["Enter", "Send"],
  ["Shift + Enter", "New line"],
  ["Esc", "Stop the answer, or close what is open"],
  ["↑", "Edit your last message (in an empty input)"],
  ["End", "Jump to the latest message"],
  ["/", "Commands"],
  ["?", "This list (outside of the input)"],
];
const POLICIES = {
  interrupt: ["Interrupt", "The answer ends, and your message is answered"],
  queue: ["Queue", "Your message is answered after this answer"],
  steer: ["Steer", "The answer takes your message into account"],
  rollback: ["Replace", "The answer is withdrawn, and your message is answered"],
  reject: ["Refuse", "Your message is refused until the answer has ended"],
  collect: ["Collect", "Messages are answered together after a pause"],
};
const OFFERED = ["interrupt", "queue", "steer", "rollback"];

const inputs = new WeakMap(); // one input per element, over all its runs

export default function (component) {
  const root = component.parentElement.querySelector(".roost-compose");
  if (!inputs.has(root)) inputs.set(root, new Compose(root));
  const input = inputs.get(root);
  input.update(component);
  return () => { if (!root.isConnected) input.close(); };
}

const make = (tag, text = "", more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });
const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");

// Drafts survive a reload of the tab.
const drafts = {
  get(talk) { try { return sessionStorage.getItem(`roost-draft-${talk}`) ?? ""; } catch { return ""; } },
  set(talk, text) {
    try {
      if (text) sessionStorage.setItem(`roost-draft-${talk}`, text);
      else sessionStorage.removeItem(`roost-draft-${talk}`);
    } catch { /* private browsing, or too long: it is still in the input */ }
  },
};

class Compose {
  constructor(root) {
    const find = (name) => root.querySelector(`.roost-${name}`);
    Object.assign(this, { root, text: find("input"), sender: find("send"), stopper: find("stop"), unsent: find("unsent") });
    this.data = {};
    this.outbox = []; // messages and stops that the server has not received yet
    this.policies = new Policies(find("policies"));
    this.files = new Files(root, find("uploads"), find("attach"), () => this.#changed());
    this.commands = new Commands(find("commands"), this.text, (name, rest) => this.#run(name, rest));
    this.shortcuts = new Shortcuts(find("shortcuts"));
    const { signal } = this.ending = new AbortController();
    root.addEventListener("submit", (event) => { event.preventDefault(); this.#send(); }, { signal });
    this.text.addEventListener("keydown", (event) => this.#pressed(event), { signal });
    this.text.addEventListener("input", () => this.#changed(), { signal });
    this.stopper.addEventListener("click", () => this.#stop(), { signal });
    find("help").addEventListener("click", () => this.shortcuts.open(), { signal });
    document.addEventListener("keydown", (event) => this.#pressedElsewhere(event), { signal });
    addEventListener("popstate", () => this.trigger("command", { name: "follow" }), { signal }); // back or forward
    this.timer = setInterval(() => this.#look(), LOOK);
    this.text.readOnly = false; // not earlier: Enter would not send
  }

  // Called when the page has run, with what it knows.
  update({ data, setTriggerValue }) {
    const before = this.data.talk;
    this.#talk; // a new place, if another talk is open
    this.data = data;
    this.trigger = setTriggerValue;
    if (data.talk !== before) this.#open(before);
    this.stopper.hidden = !data.running;
    this.policies.show(data.running ? data.policy : null);
    this.files.url = data.upload;
    const { received, refused } = data;
    if (refused && refused.key !== this.refused) this.#giveBack(this.outbox.find(({ key }) => key === refused.key) ?? refused);
    this.outbox = this.outbox.filter(({ key, stop }) => !received.includes(key) && (data.running || !stop));
    for (const message of this.outbox.filter(({ talk, session }) => !talk && session !== data.session)) this.#takeBack(message);
    this.#tell();
  }

  close() {
    clearInterval(this.timer);
    this.ending.abort();
    this.files.close();
  }

  // --- what is typed ------------------------------------------------------------------------------------

  // Another talk is open. What is being typed goes along: the talk was created by a message, or opened by a command.
  #open(before) {
    if (document.activeElement === this.text && this.text.value) drafts.set(before, "");
    else {
      this.text.value = drafts.get(this.data.talk);
      if (before) this.files.clear();
      else this.files.take(); // the talk may have been created by a message: what was not sent with it stays
    }
    this.#changed();
  }

  #changed() {
    drafts.set(this.data.talk, this.text.value);
    this.sender.disabled = !this.#isReady;
    this.commands.look();
  }

  get #isReady() {
    return !this.files.isLoading && Boolean(this.text.value.trim() || this.files.ids.length);
  }

  #write(text) {
    this.text.value = text;
    this.#changed();
    this.text.setSelectionRange(text.length, text.length);
  }

  #pressed(event) {
    if (event.isComposing || this.commands.pressed(event)) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.#send();
    } else if (event.key === "ArrowUp" && !this.text.value && !event.altKey && !event.metaKey) {
      event.preventDefault();
      document.dispatchEvent(new CustomEvent("roost-edit-last"));
    }
  }

  #pressedElsewhere(event) {
    if (event.defaultPrevented || event.target.closest?.("dialog, [role=dialog], .roost-editor")) return;
    const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "Escape" && (!isTyping || isTyping === this.text) && this.data.running) {
      event.preventDefault();
      this.#stop();
    } else if (event.key === "?" && !isTyping) this.shortcuts.open();
  }

  // --- sending ------------------------------------------------------------------------------------------

  #send() {
    if (!this.#isReady) return;
    const text = this.text.value;
    const command = this.commands.exact(text);
    if (command && !this.files.ids.length) return this.#run(...command);
    this.outbox.push({
      key: newKey(), text, talk: this.#talk, place: this.place, session: this.data.session, at: performance.now(), tried: 0,
      busy: this.policies.chosen, attachments: this.files.ids, files: this.files.take(),
    });
    this.#write("");
    this.#flush();
  }

  // The open talk. The URL changes before the page does.
  get #talk() {
    const talk = new URL(location.href).searchParams.get("talk");
    if (talk !== this.lastTalk || !this.place) [this.lastTalk, this.place] = [talk, newKey()];
    return talk;
  }

  get #isConnected() {
    return document.querySelector('[data-testid="stApp"]')?.dataset.testConnectionState === "CONNECTED";
  }

  #flush() {
    if (!this.outbox.length || !this.#isConnected) return;
    for (const message of this.outbox) message.tried = performance.now();
    const shown = this.outbox.map(({ key, text, stop, talk, place, busy, attachments }) => ({ key, text, stop, talk, place, busy, attachments }));
    this.trigger("send", shown);
  }

  #look() {
    if (!this.root.isConnected) return this.close();
    const now = performance.now();
    if (this.outbox.some(({ tried }) => now - tried > AGAIN)) this.#flush();
    this.#tell();
  }

  #tell() {
    const now = performance.now();
    const late = this.outbox.filter(({ at, stop }) => !stop && now - at > LATE).length;
    const text = late ? `${late === 1 ? "A message is" : `${late} messages are`} not sent yet.` : "";
    if (this.unsent.textContent !== text) this.unsent.textContent = text;
  }

  // A refused message is in the input again, before what was typed since.
  #giveBack({ key, text, files = [] }) {
    this.refused = key;
    this.outbox = this.outbox.filter((other) => other.key !== key);
    this.files.restore(files);
    this.#write([text, this.text.value].filter(Boolean).join("\n"));
    this.text.focus();
  }

  // The server has restarted, and whether it began the talk is not known: the sidebar shows it, if it did.
  #takeBack(message) {
    this.outbox = this.outbox.filter((other) => other !== message);
    this.#giveBack(message);
  }

  // A stop waits in the outbox too: Streamlit keeps the last of several events that come while it is busy.
  #stop() {
    if (this.outbox.some(({ stop }) => stop)) return;
    this.outbox.push({ key: newKey(), stop: true, talk: this.data.talk, at: performance.now(), tried: 0 });
    this.#flush();
  }

  #run(name, rest) {
    this.#write("");
    if (name === "shortcuts") this.shortcuts.open();
    else if (name === "edit") document.dispatchEvent(new CustomEvent("roost-edit-last"));
    else if (name === "stop") this.#stop();
    else this.trigger("command", { name, text: rest });
  }
}

// --- what a message does to the answer that is being written -------------------------------------------------

class Policies {
  constructor(root) {
    this.root = root;
    this.chosen = null;
    this.policy = null;
    root.addEventListener("keydown", (event) => this.#pressed(event));
  }

  // Offer the policies while an answer is being written; `policy` is the one of the talk.
  show(policy) {
    this.root.hidden = !policy;
    if (policy === this.policy) return;
    [this.policy, this.chosen] = [policy, null];
    const offered = policy && !OFFERED.includes(policy) ? [policy, ...OFFERED] : OFFERED;
    this.root.replaceChildren(...(policy ? offered : []).map((name) => this.#radio(name)));
    this.#mark();
  }

  #radio(name) {
    const [label, title] = POLICIES[name];
    const radio = make("button", label, { type: "button", title });
    radio.dataset.policy = name;
    radio.setAttribute("role", "radio");
    radio.addEventListener("click", () => { this.chosen = name; this.#mark(); });
    return radio;
  }

  #mark() {
    for (const radio of this.root.children) {
      const isChosen = radio.dataset.policy === (this.chosen ?? this.policy);
      radio.setAttribute("aria-checked", String(isChosen));
      radio.tabIndex = isChosen ? 0 : -1;
    }
  }

  #pressed(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const radios = [...this.root.children];
    const next = radios[(radios.indexOf(event.target) + step + radios.length) % radios.length];
    next.click();
    next.focus();
  }
}

// --- commands -------------------------------------------------------------------------------------------------

class Commands {
  constructor(list, text, run) {
    Object.assign(this, { list, text, run, found: [], at: 0 });
    list.addEventListener("mousedown", (event) => {
      event.preventDefault(); // the input keeps the focus
      const item = event.target.closest("li");
      if (item) this.#take([...list.children].indexOf(item));
    });
  }

  exact(text) {
    const [, name, rest] = /^\/(\w+)(?:\s+(.*))?$/.exec(text.trimEnd()) ?? [];
    return COMMANDS.some(([known]) => known === name) && (!rest || name === "search") ? [name, rest ?? ""] : null;
  }

  look() {
    const typed = /^\/(\w*)$/.exec(this.text.value)?.[1];
    this.found = typed === undefined ? [] : COMMANDS.filter(([name]) => name.startsWith(typed.toLowerCase()));
    this.at = 0;
    this.#draw();
  }

  #draw() {
    this.list.hidden = !this.found.length;
    this.list.replaceChildren(...this.found.map(([name, about], number) => {
      const item = make("li", "", { id: `roost-command-${name}` });
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(number === this.at));
      item.append(make("strong", `/${name}`), make("span", about));
      return item;
    }));
    if (this.found.length) this.text.setAttribute("aria-activedescendant", `roost-command-${this.found[this.at][0]}`);
    else this.text.removeAttribute("aria-activedescendant");
  }

  // Return whether the key was for the list.
  pressed(event) {
    if (!this.found.length) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.at = (this.at + step + this.found.length) % this.found.length;
    else if (event.key === "Escape") this.found = [];
    else if ((event.key === "Enter" && !event.shiftKey) || event.key === "Tab") {
      event.preventDefault();
      this.#take(this.at);
      return true;
    } else return false;
    event.preventDefault();
    this.#draw();
    return true;
  }

  #take(number) {
    const [name] = this.found[number];
    this.found = [];
    this.#draw();
    if (name !== "search") return this.run(name, "");
    this.text.value = "/search ";
    this.text.focus();
  }
}

// --- shortcuts ------------------------------------------------------------------------------------------------

class Shortcuts {
  constructor(dialog) {
    this.dialog = dialog;
    const keys = make("dl");
    for (const [key, about] of SHORTCUTS) {
      const term = make("dt");
      term.append(make("kbd", key));
      keys.append(term, make("dd", about));
    }
    const close = make("button", "Close", { type: "button" });
    close.addEventListener("click", () => dialog.close());
    dialog.replaceChildren(make("h2", "Keyboard shortcuts"), keys, close);
  }

  open() {
    if (!this.dialog.open) this.dialog.showModal();
  }
}

// --- files ----------------------------------------------------------------------------------------------------

class Files {
  constructor(root, list, attach, changed) {
    Object.assign(this, { root, list, attach, changed, files: [], address: null, sending: Promise.resolve() });
    this.picker = root.querySelector("input[type=file]");
    const { signal } = this.ending = new AbortController();
    attach.addEventListener("click", () => this.picker.click(), { signal });
    this.picker.addEventListener("change", () => { this.#add(this.picker.files); this.picker.value = ""; }, { signal });
    root.addEventListener("paste", (event) => this.#given(event, event.clipboardData), { signal });
    document.addEventListener("dragover", (event) => this.#dragged(event, true), { signal });
    document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) this.#dragged(event, false); }, { signal });
    document.addEventListener("drop", (event) => { this.#dragged(event, false); this.#given(event, event.dataTransfer); }, { signal });
  }

  set url(url) {
    this.address = url;
    this.attach.hidden = !url;
  }

  get ids() {
    return this.files.filter(({ id }) => id).map(({ id }) => id);
  }

  get isLoading() {
    return this.files.some(({ id, problem }) => !id && !problem);
  }

  clear() {
    this.files = [];
    this.#draw();
  }

  // Return the files that can be sent; the others stay, with the reason.
  take() {
    const sent = this.files.filter(({ id }) => id);
    this.files = this.files.filter(({ id }) => !id);
    this.#draw();
    return sent;
  }

  restore(files) {
    this.files = [...files, ...this.files];
    this.#draw();
  }

  close() {
    this.ending.abort();
  }

  #dragged(event, isOver) {
    if (!this.address || !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    this.root.classList.toggle("roost-dropping", isOver);
  }

  #given(event, data) {
    if (!this.address || !data?.files.length) return;
    event.preventDefault();
    this.#add(data.files);
  }

  #add(files) {
    const added = Array.from(files, (content) => ({ name: content.name.replace(/\p{C}/gu, "") || "file", content, problem: content.size ? "" : "This file is empty." }));
    this.files.push(...added);
    this.#draw();
    for (const file of added.filter(({ problem }) => !problem)) this.sending = this.sending.then(() => this.#upload(file)); // one after another
  }

  async #upload(file) {
    try {
      const answer = await fetch(`${this.address}?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file.content });
      const found = await answer.json();
      if (answer.ok) file.id = found.attachmentId;
      else file.problem = found.detail ?? "This file was refused.";
    } catch {
      file.problem = "This file could not be sent: the server is not reachable.";
    }
    this.#draw();
  }

  #draw() {
    this.list.hidden = !this.files.length;
    this.list.replaceChildren(...this.files.map((file) => this.#item(file)));
    this.changed();
  }

  #item(file) {
    const item = make("li", "", { className: file.problem ? "roost-bad" : "" });
    const remove = make("button", "×", { type: "button" });
    remove.setAttribute("aria-label", `Remove ${file.name}`);
    remove.addEventListener("click", () => { this.files = this.files.filter((other) => other !== file); this.#draw(); });
    item.append(make("span", file.name), make("em", file.problem || (file.id ? "" : "Sending…")), remove);
    if (file.problem) item.setAttribute("role", "alert");
    return item;
  }
}
