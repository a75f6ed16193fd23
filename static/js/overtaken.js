/* Answers to forms that a frame replaced while their request was out.

   htmx would put such an answer into the old form's target, outside the page: its parts
   found no place, and elements with hx-preserve left the page with it. Here the answer goes
   to what stands under the target's id now, or only its hx-swap-oob parts to theirs. */
(() => {
  "use strict";

  const watched = new WeakSet();

  function takeOver(event) {
    const { target, requestConfig, shouldSwap, serverResponse } = event.detail;
    const form = requestConfig?.elt;
    if (event.target !== event.currentTarget || !form) return;
    if (form.isConnected && target.isConnected) return;
    event.preventDefault();
    if (!shouldSwap) return;
    const successor = target.isConnected ? target : document.getElementById(target.id);
    const place = successor ?? document.body;
    const style = successor ? form.getAttribute("hx-swap") : "none";
    // The other files hear of the swap here; of the one that was stopped only its target did.
    const detail = { ...event.detail, target: place };
    if (!target.isConnected && !htmx.trigger(place, "htmx:beforeSwap", detail)) return;
    htmx.swap(place, serverResponse, { swapStyle: style || htmx.config.defaultSwapStyle });
  }

  // Beside the target itself: the events of what is outside the page reach no further.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const { target } = event.detail;
    if (!target || watched.has(target)) return;
    watched.add(target);
    target.addEventListener("htmx:beforeSwap", takeOver);
  });
})();
