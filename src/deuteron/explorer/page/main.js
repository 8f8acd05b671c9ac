// The page: which panes there are, keys, and what is said in the status line.

const KEYS = [
  ["↑ ↓  or  k j", "the line before or after, of those that anything was made of"],
  ["[  ]", "the IR after the pass before, or the next one that changed something"],
  ["d", "show or hide what the pass changed"],
  ["1 … 9", "the view"],
  ["/", "search in the pane that was clicked last; Enter goes on"],
  ["t", "light or dark"],
  ["Esc", "light nothing"],
];

class App {
  constructor(kernels) {
    this.kernels = kernels;
    this.sources = new Sources(kernels);
    this.links = new Links();
    this.known = new Set(kernels.flatMap((kernel) => kernel.keys));
    this.main = document.getElementById("main");
    this.source = new SourcePane(this);
    this.right = element("section", "column right");
    this.views = viewsOf(this);
    this.links.onChange((from) => this.relight(from));
    fillHeader(this);
    layColumns(this.main, [this.source.element, this.right], [34, 66]);
    this.showView(this.views[0]);
    this.bindKeys();
    document.body.dataset.ready = "true";
  }

  showView(view) {
    this.view = view;
    for (const button of document.querySelectorAll("#views button")) button.setAttribute("aria-selected", button.dataset.view === view.name);
    view.element ??= view.make();
    this.right.replaceChildren(view.element);
    if (this.picked) view.pick?.(this.picked);
    this.picked = null;
    this.relight("all");
  }

  relight(from) {
    this.source.relight(from);
    this.view?.relight?.(from);
    this.tellCounts();
  }

  say(text) {
    document.getElementById("where").textContent = text;
  }

  focus(pane) {
    this.pane = pane;
  }

  // A row of a stage was clicked.
  pick(pane, row) {
    this.picked = { kernel: pane.kernel, stage: pane.isFinal ? pane.stage : null, row };
  }

  // How many lines of each stage the shown source line became.
  tellCounts() {
    const key = this.links.shown?.key;
    const into = document.getElementById("counts");
    into.replaceChildren();
    if (key === undefined) return;
    into.append(element("b", "", this.sources.nameOf(key)));
    for (const kernel of this.kernels) {
      const mark = this.kernels.length > 1 ? `${"AB"[kernel.number]} ` : "";
      const said = kernel.stages.map((stage) => [stage.name, rowsByKey(kernel, stage).get(key)?.length ?? 0]);
      into.append(`  ${mark}${said.filter(([, count]) => count).map(([name, count]) => `${name} ${count}`).join(" · ")}`);
    }
  }

  bindKeys() {
    document.addEventListener("keydown", (event) => {
      if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
      const act = this.action(event.key);
      if (!act) return;
      event.preventDefault();
      act();
    });
  }

  action(key) {
    const views = Object.fromEntries(this.views.map((view, index) => [String(index + 1), () => this.showView(view)]));
    return {
      ...views,
      ArrowDown: () => this.source.step(1), j: () => this.source.step(1),
      ArrowUp: () => this.source.step(-1), k: () => this.source.step(-1),
      "[": () => this.irPane()?.stepPass(-1), "]": () => this.irPane()?.stepPass(1),
      d: () => this.irPane()?.toggleDiff(),
      t: toggleTheme,
      "/": () => this.view.search?.focus(),
      "?": () => document.getElementById("help").showModal(),
      Escape: () => this.links.pin(null),
    }[key];
  }

  // The pane whose passes keys move: the one clicked last, else the first that has any.
  irPane() {
    const panes = this.view.panes ?? [];
    return panes.find((pane) => pane === this.pane && pane.pass !== null) ?? panes.find((pane) => pane.pass !== null);
  }
}

function viewsOf(app) {
  return [codeView(app), ...[layoutView, pipelineView, loopsView, reportView].map((make) => make(app)).filter(Boolean)];
}

// The source's other side: two stages, of one kernel or of both.
function codeView(app) {
  const view = { name: "Code", panes: [] };
  view.make = () => {
    const [first, second] = app.kernels.length > 1 ? app.kernels : [app.kernels[0], app.kernels[0]];
    const has = (kernel, ...names) => names.find((name) => kernel.stages.some((stage) => stage.name === name));
    const last = ["sass", "ptx", "asm", "llir"];
    const names = second === first ? [has(first, "ttgir", "ttir"), has(first, ...last.slice(1))] : [has(first, "ttgir", "ttir"), has(second, "ttgir", "ttir")];
    view.panes = [new StagePane(app, first, names[0]), new StagePane(app, second, names[1])];
    app.pane = view.panes[0];
    const holder = element("div", "columns");
    holder.style.cssText = "display:flex;flex:1;min-height:0";
    layColumns(holder, view.panes.map((pane) => pane.element), [50, 50]);
    view.search = searchBox(app);
    view.panes[1].bar.append(view.search);
    return holder;
  };
  view.relight = (from) => view.panes.forEach((pane) => pane.relight(from));
  return view;
}

