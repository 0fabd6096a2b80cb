// Asks for a new run of the page when something has changed: by the live stream, or every few seconds without one.
//
// The server says by values what the state is. The browser asks until the page was drawn with the newest ones: a request
// is lost while Streamlit reconnects, and a restarted server knows nothing of the pages that it did not draw.
//
// A request has the values of all inputs of the page. After a step back or forward these belong to the page before, until the
// other one is drawn: a request would choose them again, and so undo the step. Then the step itself is repeated, which has none.
const SILENCE = 40_000; // milliseconds without a frame after which the connection is given up
const POLL = 3_000; // milliseconds between two runs of the page while there is no connection
const AGAIN = 1_500; // milliseconds after which a request that had no effect is repeated
const SLOWEST = 2_000; // milliseconds between two attempts to connect
// A run of the page would close an open list, and remove an open dialog until it is drawn again, with what is typed in it.
const OPENED = '[role="listbox"], [role="menu"], [data-testid="stDialog"]';
const QUIET = 300; // milliseconds without a click, a key and a run of the page before it is drawn again
const SOON = 100; // milliseconds until it is looked again whether the page may run

const watchers = new WeakMap(); // one watcher per element, over all its runs

export default function (component) {
  const root = component.parentElement;
  if (!watchers.has(root)) watchers.set(root, new Watcher(root));
  const watcher = watchers.get(root);
  watcher.update(component);
  return () => { if (!root.isConnected) watcher.close(); };
}

// Streamlit reports an error in the console if it is asked for a run without a connection.
const isReady = () => {
  const { testConnectionState, testScriptState } = document.querySelector('[data-testid="stApp"]')?.dataset ?? {};
  return testConnectionState === "CONNECTED" && testScriptState === "notRunning";
};

// A redraw sends the values of all inputs. Between a click and its run these may be older than the click, and would undo it.
let quietFrom = 0;
const disturb = () => { quietFrom = performance.now() + QUIET; };
for (const kind of ["pointerdown", "click", "keydown"]) document.addEventListener(kind, disturb, { capture: true, passive: true });
const mustWait = () => {
  if (document.querySelector(OPENED) || !isReady()) disturb();
  return performance.now() < quietFrom;
};

// A request that was sent while a run changed the URL may be for the old one: the page is drawn again for that of the browser.
const isHere = ({ path, query }) => {
  const asked = [...new URLSearchParams(location.search)].filter(([name]) => !name.startsWith("embed"));
  return location.pathname.split("/").pop() === path && sorted(asked) === sorted(query);
};
const sorted = (query) => JSON.stringify(query.map((part) => JSON.stringify(part)).sort());

class Watcher {
  constructor(root) {
    this.root = root;
    this.known = {}; // what the server has said, by name
    this.pause = 100;
    this.poll = setInterval(() => {
      if (!this.isLive && !document.hidden && this.root.isConnected && !mustWait()) this.ask(`poll ${Date.now()}`);
    }, POLL);
    this.shown = () => this.check();
    document.addEventListener("visibilitychange", this.shown); // a hidden tab is drawn when it is looked at again
    this.moved = () => { // back or forward: Streamlit has asked for the other page
      [this.asked, this.askedAt] = [location.href, performance.now()];
      this.check();
    };
    addEventListener("popstate", this.moved, { capture: true });
  }

  update({ data, setTriggerValue }) {
    this.trigger = setTriggerValue;
    this.drawn = data.drawn;
    this.place = data.place;
    disturb(); // the inputs are given their new values after this
    clearTimeout(this.later);
    if (data.every) this.later = setTimeout(() => { this.known.later = Date.now(); this.check(); }, data.every * 1000);
    const watch = JSON.stringify({ watch: data.watch ?? {} });
    const isOther = watch !== this.watch;
    this.watch = watch;
    if (!data.stream || this.url === data.stream) {
      if (isOther && this.socket?.readyState === WebSocket.OPEN) this.socket.send(watch);
      return this.check();
    }
    this.url = data.stream;
    this.connect();
  }

  connect() {
    if (this.isClosed) return;
    const address = new URL(this.url, location.href);
    address.protocol = address.protocol.replace("http", "ws");
    const socket = this.socket = new WebSocket(address);
    socket.onopen = () => { socket.send(this.watch); this.listen(); };
    socket.onmessage = ({ data }) => { this.listen(); this.receive(JSON.parse(data)); };
    socket.onclose = () => this.lost();
  }

  listen() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => { this.socket.close(); this.lost(); }, SILENCE);
  }

  receive(frame) {
    this.pause = 100;
    this.isLive = true;
    for (const name of ["around", "news", "meeting"]) if (name in frame) this.known[name] = frame[name];
    this.check();
  }

  check() {
    const wanted = Object.values(this.known).join(" ");
    if (!this.isLive || this.isClosed || !this.root.isConnected || document.hidden || (this.drawn === wanted && isHere(this.place))) return;
    clearTimeout(this.again);
    if (mustWait()) {
      this.again = setTimeout(() => this.check(), SOON);
      return;
    }
    const [asked, now] = [isHere(this.place) ? `${wanted} ${location.href}` : location.href, performance.now()];
    this.again = setTimeout(() => this.check(), AGAIN + 50);
    if (asked === this.asked && now - this.askedAt < AGAIN) return;
    [this.asked, this.askedAt] = [asked, now];
    this.ask(wanted);
  }

  ask(wanted) {
    if (isHere(this.place) || location.hash) this.trigger("refresh", wanted); // Streamlit ignores steps to an anchor
    else dispatchEvent(new PopStateEvent("popstate"));
  }

  lost() {
    if (this.isClosed) return;
    clearTimeout(this.silence);
    this.socket.onclose = this.socket.onmessage = null;
    this.isLive = false;
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.connect(), this.pause * (0.75 + Math.random() / 2));
    this.pause = Math.min(this.pause * 2, SLOWEST);
  }

  close() {
    this.isClosed = true;
    clearInterval(this.poll);
    for (const timer of [this.retry, this.silence, this.again, this.later]) clearTimeout(timer);
    document.removeEventListener("visibilitychange", this.shown);
    removeEventListener("popstate", this.moved, { capture: true });
    this.socket?.close();
  }
}
