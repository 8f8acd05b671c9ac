// The timeline of a loop: a row for the warps, the tensor cores and each slot of a ring, time to the right.

const SVG = "http://www.w3.org/2000/svg";
const LANE_HEIGHT = 26;
const KINDS = {
  copy: "a copy on its way into the slot", read: "a dot, or a load, reads the slot", dot: "tensor cores multiply", compute: "arithmetic",
  load: "a load that is waited for", wait: "waiting", barrier: "a barrier", issue: "a copy or a dot is issued", store: "a store",
};

function pipelineView(app) {
  const kernels = app.kernels.filter((kernel) => kernel.pipeline);
  if (!kernels.length) return null;
  return {
    name: "Pipeline",
    make() {
      this.holder = element("div", "view pipeline");
      for (const kernel of kernels) {
        if (kernels.length > 1) this.holder.append(element("h2", "", `${"AB"[kernel.number]}: ${kernel.kernel}, num_stages ${kernel.options.num_stages}, num_warps ${kernel.options.num_warps}`));
        this.holder.append(...timeline(app, kernel));
      }
      return this.holder;
    },
    relight() {
      const key = app.links.shown?.key;
      for (const bar of this.holder?.querySelectorAll("[data-keys]") ?? []) bar.classList.toggle("hit", key !== undefined && bar.dataset.keys.split(" ").includes(String(key)));
    },
  };
}

function timeline(app, kernel) {
  const { rows, bars, iterations, size, program } = kernel.pipeline;
  const end = Math.max(...bars.map((bar) => bar.end));
  const note = element("p", "note", `Program ${program} with every integer argument ${size}. Who issues what, which slot holds what and what waits for what follow from ttgir; how long things take is nominal.`);
  const legend = element("p", "legend", ["copy", "read", "compute", "wait"].map((kind) => element("span", "", [element("i", `swatch ${kind}`), KINDS[kind]])));
  const labels = element("div", "lane-names", rows.map((row) => element("div", "", row.name)));
  const scroll = element("div", "lanes");
  let unit = 0;
  const draw = () => {
    const fit = (scroll.clientWidth - 6) / end;
    unit = Math.max(unit || Math.max(fit, 7), Math.min(fit, 7));
    scroll.replaceChildren(drawTimeline(app, kernel, rows, bars, iterations, end, unit));
  };
  scroll.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
    if (!event.ctrlKey && !event.altKey) return;
    event.preventDefault();
    const at = (event.offsetX + scroll.scrollLeft) / unit;
    unit = Math.max(2, Math.min(60, unit * Math.exp(-event.deltaY / 300)));
    draw();
    scroll.scrollLeft = at * unit - event.offsetX;
  }, { passive: false });
  const zoom = (factor) => () => { unit = Math.max(2, Math.min(60, unit * factor)); draw(); };
  const buttons = [["−", 0.7], ["+", 1.4]].map(([name, factor]) => {
    const button = element("button", "", name);
    button.addEventListener("click", zoom(factor));
    return button;
  });
  const all = element("button", "", "all");
  all.addEventListener("click", () => { unit = (scroll.clientWidth - 6) / end; draw(); });
  requestAnimationFrame(draw);
  return [note, element("div", "modes", [...buttons, all, legend]), element("div", "timeline", [labels, scroll])];
}

function drawTimeline(app, kernel, rows, bars, iterations, end, unit) {
  const height = rows.length * LANE_HEIGHT + 22;
  const svg = shape("svg", { width: Math.ceil(end * unit) + 4, height });
  svg.append(hatch());
  rows.forEach((row, number) => svg.append(shape("line", { x1: 0, x2: end * unit, y1: (number + 1) * LANE_HEIGHT + 20, y2: (number + 1) * LANE_HEIGHT + 20, class: "rule" })));
  for (const one of iterations) {
    svg.append(shape("line", { x1: one.begin * unit, x2: one.begin * unit, y1: 0, y2: height, class: "turn" }));
    const isFirst = (one.end - one.begin) * unit > 60;
    if ((one.end - one.begin) * unit > 14 && one.row === iterations[0].row) svg.append(shape("text", { x: one.begin * unit + 4, y: 13, class: "turn" }, `${isFirst ? "iteration " : ""}${one.number}`));
  }
  for (const [slot, held] of heldBars(rows, bars)) svg.append(shape("rect", { ...boxOf({ row: slot, ...held }, unit), class: "held" }));
  for (const bar of [...bars].sort((a, b) => (a.kind === "issue") - (b.kind === "issue"))) svg.append(drawBar(app, kernel, rows, bar, unit));
  return svg;
}

// From when a copy has arrived to when it is read last the slot is full.
function heldBars(rows, bars) {
  const found = [];
  rows.forEach((row, number) => {
    if (row.kind !== "slot") return;
    for (const copy of bars.filter((bar) => bar.row === number && bar.kind === "copy")) {
      const reads = bars.filter((bar) => bar.row === number && bar.kind === "read" && bar.bundle === copy.bundle);
      if (reads.length) found.push([number, { begin: copy.end, end: Math.max(...reads.map((bar) => bar.end)) }]);
    }
  });
  return found;
}

function boxOf(bar, unit) {
  const height = bar.kind === undefined ? 4 : LANE_HEIGHT - 6;
  return { x: bar.begin * unit, y: 22 + bar.row * LANE_HEIGHT + (LANE_HEIGHT - height) / 2 - 2, width: Math.max((bar.end - bar.begin) * unit, 1.5), height, rx: 2 };
}

function drawBar(app, kernel, rows, bar, unit) {
  const text = kernel.stages.find((stage) => stage.name === "ttgir");
  const keys = [...new Set(bar.lines.flatMap((line) => text.at[line].slice(0, 1)).map((place) => kernel.keys[place]))];
  const group = shape("g", { class: `bar-${bar.kind} work`, "data-keys": keys.join(" "), "data-bundle": bar.bundle ?? "" });
  const box = boxOf(bar, unit);
  const rect = shape("rect", box);
  if (bar.bundle !== null) rect.style.setProperty("--hue", (bar.bundle * 67 + 210) % 360);
  group.append(rect);
  if (bar.kind === "copy" || bar.kind === "wait") group.append(shape("rect", { ...box, class: "hatched" }));
  const label = bar.bundle !== null && bar.kind !== "issue" ? String(bar.bundle) : bar.kind;
  if (box.width > label.length * 7 + 6 && bar.kind !== "issue") group.append(shape("text", { x: box.x + box.width / 2, y: box.y + 14 }, label));
  const lines = keys.map((key) => app.sources.nameOf(key)).join(", ");
  const said = `${rows[bar.row].name}: ${KINDS[bar.kind] ?? bar.kind}${bar.bundle === null ? "" : `, bundle ${bar.bundle}`}\n${lines}`;
  group.addEventListener("mousemove", (event) => tip(event, said));
  group.addEventListener("mouseenter", () => app.links.hover(keys.length ? selectionOfKey(keys[0]) : null));
  group.addEventListener("mouseleave", (event) => { tip(event, ""); app.links.hover(null); });
  group.addEventListener("click", () => keys.length && app.links.pin(selectionOfKey(keys[0]), "all"));
  return group;
}

function hatch() {
  const defs = shape("defs");
  const pattern = shape("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  pattern.append(shape("rect", { width: 2, height: 6, class: "stripe" }));
  defs.append(pattern);
  return defs;
}

function shape(name, attributes = {}, content = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (content) made.textContent = content;
  return made;
}
