/* Short messages in #toasts, announced politely.

   .toast[data-dismiss-after="6000"]   goes by itself, unless pointed at or focused
   [data-toast-close]                  closes its toast
   <template id="toast-template">      the markup of a toast made here
   document event "toast" {detail: {level, text}} shows one, and so does the response
   header HX-Trigger: {"toast": {…}}. One listener turns failed requests into a toast. */
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

  /* A short plain text is the server's own sentence; HTML is an error page. */
  function sentence(xhr) {
    const type = xhr.getResponseHeader("Content-Type") || "";
    const text = (xhr.responseText || "").trim();
    if (type.startsWith("text/plain") && text && text.length < 300) return text;
    return SENTENCES[xhr.status] ?? OTHER;
  }

  document.addEventListener("htmx:responseError", (event) => {
    show("error", sentence(event.detail.xhr));
  });
  document.addEventListener("htmx:sendError", () => show("error", SENTENCES[0]));
  document.addEventListener("htmx:timeout", () => show("error", SENTENCES[0]));
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
