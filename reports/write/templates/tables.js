"use strict";
// Under each table: which rows are shown, and the table as it is shown for a paper, a spreadsheet or a wiki.
(() => {
  const make = (tag, text, made = {}) => Object.assign(document.createElement(tag), { textContent: text, ...made });
  const bodyRows = (table) => [...table.tBodies].flatMap((body) => [...body.rows]).filter((row) => !row.matches(".block"));

  // What a cell says, without its footnotes; † stays where it is asked for.
  const words = (cell, worse = true) => {
    const copy = cell.cloneNode(true);
    copy.querySelectorAll(worse ? "sup" : "sup, .worse").forEach((part) => part.remove());
    return copy.textContent.replace(/\s+/g, " ").trim();
  };
  const heads = (table) => [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const title = (head) => {
    const small = head.querySelector("small");
    return [words(head.querySelector(".sort")), small ? `(${words(small)})` : ""].filter(Boolean).join(" ");
  };
  const groups = (table) => { // of each column, the head that spans it
    const row = table.tHead.rows.length > 1 ? [...table.tHead.rows[0].cells] : [];
    return row.flatMap((cell) => Array(cell.colSpan).fill(words(cell)));
  };
  const shown = (table) => [...table.tBodies]
    .map((body) => ({
      name: body.rows[0] && body.rows[0].matches(".block") ? words(body.rows[0]) : "",
      rows: [...body.rows].filter((row) => !row.matches(".block") && !row.hidden),
    }))
    .filter((block) => block.rows.length);

  // What a spreadsheet would take for a formula: see csv_text of reports/write/markdown.py.
  const FORMULA = new RegExp("^(?:[\\t\\r\\n]|[\\s\\x00-\\x1f\\x7f-\\xa0\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5"
    + "\\u180b-\\u180f\\u2000-\\u200f\\u2028-\\u202f\\u205f-\\u206f\\u2800\\u3000\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0]*"
    + "[=+\\-@\\uff1d\\uff0b\\uff0d\\uff20\\ufe62\\ufe63\\ufe66\\ufe6b])");
  const field = (text) => {
    const safe = FORMULA.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const csv = (table) => {
    const above = groups(table);
    const head = heads(table).map((cell, j) => field([above[j], title(cell)].filter(Boolean).join(": ")));
    const lines = shown(table).flatMap((block) => block.rows.map((row) =>
      [field(block.name), ...[...row.cells].map((cell) => cell.dataset.v || field(words(cell, false)))].join(",")));
    return [["block", ...head].join(","), ...lines].join("\n");
  };

  const plain = (text) => text.replace(/[\\`*_[\]<>|#]/g, "\\$&");
  const markdown = (table) => {
    const above = groups(table);
    const head = heads(table).map((cell, j) => plain([above[j], title(cell)].filter(Boolean).join(": ")));
    const line = (cells) => `| ${cells.join(" | ")} |`;
    const mark = (cell) => (cell.querySelector("strong") ? "**" : "");
    return [
      line(head),
      line(heads(table).map((cell) => (cell.matches(".num") ? "--:" : "---"))),
      ...shown(table).flatMap((block) => block.rows.map((row) =>
        line([...row.cells].map((cell) => `${mark(cell)}${plain(words(cell))}${mark(cell)}`)))),
    ].join("\n");
  };

  const SIGNS = {
    "\\": "\\textbackslash{}", "{": "\\{", "}": "\\}", $: "\\$", "&": "\\&", "#": "\\#", "%": "\\%", _: "\\_",
    "^": "\\textasciicircum{}", "~": "\\textasciitilde{}", "<": "\\textless{}", ">": "\\textgreater{}",
    "|": "\\textbar{}", "[": "{[}", "]": "{]}", "*": "{*}", '"': "\\textquotedbl{}", "\u2212": "$-$", "±": "$\\pm$",
    "×": "$\\times$", "†": "\\textdagger{}", "·": "\\textperiodcentered{}", "–": "--", "→": "$\\to$", "≥": "$\\geq$",
    "≤": "$\\leq$",
  };
  const tex = (text) => [...text].map((sign) => SIGNS[sign] || sign).join("");
  const texCell = (cell) => {
    const spread = cell.querySelector(".spread"), copy = cell.cloneNode(true);
    copy.querySelectorAll("sup, .worse, .spread").forEach((part) => part.remove());
    const text = tex(copy.textContent.replace(/\s+/g, " ").trim());
    const marked = cell.querySelector("strong") ? `\\textbf{${text}}` : cell.querySelector("u") ? `\\underline{${text}}` : text;
    const worse = cell.querySelector(".worse")?.textContent ? "\\textdagger{}" : "";
    return `${marked}${worse}${spread?.textContent ? `\\,{\\scriptsize ${tex(spread.textContent)}}` : ""}`;
  };
  const latex = (table) => {
    const columns = heads(table), above = groups(table), end = " \\\\";
    const spans = [];
    above.forEach((text, j) => (j && spans.at(-1)[0] === text && text ? (spans.at(-1)[1] += 1) : spans.push([text, 1])));
    return [
      "% \\usepackage{booktabs}",
      `\\begin{tabular}{@{}${columns.map((head) => (head.matches(".num") ? "r" : "l")).join("")}@{}}`,
      "\\toprule",
      ...(above.some(Boolean)
        ? [spans.map(([text, n]) => (text ? `\\multicolumn{${n}}{c}{${tex(text)}}` : "")).join(" & ") + end] : []),
      columns.map((cell) => tex(title(cell))).join(" & ") + end,
      ...shown(table).flatMap((block) => [
        "\\midrule",
        ...(block.name ? [`\\multicolumn{${columns.length}}{@{}l}{\\textit{${tex(block.name)}}}${end}`] : []),
        ...block.rows.map((row) => [...row.cells].map(texCell).join(" & ") + end),
      ]),
      "\\bottomrule",
      "\\end{tabular}",
    ].join("\n");
  };

  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // a page opened as a file in some browsers
      const area = document.body.appendChild(make("textarea", "", { value: text }));
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };
  const FORMS = { CSV: csv, Markdown: markdown, LaTeX: latex };
  window.tableAs = (id, form) => FORMS[form](document.querySelector(`#${CSS.escape(id)} table`)); // also for scripts

  const chooser = (table, said) => {
    const menu = make("details", "", { className: "menu" });
    menu.append(make("summary", "Filter"));
    const filter = make("input", "", { type: "search", placeholder: "filter rows" });
    filter.setAttribute("aria-label", "show rows that hold these words");
    const list = make("div", "", { className: "choices" });
    const boxes = bodyRows(table).map((row) => {
      const box = make("input", "", { type: "checkbox", checked: true });
      const label = make("label", "");
      label.append(box, ` ${words(row.cells[0])}`);
      list.append(label);
      return [row, box, label, row.textContent.toLowerCase()];
    });
    const apply = () => {
      const asked = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      let hidden = 0;
      for (const [row, box, label, text] of boxes) {
        const fits = asked.every((word) => text.includes(word));
        label.hidden = !fits;
        row.hidden = !fits || !box.checked;
        hidden += row.hidden;
      }
      for (const body of table.tBodies) {
        const head = [...body.rows].find((row) => row.matches(".block"));
        if (head) head.hidden = [...body.rows].every((row) => row === head || row.hidden);
      }
      said.textContent = hidden ? `${hidden} of ${boxes.length} rows hidden` : "";
    };
    filter.addEventListener("input", apply);
    list.addEventListener("change", apply);
    const all = make("button", "all", { type: "button" }), none = make("button", "none", { type: "button" });
    for (const [button, checked] of [[all, true], [none, false]]) {
      button.addEventListener("click", () => {
        for (const [, box, label] of boxes) if (!label.hidden) box.checked = checked;
        apply();
      });
    }
    menu.append(filter, all, none, list);
    return menu;
  };

  for (const place of document.querySelectorAll(".table")) {
    const table = place.querySelector("table"), tools = place.querySelector(".tools");
    const said = make("span", "", { className: "said" });
    said.setAttribute("role", "status");
    const forms = Object.keys(FORMS).map((form) => {
      const button = make("button", form, { type: "button", title: `copy the rows shown as ${form}` });
      button.addEventListener("click", async () => {
        await copy(FORMS[form](table));
        said.textContent = `copied as ${form}`;
      });
      return button;
    });
    tools.append(said, make("span", "Copy: "), ...forms);
    if (bodyRows(table).length > 2) tools.prepend(chooser(table, said));
  }
})();
