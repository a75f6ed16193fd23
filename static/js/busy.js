/* A button that was pressed says what it is doing, and can't be pressed twice.

   <button data-busy="Starting…">  while its form or request is out: aria-busy="true" and
                                   this text; afterwards what it said before. */
(() => {
  "use strict";

  function begin(button) {
    if (!button?.matches?.("[data-busy]") || button.ariaBusy === "true") return;
    const label = button.querySelector(".button__label") || button;
    button.dataset.busyBefore = label.textContent;
    button.style.minInlineSize = `${button.offsetWidth}px`; // no jump when words differ
    button.ariaBusy = "true";
    label.textContent = button.dataset.busy;
  }

  function end(button) {
    if (button.dataset.busyBefore === undefined) return;
    const label = button.querySelector(".button__label") || button;
    label.textContent = button.dataset.busyBefore;
    delete button.dataset.busyBefore;
    button.removeAttribute("aria-busy");
    button.style.minInlineSize = "";
  }

  function endWithin(element) {
    if (!element?.querySelectorAll) return;
    if (element.matches("[data-busy]")) end(element);
    for (const button of element.querySelectorAll("[data-busy]")) end(button);
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.querySelector("[data-busy][aria-busy='true']")) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    const button = event.submitter ?? form.querySelector("[data-busy]");
    // Later: the browser reads the submitter's name and value first, and a script
    // or htmx (which has events of its own, below) may take the form over.
    setTimeout(() => {
      if (!event.defaultPrevented) begin(button);
    });
  }, true);

  document.addEventListener("htmx:beforeRequest", (event) => {
    const { elt, requestConfig } = event.detail;
    begin(requestConfig?.triggeringEvent?.submitter ?? elt);
  });
  document.addEventListener("htmx:afterRequest", (event) => endWithin(event.detail.elt));

  // Back from the next page, the button must be usable again.
  window.addEventListener("pageshow", () => endWithin(document.body));
})();
