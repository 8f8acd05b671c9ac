// A stage of a kernel, or tile IR after one of its passes with the differences to the one before.

const FRAMES = /^\s*\/\/ (?:begin|end) inline asm$/; // around each piece of it, of which there are hundreds
const IR = new Set(["ttir", "ttgir"]);

class StagePane {
  constructor(app, kernel, name) {
    Object.assign(this, { app, kernel, isDiff: true });
    this.element = element("section", "column stage");
    this.kernels = element("select", "kernels");
    app.kernels.forEach((one) => this.kernels.append(new Option("AB"[one.number], one.number)));
    this.kernels.hidden = app.kernels.length < 2;
    this.kernels.addEventListener("change", () => this.choose(app.kernels[this.kernels.value], this.stage));
    this.stages = element("select", "stages");
    this.stages.addEventListener("change", () => this.choose(this.kernel, this.stages.value));
    this.strip = new PassStrip((number) => this.showPass(number));
    this.diff = element("button", "", "± diff");
    this.diff.title = "Show what the pass changed (d)";
    this.diff.addEventListener("click", () => this.toggleDiff());
    this.label = element("span", "quiet pass-name");
    this.bar = element("div", "bar", [this.kernels, this.stages, this.strip.element, this.label, this.diff]);
    this.list = new RowList({
      draw: (row) => this.draw(row),
      classes: (row) => this.classes(row),
      onHover: (number) => this.hover(number),
      onClick: (number) => this.click(number),
    });
    this.element.append(this.bar, this.list.element);
    this.element.addEventListener("mousedown", () => app.focus(this));
    this.choose(kernel, name);
  }

  choose(kernel, name) {
    this.kernel = kernel;
    this.kernels.value = kernel.number;
    this.stages.replaceChildren(...kernel.stages.map((stage) => new Option(stage.name, stage.name)));
    this.stage = kernel.stages.some((stage) => stage.name === name) ? name : kernel.stages.at(-1).name;
    this.stages.value = this.stage;
    const last = kernel.passes.findLastIndex((pass) => pass.stage === this.stage);
    this.pass = IR.has(this.stage) && last >= 0 ? last : null;
    this.isFinal = true;
    this.strip.show(kernel.passes, this.pass);
    this.show();
  }

  showPass(number) {
    this.pass = Math.max(0, Math.min(number, this.kernel.passes.length - 1));
    this.stage = this.stages.value = this.kernel.passes[this.pass].stage;
    this.isFinal = false;
    this.strip.show(this.kernel.passes, this.pass);
    this.show(true);
  }

  // To the next pass that changed something, or the one before.
  stepPass(by) {
    if (this.pass === null) return;
    let number = this.pass;
    do number += by; while (this.kernel.passes[number] && !this.kernel.passes[number].is_changed);
    if (this.kernel.passes[number]) this.showPass(number);
  }

  toggleDiff() {
    this.isDiff = !this.isDiff;
    if (this.pass !== null && this.isFinal) this.isFinal = false;
    this.show(true);
  }

  show(keepsPlace = false) {
    const hasPass = this.pass !== null;
    this.strip.element.hidden = this.diff.hidden = !hasPass;
    const text = hasPass && !this.isFinal ? irAfter(this.kernel, this.pass) : this.kernel.stages.find((stage) => stage.name === this.stage);
    this.text = text;
    this.language = text.language ?? "mlir";
    this.diff.setAttribute("aria-pressed", this.isDiff && !this.isFinal);
    this.label.textContent = hasPass ? this.passLabel() : `${text.lines.length.toLocaleString("en")} lines`;
    this.label.classList.toggle("grow", !hasPass);
    const top = this.list.scroll.scrollTop;
    this.list.setRows(this.rows());
    const firstEdit = this.list.rows.findIndex((row) => row.kind);
    if (firstEdit >= 0 && !this.list.rows.some((row, number) => row.kind && this.list.isInView(number))) this.list.reveal(firstEdit);
    else if (keepsPlace) this.list.scroll.scrollTop = top;
  }

  passLabel() {
    const pass = this.kernel.passes[this.pass];
    const name = this.isFinal ? "all passes" : pass.name || `before the passes of ${pass.stage}`;
    const said = !this.isFinal && pass.name && !pass.is_changed ? " (changed nothing)" : "";
    return `${name}${said}`;
  }

