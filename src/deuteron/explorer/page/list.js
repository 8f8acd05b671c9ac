// A list of thousands of rows of which those in view are drawn, with a ruler that shows where the lit ones are.

const ROW = 18;

class RowList {
  // draw(row, number): the element of a row. classes(row, number): its classes, which change with what is lit.
  constructor({ draw, classes, onHover, onClick }) {
    Object.assign(this, { draw, classes, rows: [], drawn: new Map() });
    this.element = element("div", "list");
    this.scroll = element("div", "scroll");
    this.sheet = element("div", "sheet");
    this.ruler = element("canvas", "ruler");
    this.scroll.append(this.sheet);
    this.element.append(this.scroll, this.ruler);
    this.scroll.addEventListener("scroll", () => this.render());
    new ResizeObserver(() => { this.render(); this.drawRuler(); }).observe(this.scroll);
    const rowOf = (event) => event.target.closest?.(".row")?.dataset.row;
    this.sheet.addEventListener("mouseover", (event) => rowOf(event) !== undefined && onHover(+rowOf(event)));
    this.sheet.addEventListener("mouseleave", () => onHover(null));
    this.sheet.addEventListener("click", (event) => {
      if (rowOf(event) !== undefined && !String(getSelection())) onClick(+rowOf(event));
    });
    this.ruler.addEventListener("click", (event) => this.reveal(Math.floor((event.offsetY / this.ruler.clientHeight) * this.rows.length)));
  }

  setRows(rows) {
    this.rows = rows;
    this.sheet.style.height = `${rows.length * ROW + 40}px`;
    const longest = rows.reduce((most, row) => Math.max(most, Math.min(row.text.length, MOST + 30)), 0);
    this.sheet.style.width = `calc(${longest}ch + 15ch)`;
    for (const made of this.drawn.values()) made.remove();
    this.drawn.clear();
    this.render();
    this.drawRuler();
  }

  render() {
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / ROW) - 8);
    const last = Math.min(this.rows.length, Math.ceil((this.scroll.scrollTop + this.scroll.clientHeight) / ROW) + 8);
    for (const [number, made] of this.drawn) {
      if (number < first || number >= last) {
        made.remove();
        this.drawn.delete(number);
      }
    }
    for (let number = first; number < last; number += 1) {
      if (this.drawn.has(number)) continue;
      const made = this.draw(this.rows[number], number);
      made.dataset.row = number;
      made.style.top = `${number * ROW}px`;
      made.className = this.classes(this.rows[number], number);
      this.drawn.set(number, made);
      this.sheet.append(made);
    }
  }

  relight() {
    for (const [number, made] of this.drawn) made.className = this.classes(this.rows[number], number);
    this.drawRuler();
  }

  drawRuler() {
    const { clientWidth: width, clientHeight: height } = this.ruler;
    if (!width || !height) return;
    const scale = devicePixelRatio || 1;
    Object.assign(this.ruler, { width: width * scale, height: height * scale });
    const context = this.ruler.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const colours = { add: "--add-edge", del: "--del-edge", lit: "--pin", exact: "--pin" };
    this.rows.forEach((row, number) => {
      const found = this.classes(row, number).split(" ").findLast((name) => colours[name]);
      if (!found) return;
      context.fillStyle = style.getPropertyValue(colours[found]);
      const each = (height / this.rows.length) * scale;
      context.fillRect(2, number * each, width * scale - 2, Math.max(each, 2 * scale));
    });
  }

  isInView(number) {
    const top = number * ROW - this.scroll.scrollTop;
    return top >= 0 && top + ROW <= this.scroll.clientHeight;
  }

  reveal(number) {
    this.scroll.scrollTop = Math.max(0, number * ROW - this.scroll.clientHeight / 3);
    this.render();
  }
}
