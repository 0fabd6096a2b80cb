/* Runs in the page when a talk is opened. Nothing that people or agents wrote is in here. */
(() => {
  const find = (name, more = "") => document.querySelector(`[data-testid="${name}"]${more}`);

  // The element may not exist yet, or lose the focus again while it is drawn: try until the user has moved the focus or
  // opened a menu, or for a moment after it was found. A slow browser takes long until it is there.
  const SOUGHT = 600, KEPT = 40; // tries, 50 ms apart
  const focus = (selector, seek = SOUGHT, keep = KEPT, from = document.activeElement) => {
    const field = document.querySelector(selector);
    const active = document.activeElement;
    if (document.querySelector('[role="menu"]')) return;
    if (active === field || /^(INPUT|TEXTAREA|SELECT)$/.test(active?.tagName)) return;
    if (active !== from && active !== document.body && !active?.closest('[role="dialog"]')) return;
    field?.focus();
    if (field ? keep : seek) setTimeout(focus, 50, selector, seek - !field, keep - Boolean(field), from);
  };
  // Phones show their keyboard on focus: leave that to the user.
  const ready = (selector) => { if (matchMedia("(hover: hover)").matches) focus(selector); };
  const greet = () => ready(".roost-input");
  greet();

  if (document.getElementById("roost-lost")) return; // the rest runs once

  // --- on a narrow screen the sidebar covers the chosen talk, or page ----------------------------------
  const opens = ["new_talk", "open_", "hit_"].map((key) => `[class*="st-key-${key}"] button`).concat('.st-key-page_links a').join();
  document.addEventListener("click", (event) => {
    if (innerWidth >= 768 || !event.target.closest?.(opens)) return;
    find("stSidebar", '[data-collapsed="false"] [data-testid="stSidebarCollapseButton"] button')?.click();
  });
  addEventListener("pagehide", () => { // the next page begins without it, whatever Streamlit remembers
    const remembered = Object.keys(localStorage).filter((key) => key.startsWith("stSidebarCollapsed"));
    if (innerWidth < 768) remembered.forEach((key) => localStorage.removeItem(key));
  });

  // --- links to pages: Streamlit's are relative to the path, so that a new tab would open the wrong page --
  const linkAt = (event) => event.target.closest?.('[data-testid="stPageLink-NavLink"]');
  document.addEventListener("mousedown", (event) => {
    const link = linkAt(event);
    if (link) link.href = new URL(link.getAttribute("href"), `${location.origin}/`);
  }, { capture: true });
  // Of a link to the open page it draws once what its query says, and leaves the URL as it was. The back button does it
  // right: go there as if it had been used.
  document.addEventListener("click", (event) => {
    const link = linkAt(event);
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const target = new URL(link.getAttribute("href"), `${location.origin}/`);
    if (target.pathname !== location.pathname) {
      wanted = { target, until: performance.now() + 15_000 };
      return;
    }
    wanted = null;
    event.preventDefault();
    event.stopPropagation();
    if (target.search !== location.search) history.pushState({}, "", target);
    dispatchEvent(new PopStateEvent("popstate"));
  }, { capture: true });

  // A run of the open page that was asked for after the click, and before the answer to it, takes the page back: go there again.
  // It may have been drawn already when that run begins: it counts as shown after a while, or when it is used.
  let wanted = null; // the page that a link was clicked for, until it is shown
  const isHere = ({ target }) => target.pathname === location.pathname;
  const forget = () => { if (wanted && (isHere(wanted) || performance.now() > wanted.until)) wanted = null; };
  addEventListener("popstate", ({ isTrusted }) => { if (isTrusted) wanted = null; }); // the back button
  for (const kind of ["pointerdown", "keydown"]) document.addEventListener(kind, forget, { capture: true, passive: true });
  const arrive = () => {
    if (wanted && performance.now() > wanted.until) wanted = null;
    if (wanted && !isHere(wanted) && app.dataset.testScriptState === "notRunning") {
      const { target } = wanted;
      history.pushState({}, "", target);
      dispatchEvent(new PopStateEvent("popstate"));
    }
  };

  // --- ignore the second click of a double click, also on the element that appears next ---------------
  const once = ".st-key-suggestions, .st-key-waiting_list, .roost-actions, .roost-editing, .roost-table-bar,"
    + '[data-testid="stButton"], [data-testid="stFormSubmitButton"]';
  document.addEventListener("click", (event) => {
    if (event.detail < 2 || !event.target.closest?.(once)) return;
    event.stopPropagation();
    event.preventDefault();
  }, { capture: true });

  // --- the first item of a menu: it looks focused, but the menu around it has the focus ------------------
  document.addEventListener("keydown", (event) => {
    if (!/^(Enter| )$/.test(event.key) || document.activeElement?.getAttribute("role") !== "menu") return;
    event.preventDefault();
    event.stopPropagation();
    document.activeElement.querySelector('[role="menuitem"][data-focused="true"]')?.click();
  }, { capture: true });

  // --- connection lost: a notice instead of Streamlit's dialog -------------------------------------
  const lost = document.createElement("div");
  lost.id = "roost-lost";
  lost.setAttribute("role", "status");
  document.body.append(lost);
  const app = find("stApp");
  let away = false;
  let drawing = false;
  let staying; // the timer after which the wanted page counts as shown

  const isLost = () => app.dataset.testConnectionState !== "CONNECTED";
  const tell = async () => {
    if (!isLost()) return;
    if (!lost.firstChild) lost.textContent = "Connection lost. Reconnecting…";
    const answer = await fetch("/api/v1/health").catch(() => null);
    if (!isLost()) return;
    if (answer?.status === 401) tellSignedOut();
    else setTimeout(tell, 3000);
  };
  const tellSignedOut = () => {
    const link = document.createElement("a");
    link.href = `/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`;
    link.textContent = "Sign in";
    lost.replaceChildren("You are signed out. ", link);
  };
  const look = () => {
    const { testConnectionState: link, testScriptState: script } = app.dataset;
    if (link !== "CONNECTED") {
      if (!away) setTimeout(tell, 1000);
      [away, drawing] = [true, false];
      return;
    }
    lost.textContent = "";
    if (away && drawing && script !== "running") {
      away = false;
      greet(); // not earlier: before the page is redrawn, messages are not received
    }
    drawing = script === "running";
    clearTimeout(staying);
    if (wanted && !drawing) {
      if (isHere(wanted)) staying = setTimeout(forget, 2_000);
      else setTimeout(arrive, 300);
    }
  };
  new MutationObserver(look).observe(app, { attributes: true });

  // --- toasts are dialogs to screen readers, and Streamlit gives them no name ----------------------------
  const name = (toast) => toast.setAttribute("aria-label", "Notice");
  new MutationObserver(() => document.querySelectorAll('[data-testid="stToast"]:not([aria-label])').forEach(name))
    .observe(document.body, { childList: true, subtree: true });

  // --- Escape closes a dialog also when its focused element is gone -----------------------------------
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && document.activeElement === document.body) find("stDialog")?.querySelector('[aria-label="Close"]')?.click();
  });

  // --- dialogs: focus their input; focus the message input when they close ---------------------------
  let asking = false;
  new MutationObserver(() => {
    const dialog = find("stDialog");
    // Streamlit's connection dialog would cover the page: nothing could be read or copied.
    if (away && dialog?.querySelector('[data-testid="stErrorCodeBlock"]')) dialog.querySelector('[aria-label="Close"]').click();
    else if (dialog && !asking) ready('[data-testid="stDialog"] input');
    else if (!dialog && asking) greet();
    asking = Boolean(dialog);
  }).observe(document.body, { childList: true, subtree: true });
})();