  // The rows of the text; where differences are shown, with the lines that went.
  rows() {
    const { lines, at } = this.text;
    const row = (number, kind = "") => ({ text: lines[number], at: at[number], number, kind });
    const pass = this.pass === null ? null : this.kernel.passes[this.pass];
    if (this.isFinal || !this.isDiff || !pass?.is_changed || !pass.edits.length) {
      return [...lines.keys()].filter((number) => !FRAMES.test(lines[number])).map((number) => row(number));
    }
    const before = irAfter(this.kernel, this.pass - 1);
    const rows = [];
    let next = 0;
    for (const [oldFirst, oldEnd, first, end] of pass.edits) {
      while (next < first) rows.push(row(next++));
      for (let old = oldFirst; old < oldEnd; old += 1) rows.push({ text: before.lines[old], at: before.at[old], number: null, kind: "del" });
      while (next < end) rows.push(row(next++, "add"));
    }
    while (next < lines.length) rows.push(row(next++));
    return rows;
  }

  draw(row) {
    const made = element("div", "", element("span", "no", row.number === null ? "−" : `${row.kind ? "+" : ""}${row.number + 1}`));
    if (row.number !== null) made.dataset.number = row.number;
    const code = element("span");
    highlighted(row.text, this.language, code);
    made.append(code);
    return made;
  }

  classes(row) {
    const { links } = this.app;
    const pinned = links.pinned && links.classes(this.kernel, row.at, links.pinned) ? " pinned" : "";
    return `row ${row.kind}${row.at.length ? " linked" : " dull"}${links.classes(this.kernel, row.at)}${pinned}`;
  }

  hover(number) {
    const row = number === null ? null : this.list.rows[number];
    this.app.links.hover(row ? selectionOf(this.kernel, row.at) : null);
    this.app.say(row ? this.describe(row) : "");
  }

  click(number) {
    const row = this.list.rows[number];
    this.app.links.pin(selectionOf(this.kernel, row.at), this);
    this.app.pick(this, row);
  }

  describe(row) {
    return row.at.map((place) => `${this.app.sources.nameOf(this.kernel.keys[place])}:${this.kernel.places[place][2]}`).join("  called from ");
  }

  // After a click elsewhere the first line of what was clicked comes into view.
  relight(from) {
    this.list.relight();
    if (from === null || from === this || !this.app.links.pinned) return;
    const marks = this.list.rows.map((row) => this.app.links.classes(this.kernel, row.at, this.app.links.pinned));
    const wanted = marks.includes(" exact") ? " exact" : " lit";
    const first = marks.indexOf(wanted);
    const isShown = marks.some((mark, number) => mark === wanted && this.list.isInView(number));
    if (first >= 0 && !isShown) this.list.reveal(first);
  }
}

// One tick for each pass, as high as it changed much.
class PassStrip {
  constructor(onPick) {
    this.onPick = onPick;
    this.element = element("div", "strip");
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "slider");
    this.element.setAttribute("aria-label", "Pass");
    const pick = (event) => {
      const box = this.element.getBoundingClientRect();
      const number = Math.floor(((event.clientX - box.left) / box.width) * this.passes.length);
      this.onPick(Math.max(0, Math.min(number, this.passes.length - 1)));
    };
    this.element.addEventListener("pointerdown", (event) => {
      this.element.setPointerCapture(event.pointerId);
      pick(event);
    });
    this.element.addEventListener("pointermove", (event) => event.buttons && pick(event));
    this.element.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      this.onPick(this.now + by);
    });
  }

  show(passes, now) {
    Object.assign(this, { passes, now });
    this.element.setAttribute("aria-valuemin", 0);
    this.element.setAttribute("aria-valuemax", passes.length - 1);
    this.element.setAttribute("aria-valuenow", now ?? 0);
    this.element.setAttribute("aria-valuetext", passes[now]?.name ?? "");
    this.element.replaceChildren(...passes.map((pass, number) => {
      const size = pass.edits.reduce((sum, [a, b, c, d]) => sum + (b - a) + (d - c), 0);
      const bar = element("i");
      bar.style.height = `${pass.is_changed ? 25 + Math.min(75, 11 * Math.log2(1 + size)) : 12}%`;
      const tick = element("span", `tick ${pass.stage}${pass.is_changed ? " changed" : ""}${pass.name ? "" : " first"}${number === now ? " now" : ""}`, bar);
      tick.title = `${pass.stage}: ${pass.name || "before any pass"}${pass.is_changed && pass.name ? `, ${size} lines` : ""}`;
      return tick;
    }));
  }
}
