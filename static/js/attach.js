/* Pictures into a message: pasted into its text or dropped onto its form, and a count of
   what is chosen.

   <form data-composer> around one <details data-attach> with an <input type="file" multiple>
   <span data-attach-count>  in its summary: says what is chosen; its own words when nothing is */
(() => {
  "use strict";

  const HINT = "attachHint";
  const formOf = (node) => node?.closest?.("form[data-composer]");
  const boxOf = (form) => form?.querySelector("[data-attach]");
  const inputOf = (box) => box?.querySelector('input[type="file"]');

  function count(box) {
    const label = box.querySelector("[data-attach-count]");
    if (!label) return;
    label.dataset[HINT] ??= label.textContent;
    const pictures = inputOf(box)?.files.length ?? 0;
    const ticked = box.querySelectorAll('input[type="checkbox"]:checked').length;
    const lines = box.querySelector("textarea")?.value.split("\n").filter((line) => line.trim());
    const chosen = pictures + ticked + (lines?.length ?? 0);
    label.textContent = chosen ? `${chosen} chosen` : label.dataset[HINT];
  }

  /* Adds the files to what is chosen already. Returns whether any is a picture. */
  function add(form, files) {
    const box = boxOf(form);
    const input = inputOf(box);
    const pictures = [...files].filter((file) => file.type.startsWith("image/"));
    if (!input || !pictures.length) return false;
    const all = new DataTransfer();
    for (const file of [...input.files, ...pictures]) all.items.add(file);
    input.files = all.files;
    box.open = true;
    count(box);
    return true;
  }

  document.addEventListener("change", (event) => {
    const box = event.target.closest?.("[data-attach]");
    if (box) count(box);
  });

  document.addEventListener("paste", (event) => {
    const form = formOf(event.target);
    if (form && add(form, event.clipboardData?.files ?? [])) event.preventDefault();
  });

  document.addEventListener("dragover", (event) => {
    const carriesFiles = event.dataTransfer?.types.includes("Files");
    if (carriesFiles && boxOf(formOf(event.target))) event.preventDefault();
  });

  document.addEventListener("drop", (event) => {
    const form = formOf(event.target);
    if (form && add(form, event.dataTransfer?.files ?? [])) event.preventDefault();
  });
})();
