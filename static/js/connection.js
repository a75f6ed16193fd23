/* Keeps the page's socket: where it takes up the page again, when it tries, what it says.

   #connection[data-state="live|reconnecting|offline"]; the words are in the markup.
   live: open, or this page has no socket. reconnecting: lost, and tried again.
   offline: the server said not to come back (signed out, no longer allowed).
   Only a socket that has stayed open for a while makes the next attempt an early one: a
   server that closes each as soon as it opens is asked ever less often.
   [data-live-seq]  up to which event the page shows everything; goes into the address of
                    the next socket, so that only what came later is sent. */
(() => {
  "use strict";

  // What htmx's extension answers with a new attempt.
  const COMES_BACK = new Set([1006, 1011, 1012, 1013]);
  const DELETED = 4410; // the page itself says what happened
  const GRACE_MS = 800; // a blink is not worth a word
  const LONGEST_MS = 8000; // between two attempts
  const NEVER_MS = 2 ** 31 - 1; // attempts are made here, not by htmx's own timer

  const create = htmx.createWebSocket;
  let socket = null; // the newest; closes of older ones mean nothing
  let wrapper = null;
  let attempts = 0;
  let openedAt = Infinity;
  let isOver = false; // the server said not to come back
  let retry = null;
  let timer = null;
  let wasOpen = false;

  htmx.createWebSocket = (url) => {
    const address = new URL(url);
    const seq = document.querySelector("[data-live-seq]")?.dataset.liveSeq;
    if (seq) address.searchParams.set("seq", seq);
    socket = create(address.href);
    return socket;
  };

  htmx.config.wsReconnectDelay = () => {
    clearTimeout(retry);
    if (performance.now() - openedAt > LONGEST_MS) attempts = 0;
    openedAt = Infinity;
    const longest = Math.min(1000 * 2 ** attempts, LONGEST_MS);
    attempts += 1;
    retry = setTimeout(reconnect, longest * Math.random());
    return NEVER_MS;
  };

  function reconnect() {
    clearTimeout(retry);
    const isTrying = socket?.readyState === WebSocket.CONNECTING;
    const isOpen = socket?.readyState === WebSocket.OPEN;
    if (wrapper && document.querySelector("[ws-connect]") && !isTrying && !isOpen) {
      wrapper.reconnect();
    }
  }

  /* A page that nobody looked at, or a machine that slept, should not wait now. */
  function wake() {
    if (document.visibilityState === "visible" && !isOver) reconnect();
  }

  /* After another network a socket that looks open is often dead. */
  function renew() {
    if (socket?.readyState === WebSocket.OPEN) wrapper?.reconnect();
    else wake();
  }

  function show(state) {
    clearTimeout(timer);
    timer = null;
    const element = document.getElementById("connection");
    if (element && element.dataset.state !== state) element.dataset.state = state;
  }

  function showSoon(state) {
    if (timer === null) timer = setTimeout(() => show(state), GRACE_MS);
  }

  document.addEventListener("htmx:wsOpen", (event) => {
    wrapper = event.detail.socketWrapper;
    openedAt = performance.now();
    wasOpen = true;
    show("live");
  });

  document.addEventListener("htmx:wsConnecting", () => {
    if (wasOpen) showSoon("reconnecting");
  });

  document.addEventListener("htmx:wsClose", (event) => {
    wrapper ??= event.detail.socketWrapper;
    if (event.detail.event?.target !== socket) return;
    const code = event.detail.event.code;
    if (COMES_BACK.has(code)) {
      showSoon("reconnecting");
    } else if (code !== 1000 && code !== 1001) {
      isOver = true;
      if (code !== DELETED) show("offline");
    }
  });

  window.addEventListener("online", renew);
  document.addEventListener("visibilitychange", wake);

  // Leaving the page closes the socket too; nobody needs to read that.
  window.addEventListener("pagehide", () => clearTimeout(timer));
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) wake();
  });
})();
