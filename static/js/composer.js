/* A message field that grows, sends on Enter and keeps its draft.

   <form data-composer data-draft-key="session-<id>" hx-post=…>  around one <textarea>
     data-send="enter"      Enter sends, Shift+Enter breaks the line (the default)
     data-send="mod-enter"  Enter breaks the line; Ctrl/Cmd+Enter sends
   <input data-fresh-id>    inside it: gets a new random id once a message is sent
   <button data-fill="text">  anywhere: puts the text into the page's composer
   The draft lives in localStorage, shared by tabs, and goes when the server has taken just
   those words. */
(() => {
  "use strict";

  const PREFIX = "openswarm.draft.";
  const sent = new Map(); // draft key -> the text that is on its way
  const restored = new WeakSet(); // forms that were given their draft

  const formOf = (node) => node?.closest?.("form[data-composer]");
  const fieldOf = (form) => form.querySelector("textarea");
  const keyOf = (form) => PREFIX + (form.dataset.draftKey || location.pathname);
  const grows = CSS.supports("field-sizing", "content");

  /* Reads the draft, after writing it where a text is given ("" forgets it). */
  function draft(key, text) {
    try {
      if (text) localStorage.setItem(key, text);
      else if (text === "") localStorage.removeItem(key);
      return localStorage.getItem(key) ?? "";
    } catch {
      return ""; // private mode or a full disk: the text is still in the field
    }
  }

  /* Tabs share a draft: one that has other words by now is another tab's. */
  function forget(key, text) {
    if (draft(key) === text) draft(key, "");
  }

  function grow(field) {
    if (grows) return;
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight + 2}px`;
  }

  function put(field, text) {
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function restore(root) {
    const inside = root.querySelectorAll("form[data-composer]");
    for (const form of formOf(root) ? [formOf(root)] : inside) {
      const field = fieldOf(form);
      // Once: what another tab writes meanwhile doesn't belong into this one.
      if (!field.value && !restored.has(form)) field.value = draft(keyOf(form));
      restored.add(form);
      grow(field);
    }
  }

  /* crypto.randomUUID() is missing on plain http; a blob's address ends in a UUID anywhere. */
  function freshId() {
    const address = URL.createObjectURL(new Blob());
    URL.revokeObjectURL(address);
    return address.slice(-36);
  }

  /* What was typed while the message was out stays: in the field, and in another tab. */
  function taken(key) {
    const text = sent.get(key) ?? "";
    sent.delete(key);
    forget(key, text);
    for (const form of document.querySelectorAll("form[data-composer]")) {
      const field = fieldOf(form);
      if (keyOf(form) !== key) continue;
      if (field.value.startsWith(text)) {
        const rest = field.value.slice(text.length).trimStart();
        if (draft(key) === field.value) draft(key, rest);
        field.value = rest;
        grow(field);
      }
      for (const id of form.querySelectorAll("input[data-fresh-id]")) id.value = freshId();
    }
  }

  document.addEventListener("input", (event) => {
    const form = formOf(event.target);
    if (!form || event.target !== fieldOf(form)) return;
    draft(keyOf(form), event.target.value);
    grow(event.target);
  });

  document.addEventListener("keydown", (event) => {
    const form = formOf(event.target);
    if (!form || event.target !== fieldOf(form) || event.key !== "Enter") return;
    // 229: an input method is composing; Safari ends isComposing a moment early.
    if (event.isComposing || event.keyCode === 229 || event.shiftKey) return;
    const modified = event.ctrlKey || event.metaKey;
    if (form.dataset.send === "mod-enter" && !modified) return;
    event.preventDefault();
    if (event.target.value.trim()) form.requestSubmit();
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-fill]");
    const form = button && document.querySelector("form[data-composer]");
    if (!form) return;
    event.preventDefault();
    put(fieldOf(form), button.dataset.fill);
    fieldOf(form).focus();
  });

  const asComposer = (element) => (element.matches?.("form[data-composer]") ? element : null);

  document.addEventListener("htmx:beforeRequest", (event) => {
    const form = asComposer(event.detail.elt);
    if (form) sent.set(keyOf(form), fieldOf(form).value);
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    const form = asComposer(event.detail.elt);
    const status = event.detail.xhr?.status ?? 0; // 422 counts as success for htmx
    if (form && status >= 200 && status < 300) taken(keyOf(form));
  });

  document.addEventListener("submit", (event) => {
    const form = formOf(event.target);
    if (form && !form.hasAttribute("hx-post")) forget(keyOf(form), fieldOf(form).value);
  });

  document.addEventListener("htmx:load", (event) => restore(event.detail.elt));
  restore(document);
})();
