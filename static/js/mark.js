/* Shows the message that the address names, also when a frame replaces it.

   /sessions/…/#message-<id>  the element gets data-marked, the folds around it and its
                              own card open; without this file :target marks it */
(() => {
  "use strict";

  const INSIDE = "[data-stick]";
  let opened = "";

  function mark() {
    const id = location.hash.slice(1);
    const found = id ? document.getElementById(id) : null;
    if (!found?.closest(INSIDE)) return;
    found.dataset.marked = "";
    if (opened === id) return; // what the reader folds again stays folded
    opened = id;
    const card = found.querySelector(":scope > details");
    if (card) card.open = true;
    for (let fold = found.closest("details"); fold; fold = fold.parentElement.closest("details")) {
      fold.open = true;
    }
    found.scrollIntoView({ block: "center" });
  }

  function unmark() {
    for (const old of document.querySelectorAll("[data-marked]")) delete old.dataset.marked;
    mark();
  }

  window.addEventListener("hashchange", unmark);
  document.addEventListener("htmx:wsAfterMessage", mark);
  mark();
})();