function searchBox(app) {
  const box = element("input", "search");
  Object.assign(box, { type: "search", placeholder: "search  /", title: "In the pane that was clicked last" });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") box.blur();
    if (event.key !== "Enter" || !box.value) return;
    const { list } = app.pane;
    const wanted = box.value.toLowerCase();
    const from = (app.pane.found ?? -1) + 1;
    const order = [...list.rows.keys()].map((_, index) => (index + from) % list.rows.length);
    const found = order.find((number) => list.rows[number].text.toLowerCase().includes(wanted));
    app.say(found === undefined ? `'${box.value}' is not in ${app.pane.stage}` : "");
    if (found === undefined) return;
    app.pane.found = found;
    list.reveal(found);
    app.pane.click(found);
  });
  return box;
}

// Columns side by side, with splitters between them.
function layColumns(holder, columns, shares) {
  holder.replaceChildren();
  columns.forEach((column, index) => {
    column.style.flex = `${shares[index]} 1 0`;
    if (index) {
      const splitter = element("div", "splitter");
      splitter.addEventListener("pointerdown", (event) => {
        splitter.setPointerCapture(event.pointerId);
        const [left, right] = [columns[index - 1], column];
        const width = left.offsetWidth + right.offsetWidth;
        const total = Number(left.style.flexGrow) + Number(right.style.flexGrow);
        const begin = event.clientX - left.offsetWidth;
        splitter.onpointermove = (move) => {
          const share = Math.max(0.1, Math.min(0.9, (move.clientX - begin) / width));
          left.style.flex = `${total * share} 1 0`;
          right.style.flex = `${total * (1 - share)} 1 0`;
        };
        splitter.onpointerup = () => { splitter.onpointermove = null; };
      });
      holder.append(splitter);
    }
    holder.append(column);
  });
}

function fillHeader(app) {
  const [first, second] = app.kernels;
  document.getElementById("title").textContent = second && second.kernel !== first.kernel ? `${first.kernel} ↔ ${second.kernel}` : first.kernel;
  document.getElementById("chips").append(...chipsOf(first, second));
  app.views.forEach((view, index) => {
    const button = element("button", "", view.name);
    button.dataset.view = view.name;
    button.title = `${view.name} (${index + 1})`;
    button.setAttribute("role", "tab");
    button.addEventListener("click", () => app.showView(view));
    document.getElementById("views").append(button);
  });
  document.getElementById("theme").addEventListener("click", toggleTheme);
  const help = document.getElementById("help");
  const rows = KEYS.map(([keys, what]) => element("tr", "", [element("td", "", element("kbd", "", keys)), element("td", "", what)]));
  help.append(element("table", "", rows));
  help.addEventListener("click", () => help.close());
  document.getElementById("help-button").addEventListener("click", () => help.showModal());
}

// The target, options and constants of a kernel; of two, what differs stands out with both values.
function chipsOf(first, second) {
  const chip = (text, className = "") => element("span", `chip ${className}`, text);
  const both = (a, b) => (b !== undefined && String(a) !== String(b) ? [`${a} ↔ ${b}`, "differs"] : [String(a), ""]);
  const [target, differs] = both(first.target, second?.target);
  const made = [chip(target, `target ${differs}`)];
  const facts = (kernel) => ({ num_warps: kernel.options.num_warps, num_stages: kernel.options.num_stages, ...(kernel.options.num_ctas > 1 ? { num_ctas: kernel.options.num_ctas } : {}), ...kernel.constants });
  const [ours, theirs] = [facts(first), second ? facts(second) : {}];
  const named = Object.keys({ ...ours, ...theirs }).map((name) => [name, ...both(ours[name], second ? theirs[name] ?? "none" : undefined)]);
  named.sort((a, b) => (b[2] ? 1 : 0) - (a[2] ? 1 : 0));
  return [...made, ...named.map(([name, value, className]) => chip(`${name} ${value}`, className))];
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  window.dispatchEvent(new Event("theme"));
}

function toggleTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  setTheme(theme);
  try {
    localStorage.setItem("deuteron-theme", theme);
  } catch {
    // a page opened from a file may keep nothing
  }
}

function startTheme() {
  let kept = null;
  try {
    kept = localStorage.getItem("deuteron-theme");
  } catch {
    // as above
  }
  setTheme(kept ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
}

function tip(event, text) {
  const box = document.getElementById("tip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  const { offsetWidth: width, offsetHeight: height } = box;
  box.style.left = `${Math.min(event.clientX + 14, innerWidth - width - 8)}px`;
  box.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18}px`;
}

startTheme();
readData().then((kernels) => { window.explorer = new App(kernels); });
