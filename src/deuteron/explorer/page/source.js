// The Python source: files one after the other, with a gauge beside each line.

class SourcePane {
  constructor(app) {
    this.app = app;
    this.element = element("section", "column source");
    this.gauge = element("select");
    this.gauge.title = "What the bars beside the source count";
    this.gauge.addEventListener("change", () => this.show());
    const bar = element("div", "bar", [element("span", "grow", "Source"), this.gauge]);
    this.list = new RowList({
      draw: (row) => this.draw(row),
      classes: (row) => this.classes(row),
      onHover: (number) => app.links.hover(number === null ? null : this.selection(number)),
      onClick: (number) => app.links.pin(this.selection(number), this),
    });
    this.element.append(bar, this.list.element);
    this.fillGauges();
    this.show();
  }

  fillGauges() {
    this.gauges = gaugesOf(this.app);
    this.gauge.replaceChildren(...this.gauges.map((gauge, index) => new Option(gauge.title, index)));
    this.gauge.hidden = !this.gauges.length;
  }

  show() {
    const gauge = this.gauges[this.gauge.value];
    this.counts = gauge ? gauge.counts() : new Map();
    this.most = Math.max(1, ...this.counts.values());
    const rows = [];
    this.app.sources.files.forEach((file, id) => {
      if (!file.lines.size) return;
      rows.push({ text: file.path.split("/").slice(-2).join("/"), head: true });
      let before = null;
      for (const number of [...file.lines.keys()].sort((a, b) => a - b)) {
        if (before !== null && number > before + 1) rows.push({ text: "⋯", head: true });
        rows.push({ text: file.lines.get(number), number, key: keyOf(id, number) });
        before = number;
      }
    });
    this.list.setRows(rows);
  }

  draw(row) {
    const made = element("div");
    if (row.head) {
      made.append(element("span", "no"), row.text);
      return made;
    }
    made.dataset.line = row.number;
    const count = this.counts.get(row.key);
    if (this.gauges.length) {
      const gauge = element("span", "gauge");
      if (count) {
        const bar = element("i");
        bar.style.width = `${Math.max(4, (100 * count) / this.most)}%`;
        gauge.append(bar, element("b", "", count.toLocaleString("en")));
      }
      made.append(gauge);
    }
    made.append(element("span", "no", String(row.number)));
    const code = element("span");
    highlighted(row.text, "python", code);
    made.append(code);
    return made;
  }

  classes(row) {
    if (row.head) return "row head";
    const { shown, pinned } = this.app.links;
    const isKnown = this.app.known.has(row.key) ? " linked" : "";
    const lit = shown?.key === row.key ? (shown.exact === null ? " lit" : " lit exact") : shown?.callers.has(row.key) ? " caller" : "";
    return `row${isKnown}${lit}${pinned?.key === row.key ? " pinned" : ""}`;
  }

  selection(number) {
    const { key } = this.list.rows[number];
    return key !== undefined && this.app.known.has(key) ? selectionOfKey(key) : null;
  }

  relight(from) {
    this.list.relight();
    const key = this.app.links.pinned?.key;
    const number = this.list.rows.findIndex((row) => row.key === key && key !== undefined);
    if (from !== null && from !== this && number >= 0 && !this.list.isInView(number)) this.list.reveal(number);
  }

  // Move the pinned line up or down to the next that anything was made of.
  step(by) {
    const rows = this.list.rows;
    let number = rows.findIndex((row) => row.key === this.app.links.pinned?.key && row.key !== undefined);
    if (number < 0) number = by > 0 ? -1 : rows.length;
    do number += by; while (rows[number] && !this.app.known.has(rows[number].key));
    if (!rows[number]) return;
    this.app.links.pin(selectionOfKey(rows[number].key), "all");
  }
}

// Of a profile: what a line cost when the kernel ran on the emulator.
const COSTS = [
  ["instructions run", (line) => line.instructions],
  ["sectors of memory", (line) => line.sectors],
  ["sectors beyond the fewest", (line) => line.sectors - line.ideal_sectors],
  ["passes over shared memory", (line) => line.shared_wavefronts],
  ["bank conflicts", (line) => line.bank_conflicts],
  ["barriers", (line) => line.barriers],
];

function countCosts(kernel, count) {
  return new Map(kernel.profile.lines.filter((line) => line.place !== null && count(line)).map((line) => [kernel.keys[line.place], count(line)]));
}

// What can be shown as bars beside the source: how many lines of a stage a source line became.
function gaugesOf(app) {
  const gauges = [];
  for (const kernel of app.kernels) {
    const suffix = app.kernels.length > 1 ? ` (${"AB"[kernel.number]})` : "";
    for (const [title, count] of kernel.profile ? COSTS : []) {
      if (kernel.profile.lines.some((line) => count(line))) gauges.push({ title: title + suffix, counts: () => countCosts(kernel, count) });
    }
    for (const [name, of] of [["sass", "instructions"], ["ptx", "instructions"], ["asm", "instructions"], ["ttgir", "ops"], ["ttir", "ops"]]) {
      const text = kernel.stages.find((stage) => stage.name === name);
      if (text && text.at.some((places) => places.length)) gauges.push({ title: `${of} in ${name}${suffix}`, counts: () => countRows(kernel, text) });
    }
  }
  return gauges;
}

function countRows(kernel, text) {
  const counts = new Map();
  for (const places of text.at) {
    if (places.length) counts.set(kernel.keys[places[0]], (counts.get(kernel.keys[places[0]]) ?? 0) + 1);
  }
  return counts;
}
