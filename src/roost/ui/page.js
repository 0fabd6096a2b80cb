/* Runs in the page when a talk is opened. Nothing that people or agents wrote is in here. */
(() => {
  const focus = (tries) => {
    const line = document.querySelector('[data-testid="stChatInputTextArea"]');
    const active = document.activeElement;
    if (active === line || /^(INPUT|TEXTAREA|SELECT)$/.test(active?.tagName)) return;
    line?.focus();
    if (tries) setTimeout(focus, 50, tries - 1); // the line may not be there, or not be ready, yet
  };
  // Phones show their keyboard on focus: there it is left to the person.
  if (matchMedia("(hover: hover)").matches) focus(40);

  // On a narrow screen the sidebar covers the talk that was chosen in it.
  if (innerWidth < 768) {
    const open = document.querySelector('[data-testid="stSidebar"][data-collapsed="false"]');
    open?.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click();
  }
  if (document.getElementById("roost-copy")) return;

  // One button for all messages: it goes where the pointer is, outside of what Streamlit draws.
  const button = document.createElement("button");
  button.id = "roost-copy";
  button.type = "button";
  button.textContent = "Copy";
  button.hidden = true;
  document.body.append(button);
  let message = null;

  const show = (event) => {
    if (event.target === button) return;
    const found = event.target.closest?.('[data-testid="stChatMessage"]');
    button.hidden = !found;
    if (!found) return;
    message = found;
    const box = found.getBoundingClientRect();
    button.textContent = "Copy";
    button.style.top = `${Math.max(box.top, 56)}px`;
    button.style.left = `${box.right - button.offsetWidth}px`;
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("scroll", () => { button.hidden = true; }, { capture: true, passive: true });

  const copied = (said) => {
    const area = document.createElement("textarea");
    area.value = said;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  };
  button.addEventListener("click", async () => {
    const parts = message.querySelectorAll('[data-testid="stText"], [data-testid="stMarkdownContainer"]');
    const said = [...parts].map((part) => part.innerText.replaceAll("\u2060", "")).join("\n\n");
    if (navigator.clipboard) await navigator.clipboard.writeText(said); else copied(said);
    button.textContent = "Copied";
  });
})();
