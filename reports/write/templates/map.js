"use strict";
// The map: dots on a canvas, one touched or reached by the arrow keys is named with its nearest.
(() => {
  const all = JSON.parse(document.getElementById("data").textContent).widgets;
  const make = (tag, text, made = {}) => Object.assign(document.createElement(tag), { textContent: text, ...made });
  const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#8c6d31", "#7b4173", "#6b6ecf", "#b5cf6b", "#ce6dbd", "#9c9ede"];
  const colour = (place) => (place < 0 ? "#9aa4b0" : COLOURS[place % COLOURS.length]);

  const build = (stage, data) => {
    const pick = (label, options) => {
      const select = make("select", "");
      options.forEach((text, i) => select.append(make("option", text, { value: i })));
      const named = make("label", `${label} `);
      named.append(select);
      return [named, select];
    };
    const [rowLabel, row] = pick("Row", data.rows.map((one) => `${one.name}, ${Math.round(100 * one.share)} % of the variance`));
    const [byLabel, by] = pick("Colour by", ["task", ...(data.labels.length ? ["gold class or cluster"] : [])]);
    const controls = make("div", "", { className: "controls" });
    const [ofLabel, of] = pick("Texts of", ["all tasks", ...data.tasks]);
    controls.append(rowLabel, byLabel, ofLabel);
    const canvas = make("canvas", "");
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${data.texts.length} texts in two dimensions; the arrow keys walk through them`);
    const key = make("p", "", { className: "key" });
    const said = make("div", "", { className: "touched" });
    said.setAttribute("role", "status");
    let chosen = -1, side = 0;
    const near = () => data.rows[Number(row.value)].nearest;
    const size = near().length / data.texts.length;
    const inside = (i) => !Number(of.value) || data.texts[i][0] === Number(of.value) - 1;
    const shade = (i) => (Number(by.value) ? data.texts[i][1] : data.texts[i][0]);
    const met = () => [...new Set(data.texts.map((_, i) => i).filter(inside).map(shade))].sort((a, b) => a - b);
    const at = (i) => {
      const { xy } = data.rows[Number(row.value)];
      const room = side - 20;
      return [10 + room * xy[2 * i] / data.scale, 10 + room * (1 - xy[2 * i + 1] / data.scale)];
    };
    const draw = () => {
      side = Math.min(stage.clientWidth, 620);
      const ratio = devicePixelRatio || 1;
      canvas.style.width = canvas.style.height = `${side}px`;
      canvas.width = canvas.height = Math.round(side * ratio);
      const pen = canvas.getContext("2d");
      pen.scale(ratio, ratio);
      const ink = getComputedStyle(document.body).color;
      const places = met().filter((place) => place >= 0); // the colours are those of what is shown
      const around = chosen < 0 ? [] : near().slice(size * chosen, size * (chosen + 1));
      pen.strokeStyle = ink;
      for (const other of around) {
        pen.beginPath();
        pen.moveTo(...at(chosen));
        pen.lineTo(...at(other));
        pen.stroke();
      }
      for (let i = 0; i < data.texts.length; i += 1) {
        const marked = i === chosen || around.includes(i);
        pen.globalAlpha = marked ? 0.95 : !inside(i) ? 0.12 : chosen < 0 ? 0.9 : 0.35;
        pen.fillStyle = colour(inside(i) ? places.indexOf(shade(i)) : -1);
        pen.beginPath();
        pen.arc(...at(i), i === chosen ? 7 : marked ? 5.5 : 3.6, 0, 2 * Math.PI);
        pen.fill();
        if (marked) pen.stroke();
      }
      pen.globalAlpha = 1;
      const names = Number(by.value) ? data.labels : data.tasks;
      key.replaceChildren(...met().map((place) => {
        const entry = make("span", place < 0 ? "no gold" : names[place]);
        const dot = make("i", "");
        dot.style.background = colour(places.indexOf(place));
        entry.prepend(dot);
        return entry;
      }));
      if (chosen < 0) return said.replaceChildren();
      const list = make("ol", "");
      around.forEach((other) => list.append(make("li", `${data.texts[other][2]} (${data.tasks[data.texts[other][0]]})`)));
      return said.replaceChildren(
        make("p", data.texts[chosen][2]),
        make("p", `${data.labels[data.texts[chosen][1]] || data.tasks[data.texts[chosen][0]]}; nearest:`, { className: "caption" }),
        list);
    };
    const touch = (event) => {
      const box = canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      let best = -1, least = 14 ** 2;
      for (let i = 0; i < data.texts.length; i += 1) {
        const [u, v] = at(i);
        const far = (u - x) ** 2 + (v - y) ** 2;
        if (far < least) [best, least] = [i, far];
      }
      if (best === chosen) return;
      chosen = best;
      draw();
    };
    canvas.addEventListener("click", touch);
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      chosen = (chosen + step + data.texts.length) % data.texts.length;
      draw();
      event.preventDefault();
    });
    controls.addEventListener("input", draw);
    const flat = make("div", "", { className: "map" });
    const beside = make("div", "");
    beside.append(key, said);
    flat.append(canvas, beside);
    stage.replaceChildren(controls, flat);
    addEventListener("resize", draw);
    document.getElementById("theme").addEventListener("click", () => setTimeout(draw));
    draw();
  };
  for (const place of document.querySelectorAll('.widget[data-kind="map"]')) {
    build(place.querySelector(".stage"), all[place.dataset.key]);
  }
})();
