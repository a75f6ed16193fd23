/* Remembers whether the rail is folded: the server reads the cookie and renders it so.

   <details class="rail__toggle" data-remember="rail">  cookie rail=collapsed or gone */
(() => {
  "use strict";

  const YEAR_SECONDS = 31_536_000;

  // toggle does not bubble, so listen on the way down.
  document.addEventListener("toggle", (event) => {
    const name = event.target.dataset?.remember;
    if (!name) return;
    const age = event.target.open ? 0 : YEAR_SECONDS;
    document.cookie = `${name}=collapsed; path=/; max-age=${age}; samesite=lax`;
  }, true);
})();
