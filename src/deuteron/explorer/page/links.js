// What is lit: the lines that the pointer is on, and those that were clicked, in all panes alike.

class Links {
  constructor() {
    this.hovered = this.pinned = null;
    this.listeners = [];
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  hover(selection) {
    if (this.hovered === selection) return;
    this.hovered = selection;
    this.listeners.forEach((listener) => listener(null));
  }

  // `from` is the pane in which it was clicked, which stays where it is.
  pin(selection, from) {
    this.pinned = selection;
    this.hovered = null;
    this.listeners.forEach((listener) => listener(from ?? "all"));
  }

  get shown() {
    return this.hovered ?? this.pinned;
  }

  // The classes of a row that has these places of a kernel.
  classes(kernel, places, selection = this.shown) {
    if (!selection || !places.length) return "";
    if (selection.exact !== null && kernel.exact[places[0]] === selection.exact) return " exact";
    if (places.some((place) => kernel.keys[place] === selection.key)) return " lit";
    return places.some((place) => selection.callers.has(kernel.keys[place])) ? "" : "";
  }
}

// What a row of a stage selects: the line that it is from, to the column, and the calls that led there.
function selectionOf(kernel, places) {
  if (!places.length) return null;
  const [own, ...calls] = places;
  return { key: kernel.keys[own], exact: kernel.exact[own], callers: new Set(calls.map((place) => kernel.keys[place])) };
}

const selectionOfKey = (key) => ({ key, exact: null, callers: new Set() });
