// The view of layouts: tiles in registers and in shared memory, conversions between them, operands of dots.

function layoutView(app) {
  const kernels = app.kernels.filter((kernel) => kernel.layouts.layouts.length);
  if (!kernels.length) return null;
  const view = { name: "Layouts" };
  view.make = () => {
    const holder = element("div", "split");
    view.side = element("div", "side");
    view.detail = element("div", "view detail");
    holder.append(view.side, view.detail);
    view.items = kernels.flatMap((kernel) => itemsOf(app, kernel, kernels.length > 1 ? "AB"[kernel.number] : ""));
    let group = null;
    for (const item of view.items) {
      if (item.group !== group) view.side.append(element("h3", "", (group = item.group)));
      item.button = element("button", "item", [element("b", "", item.title), element("span", "", item.said)]);
      item.button.addEventListener("click", () => choose(item));
      view.side.append(item.button);
    }
    choose(view.items.find((item) => item.isFirst) ?? view.items[0]);
    return holder;
  };
  const choose = (item) => {
    view.items.forEach((other) => other.button.setAttribute("aria-selected", other === item));
    view.detail.replaceChildren(element("h2", "", `${item.title} ${item.said}`), ...item.show());
    if (item.key) app.links.pin(item.key, "all");
  };
  // A tile that was clicked in ttgir is the one that is shown.
  view.pick = ({ kernel, stage, row }) => {
    if (stage !== "ttgir" || row.number === null) return;
    view.element ??= view.make();
    const item = view.items.find((one) => one.kernel === kernel && one.lines.has(row.number));
    if (item) choose(item);
  };
  return view;
}

function itemsOf(app, kernel, mark) {
  const { layouts, values, conversions, dots, accesses } = kernel.layouts;
  const group = (name) => (mark ? `${mark}: ${name}` : name);
  const place = (line) => {
    const key = keyOfLine(line)?.key;
    return key === undefined ? "" : `${app.sources.nameOf(key).replace(/^.*:/, "line ")}, `;
  };
  const keyOfLine = (line) => selectionOf(kernel, kernel.stages.find((stage) => stage.name === "ttgir").at[line]);
  const used = layouts.map((layout, number) => ({ layout, number, values: values.filter((value) => value.layout === number) }));
  const tiles = used.filter(({ values: own }) => own.length).sort((a, b) => sizeOfTile(b.layout) - sizeOfTile(a.layout));
  const dotItems = dots.map((dot) => ({
    kernel, group: group("Dots"), title: dot.name, said: place(dot.line) + (dot.kind === "multiply-adds" ? dot.kind : `${dot.kind} m${dot.instruction.join("n").replace(/n(\d+)$/, "k$1")}`),
    lines: new Set([dot.line]), key: keyOfLine(dot.line), show: () => showDot(layouts, dot),
  }));
  const conversionItems = conversions.map((conversion) => ({
    kernel, group: group("Conversions"), title: conversion.name, said: `${place(conversion.line)}through ${conversion.route}`,
    lines: new Set([conversion.line]), key: keyOfLine(conversion.line), show: () => showConversion(layouts, conversion),
  }));
  const tileItems = tiles.map(({ layout, number, values: own }) => ({
    kernel, group: group(layout.space === "shared" ? "Tiles in shared memory" : "Tiles in registers"), title: layout.name, said: `${own[0].type} ${namesOf(own)}`,
    isFirst: !dots.length && layout === tiles[0]?.layout, lines: new Set(own.map((value) => value.line)),
    show: () => showLayout(app, kernel, layout, own[0].element_bits, accesses.filter((access) => access.memory === number)),
  }));
  const shared = tileItems.filter((item) => item.group.endsWith("shared memory"));
  return [...dotItems, ...conversionItems, ...shared, ...tileItems.filter((item) => !shared.includes(item))];
}

const sizeOfTile = (layout) => layout.shape.reduce((product, extent) => product * extent, 1);

function namesOf(values) {
  const names = [...new Set(values.map((value) => value.name))];
  names.sort((a, b) => /^%\d/.test(a) - /^%\d/.test(b));
  return names.slice(0, 3).join(", ") + (names.length > 3 ? ", …" : "");
}

function readout() {
  const said = element("p", "readout", "Point at an element.");
  said.id = "layout-readout";
  return said;
}

function showLayout(app, kernel, layout, bits, accesses) {
  const modes = layout.space === "shared" ? ["bank", "memory"] : ["warp", "lane", "register"].slice(layout.bases.warp.length ? 0 : 1);
  const said = readout();
  const tile = new TileCanvas({
    picture: pictureOf(layout, bits, modes[0]), height: 520,
    onHover: (hovered) => { said.textContent = hovered === null ? tile.picture.alike : tile.picture.describe(hovered); },
  });
  const buttons = modes.map((mode) => {
    const button = element("button", "", `by ${mode}`.replace("by memory", "as memory has it"));
    button.dataset.mode = mode;
    button.addEventListener("click", () => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", other === button));
      tile.show(pictureOf(layout, bits, mode));
    });
    button.setAttribute("aria-pressed", mode === modes[0]);
    return button;
  });
  const made = [element("p", "note", describeLayout(layout, bits)), element("div", "modes", buttons), tile.canvas, said];
  if (accesses.length) made.push(element("h2", "", "Accesses"), accessTable(app, kernel, accesses));
  made.push(basesTable(layout));
  return made;
}

