// A tile drawn as a map: the wheel zooms, dragging moves it, pointing at an element says where it is.

const MARGIN = 34;

class TileCanvas {
  // picture: what `pictureOf` gives. steps: [rows, columns] of the instructions that are outlined.
  constructor({ picture, height = 420, steps = null, onHover = () => {} }) {
    Object.assign(this, { picture, steps, onHover, hovered: null, marked: null });
    this.canvas = element("canvas", "tile");
    this.canvas.tile = this;
    this.canvas.style.height = `${height}px`;
    this.canvas.addEventListener("wheel", (event) => this.zoom(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => { this.drag = [event.clientX - this.x, event.clientY - this.y]; });
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    window.addEventListener("pointerup", () => { this.drag = null; });
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("dblclick", () => { this.fit(); this.draw(); });
    window.addEventListener("theme", () => this.canvas.isConnected && this.draw());
    new ResizeObserver(() => { this.fit(); this.draw(); }).observe(this.canvas);
  }

  show(picture) {
    this.picture = picture;
    this.fit();
    this.draw();
  }

  fit() {
    const { rows, columns } = this.picture;
    const room = [this.canvas.clientWidth - MARGIN - 4, this.canvas.clientHeight - 22];
    this.cell = Math.max(1, Math.min(room[0] / columns, room[1] / rows, 34));
    this.x = MARGIN;
    this.y = 18;
  }

  zoom(event) {
    event.preventDefault();
    const cell = Math.max(1, Math.min(90, this.cell * Math.exp(-event.deltaY / 400)));
    this.x = event.offsetX - ((event.offsetX - this.x) / this.cell) * cell;
    this.y = event.offsetY - ((event.offsetY - this.y) / this.cell) * cell;
    this.cell = cell;
    this.draw();
  }

  move(event) {
    if (this.drag && event.buttons) {
      this.x = event.clientX - this.drag[0];
      this.y = event.clientY - this.drag[1];
      this.draw();
      return;
    }
    this.point(this.elementAt(event.offsetX, event.offsetY));
  }

  elementAt(x, y) {
    const { rows, columns } = this.picture;
    const [column, row] = [Math.floor((x - this.x) / this.cell), Math.floor((y - this.y) / this.cell)];
    const isInside = row >= 0 && row < rows && column >= 0 && column < columns;
    return isInside ? this.picture.element(row * columns + column) : null;
  }

  // Where the middle of an element is on the canvas.
  middle(element_) {
    const cell = this.picture.cellOf(element_);
    const { columns } = this.picture;
    return [this.x + ((cell % columns) + 0.5) * this.cell, this.y + (Math.floor(cell / columns) + 0.5) * this.cell];
  }

  point(hovered) {
    if (hovered === this.hovered) return;
    this.hovered = hovered;
    this.onHover(hovered);
    this.draw();
  }

  // Elements that another picture has to do with: a set, or null.
  mark(marked) {
    this.marked = marked;
    this.draw();
  }

  draw() {
    const { canvas, cell, picture } = this;
    const scale = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width) return;
    Object.assign(canvas, { width: width * scale, height: height * scale });
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--text");
    const dim = style.getPropertyValue("--dim");
    const range = (begin, count, room) => [Math.max(0, Math.floor(-begin / cell)), Math.min(count, Math.ceil((room - begin) / cell))];
    const [firstRow, lastRow] = range(this.y, picture.rows, height);
    const [firstColumn, lastColumn] = range(this.x, picture.columns, width);
    const gap = cell > 5 ? 1 : 0;
    for (let row = firstRow; row < lastRow; row += 1) {
      for (let column = firstColumn; column < lastColumn; column += 1) {
        const element_ = picture.element(row * picture.columns + column);
        if (element_ === undefined) continue;
        const [left, top] = [this.x + column * cell, this.y + row * cell];
        const isAlike = this.hovered !== null && picture.isAlike(this.hovered, element_);
        const isFaded = this.marked ? !this.marked.has(element_) : false;
        context.globalAlpha = isFaded ? 0.45 : 1;
        context.fillStyle = picture.colour(element_);
        context.fillRect(left, top, cell - gap, cell - gap);
        context.globalAlpha = 1;
        if (cell >= 30) this.label(context, picture.label(element_), left, top, ink);
        if (isAlike || (this.marked && !isFaded && this.marked.size < 3000)) {
          context.strokeStyle = ink;
          context.lineWidth = element_ === this.hovered ? 2.5 : 1;
          context.strokeRect(left + 0.5, top + 0.5, Math.max(cell - gap - 1, 1), Math.max(cell - gap - 1, 1));
        }
      }
    }
    this.drawSteps(context, ink);
    this.drawAxes(context, dim, width, height, [firstRow, lastRow, firstColumn, lastColumn]);
  }

  label(context, [first, second], left, top, ink) {
    context.fillStyle = ink;
    context.font = `${Math.min(11, this.cell / 4)}px ui-monospace, monospace`;
    context.textAlign = "center";
    context.fillText(first, left + this.cell / 2, top + this.cell / 2 - (second ? 1 : -4));
    if (second) context.fillText(second, left + this.cell / 2, top + this.cell / 2 + 11);
  }

  drawSteps(context, ink) {
    if (!this.steps || this.cell * Math.min(...this.steps) < 6) return;
    const { rows, columns } = this.picture;
    context.strokeStyle = ink;
    context.lineWidth = 1.2;
    context.beginPath();
    for (let row = 0; row <= rows; row += this.steps[0]) {
      context.moveTo(this.x, this.y + row * this.cell);
      context.lineTo(this.x + columns * this.cell, this.y + row * this.cell);
    }
    for (let column = 0; column <= columns; column += this.steps[1]) {
      context.moveTo(this.x + column * this.cell, this.y);
      context.lineTo(this.x + column * this.cell, this.y + rows * this.cell);
    }
    context.stroke();
  }

  drawAxes(context, dim, width, height, [firstRow, lastRow, firstColumn, lastColumn]) {
    context.fillStyle = dim;
    context.font = "10px ui-monospace, monospace";
    const every = (room) => 2 ** Math.max(0, Math.ceil(Math.log2(room / this.cell)));
    context.textAlign = "right";
    for (let row = firstRow; row < lastRow; row += 1) {
      if (row % every(14) === 0) context.fillText(this.picture.rowName(row), Math.max(this.x - 4, 30), this.y + row * this.cell + Math.min(this.cell / 2 + 4, 10));
    }
    context.textAlign = "left";
    for (let column = firstColumn; column < lastColumn; column += 1) {
      if (column % every(26) === 0) context.fillText(String(column), this.x + column * this.cell, Math.max(this.y - 5, 10));
    }
  }
}
