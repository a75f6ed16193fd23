/* Keeps relative times true while a page stays open.

   <time datetime="2026-01-31T12:00:00+00:00" title="exact time">5 min ago</time>
   Any <time> with a title counts: a relative time is the one whose exact form stands
   there. The words are those of rendering/figures.py, so that nothing flickers. */
(() => {
  "use strict";

  const STEP_MS = 30_000;
  const MINUTE = 60;
  const HOUR = 3600;
  const DAY = 86_400;

  function distance(amount) {
    if (amount < HOUR - 30) return `${Math.max(1, Math.round(amount / MINUTE))} min`;
    if (amount < DAY - 1800) return `${Math.round(amount / HOUR)} h`;
    const days = Math.round(amount / DAY);
    return `${days} day${days > 1 ? "s" : ""}`;
  }

  function words(seconds) {
    const amount = Math.abs(seconds);
    if (Number.isNaN(amount) || amount >= 14 * DAY) return null; // a date already
    if (amount < 45) return seconds >= 0 ? "just now" : "in a moment";
    return seconds >= 0 ? `${distance(amount)} ago` : `in ${distance(amount)}`;
  }

  function update() {
    if (document.hidden) return;
    for (const time of document.querySelectorAll("time[datetime][title]")) {
      const text = words((Date.now() - Date.parse(time.dateTime)) / 1000);
      if (text && time.textContent !== text) time.textContent = text;
    }
  }

  setInterval(update, STEP_MS);
  document.addEventListener("visibilitychange", update);
})();
