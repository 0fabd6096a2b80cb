/* Runs in the page when a talk is opened. Nothing that people or agents wrote is in here. */
(() => {
  const find = (name, more = "") => document.querySelector(`[data-testid="${name}"]${more}`);

  const focus = (name, more, tries) => {
    const field = find(name, more);
    const active = document.activeElement;
    if (active === field || /^(INPUT|TEXTAREA|SELECT)$/.test(active?.tagName)) return;
    field?.focus();
    if (tries) setTimeout(focus, 50, name, more, tries - 1); // it may not be there, or not be ready, yet
  };
  // Phones show their keyboard on focus: there it is left to the person.
  const ready = (name, more = "") => { if (matchMedia("(hover: hover)").matches) focus(name, more, 40); };
  const greet = () => ready("stChatInputTextArea");
  greet();

  // On a narrow screen the sidebar covers the talk that was chosen in it.
  const fold = () => {
    if (innerWidth < 768) find("stSidebar", '[data-collapsed="false"] [data-testid="stSidebarCollapseButton"] button')?.click();
  };
  fold();
  if (document.getElementById("roost-lost")) return; // the rest is done once

  // --- copying: each message has its button, and in it what was said, as base64 of UTF-8 ---------
  const copyOtherwise = (said) => { // without a secure connection there is no clipboard to ask
    const active = document.activeElement;
    const area = document.createElement("textarea");
    area.value = said;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    active?.focus();
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("button[data-copy]");
    if (!button) return;
    const bytes = Uint8Array.from(atob(button.dataset.copy), (letter) => letter.charCodeAt(0));
    const said = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
    try { await navigator.clipboard.writeText(said); } catch { copyOtherwise(said); }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });

  // --- what is chosen may be open already ----------------------------------------------------------
  document.addEventListener("click", (event) => {
    if (event.target.closest?.('.st-key-new_talk button, [class*="st-key-open_"] button')) fold();
  });

  // --- the second click of a double click asks nothing a second time, nor what comes next -------------
  const once = ".st-key-suggestions, .st-key-try_again, .st-key-deciding, .st-key-waiting_list";
  document.addEventListener("click", (event) => {
    if (event.detail > 1 && event.target.closest?.(once)) event.stopPropagation();
  }, { capture: true });

  // --- the server is away: our own quiet words instead of Streamlit's dialog ----------------------
  const lost = document.createElement("div");
  lost.id = "roost-lost";
  lost.setAttribute("role", "status");
  document.body.append(lost);
  const app = find("stApp");
  let away = false;
  let drawing = false;

  const tell = () => {
    if (app.dataset.testConnectionState === "CONNECTED") return;
    lost.textContent = "Roost does not answer. This page goes on by itself when it is back.";
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
      greet(); // not earlier: before the page is drawn anew, what is sent reaches no one
    }
    drawing = script === "running";
  };
  new MutationObserver(look).observe(app, { attributes: true });

  // --- dialogs: ready to type in; when they close, the line is ---------------------------------------
  let asking = false;
  new MutationObserver(() => {
    const dialog = find("stDialog");
    // Streamlit's own, about the connection: under it nothing could be read or copied.
    if (away && dialog?.querySelector('[data-testid="stErrorCodeBlock"]')) dialog.querySelector('[aria-label="Close"]').click();
    else if (dialog && !asking) ready("stDialog", " input");
    else if (!dialog && asking) greet();
    asking = Boolean(dialog);
  }).observe(document.body, { childList: true, subtree: true });
})();
