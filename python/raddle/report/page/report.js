// Draws the charts: one view at a time, in the colours of the page's theme, with a legend of its
// own that wraps on a phone. No network, no storage of anything but the theme.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  const narrow = () => window.innerWidth < 640;
  const charts = [...document.querySelectorAll("script.chart")].map((s) => JSON.parse(s.textContent));
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const element = (kind, words = {}) => Object.assign(document.createElement(kind), words);

  const MARKS = {
    "circle": "●", "square": "■", "diamond": "◆", "triangle-up": "▲",
    "x": "✖", "triangle-down": "▼", "star": "★", "cross": "✚",
    "circle-open": "○", "square-open": "□", "diamond-open": "◇", "triangle-up-open": "△",
    "x-open": "✕", "triangle-down-open": "▽", "star-open": "☆", "cross-open": "✛",
  };

  // "var(--name)" becomes the colour that the theme gives it.
  function coloured(value) {
    if (typeof value === "string") {
      return value.startsWith("var(") ? colour(value.slice(4, -1)) : value;
    }
    if (Array.isArray(value)) return value.map(coloured);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, coloured(inner)]));
  }

  function layoutOf(view, height) {
    const layout = coloured(view.layout);
    const text = colour("--text");
    const small = narrow();
    layout.paper_bgcolor = "rgba(0,0,0,0)";
    layout.plot_bgcolor = "rgba(0,0,0,0)";
    layout.font = { family: getComputedStyle(document.body).fontFamily, size: small ? 11 : 12.5, color: text };
    layout.height = height;
    layout.autosize = true;
    layout.dragmode = small ? false : "zoom";
    layout.hoverlabel = { bgcolor: colour("--card"), bordercolor: colour("--line"), font: { color: text } };
    for (const key of Object.keys(layout).filter((k) => /^[xy]axis\d*$/.test(k))) {
      const axis = layout[key];
      axis.gridcolor = colour("--grid");
      axis.linecolor = colour("--line");
      axis.zerolinecolor = colour("--line");
      if (small) {
        axis.fixedrange = true;
        if (axis.type === undefined && !axis.tickvals && !axis.dtick) axis.nticks = 5;
      }
    }
    if (small) layout.margin = { ...layout.margin, l: 46, r: 6 };
    return layout;
  }

  function legendOf(view) {
    const entries = new Map();
    for (const trace of view.data) {
      if (!trace.name || trace.meta === "nodes") continue;
      const c = (trace.line && trace.line.color) || (trace.marker && trace.marker.color);
      if (typeof c !== "string") continue;
      // A dotted twin shares the name of its scheme: the legend shows the solid one.
      if (entries.has(trace.name) && entries.get(trace.name).dash !== "dot") continue;
      const dash = (trace.line && trace.line.dash) || "solid";
      entries.set(trace.name, { colour: c, dash, mark: MARKS[(trace.marker && trace.marker.symbol) || ""] });
    }
    return entries;
  }

  function draw(chart) {
    const figure = document.getElementById(`chart-${chart.key}`);
    const [plot, legend, buttons, note] =
      ["plot", "legend", "views", "view-note"].map((name) => figure.querySelector(`.${name}`));
    const followers = document.querySelectorAll(`[data-follows="${chart.key}"] > [data-view]`);
    const hidden = new Set();
    const nameOf = (view) => view.label.join(", ");
    let current = 0;

    function showLegend(view) {
      legend.replaceChildren();
      legend.classList.toggle("scale", Boolean(chart.scale));
      const entries = legendOf(view);
      if (entries.size < 2) return;
      if (chart.scale) legend.append(element("span", { textContent: chart.scale }));
      for (const [name, look] of entries) {
        const button = element("button", { type: "button" });
        button.setAttribute("aria-pressed", String(!hidden.has(name)));
        const line = look.mark ? element("b", { textContent: look.mark }) : element("i");
        line.style.color = line.style.borderTopColor = look.colour;
        line.style.borderTopStyle = look.dash === "solid" ? "solid" : look.dash === "dot" ? "dotted" : "dashed";
        button.append(line, name);
        button.addEventListener("click", () => {
          hidden.has(name) ? hidden.delete(name) : hidden.add(name);
          show();
        });
        legend.append(button);
      }
    }

    function show() {
      const view = coloured(chart.views[current]);
      showLegend(view);
      for (const button of buttons.querySelectorAll("button")) {
        const pressed = view.label[button.dataset.row] === button.textContent;
        button.setAttribute("aria-pressed", String(pressed));
      }
      note.textContent = view.note && `${view.note} `;
      plot.setAttribute("aria-label", [chart.title, nameOf(view), view.note].filter(Boolean).join(": "));
      for (const panel of followers) panel.hidden = panel.dataset.view !== nameOf(view);
      const data = view.data.map((t) => ({ ...t, visible: hidden.has(t.name) ? "legendonly" : true }));
      return Plotly.react(plot, data, layoutOf(view, Number(figure.dataset.height)), {
        responsive: true, displayModeBar: false, scrollZoom: false,
      });
    }

    // The view with `word` in a row that is most like the one on show.
    function choose(row, word) {
      const now = chart.views[current].label;
      const alike = (view) => view.label.filter((w, i) => w === now[i]).length;
      const having = chart.views.filter((view) => view.label[row] === word);
      having.sort((a, b) => alike(b) - alike(a));
      current = chart.views.indexOf(having[0]);
      hidden.clear();
      show();
    }

    chart.views[0].label.forEach((_, row) => {
      const words = [...new Set(chart.views.map((view) => view.label[row]))];
      if (words.length < 2) return;
      const group = element("div", { role: "group" });
      group.setAttribute("aria-label", `${chart.title}: choose a view`);
      for (const word of words) {
        const button = element("button", { type: "button", textContent: word });
        button.dataset.row = row;
        button.addEventListener("click", () => choose(row, word));
        group.append(button);
      }
      buttons.append(group);
    });
    return show;
  }

  // What is wider than its place says so, fades out where it goes on, and scrolls by keys.
  function watchWidth(box) {
    const hint = box.matches(".table") ? element("p", { className: "scroll-hint" }) : null;
    if (hint) box.before(hint);
    function look() {
      const right = box.scrollWidth - box.clientWidth - box.scrollLeft > 1;
      const left = box.scrollLeft > 1;
      box.classList.toggle("more-right", right);
      box.classList.toggle("more-left", left);
      if (!hint) return;
      hint.hidden = !left && !right;
      if (hint.hidden) {
        box.removeAttribute("tabindex");
        return;
      }
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", "Table that scrolls sideways");
      const edge = box.getBoundingClientRect().right + 1;
      const unseen = [...box.querySelectorAll("tbody tr:first-child > *")]
        .filter((cell) => cell.getBoundingClientRect().right > edge).length;
      const columns = unseen === 1 ? "1 more column" : `${unseen} more columns`;
      hint.textContent = right ? `${columns}: scroll sideways →` : "← scroll back";
    }
    box.addEventListener("scroll", look, { passive: true });
    new ResizeObserver(look).observe(box);
    look();
  }

  const shows = charts.map(draw);
  const showAll = () => Promise.all(shows.map((show) => show()));
  document.querySelectorAll(".table, nav").forEach(watchWidth);

  const saved = (() => { try { return localStorage.getItem("raddle-theme"); } catch { return null; } })();
  if (saved) root.dataset.theme = saved;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("raddle-theme", root.dataset.theme); } catch { /* a file without storage */ }
    showAll();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showAll);
  showAll().then(() => { root.dataset.ready = "yes"; });
})();
