/* Keeps the end of the transcript in view, but only while the reader is there.

   <div data-stick>             what grows at its end (the page scrolls, not this element)
   <button data-jump hidden>    "Jump to latest": shown while the reader is further up
   <form data-to-end>           what is sent by it goes on at the end, so the reader goes too
   <form data-in-view>          is moved out from behind the bars when it is swapped in
   <… data-older hx-get=…>      a swap of this element puts older content above: what the
                                reader sees stays where it is */
(() => {
  "use strict";

  const NEAR = 24; // px from the end that still count as "at the end"
  const page = document.scrollingElement;
  let atEnd = true;
  let lastTop = page.scrollTop;
  let queued = false;
  let anchor = null;

  const transcript = () => document.querySelector("[data-stick]");
  const distance = () => page.scrollHeight - page.clientHeight - page.scrollTop;

  function showJump() {
    for (const button of document.querySelectorAll("[data-jump]")) {
      button.hidden = atEnd || distance() <= NEAR;
    }
  }

  function toEnd() {
    page.scrollTop = page.scrollHeight;
    lastTop = page.scrollTop;
    atEnd = true;
    showJump();
  }

  function follow() {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => {
      queued = false;
      if (atEnd && transcript()) toEnd();
      else showJump();
    });
  }

  function scrolled() {
    if (!transcript()) return;
    // Any move up lets go, however small; only arriving at the end takes hold again.
    if (distance() <= NEAR && page.scrollTop >= lastTop) atEnd = true;
    else if (page.scrollTop < lastTop - 1 && distance() > 1) atEnd = false;
    lastTop = page.scrollTop;
    showJump();
  }

  /* What is scrolled into view must not end up behind the composer and its queue. */
  function makeRoom() {
    const dock = document.querySelector(".composer-dock");
    const room = dock ? `${Math.min(dock.offsetHeight + 8, innerHeight / 2)}px` : "";
    if (page.style.scrollPaddingBlockEnd !== room) page.style.scrollPaddingBlockEnd = room;
  }

  function bringIntoView(form) {
    atEnd = false; // else what grows would pull the page away from it
    makeRoom();
    form.scrollIntoView({ block: "nearest" });
    // Where it is higher than the view, its end counts: there are the buttons.
    form.querySelector("[type='submit']")?.scrollIntoView({ block: "nearest" });
    lastTop = page.scrollTop;
    showJump();
  }

  const sizes = new ResizeObserver(() => {
    makeRoom();
    follow();
  });

  function watch() {
    sizes.disconnect();
    const log = transcript();
    if (!log) return;
    history.scrollRestoration = "manual"; // a reload opens at the end too
    sizes.observe(log);
    for (const dock of document.querySelectorAll(".composer-dock")) sizes.observe(dock);
  }

  document.addEventListener("scroll", scrolled, { passive: true });
  window.addEventListener("resize", follow, { passive: true });

  document.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-jump]")) toEnd();
    // Opening a card is the reader's own act: it must not scroll away from it.
    if (event.target.closest?.("[data-stick] summary")) {
      atEnd = false;
      setTimeout(() => {
        atEnd = distance() <= NEAR;
        showJump();
      });
    }
  });

  document.addEventListener("submit", (event) => {
    if (event.target.matches("[data-to-end]")) atEnd = true;
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    const older = event.detail.target?.closest?.("[data-older]");
    const kept = older?.nextElementSibling;
    anchor = kept ? { kept, top: kept.getBoundingClientRect().top } : null;
  });

  document.addEventListener("htmx:afterSwap", () => {
    if (!anchor?.kept.isConnected) return;
    page.scrollTop += anchor.kept.getBoundingClientRect().top - anchor.top;
    lastTop = page.scrollTop;
    anchor = null;
  });

  // A snapshot over the socket may replace the whole log.
  for (const name of ["htmx:oobAfterSwap", "htmx:load"]) {
    document.addEventListener(name, (event) => {
      const swapped = event.detail.target ?? event.detail.elt;
      if (swapped?.matches?.("[data-stick], :has([data-stick])")) watch();
      if (swapped?.matches?.("[data-in-view]")) bringIntoView(swapped);
    });
  }

  watch();
  // At once: htmx looks right after this whether the link to older content is in view.
  if (location.hash) atEnd = false;
  else if (transcript()) toEnd();
})();
