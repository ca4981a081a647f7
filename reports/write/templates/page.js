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

  // Sorting: every head becomes a button.
  const number = (cell) => (cell.dataset.v === undefined ? NaN : Number(cell.dataset.v));
  const compare = (a, b, sign) => {
    const x = number(a), y = number(b);
    if (!Number.isNaN(x) && !Number.isNaN(y)) return sign * (x - y);
    if (!Number.isNaN(x)) return -1; // rows without a number stay last, whichever way it is sorted
    if (!Number.isNaN(y)) return 1;
    return sign * a.textContent.trim().localeCompare(b.textContent.trim());
  };
  const bodyRows = (body) => [...body.rows].filter((row) => !row.classList.contains("block"));
  const sortable = (table) => {
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    heads.forEach((head, index) => {
      const label = head.querySelector(".sort");
      if (!label.textContent.trim()) return;
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
          body.append(...bodyRows(body).sort((a, b) => compare(a.cells[index], b.cells[index], up ? 1 : -1)));
        }
      });
    });
  };

  // Open what a closed part hides: the part itself, and those around it.
  const reveal = (element) => {
    for (let part = element; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  };

  // A cell leads to the card of its runs: by a click, or by the arrow keys and Enter (one tab stop for each table).
  const cards = new Map();
  for (const card of document.querySelectorAll("details[data-runs]")) {
    for (const run of card.dataset.runs.split(" ")) if (!cards.has(run)) cards.set(run, card);
  }
  const runsOf = (cell) => (cell.dataset.runs || cell.parentElement.cells[0].dataset.runs || "").split(" ");
  const cardOf = (cell) => cards.get(runsOf(cell).find((run) => cards.has(run)));

  const nameOf = (cell) => { // as `harness reproduce` takes it
    const row = cell.parentElement;
    const key = row.closest(".table").dataset.key;
    const table = JSON.parse(document.getElementById("data").textContent).tables[key];
    const blocks = [...new Set(table.rows.map((one) => one.block))]; // the page shows the rows block by block
    const shown = blocks.flatMap((block) => table.rows.filter((one) => one.block === block));
    return `${key}:${shown[row.place].name}:${table.columns[cell.cellIndex].key}`;
  };
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const follow = (cell) => {
    const card = cardOf(cell);
    const came = document.querySelector(".came") || document.createElement("p");
    came.className = "came";
    const back = document.createElement("a");
    back.href = `#${cell.closest(".table").id}`;
    back.textContent = "back to the table";
    back.addEventListener("click", (event) => {
      event.preventDefault();
      cell.focus();
      cell.scrollIntoView({ block: "center", inline: "center" });
    });
    const command = document.createElement("code");
    command.textContent = `harness reproduce ${quote(`index.html#${nameOf(cell)}`)}`;
    const runs = runsOf(cell);
    came.replaceChildren(
      `${cell.textContent.trim().replace(/\s+/g, " ")}: ${runs.length === 1 ? "run" : "runs"} ${runs.join(", ")} (`, back, "). ", command);
    card.querySelector("summary").after(came);
    reveal(card);
    location.hash = card.id;
    card.querySelector("summary").focus({ preventScroll: true });
    card.scrollIntoView();
  };
  const traceable = (table) => {
    const rows = [...table.tBodies].flatMap(bodyRows);
    rows.forEach((row, place) => { row.place = place; });
    const leads = (cell) => cell && cell.tagName === "TD" && cell.hasAttribute("data-runs") && cardOf(cell);
    let current = null;
    for (const row of rows) {
      for (const cell of row.cells) {
        if (!leads(cell)) continue;
        cell.classList.add("leads");
        cell.tabIndex = current ? -1 : 0;
        current = current || cell;
      }
    }
    if (!current) return;
    const go = (cell) => {
      current.tabIndex = -1;
      current = cell;
      cell.tabIndex = 0;
    };
    const step = (cell, down, right) => { // the next cell that leads somewhere
      const all = [...table.tBodies].flatMap(bodyRows).filter((row) => !row.hidden);
      let y = all.indexOf(cell.parentElement) + down, x = cell.cellIndex + right;
      for (; all[y] && all[y].cells[x]; y += down, x += right) if (leads(all[y].cells[x])) return all[y].cells[x];
      return null;
    };
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    table.addEventListener("click", (event) => {
      const cell = event.target.closest("td");
      if (!leads(cell) || event.target.closest("a") || String(getSelection())) return;
      go(cell);
      follow(cell);
    });
    table.addEventListener("keydown", (event) => {
      const cell = event.target;
      if (!leads(cell) || event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === "Enter") follow(cell);
      else if (steps[event.key]) {
        const next = step(cell, ...steps[event.key]);
        if (next) {
          go(next);
          next.focus();
        }
      } else return;
      event.preventDefault();
    });
  };
  for (const table of document.querySelectorAll("table")) {
    sortable(table);
    traceable(table);
  }

  // Any two rows of a ranking: their difference, with interval, p and verdict.
  const { pairs } = JSON.parse(document.getElementById("data").textContent);
  const place = document.getElementById("table-joined");
  if (pairs && place && pairs.rows.length > 1) {
    const two = document.createElement("div");
    two.className = "two";
    const choose = (label, chosen) => {
      const box = document.createElement("label"), list = document.createElement("select");
      pairs.rows.forEach((row, at) => list.append(new Option(row, at, at === chosen, at === chosen)));
      box.append(`${label} `, list);
      two.append(box);
      return list;
    };
    const one = choose("Row", 0), other = choose("against", 1), said = document.createElement("p");
    said.setAttribute("role", "status");
    two.append(said);
    const points = (value) => `${value < 0 ? "\u2212" : "+"}${Math.abs(value).toFixed(2)}`;
    const say = () => {
      const a = Number(one.value), b = Number(other.value);
      const found = pairs.differences.find(([i, j]) => i === Math.min(a, b) && j === Math.max(a, b));
      if (!found) {
        said.textContent = a === b ? "Choose two rows." : "These rows are not compared.";
        return;
      }
      let [, , value, low, high, p, verdict, group] = found;
      if (a > b) {
        [value, low, high] = [-value, -high, -low];
        const at = pairs.words.indexOf(verdict);
        if (at >= 0) verdict = pairs.words[1 - at];
      }
      const [letter, family] = pairs.families[group];
      const chance = p === null ? "" : `; ${letter} ${p < 0.001 ? "< 0.001" : `= ${p.toFixed(3)}`}, corrected for ${family}`;
      said.textContent = `${pairs.rows[a]} against ${pairs.rows[b]} by ${pairs.by}: ${verdict}, `
        + `${points(value)} points [${points(low)}, ${points(high)}]${chance}.`;
    };
    one.addEventListener("change", say);
    other.addEventListener("change", say);
    place.before(two);
    say();
  }

  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    reveal(target.querySelector(":scope > details.folded") || target);
    target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
})();
