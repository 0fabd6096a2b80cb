/* Runs in the page when a talk is opened. Nothing that people or agents wrote is in here. */
(() => {
  const find = (name, more = "") => document.querySelector(`[data-testid="${name}"]${more}`);

  // The element may not exist yet, or not be ready: try again, until the user has moved the focus elsewhere.
  const focus = (selector, tries, from = document.activeElement) => {
    const field = document.querySelector(selector);
    const active = document.activeElement;
    if (active === field || /^(INPUT|TEXTAREA|SELECT)$/.test(active?.tagName)) return;
    if (active !== from && active !== document.body && !active?.closest('[role="dialog"]')) return;
    field?.focus();
    if (tries) setTimeout(focus, 50, selector, tries - 1, from);
  };
  // Phones show their keyboard on focus: leave that to the user.
  const ready = (selector) => { if (matchMedia("(hover: hover)").matches) focus(selector, 40); };
  const greet = () => ready(".roost-input");
  greet();

  if (document.getElementById("roost-lost")) return; // the rest runs once

  // --- on a narrow screen the sidebar covers the chosen talk -----------------------------------------
  const opens = ["new_talk", "open_", "hit_"].map((key) => `[class*="st-key-${key}"] button`).join();
  document.addEventListener("click", (event) => {
    if (innerWidth >= 768 || !event.target.closest?.(opens)) return;
    find("stSidebar", '[data-collapsed="false"] [data-testid="stSidebarCollapseButton"] button')?.click();
  });
  addEventListener("pagehide", () => { // the next page begins without it, whatever Streamlit remembers
    const remembered = Object.keys(localStorage).filter((key) => key.startsWith("stSidebarCollapsed"));
    if (innerWidth < 768) remembered.forEach((key) => localStorage.removeItem(key));
  });

  // --- ignore the second click of a double click, also on the element that appears next ---------------
  const once = ".st-key-suggestions, .st-key-waiting_list, .roost-actions, .roost-editing";
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

  const tell = () => {
    if (app.dataset.testConnectionState === "CONNECTED") return;
    lost.textContent = "Connection lost. Reconnecting…";
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
  };
  new MutationObserver(look).observe(app, { attributes: true });

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
