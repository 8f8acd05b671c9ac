// The loop nests of a kernel for the CPU: what is fused into each, what is kept in memory, how wide vectors are.

// What is no work of its own: it says which element of what is meant.
const FREE = /^tt\.(?:splat|broadcast|expand_dims|make_range|reshape|trans)$|^arith\.constant$/;

function loopsView(app) {
  const kernels = app.kernels.filter((kernel) => kernel.loops.length);
  if (!kernels.length) return null;
  return {
    name: "Loops",
    make() {
      this.holder = element("div", "view loops", element("p", "note", "One program, from top to bottom. A nest computes all that is in its box at every index; what is kept goes through the scratch memory of a thread."));
      for (const kernel of kernels) {
        if (kernels.length > 1) this.holder.append(element("h2", "", "AB"[kernel.number]));
        this.holder.append(...kernel.loops.map((loop) => loopBox(app, kernel, loop)));
      }
      return this.holder;
    },
    relight() {
      const key = app.links.shown?.key;
      for (const made of this.holder?.querySelectorAll("[data-key]") ?? []) made.classList.toggle("hit", +made.dataset.key === key);
    },
  };
}

function loopBox(app, kernel, loop) {
  const box = element("div", `loop ${loop.kind.includes(".") ? "scalar" : loop.kind}`);
  const title = element("div", "loop-title", [element("b", "", loop.kind), element("span", "", loopFacts(app, kernel, loop))]);
  linkTo(app, kernel, title, loop.place);
  box.append(title, ...loop.roots.map((root) => rootBox(app, kernel, root, loop.kind === "nest")), ...loop.items.map((item) => loopBox(app, kernel, item)));
  return box;
}

function loopFacts(app, kernel, loop) {
  const facts = loop.place === null ? [] : [app.sources.nameOf(kernel.keys[loop.place]).replace(/^.*:/, "line ")];
  if (loop.shape.length) facts.push(loop.shape.join("×"));
  if (loop.kind === "nest") {
    const vectors = `vectors of ${loop.lanes} along dimension ${loop.axis}${loop.unroll > 1 ? `, ${loop.unroll} at a time` : ""}`;
    facts.push(loop.axis === null ? "element by element" : vectors);
  }
  return facts.join(" · ");
}

function rootBox(app, kernel, root, isFusing) {
  const made = element("div", "root");
  const memory = root.offset < 0 ? "in registers" : `${root.bytes.toLocaleString("en")} bytes at ${root.offset.toLocaleString("en")}`;
  const head = element("div", "root-head", [element("b", "", root.kind === "keep" ? `keep ${root.kept}` : root.kind), element("span", "", root.kept ? ` ${root.kind === "keep" ? "" : `into ${root.kept} `}(${memory})` : "")]);
  linkTo(app, kernel, head, root.place);
  made.append(head);
  if (root.reads.length) made.append(element("div", "root-reads", `reads ${root.reads.join(", ")}`));
  const fused = isFusing ? distinct(root.fused.filter(([name]) => !FREE.test(name))) : [];
  if (fused.length) {
    made.append(element("div", "fused", fused.map(([name, place]) => {
      const op = element("span", "chip", name.replace(/^\w+\./, ""));
      linkTo(app, kernel, op, place);
      return op;
    })));
  }
  return made;
}

const distinct = (ops) => [...new Map(ops.map((op) => [op.join(" "), op])).values()];

function linkTo(app, kernel, made, place) {
  if (place === null) return;
  made.dataset.key = kernel.keys[place];
  made.classList.add("to-line");
  made.addEventListener("mouseenter", () => app.links.hover(selectionOf(kernel, [place])));
  made.addEventListener("mouseleave", () => app.links.hover(null));
  made.addEventListener("click", () => app.links.pin(selectionOf(kernel, [place]), "all"));
}
