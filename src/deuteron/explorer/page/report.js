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

function reportTable(app, tables) {
  const { columns } = tables.find(Boolean);
  const made = element("table", "plain");
  const isPair = tables.length > 1;
  if (columns.some(Boolean) || isPair) made.append(element("tr", "", [...(isPair ? [element("th")] : []), ...columns.map((name) => element("th", "", name))]));
  const texts = tables.map((table) => new Set((table?.rows ?? []).map((row) => row.join("\u0000"))));
  tables.forEach((table, number) => {
    for (const row of table?.rows ?? []) {
      const isShared = isPair && texts[1 - number].has(row.join("\u0000"));
      if (isShared && number) continue;
      const cells = row.map((text) => element("td", "", withLinks(app, text)));
      if (isPair) cells.unshift(element("td", "quiet", isShared ? "A B" : "AB"[number]));
      const line = element("tr", isPair && !isShared ? "differs" : "", cells);
      const key = lineKey(app, row[0]);
      if (key !== null) line.dataset.key = key;
      made.append(line);
    }
  });
  return made;
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
