/* Shows the state of the page's socket, which is not the state of a run.

   #connection[data-state="live|reconnecting|offline"]; the words are in the markup.
   live: open, or this page has no socket. reconnecting: lost, htmx tries again.
   offline: the server said not to come back (signed out, no longer allowed). */
(() => {
  "use strict";

  // What htmx's extension answers with a new attempt.
  const COMES_BACK = new Set([1006, 1011, 1012, 1013]);
  const DELETED = 4410; // the page itself says what happened
  const GRACE_MS = 800; // a blink is not worth a word

  let timer = null;
  let wasOpen = false;

  function show(state) {
    clearTimeout(timer);
    timer = null;
    const element = document.getElementById("connection");
    if (element && element.dataset.state !== state) element.dataset.state = state;
  }

  function showSoon(state) {
    if (timer === null) timer = setTimeout(() => show(state), GRACE_MS);
  }

  document.addEventListener("htmx:wsOpen", () => {
    wasOpen = true;
    show("live");
  });

  document.addEventListener("htmx:wsConnecting", () => {
    if (wasOpen) showSoon("reconnecting");
  });

  document.addEventListener("htmx:wsClose", (event) => {
    const code = event.detail.event?.code;
    if (COMES_BACK.has(code)) showSoon("reconnecting");
    else if (code !== 1000 && code !== 1001 && code !== DELETED) show("offline");
  });

  // Leaving the page closes the socket too; nobody needs to read that.
  window.addEventListener("pagehide", () => clearTimeout(timer));
})();
