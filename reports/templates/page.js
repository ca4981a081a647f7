"use strict";
(() => {
  const root = document.documentElement;
  const asked = new URLSearchParams(location.search).get("theme");
  if (asked === "dark" || asked === "light") root.dataset.theme = asked;
  const toggle = document.getElementById("theme");
  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  const number = (cell) => (cell.dataset.v === undefined ? NaN : Number(cell.dataset.v));
  const compare = (a, b, sign) => {
    const x = number(a), y = number(b);
    if (!Number.isNaN(x) && !Number.isNaN(y)) return sign * (x - y);
    if (!Number.isNaN(x)) return -1; // rows without a number stay last, whichever way it is sorted
    if (!Number.isNaN(y)) return 1;
    return sign * a.textContent.trim().localeCompare(b.textContent.trim());
  };
  for (const table of document.querySelectorAll("table")) {
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    heads.forEach((head, index) => {
      const label = head.querySelector(".sort");
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.title = "sort by this column";
      button.textContent = label.textContent;
      label.replaceWith(button);
      button.addEventListener("click", () => {
        const old = head.getAttribute("aria-sort");
        const up = old ? old === "descending" : !head.classList.contains("num");
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        for (const body of table.tBodies) {
          const rows = [...body.rows].filter((row) => !row.classList.contains("block"));
          rows.sort((a, b) => compare(a.cells[index], b.cells[index], up ? 1 : -1));
          body.append(...rows);
        }
      });
    });
  }

  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", open);
  open();
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
})();
