// Reading the data, and the source files that the kernels of a page share.

async function readData() {
  const text = document.getElementById("data").textContent.trim();
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()).map((data, number) => ({ ...data, number }));
}

// The files of all kernels: the same lines of the same path are one file, so that two configurations share them.
class Sources {
  constructor(kernels) {
    this.files = [];
    for (const kernel of kernels) kernel.fileIds = kernel.files.map((file) => this.add(file));
    for (const kernel of kernels) {
      kernel.keys = kernel.places.map(([file, line]) => keyOf(kernel.fileIds[file], line));
      kernel.exact = kernel.places.map(([, , column], place) => kernel.keys[place] * 1024 + Math.min(column, 1023));
    }
  }

  add(file) {
    const lines = new Map();
    for (const part of file.parts) part.lines.forEach((text, index) => lines.set(part.first + index, text));
    const agrees = (known) => known.path === file.path && [...lines].every(([n, t]) => (known.lines.get(n) ?? t) === t);
    let id = this.files.findIndex(agrees);
    if (id < 0) id = this.files.push({ path: file.path, name: file.name, lines: new Map() }) - 1;
    for (const [number, text] of lines) this.files[id].lines.set(number, text);
    return id;
  }

  nameOf(key) {
    return `${this.files[Math.floor(key / 1e6)].name}:${key % 1e6}`;
  }

  // The key of a place as a report writes it, `matmul.py:38`.
  keyOfText(name, line) {
    const id = this.files.findIndex((file) => file.name === name && file.lines.has(line));
    return id < 0 ? null : keyOf(id, line);
  }
}

const keyOf = (file, line) => file * 1e6 + line;

// Which rows of a text each source line has; made once.
function rowsByKey(kernel, text) {
  if (!text.byKey) {
    text.byKey = new Map();
    text.at.forEach((places, row) => {
      for (const key of new Set(places.map((place) => kernel.keys[place]))) {
        if (!text.byKey.has(key)) text.byKey.set(key, []);
        text.byKey.get(key).push(row);
      }
    });
  }
  return text.byKey;
}

// The IR after the pass of this number: a pass that changed nothing shows what the one before it left.
function irAfter(kernel, number) {
  let shown = number;
  while (shown > 0 && !kernel.passes[shown].is_changed) shown -= 1;
  return kernel.passes[shown];
}
