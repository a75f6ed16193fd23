/* Keeps folds as the reader left them when a frame replaces them.

   details[id]  anywhere in <main> or the topbar: what is open stays open, and what a
                person opened or closed by hand stays so, by its id.
   [data-state="waiting"]  of a call that is asked about: the card below shows the same,
                so it stays open only if a person opened it. */
(() => {
  "use strict";

  const KEPT = 500; // choices; a page that is open for days must not grow for ever
  const choices = new Map(); // id -> open, as a person set it
  let open = [];

  document.addEventListener("click", (event) => {
    const fold = event.target.closest?.("summary")?.parentElement;
    if (!fold?.id) return;
    // The browser toggles it after this event.
    setTimeout(() => {
      choices.delete(fold.id);
      choices.set(fold.id, fold.open);
      if (choices.size > KEPT) choices.delete(choices.keys().next().value);
    });
  });

  function remember() {
    open = [...document.querySelectorAll("details[id][open]")];
  }

  /* Only what was replaced: an element that stayed is as its reader wants it. */
  function restore() {
    for (const before of open) {
      if (before.isConnected) continue;
      const now = document.getElementById(before.id);
      if (!now || choices.get(now.id) === false) continue;
      if (now.dataset.state !== "waiting" || choices.get(now.id)) now.open = true;
    }
    for (const [id, wanted] of choices) {
      if (wanted) continue;
      const now = document.getElementById(id);
      if (now?.open) now.open = false;
    }
    open = [];
  }

  for (const name of ["htmx:wsBeforeMessage", "htmx:beforeSwap"]) {
    document.addEventListener(name, remember);
  }
  for (const name of ["htmx:wsAfterMessage", "htmx:afterSwap"]) {
    document.addEventListener(name, restore);
  }
})();
