"use strict";
(() => {
  const root = document.documentElement, body = document.body;
  const kept = (key, value) => { // a reader's choices outlive the next page, where the browser keeps anything for a file
    try {
      if (value !== undefined) sessionStorage.setItem(key, value);
      return sessionStorage.getItem(key);
    } catch { return null; }
  };
  const asked = new URLSearchParams(location.search).get("theme") || kept("theme");
  if (asked === "dark" || asked === "light") root.dataset.theme = asked;
  const toggle = document.getElementById("theme");
  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    kept("theme", root.dataset.theme);
  });
  if (body.dataset.running === undefined) return;

  scrollTo(0, Number(kept("scroll")) || 0);
  const every = Number(body.dataset.every), stale = document.querySelector(".stale");
  const look = () => { // the page's own age: who wrote it may be dead
    const age = Date.now() / 1000 - Number(body.dataset.time);
    stale.hidden = age < Math.max(60, 5 * every);
    stale.textContent = `Nothing new for ${Math.round(age / 60)} min: its coordinator may be dead. "harness status" knows.`;
  };
  look();
  setTimeout(() => {
    kept("scroll", String(scrollY));
    location.reload();
  }, 1000 * Math.max(3, every));
})();
