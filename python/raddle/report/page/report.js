// Draws the charts: one view at a time, in the colours of the page's theme, with a legend of its
// own that wraps on a phone. No network, no storage of anything but the theme.
"use strict";
(() => {
  const root = document.documentElement;
  const narrow = () => window.innerWidth < 640;
  const charts = [...document.querySelectorAll("script.chart")].map((s) => JSON.parse(s.textContent));
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function layoutOf(view, height) {
    const layout = structuredClone(view.layout);
    const text = colour("--text");
    const small = narrow();
    layout.paper_bgcolor = "rgba(0,0,0,0)";
    layout.plot_bgcolor = "rgba(0,0,0,0)";
    layout.font = { family: getComputedStyle(document.body).fontFamily, size: small ? 11 : 12.5, color: text };
    layout.height = height;
    layout.autosize = true;
    layout.dragmode = small ? false : "zoom";
    layout.hoverlabel = { bgcolor: colour("--card"), bordercolor: colour("--line"), font: { color: text } };
    for (const key of ["xaxis", "yaxis"]) {
      const axis = layout[key];
      axis.gridcolor = colour("--grid");
      axis.linecolor = colour("--line");
      axis.zerolinecolor = colour("--line");
      if (small) { axis.fixedrange = true; if (axis.type === undefined && !axis.tickvals) axis.nticks = 5; }
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
      entries.set(trace.name, { colour: c, dash: (trace.line && trace.line.dash) || "solid", width: (trace.line && trace.line.width) || 3 });
    }
    return entries;
  }

  function draw(chart) {
    const figure = document.getElementById(`chart-${chart.key}`);
    const plot = figure.querySelector(".plot");
    const legend = figure.querySelector(".legend");
    const buttons = figure.querySelector(".views");
    const hidden = new Set();
    let current = 0;

    function visible(trace) { return hidden.has(trace.name) ? "legendonly" : true; }

    function show() {
      const view = chart.views[current];
      legend.replaceChildren();
      const entries = legendOf(view);
      if (entries.size > 1) {
        for (const [name, look] of entries) {
          const button = document.createElement("button");
          button.type = "button";
          button.setAttribute("aria-pressed", String(!hidden.has(name)));
          const line = document.createElement("i");
          line.style.borderTopColor = look.colour;
          line.style.borderTopStyle = look.dash === "solid" ? "solid" : look.dash === "dot" ? "dotted" : "dashed";
          button.append(line, name);
          button.addEventListener("click", () => {
            hidden.has(name) ? hidden.delete(name) : hidden.add(name);
            show();
          });
          legend.append(button);
        }
      }
      [...buttons.children].forEach((b, i) => b.setAttribute("aria-pressed", String(i === current)));
      const data = structuredClone(view.data);
      for (const trace of data) trace.visible = visible(trace);
      return Plotly.react(plot, data, layoutOf(view, Number(figure.dataset.height)), {
        responsive: true, displayModeBar: false, scrollZoom: false,
      });
    }

    if (chart.views.length > 1) {
      chart.views.forEach((view, i) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = view.label;
        button.addEventListener("click", () => { current = i; hidden.clear(); show(); });
        buttons.append(button);
      });
    } else {
      buttons.remove();
    }
    return show;
  }

  const shows = charts.map(draw);
  const showAll = () => Promise.all(shows.map((show) => show()));

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
