/* Runs in the page when a talk is opened. Nothing that people or agents wrote is in here. */
(() => {
  const find = (name, more = "") => document.querySelector(`[data-testid="${name}"]${more}`);

  const focus = (selector, tries) => {
    const field = document.querySelector(selector);
    const active = document.activeElement;
    if (active === field || /^(INPUT|TEXTAREA|SELECT)$/.test(active?.tagName)) return;
    field?.focus();
    if (tries) setTimeout(focus, 50, selector, tries - 1); // the element may not exist yet, or not be ready
  };
  // Phones show their keyboard on focus: leave that to the user.
  const ready = (selector) => { if (matchMedia("(hover: hover)").matches) focus(selector, 40); };
  const greet = () => ready(".roost-input");
  greet();

  // On a narrow screen the sidebar covers the chosen talk.
  const fold = () => {
    if (innerWidth < 768) find("stSidebar", '[data-collapsed="false"] [data-testid="stSidebarCollapseButton"] button')?.click();
  };
  fold();
  if (document.getElementById("roost-lost")) return; // the rest runs once

  // --- the chosen talk may be open already ---------------------------------------------------------
  document.addEventListener("click", (event) => {
    if (event.target.closest?.('.st-key-new_talk button, [class*="st-key-open_"] button')) fold();
  });

  // --- ignore the second click of a double click, also on the element that appears next ---------------
  const once = ".st-key-suggestions, .st-key-waiting_list";
  document.addEventListener("click", (event) => {
    if (event.detail > 1 && event.target.closest?.(once)) event.stopPropagation();
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
