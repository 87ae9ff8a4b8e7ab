// A drawing of a graph in a frame that scrolls: boxes and edges as npumesh laid them out.
//
// A drawing is {width, height, boxes, edges}. A box has x, y, w, h, type, sub, out (lines below it),
// kind (a class) and dead; an edge has from, to (numbers of boxes), d (a path), control and label.
"use strict";

var npumeshDrawing = (() => {
  // What of a drawing lies in a view; null: all of it.
  function visibleBoxes(drawing, view) {
    return drawing.boxes.filter((box) => view === null || (box.x < view.right && box.x + box.w > view.left &&
      box.y < view.bottom && box.y + box.h > view.top));
  }
  function visibleEdges(drawing, view) {
    const y = (box) => drawing.boxes[box].y;
    return drawing.edges.filter((edge) => view === null || (y(edge.from) < view.bottom && y(edge.to) > view.top));
  }

  function svg(name, attributes = {}, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // A text that acts like a link.
  function link(text, act) {
    const button = npumesh.element("button", { type: "button", class: "link" }, text);
    button.addEventListener("click", act);
    return button;
  }

  // Of a large drawing only what can be seen is drawn, and some more.
  const DRAW_ALL = 400, AROUND = 800;

  // Shows drawings in `frame`. `look(box)` gives {classes, title, data (attributes data-...)}; `choose(box)` is called at a click
  // or Enter, and returns false for boxes that cannot be chosen when it is called with `asks` true.
  function view(frame, look, choose) {
    let shown = null;
    let scale = 1;
    let chosen = () => false;
    const boxes = new WeakMap();  // by element
    frame.classList.add("drawing");

    function groupOf(box) {
      const { classes, title, data = {} } = look(box);
      const group = svg("g", { class: `${classes}${box.dead ? " dead" : ""}${chosen(box) ? " chosen" : ""}` });
      boxes.set(group, box);
      for (const [key, value] of Object.entries(data)) group.dataset[key] = value;
      const middle = box.x + box.w / 2;
      group.append(svg("title", {}, `${title}${box.dead ? "\nnothing needs it" : ""}`));
      group.append(svg("rect", { x: box.x, y: box.y, width: box.w, height: box.h, rx: 5 }));
      group.append(svg("text", { x: middle, y: box.y + (box.sub ? 16 : 23), class: "type" }, box.type));
      if (box.sub) group.append(svg("text", { x: middle, y: box.y + 31 }, box.sub));
      box.out.forEach((line, i) => group.append(svg("text", { x: middle, y: box.y + box.h + 14 + 12 * i, class: "out" }, line)));
      if (!choose(box, true)) return group;
      group.setAttribute("role", "button");
      group.setAttribute("tabindex", "0");
      group.addEventListener("click", () => choose(box, false));
      group.addEventListener("keydown", (event) => {
        if (event.key === "Enter") choose(box, false);
      });
      return group;
    }

    function fill() {
      if (shown === null) return;
      const view = shown.boxes.length <= DRAW_ALL ? null : {
        left: frame.scrollLeft / scale - AROUND, right: (frame.scrollLeft + frame.clientWidth) / scale + AROUND,
        top: frame.scrollTop / scale - AROUND, bottom: (frame.scrollTop + frame.clientHeight) / scale + AROUND };
      const edges = visibleEdges(shown, view).map((edge) =>
        svg("path", { d: edge.d, class: edge.control ? "control" : "data", "marker-end": "url(#arrow)" }, svg("title", {}, edge.label)));
      frame.querySelector("#content").replaceChildren(...edges, ...visibleBoxes(shown, view).map(groupOf));
    }

    function resize(factor) {
      scale = factor;
      frame.firstElementChild.setAttribute("width", shown.width * scale);
      frame.firstElementChild.setAttribute("height", shown.height * scale);
    }

    // The chosen box, in the middle of the frame.
    function centre() {
      const box = shown === null ? undefined : shown.boxes.find((one) => chosen(one));
      if (!box) return;
      const left = Math.max(0, (frame.clientWidth - shown.width * scale) / 2);
      frame.scrollTo(left + (box.x + box.w / 2) * scale - frame.clientWidth / 2, (box.y + box.h / 2) * scale - frame.clientHeight / 2);
    }

    function draw(drawing) {
      shown = drawing;
      const picture = svg("svg", { viewBox: `0 0 ${drawing.width} ${drawing.height}` });
      picture.append(svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
        svg("path", { d: "M0 0L8 4L0 8z", class: "arrow" }))));
      picture.append(svg("g", { id: "content" }));
      frame.replaceChildren(picture);
      frame.dataset.drawn = drawing.boxes.length;
      resize(1);
      // It begins at its first box, which the main chain stands below.
      const [first] = drawing.boxes;
      if (first) frame.scrollTo(first.x + first.w / 2 - frame.clientWidth / 2, 0);
      centre();
      fill();
    }

    // `is(box)`: whether it is the chosen one.
    function mark(is) {
      chosen = is;
      centre();
      for (const group of frame.querySelectorAll("g")) {
        if (boxes.has(group)) group.classList.toggle("chosen", chosen(boxes.get(group)));
      }
    }

    function zoom(factor) {
      if (shown === null) return;
      resize(Math.min(Math.max(scale * factor, 0.1), 4));
      centre();
      fill();
    }

    let waiting = false;
    frame.addEventListener("scroll", () => {
      if (waiting || shown === null || shown.boxes.length <= DRAW_ALL) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        fill();
      });
    });
    // On paper stands all of it.
    if (typeof window !== "undefined") window.addEventListener("beforeprint", () => {
      if (shown === null) return;
      frame.querySelector("#content").replaceChildren(
        ...shown.edges.map((edge) => svg("path", { d: edge.d, class: edge.control ? "control" : "data", "marker-end": "url(#arrow)" })),
        ...shown.boxes.map(groupOf));
    });
    return { draw, mark, zoom, drawn: () => shown };
  }

  // "node" of "node:0" and of "node.port".
  const producerOf = (from) => from.slice(0, from.lastIndexOf(":"));
  const readerOf = (reader) => reader.slice(0, reader.lastIndexOf("."));

  // A headed list of terms and what stands for them; nothing for an empty one.
  function list(title, entries) {
    if (entries.length === 0) return [];
    const facts = npumesh.element("dl", { class: "facts" });
    for (const [term, content, kind] of entries) {
      facts.append(npumesh.element("dt", kind ? { class: kind } : {}, term), npumesh.element("dd", kind ? { class: kind } : {}, ...[content].flat()));
    }
    return [npumesh.element("div", {}, title ? npumesh.element("h3", {}, title) : "", facts)];
  }

  const MOST_READERS = 12;
  function readersOf(output, linkTo) {
    if (output.readers.length === 0) return ["read by no node"];
    const shown = output.readers.slice(0, MOST_READERS).flatMap((reader) => [linkTo(readerOf(reader), reader), " "]);
    const rest = output.readers.length - MOST_READERS;
    return rest > 0 ? [...shown, `and ${rest} more`] : shown;
  }

  // What a graph says of a node (node_detail.h), as elements. `linkTo(name, text)` gives an element or
  // a text for the name of another node.
  function nodeLists(node, linkTo) {
    const attributes = (source) => node.attributes.filter((one) => one.source === source);
    const notes = attributes("note");
    return [
      ...list("Attributes", [...attributes("node").map((one) => [one.name, one.value]),
        ...attributes("default").map((one) => [one.name, `${one.value} (default)`, "default"])]),
      ...list("Inputs", node.inputs.map((input) => [input.port, input.from === null ? "not connected"
        : [linkTo(producerOf(input.from), input.from), ` ${input.type ?? ""}`]])),
      ...list("Outputs", node.outputs.map((output) => [output.port, [`${output.type ?? "type not known"} `, ...readersOf(output, linkTo)]])),
      ...list("Order", node.after.map((name) => ["runs after", linkTo(name, name)])),
      ...(notes.length === 0 ? [] : [npumesh.element("details", {},
        npumesh.element("summary", { class: "faint" }, `${notes.length} note${notes.length === 1 ? "" : "s"} that change${notes.length === 1 ? "s" : ""} nothing`),
        ...list("", notes.map((one) => [one.name, one.value, "note"])))]),
    ];
  }

  return { visibleBoxes, visibleEdges, svg, link, view, list, nodeLists };
})();
if (typeof module !== "undefined") module.exports = npumeshDrawing;
