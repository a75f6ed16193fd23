/* Short messages in #toasts, announced politely.

   .toast[data-dismiss-after="6000"]   goes by itself, unless pointed at or focused
   [data-toast-close]                  closes its toast
   <template id="toast-template">      the markup of a toast made here
   document event "toast" {detail: {level, text}} shows one, and so does the response
   header HX-Trigger: {"toast": {…}}. Failed requests become one. */
(() => {
  "use strict";

  const SENTENCES = {
    0: "The server can’t be reached. Nothing was lost; try again in a moment.",
    401: "You are signed out. Reload the page to sign in.",
    403: "You are not allowed to do that, or the page is too old. Reload and try again.",
    404: "That is no longer there.",
    409: "Somebody was faster. Reload to see what happened.",
    413: "That is too large to send.",
    429: "That was too often. Wait a moment and try again.",
  };
  const OTHER = "Something went wrong on the server. Try again; if it stays, look at its log.";

  function arm(toast) {
    const delay = Number(toast.dataset.dismissAfter);
    if (!delay || toast.dataset.armed) return;
    toast.dataset.armed = "true";
    const tick = () => {
      if (toast.matches(":hover, :focus-within")) setTimeout(tick, 1000);
      else toast.remove();
    };
    setTimeout(tick, delay);
  }

  function show(level, text) {
    const box = document.getElementById("toasts");
    const template = document.getElementById("toast-template");
    if (!box || !template || !text) return;
    const last = box.lastElementChild;
    if (last?.querySelector(".toast__text")?.textContent === text) return;
    const toast = template.content.firstElementChild.cloneNode(true);
    toast.dataset.level = level;
    toast.querySelector(".toast__text").textContent = text;
    if (level === "error") delete toast.dataset.dismissAfter;
    box.append(toast);
    arm(toast);
  }

  /* The server's own sentence: a short plain text, or the alert of a fragment. */
  function sentence(xhr) {
    const type = xhr.getResponseHeader("Content-Type") || "";
    let text = type.startsWith("text/plain") ? xhr.responseText : "";
    if (type.startsWith("text/html")) {
      const answer = new DOMParser().parseFromString(xhr.responseText, "text/html");
      text = answer.querySelector("[role='alert']")?.textContent ?? "";
    }
    text = text.trim();
    return text && text.length < 300 ? text : (SENTENCES[xhr.status] ?? OTHER);
  }

  function report(xhr) {
    if (xhr.status === 409) show("warning", sentence(xhr)); // somebody was faster
    else if (xhr.status >= 400 && xhr.status !== 422) show("error", sentence(xhr));
  }

  // Not htmx:responseError: a form that a frame replaced while its request was out
  // stands outside the page, and its events with it.
  document.addEventListener("htmx:beforeSend", (event) => {
    const { xhr } = event.detail;
    xhr.addEventListener("load", () => report(xhr));
    for (const name of ["error", "timeout"]) {
      xhr.addEventListener(name, () => show("error", SENTENCES[0]));
    }
  });
  document.addEventListener("toast", (event) => {
    show(event.detail?.level || "info", event.detail?.text);
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-toast-close]")) event.target.closest(".toast").remove();
  });

  const box = document.getElementById("toasts");
  if (!box) return;
  const armAll = () => box.querySelectorAll(".toast").forEach(arm);
  new MutationObserver(armAll).observe(box, { childList: true });
  armAll();
})();
