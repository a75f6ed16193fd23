/* Single-key shortcuts, never while somebody types.

   <a|button data-shortcut="n">   the key activates the first such element that is shown
   <… data-shortcut-focus="/">    the key moves the focus there
   The help dialog is the element that carries data-shortcut="?" as its opener. */
(() => {
  "use strict";

  const TYPING = "input, textarea, select, [contenteditable], [role='textbox']";

  function find(attribute, key) {
    for (const element of document.querySelectorAll(`[${attribute}]`)) {
      if (element.getAttribute(attribute) !== key) continue;
      if (element.checkVisibility() || element.dataset.dialog) return element;
    }
    return null;
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.defaultPrevented || event.repeat) return;
    if (event.target.closest?.(TYPING) || document.querySelector("dialog[open]")) return;

    const target = find("data-shortcut", event.key);
    const focus = target ? null : find("data-shortcut-focus", event.key);
    if (!target && !focus) return;
    event.preventDefault();
    if (target) target.click();
    else focus.focus();
  });
})();
