/* Dialogs and menus. Both are native elements; this only opens and closes them.

   <button data-dialog="id">     opens <dialog id="id"> as a modal
   <dialog class="dialog">       closes on a click outside; <form method="dialog"> closes it
   <details class="menu">        closes on Escape, on a click outside, on a choice */
(() => {
  "use strict";

  function closeMenus(except) {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (menu !== except) menu.open = false;
    }
  }

  document.addEventListener("click", (event) => {
    const opener = event.target.closest?.("[data-dialog]");
    if (opener) document.getElementById(opener.dataset.dialog)?.showModal();

    // The backdrop belongs to the dialog element itself.
    if (event.target.matches?.("dialog.dialog[open]")) {
      const box = event.target.getBoundingClientRect();
      const inside =
        event.clientX >= box.left && event.clientX <= box.right &&
        event.clientY >= box.top && event.clientY <= box.bottom;
      if (!inside) event.target.close();
    }

    const chosen = event.target.closest?.(".menu__item");
    closeMenus(chosen ? null : event.target.closest?.("details.menu"));
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const menu = document.activeElement?.closest?.("details.menu[open]");
    closeMenus(null);
    menu?.querySelector("summary")?.focus();
  });
})();
