"use strict";
// Examples: two rows, a task and filters; texts come from data sets, and are only ever set as text.
(() => {
  const all = JSON.parse(document.getElementById("data").textContent).widgets;
  const make = (tag, text, made = {}) => Object.assign(document.createElement(tag), { textContent: text, ...made });
  const STEP = 20;
  const ORDERS = {
    differ: ["on which A and B differ most", (a, b) => Math.abs(b - a)],
    first: ["that A gets right and B wrong", (a, b) => b - a],
    second: ["that B gets right and A wrong", (a, b) => a - b],
    hard: ["that most rows get wrong", null],
  };
  const median = (values) => {
    const known = values.filter((value) => value !== null).sort((x, y) => x - y);
    return (known[Math.floor((known.length - 1) / 2)] + known[Math.floor(known.length / 2)]) / 2;
  };
  const choice = (label, options, chosen = 0) => {
    const select = make("select", "");
    options.forEach((text, i) => select.append(make("option", text, { value: i, selected: i === chosen })));
    const named = make("label", `${label} `);
    named.append(select);
    return [named, select];
  };

  const build = (stage, data) => {
    const [labelA, rowA] = choice("A", data.rows, data.rows.length - 1);
    const [labelB, rowB] = choice("B", data.rows, Math.max(0, data.rows.length - 2));
    const [labelTask, taskChoice] = choice("Task", ["all tasks", ...data.tasks.map((task) => task.task)], 1);
    const [labelOrder, order] = choice("Show those", Object.values(ORDERS).map(([text]) => text));
    const keys = Object.keys(data.titles).filter((key) => data.tasks.some((task) => task.traits[key]));
    const filters = keys.map((key) => {
      const named = [...new Set(data.tasks.flatMap((task) => task.traits[key] || []))];
      const [label, select] = choice(data.titles[key], ["any", ...named]);
      return { key, named, label, select };
    });
    const search = make("input", "", { type: "search", placeholder: "words in a text" });
    search.setAttribute("aria-label", "words that a text holds");
    const controls = make("div", "", { className: "controls" });
    controls.append(labelA, labelB, labelOrder, labelTask, ...filters.map(({ label }) => label), search);
    const said = make("p", "", { className: "caption" });
    said.setAttribute("role", "status");
    const list = make("ol", "", { className: "examples" });
    const more = make("button", "more", { type: "button", className: "more" });
    let shown = STEP;

    const bar = (name, score, error) => {
      const line = make("span", "", { className: "score" });
      const wrong = make("i", "");
      wrong.style.width = `${Math.round(100 * (error || 0))}%`;
      const track = make("span", "", { className: "track" });
      track.append(wrong);
      line.append(
        make("b", name), track, make("span", score === null ? "not scored" : `${score.toFixed(2)}, error ${error.toFixed(2)}`));
      return line;
    };
    const item = ({ task, one, a, b }) => {
      const entry = make("li", "");
      const texts = one.texts.length ? one.texts : [`ids ${one.ids.join(", ")}`];
      texts.forEach((text) => entry.append(make("p", text, { className: one.texts.length ? "text" : "text lacking" })));
      const gold = one.gold === "" ? "" : `gold ${one.gold} · `;
      entry.append(make("p", `${gold}${task.task} ${one.n}`, { className: "about" }));
      const scores = make("div", "", { className: "scores" });
      scores.append(bar(`A ${data.rows[a]}`, one.scores[a], one.errors[a]), bar(`B ${data.rows[b]}`, one.scores[b], one.errors[b]));
      entry.append(scores);
      return entry;
    };
    const passes = (task, one) => {
      const words = search.value.toLowerCase();
      return filters.every(({ key, named, select }) => {
        const wanted = Number(select.value);
        if (!wanted) return true;
        const place = Object.keys(task.traits).indexOf(key);
        return place >= 0 && task.traits[key][one.slices[place]] === named[wanted - 1];
      }) && (!words || one.texts.some((text) => text.toLowerCase().includes(words)));
    };
    const draw = () => {
      const a = Number(rowA.value), b = Number(rowB.value), key = Object.keys(ORDERS)[Number(order.value)];
      const by = ORDERS[key][1];
      const tasks = Number(taskChoice.value) ? [data.tasks[Number(taskChoice.value) - 1]] : data.tasks;
      const found = tasks.flatMap((task) => task.items
        .filter((one) => one.scores[a] !== null && one.scores[b] !== null && passes(task, one))
        .map((one) => ({ task, one, a, b, size: by ? by(one.errors[a], one.errors[b]) : median(one.errors) })))
        .filter(({ size }) => size > 0)
        .sort((x, y) => y.size - x.size);
      const whole = tasks.reduce((sum, task) => sum + task.of, 0), kept = tasks.reduce((sum, task) => sum + task.items.length, 0);
      said.textContent = a === b && by
        ? "A and B are one row: choose two."
        : `${found.length} of a sample of ${kept} (of ${whole} examples).`;
      list.replaceChildren(...found.slice(0, shown).map(item));
      more.hidden = found.length <= shown;
    };
    controls.addEventListener("input", () => {
      shown = STEP;
      draw();
    });
    more.addEventListener("click", () => {
      shown += STEP;
      draw();
    });
    stage.replaceChildren(controls, said, list, more);
    draw();
  };
  for (const place of document.querySelectorAll('.widget[data-kind="examples"]')) {
    build(place.querySelector(".stage"), all[place.dataset.key]);
  }
})();
