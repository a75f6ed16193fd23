/* Keeps a reader's place when a snapshot brings a transcript's newest page anew.

   [data-stick]   the transcript; what stands on the page before the snapshot's first item
                  is older than it on any version, so it stays in front
   [data-older]   the link to what is older still: the one that is furthest up stays */
(() => {
  "use strict";

  const NEAR = 24; // px from the end; there stick.js holds the page
  const page = document.scrollingElement;
  let reading = null; // what stands at the top of the view, and where
  let queued = false;
  let hasSwapped = false;

  function look() {
    queued = false;
    const log = document.querySelector("[data-stick]");
    if (!log) return;
    const { left, width } = log.getBoundingClientRect();
    const top = document.querySelector(".topbar")?.getBoundingClientRect().bottom ?? 0;
    for (const below of [8, 40, 80]) {
      const seen = document.elementFromPoint(left + width / 2, top + below);
      const item = seen?.closest("[data-stick] > [id]");
      if (item) {
        const rest = page.scrollHeight - page.clientHeight - page.scrollTop;
        reading = { id: item.id, top: item.getBoundingClientRect().top, isAtEnd: rest <= NEAR };
        return;
      }
    }
  }

  function lookSoon() {
    if (!queued) requestAnimationFrame(look);
    queued = true;
  }

  function older(log, first) {
    const found = [];
    let item = log.firstElementChild;
    while (item && item.id !== first.id) {
      found.push(item);
      item = item.nextElementSibling;
    }
    return item ? found : [];
  }

  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const { target, fragment } = event.detail;
    const fresh = fragment.firstElementChild;
    if (!fresh?.matches("[data-stick]") || !target.matches("[data-stick]")) return;
    hasSwapped = reading !== null && !reading.isAtEnd;
    const first = fresh.querySelector(":scope > [id]:not([data-older])");
    const kept = first ? older(target, first) : [];
    if (!kept.length) return;
    fresh.querySelector(":scope > [data-older]")?.remove();
    first.before(...kept);
  });

  // After the folds are as they were.
  document.addEventListener("htmx:wsAfterMessage", () => {
    const item = hasSwapped ? document.getElementById(reading.id) : null;
    hasSwapped = false;
    if (item) page.scrollTop += item.getBoundingClientRect().top - reading.top;
  });

  document.addEventListener("scroll", lookSoon, { passive: true });
  document.addEventListener("click", lookSoon);
})();
