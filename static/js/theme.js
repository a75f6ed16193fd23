/* Switches the theme at once and tells the server, which renders it from then on.

   <form data-theme-form method="post" action=…>
     <button name="theme" value="light|dark|auto" aria-pressed=…>
   Without JavaScript the form posts and the page comes back. */
(() => {
  "use strict";

  function show(theme) {
    document.documentElement.dataset.theme = theme;
    // Preferences has the same choice; saving them must not undo this one.
    for (const field of document.querySelectorAll("select[name='theme']")) field.value = theme;
    for (const button of document.querySelectorAll("[data-theme-form] [name='theme']")) {
      button.ariaPressed = String(button.value === theme);
    }
  }

  document.addEventListener("submit", async (event) => {
    const form = event.target.closest?.("[data-theme-form]");
    if (!form || event.submitter?.name !== "theme") return;
    event.preventDefault();
    const before = document.documentElement.dataset.theme || "auto";
    show(event.submitter.value);
    try {
      const body = new URLSearchParams(new FormData(form, event.submitter));
      // keepalive: whoever follows a link at once has still chosen.
      const answer = await fetch(form.action, { method: "POST", body, keepalive: true });
      if (!answer.ok) throw new Error(String(answer.status));
    } catch {
      show(before);
      document.dispatchEvent(
        new CustomEvent("toast", {
          detail: { level: "error", text: "The theme could not be saved. Try again." },
        }),
      );
    }
  });
})();
