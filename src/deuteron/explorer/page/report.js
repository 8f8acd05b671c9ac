// The compile report; of two kernels side by side, with the rows that differ marked.

function reportView(app) {
  return {
    name: "Report",
    make() {
      const view = element("div", "view report");
      const titles = [...new Set(app.kernels.flatMap((kernel) => kernel.report.map((table) => table.title)))];
      for (const title of titles) {
        const tables = app.kernels.map((kernel) => kernel.report.find((table) => table.title === title));
        view.append(element("h2", "", title), reportTable(app, tables));
      }
      for (const kernel of app.kernels.filter((one) => one.profile)) view.append(...profileTable(app, kernel));
      if (!titles.length) view.append(element("p", "empty", "This target reports nothing."));
      this.holder = view;
      return view;
    },
    relight() {
      const key = app.links.shown?.key;
      for (const row of this.holder?.querySelectorAll("tr[data-key]") ?? []) row.classList.toggle("hit", +row.dataset.key === key);
    },
  };
}

// What each line cost on the emulator.
function profileTable(app, kernel) {
  const { grid, lines } = kernel.profile;
  const columns = ["line", ...COSTS.map(([name]) => name)];
  const rows = lines.map((line) => {
    const key = line.place === null ? null : kernel.keys[line.place];
    const cells = [key === null ? "no line" : app.sources.nameOf(key), ...COSTS.map(([, count]) => (count(line) || "").toLocaleString("en"))];
    const made = element("tr", "", cells.map((cell) => element("td", "", withLinks(app, cell))));
    if (key !== null) made.dataset.key = key;
    return made;
  });
  const title = `Profile on the emulator, grid ${grid.join("×")}${app.kernels.length > 1 ? `, ${"AB"[kernel.number]}` : ""}`;
  return [element("h2", "", title), element("table", "plain", [element("tr", "", columns.map((name) => element("th", "", name))), ...rows])];
}

function reportTable(app, tables) {
  const { columns } = tables.find(Boolean);
  const made = element("table", "plain");
  const isPair = tables.length > 1;
  if (columns.some(Boolean) || isPair) made.append(element("tr", "", [...(isPair ? [element("th")] : []), ...columns.map((name) => element("th", "", name))]));
  for (const [marks, row] of rowsOfBoth(tables)) {
    const isDifferent = isPair && marks !== "A B";
    const cells = row.map((text) => element("td", "", withLinks(app, text)));
    if (isPair) cells.unshift(element("td", "quiet", marks));
    const line = element("tr", isDifferent ? "differs" : "", cells);
    const key = lineKey(app, row[0]);
    if (key !== null) line.dataset.key = key;
    made.append(line);
  }
  return made;
}

// The rows of one table, or of two: those that both have once, those that differ next to what they differ from.
function rowsOfBoth([first, second]) {
  const ours = first?.rows ?? [];
  if (second === undefined && !first) return [];
  const theirs = [...(second?.rows ?? [])];
  const take = (isWanted) => {
    const found = theirs.filter(isWanted);
    found.forEach((row) => theirs.splice(theirs.indexOf(row), 1));
    return found;
  };
  const rows = ours.flatMap((row) => {
    if (take((other) => other.join("\0") === row.join("\0")).length) return [["A B", row]];
    const isLast = ours.findLast((other) => other[0] === row[0]) === row;
    const same = isLast ? take((other) => other[0] === row[0] && !ours.some((own) => own.join("\0") === other.join("\0"))) : [];
    return [["A", row], ...same.map((other) => ["B", other])];
  });
  return [...rows, ...theirs.map((row) => ["B", row])];
}

function lineKey(app, text) {
  const found = /^([\w.-]+\.\w+):(\d+)$/.exec(text);
  return found ? app.sources.keyOfText(found[1], +found[2]) : null;
}

// Text in which the lines of source files are links to them.
function withLinks(app, text) {
  const key = lineKey(app, text);
  if (key === null) return text;
  const link = element("a", "line", text);
  link.addEventListener("click", () => app.links.pin(selectionOfKey(key), "all"));
  return link;
}
