/* Copies text.

   <button data-copy>  copies, first of these that is there:
     data-copy-text="…"     this text
     data-copy-from="id"    the text of the element with this id
     otherwise              the [data-copy-source] or <pre> in the nearest [data-copy-scope],
                            .code-block, .terminal, .tool-card or .message
   The button's label (or aria-label) says "Copied" for a moment. */
(() => {
  "use strict";

  const SCOPES = "[data-copy-scope], .code-block, .terminal, .tool-card, .message";

  function textFor(button) {
    if (button.dataset.copyText !== undefined) return button.dataset.copyText;
    const source = button.dataset.copyFrom
      ? document.getElementById(button.dataset.copyFrom)
      : button.closest(SCOPES)?.querySelector("[data-copy-source], pre, .message__body");
    return source?.innerText ?? "";
  }

  /* The Clipboard API exists only on https and localhost; a LAN address has neither. */
  function copyOldWay(text) {
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "visually-hidden";
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copyOldWay(text);
    }
  }

  function say(button, word) {
    if (button.dataset.copyBefore !== undefined) return;
    const words = button.childElementCount === 0 && button.textContent.trim();
    const label = button.querySelector(".button__label") ?? (words ? button : null);
    const before = label ? label.textContent : button.getAttribute("aria-label") || "";
    const write = (text) => {
      if (label) label.textContent = text;
      else button.setAttribute("aria-label", text);
    };
    button.dataset.copyBefore = before;
    button.dataset.state = "copied";
    write(word);
    setTimeout(() => {
      write(before);
      delete button.dataset.copyBefore;
      delete button.dataset.state;
    }, 1500);
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    event.preventDefault(); // inside a <summary> it must not fold the card
    const done = await copy(textFor(button));
    button.focus();
    say(button, done ? "Copied" : "Copy failed");
  });
})();