function accessTable(app, kernel, accesses) {
  const text = kernel.stages.find((stage) => stage.name === "ttgir");
  const rows = accesses.map((access) => {
    const key = text.at[access.line].length ? kernel.keys[text.at[access.line][0]] : null;
    const line = key === null ? "-" : withLinks(app, app.sources.nameOf(key));
    const how = access.how === "vectors" ? `vectors of ${access.vector_bytes} bytes` : access.how;
    return [line, access.kind, how, conflictText(access)].map((cell) => element("td", "", cell));
  });
  return element("table", "plain", rows.map((cells) => element("tr", "", cells)));
}

const conflictText = ({ conflicts }) => (conflicts ? `${conflicts + 1}-way bank conflicts` : "no bank conflicts");

function basesTable(layout) {
  const rows = Object.entries(layout.bases).map(([name, bases]) => {
    const text = bases.length ? bases.map((basis) => `(${basis.join(",")})`).join(" ") : "none";
    return element("tr", "", [element("td", "", name), element("td", "", text)]);
  });
  return element("details", "", [element("summary", "", "Bases: what each bit of the number adds to the coordinates, by XOR"), element("table", "plain", rows)]);
}

// Both sides of a conversion, and shared memory between them; an element lights in all.
function showConversion(layouts, conversion) {
  const said = readout();
  const bits = conversion.element_bits;
  const stops = [["from", conversion.source], ...(conversion.scratch === null ? [] : [["in shared memory", conversion.scratch]]), ["to", conversion.result]];
  const tiles = stops.map(([, number]) => new TileCanvas({
    picture: pictureOf(layouts[number], bits, layouts[number].space === "shared" ? "bank" : "lane"), height: 330,
    onHover: (hovered) => light(hovered),
  }));
  const light = (hovered) => {
    tiles.forEach((tile) => tile.mark(hovered === null ? null : new Set([hovered])));
    said.textContent = hovered === null ? "Point at an element." : tiles.map((tile) => tile.picture.describe(hovered).replace(/^element.*?\): /, "")).join("  →  ");
    if (hovered !== null) said.prepend(`element ${coordinates(layouts[conversion.source].shape, hovered)}: `);
  };
  const facts = {
    registers: "Each thread has all it needs: its registers are renamed.",
    shuffles: `${conversion.shuffles} shuffles between the lanes of a warp.`,
    "shared memory": `${conversion.bytes.toLocaleString("en")} bytes of shared memory${conversion.parts > 1 ? `, in ${conversion.parts} parts one after the other` : ""}: ` +
      [...conversion.stores, ...conversion.loads].map((access) => `${access.kind === "store" ? "stored" : "loaded"} by ${access.how === "vectors" ? `vectors of ${access.vector_bytes} bytes` : access.how}, ${conflictText(access)}`).join("; ") + ".",
  }[conversion.route];
  const columns = stops.map(([name, number], index) => element("div", "stop", [element("h3", "", number === conversion.scratch ? name : `${name} ${layouts[number].name}`), tiles[index].canvas]));
  return [element("p", "note", facts), element("div", "stops", columns), said];
}

// a to the left of the product, b above it: an element lights the row and the column that it is the sum of.
function showDot(layouts, dot) {
  const said = readout();
  const [m, n, k] = dot.instruction;
  const operand = (which, steps, height) => {
    const layout = layouts[dot[which].layout];
    return new TileCanvas({ picture: pictureOf(layout, dot[which].element_bits, layout.space === "shared" ? "bank" : "warp"), steps, height, onHover: (hovered) => light(which, hovered) });
  };
  const outlined = dot.kind === "multiply-adds" ? [null, null, null] : [[m, k], [k, n], [m, n]];
  const tiles = { a: operand("a", outlined[0], 380), b: operand("b", outlined[1], 230), c: operand("c", outlined[2], 380) };
  const shape = (which) => layouts[dot[which].layout].shape;
  const light = (which, hovered) => {
    if (hovered === null) {
      Object.values(tiles).forEach((tile) => tile.mark(null));
      said.textContent = "Point at an element.";
      return;
    }
    const [depth, width] = shape("b").slice(-2);
    if (which === "c") {
      const [row, column] = [Math.floor(hovered / width), hovered % width];
      tiles.a.mark(new Set(Array.from({ length: depth }, (_, index) => row * depth + index)));
      tiles.b.mark(new Set(Array.from({ length: depth }, (_, index) => index * width + column)));
    }
    said.textContent = `${which}, ${tiles[which].picture.describe(hovered)}`;
  };
  const box = (which, area) => {
    const made = element("div", "", [element("h3", "", `${which}: ${dot[which].type}, ${layouts[dot[which].layout].space === "shared" ? "shared memory, by bank" : "registers, by warp"}`), tiles[which].canvas]);
    made.style.gridArea = area;
    return made;
  };
  const note = dot.kind === "multiply-adds" ? "Multiply-adds in each thread." : `Lines outline what one instruction multiplies: ${m}×${k} of a, ${k}×${n} of b.`;
  return [element("p", "note", note), element("div", "product", [box("b", "b"), box("a", "a"), box("c", "c")]), said];
}
