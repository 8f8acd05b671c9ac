// The algebra of layouts: who holds an element, from the bases of a linear layout over F2.

// For each element, in row-major order, its first holder and how many there are; registers change fastest.
function holders(layout) {
  if (layout.holders) return layout.holders;
  const { register = [], lane = [], warp = [] } = layout.bases;
  const size = layout.shape.reduce((product, extent) => product * extent, 1);
  const found = { register: new Int32Array(size).fill(-1), lane: new Int32Array(size), warp: new Int32Array(size), copies: new Int32Array(size) };
  const places = [register, lane, warp].map((bases) => images(bases, layout.shape));
  for (let w = 0; w < places[2].length; w += 1) {
    for (let l = 0; l < places[1].length; l += 1) {
      const thread = places[2][w] ^ places[1][l];
      for (let r = 0; r < places[0].length; r += 1) {
        const element = thread ^ places[0][r];
        if (found.register[element] < 0) {
          found.register[element] = r;
          found.lane[element] = l;
          found.warp[element] = w;
        }
        found.copies[element] += 1;
      }
    }
  }
  layout.holders = found;
  return found;
}

// For each element its offset in shared memory, and for each offset the element there.
function offsets(layout) {
  if (layout.offsets) return layout.offsets;
  const elements = images(layout.bases.offset ?? [], layout.shape);
  const of = new Int32Array(elements.length);
  elements.forEach((element, offset) => { of[element] = offset; });
  layout.offsets = { of, elements };
  return layout.offsets;
}

// The element, as a row-major index, of each number whose bits have these bases.
function images(bases, shape) {
  const strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((product, extent) => product * extent, 1));
  const flat = bases.map((basis) => basis.reduce((sum, entry, axis) => sum + entry * strides[axis], 0));
  const found = new Int32Array(1 << bases.length);
  for (let number = 1; number < found.length; number += 1) {
    const top = 31 - Math.clz32(number);
    found[number] = found[number ^ (1 << top)] ^ flat[top];
  }
  return found;
}

function coordinates(shape, element) {
  const found = [];
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    found.unshift(element % shape[axis]);
    element = Math.floor(element / shape[axis]);
  }
  return `(${found.join(", ")})`;
}

const sizeOf = (bases) => 1 << (bases?.length ?? 0);
const BANKS = 32;
const bankOf = (offset, bits) => Math.floor((offset * bits) / 32) % BANKS;

// In words what a layout is.
function describeLayout(layout, bits) {
  const elements = layout.shape.reduce((product, extent) => product * extent, 1);
  if (layout.space === "shared") {
    return `${layout.shape.join("×")} elements of ${bits} bits in ${((elements * bits) / 8).toLocaleString("en")} bytes of shared memory`;
  }
  const [registers, lanes, warps] = ["register", "lane", "warp"].map((name) => sizeOf(layout.bases[name]));
  const copies = (registers * lanes * warps) / elements;
  const held = copies > 1 ? `; each element is held ${copies} times` : "";
  return `${layout.shape.join("×")} elements on ${warps} ${warps > 1 ? "warps" : "warp"} of ${lanes} lanes, ${registers} registers a thread${held}`;
}

// How elements are coloured and described, by layout and mode.
function pictureOf(layout, bits, mode) {
  if (layout.space === "registers") return registerPicture(layout, mode);
  return mode === "memory" ? memoryPicture(layout, bits) : bankPicture(layout, bits);
}

function registerPicture(layout, mode) {
  const found = holders(layout);
  const counts = { warp: sizeOf(layout.bases.warp), lane: sizeOf(layout.bases.lane), register: sizeOf(layout.bases.register) };
  const describe = (element) => {
    const [w, l, r] = [found.warp[element], found.lane[element], found.register[element]];
    const copies = found.copies[element] > 1 ? ` (one of ${found.copies[element]} copies)` : "";
    return `element ${coordinates(layout.shape, element)}: warp ${w}, lane ${l}, register ${r}, thread ${w * counts.lane + l}${copies}`;
  };
  return {
    ...frame(layout.shape),
    element: (cell) => cell,
    colour: (element) => hue(found[mode][element], counts[mode], mode === "lane" ? found.warp[element] % 2 : 0),
    label: (element) => [`w${found.warp[element]} l${found.lane[element]}`, `r${found.register[element]}`],
    describe,
    isAlike: (one, other) => found.warp[one] === found.warp[other] && found.lane[one] === found.lane[other],
    alike: "outlined: what the same thread holds",
  };
}

function bankPicture(layout, bits) {
  const { of } = offsets(layout);
  return {
    ...frame(layout.shape),
    element: (cell) => cell,
    colour: (element) => hue(bankOf(of[element], bits), BANKS),
    label: (element) => [`b${bankOf(of[element], bits)}`, `+${(of[element] * bits) / 8}`],
    describe: (element) => describeOffset(layout, of[element], bits),
    isAlike: (one, other) => bankOf(of[one], bits) === bankOf(of[other], bits),
    alike: "outlined: what is in the same bank",
  };
}

// A row for every 128 bytes; colours are the rows of the tile, so that a swizzle shows.
function memoryPicture(layout, bits) {
  const { elements } = offsets(layout);
  const columns = Math.min(elements.length, 1024 / bits);
  const width = layout.shape.at(-1);
  return {
    rows: Math.ceil(elements.length / columns), columns,
    rowName: (row) => `+${(row * columns * bits) / 8}`,
    element: (cell) => elements[cell],
    cellOf: (element) => offsets(layout).of[element],
    colour: (element) => hue(Math.floor((element % width) / Math.max(1, 128 / bits)), Math.max(1, (width * bits) / 128), Math.floor(element / width) % 2),
    label: (element) => [coordinates(layout.shape, element), ""],
    describe: (element) => describeOffset(layout, offsets(layout).of[element], bits),
    isAlike: (one, other) => Math.floor(one / width) === Math.floor(other / width),
    alike: "outlined: the same row of the tile; colours: its columns, 16 bytes each",
  };
}

function describeOffset(layout, offset, bits) {
  const element = offsets(layout).elements[offset];
  return `element ${coordinates(layout.shape, element)}: byte ${(offset * bits) / 8}, bank ${bankOf(offset, bits)} of row ${Math.floor((offset * bits) / 1024)}`;
}

function frame(shape) {
  const columns = shape.length > 1 ? shape.at(-1) : Math.min(64, shape[0] ?? 1);
  const size = shape.reduce((product, extent) => product * extent, 1);
  return { rows: Math.ceil(size / columns), columns, rowName: (row) => String(shape.length > 1 ? row : row * columns), cellOf: (element) => element };
}

function hue(number, count, shade = 0) {
  const isDark = document.documentElement.dataset.theme === "dark";
  const angle = count > 1 ? (number * 360) / count : 210;
  const light = isDark ? 30 + 7 * shade + 4 * (number % 2) : 80 - 8 * shade - 5 * (number % 2);
  return `hsl(${angle.toFixed(0)} ${isDark ? 45 : 65}% ${light}%)`;
}
