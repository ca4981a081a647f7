"use strict";
// Two runs side by side: what is not the same, and where their trainings part.
(() => {
  const all = JSON.parse(document.getElementById("data").textContent).widgets;
  const make = (tag, text, made = {}) => Object.assign(document.createElement(tag), { textContent: text, ...made });
  const KINDS = { train: "training", dev: "dev scores", early: "early looks" };

  // The first logged step with another check, of the steps that both runs logged.
  const parts = (first, second) => {
    const known = new Map(second.map(([step, , check]) => [step, check]));
    let common = 0, last = null;
    for (const [step, , check] of first) {
      if (!known.has(step)) continue;
      common += 1;
      if (known.get(step) !== check) return { step, last, common };
      last = step;
    }
    return { step: null, last, common };
  };
  const said = (name, first, second) => {
    if (!first && !second) return "";
    if (!first || !second) return `${name}: only ${first ? "A" : "B"} logged it.`;
    const { step, last, common } = parts(first, second);
    if (!common) return `${name}: no step was logged by both.`;
    if (step === null) return `${name}: the same at all ${common} steps that both logged.`;
    return `${name}: part at step ${step}${last === null ? ", the first that was logged" : `; the same up to step ${last}`}.`;
  };
  const drawn = (first, second) => { // both curves in one picture, no scale but their own
    const points = [...(first || []), ...(second || [])].filter(([, value]) => value !== null);
    if (points.length < 2) return null;
    const [xs, ys] = [0, 1].map((axis) => points.map((point) => point[axis]));
    const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 400 90");
    svg.setAttribute("class", "curves");
    [first, second].forEach((points_, place) => {
      const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
      const at = (points_ || []).filter(([, value]) => value !== null)
        .map(([x, y]) => `${(4 + 392 * (x - x0) / ((x1 - x0) || 1)).toFixed(1)},${(86 - 82 * (y - y0) / ((y1 - y0) || 1)).toFixed(1)}`);
      line.setAttribute("points", at.join(" "));
      line.setAttribute("class", place ? "b" : "a");
      svg.append(line);
    });
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `two curves from step ${x0} to ${x1}, between ${y0} and ${y1}`);
    return svg;
  };

  const build = (stage, { runs, groups }) => {
    const choice = (label, chosen) => {
      const find = make("input", "", { type: "search", placeholder: "find a run" });
      find.setAttribute("aria-label", `find run ${label}`);
      const select = make("select", "");
      const fill = () => {
        const before = select.value, words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
        const fitting = runs.map((run, i) => [run, i])
          .filter(([run]) => words.every((word) => `${run.name} ${run.id} ${run.status}`.toLowerCase().includes(word)));
        select.replaceChildren(...fitting.map(([run, i]) => make("option", `${run.name} (${run.id})`, { value: i })));
        select.value = fitting.some(([, i]) => String(i) === before) ? before : String((fitting[0] || [0, 0])[1]);
      };
      fill();
      select.value = String(chosen);
      find.addEventListener("input", fill);
      const named = make("label", `${label} `);
      named.append(select, find);
      return [named, select];
    };
    const [labelA, first] = choice("A", 0), [labelB, second] = choice("B", Math.min(1, runs.length - 1));
    const every = make("input", "", { type: "checkbox" });
    const whole = make("label", "");
    whole.append(every, " also what is the same");
    const controls = make("div", "", { className: "controls wide" });
    controls.append(labelA, labelB, whole);
    const result = make("div", "");
    result.setAttribute("aria-live", "polite");

    const draw = () => {
      const a = runs[Number(first.value)], b = runs[Number(second.value)];
      const kinds = [...new Set([...Object.keys(a.curve), ...Object.keys(b.curve)])];
      const made = [];
      for (const kind of kinds) {
        made.push(make("p", said(KINDS[kind] || kind, a.curve[kind], b.curve[kind])));
        const picture = drawn(a.curve[kind], b.curve[kind]);
        if (picture) made.push(picture);
      }
      if (kinds.length) made.push(make("p", "Curves: A solid, B dashed.", { className: "caption" }));
      if (!kinds.length) made.push(make("p", "Neither run logged a training."));
      for (const group of groups) {
        const [left, right] = [a.facts[group], b.facts[group]];
        const names = [...new Set([...Object.keys(left), ...Object.keys(right)])];
        const shown = names.filter((name) => every.checked || left[name] !== right[name]);
        made.push(make("h4", `${group}: ${names.filter((name) => left[name] !== right[name]).length} of ${names.length} differ`));
        if (!shown.length) continue;
        const table = make("table", ""), head = table.createTHead().insertRow(), body = table.createTBody();
        ["", "A", "B"].forEach((text) => head.append(make("th", text)));
        for (const name of shown) {
          const row = body.insertRow();
          row.append(make("th", name, { scope: "row" }), ...[left, right].map((side) => make("td", side[name] === undefined ? "–" : side[name])));
          if (left[name] !== right[name]) row.className = "differs";
        }
        const scroll = make("div", "", { className: "scroll" });
        scroll.append(table);
        made.push(scroll);
      }
      result.replaceChildren(...made);
    };
    controls.addEventListener("input", draw);
    stage.replaceChildren(controls, result);
    draw();
  };
  for (const place of document.querySelectorAll('.widget[data-kind="runs"]')) {
    build(place.querySelector(".stage"), all[place.dataset.key]);
  }
})();
