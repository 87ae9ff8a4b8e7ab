// The page of a graph: its picture, a search, and what it says of a node.
//
// `graphView` has what touches no element, for tests in node.
"use strict";

var graphView = (() => {
  const attributeText = (attribute) => `${attribute.name}=${attribute.value}`;

  // Nodes that have every word of `text` in their name, type or attributes; none for no word.
  function search(nodes, text) {
    const words = text.toLowerCase().split(/\s+/).filter((word) => word);
    if (words.length === 0) return [];
    return nodes.filter((node) => {
      const all = [node.name, node.type, ...node.attributes.filter((one) => one.source !== "note").map(attributeText)]
        .join("\n").toLowerCase();
      return words.every((word) => all.includes(word));
    });
  }

  return { search };
})();
if (typeof module !== "undefined") module.exports = graphView;

if (typeof document !== "undefined") (() => {
  const { element, table, data, bytes } = npumesh;
  const { link, view, list, nodeLists } = npumeshDrawing;
  const { search } = graphView;
  const byId = (id) => document.getElementById(id);
  const MOST_FOUND = 60;
  const KINDS = { input: "input", output: "output", operator: "operator", collective: "collective",
    folded: "layers that repeat, folded", unknown: "npumesh cannot run it" };
  const keyOf = (graph, name) => JSON.stringify([graph, name]);
  const nodes = new Map(data.nodes.map((node) => [keyOf(node.graph, node.name), node]));
  let place = 0;       // number of the drawing
  let whole = false;   // repeated layers are shown
  let chosen = null;   // a node

  const drawing = view(byId("graph"),
    (box) => ({ classes: box.kind, title: `${box.type} ${box.node}`, data: { node: box.node } }),
    (box, asks) => {
      if (!asks && box.kind === "folded") show(place, true);
      else if (!asks) choose(nodes.get(keyOf(data.drawings[place].graph, box.node)));
      return true;
    });

  const mark = () => drawing.mark((box) => chosen !== null && box.node === chosen.name && data.drawings[place].graph === chosen.graph);

  function show(number, asWhole) {
    place = number;
    const one = data.drawings[place];
    whole = asWhole && one.whole !== null;
    byId("which").value = String(place);
    byId("fold").hidden = one.whole === null;
    byId("fold").textContent = whole ? "fold layers that repeat" : "show all layers";
    drawing.draw(whole ? one.whole : one.folded);
    mark();
  }

  // Draws the graph that has the node, unfolded if it is folded away.
  function choose(node) {
    if (!node) return;
    chosen = node;
    const number = data.drawings.findIndex((one) => one.graph === node.graph);
    const has = (one) => one !== null && one.boxes.some((box) => box.node === node.name);
    if (number >= 0) {
      const { folded, whole: all } = data.drawings[number];
      const unfold = !has(folded) && has(all);
      if (number !== place || (unfold && !whole)) show(number, unfold || whole);
    }
    showNode();
    mark();
    if (matchMedia("(max-width: 900px)").matches) byId("node").scrollIntoView({ block: "start" });
  }

  function showNode() {
    const node = chosen;
    byId("node-name").textContent = `${node.name} (${node.type})`;
    const linkTo = (name, text) => {
      const other = nodes.get(keyOf(node.graph, name));
      return other ? link(text, () => choose(other)) : text;
    };
    const parts = [];
    if (!node.known) parts.push(element("p", { class: "warning" }, "npumesh cannot run this operator"));
    if (node.file !== null) parts.push(element("p", { class: node.found ? "" : "warning" }, `weight file ${node.file}${node.found ? "" : " is missing"}`));
    parts.push(...nodeLists(node, linkTo));
    parts.push(...list("Subgraphs", node.subgraphs.map((name) => ["runs", link(name, () => {
      const number = data.drawings.findIndex((one) => one.graph === name);
      if (number >= 0) show(number, false);
    })])));
    byId("node-body").replaceChildren(...parts);
  }

  function showFound() {
    const text = byId("search").value;
    const found = search(data.nodes, text);
    byId("found").hidden = text.trim() === "";
    byId("found").replaceChildren(element("p", { class: "faint", id: "found-count" }, `${found.length} of ${data.nodes.length} nodes`),
      ...found.slice(0, MOST_FOUND).map((node) => element("div", {}, link(node.name, () => choose(node)), ` ${node.type}`)),
      found.length > MOST_FOUND ? element("p", { class: "faint" }, `the first ${MOST_FOUND} are listed`) : "");
    return found;
  }

  function showSummary() {
    const facts = data.facts;
    byId("origin").textContent = [data.command, data.version, data.written].filter((text) => text).join(" \u00b7 ");
    byId("summary").textContent = `${data.nodes.length} nodes, ${facts.edges} edges, ${facts.parameters} parameters of ` +
      `${bytes(facts.parameter_bytes)}, ${facts.collectives.reduce((sum, one) => sum + one.count, 0)} collectives`;
    const ends = [...facts.inputs.map((one) => ({ ...one, side: "input" })), ...facts.outputs.map((one) => ({ ...one, side: "output" }))];
    byId("ends").replaceChildren(table([
      { title: "", value: (one) => one.side, isText: true }, { title: "number", value: (one) => one.index },
      { title: "name", value: (one) => one.name, isText: true },
      { title: "type", value: (one) => one.type, isText: true }], ends, "inputs and outputs", 20));
    byId("operators").replaceChildren(table([
      { title: "type", value: (one) => one.type, isText: true, node: (one) => link(one.type, () => {
        byId("search").value = one.type;
        showFound();
        byId("search").scrollIntoView({ block: "start" });
      }) },
      { title: "count", value: (one) => one.count }], facts.operators, "operators", 30));
    const present = new Set(data.drawings.flatMap((one) => one.folded.boxes.map((box) => box.kind)));
    byId("legend").replaceChildren(...Object.entries(KINDS).filter(([kind]) => present.has(kind))
      .map(([kind, text]) => element("span", {}, element("i", { class: kind }), text)));
  }

  byId("which").replaceChildren(...data.drawings.map((one, number) => element("option", { value: String(number) }, one.title)));
  byId("which").hidden = data.drawings.length === 1;
  byId("which").addEventListener("change", () => show(Number(byId("which").value), false));
  byId("fold").addEventListener("click", () => show(place, !whole));
  byId("smaller").addEventListener("click", () => drawing.zoom(0.8));
  byId("larger").addEventListener("click", () => drawing.zoom(1.25));
  byId("search").addEventListener("input", showFound);
  byId("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") choose(showFound()[0]);
    if (event.key === "Escape") event.target.blur();
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { "/": () => byId("search").focus(), "+": () => byId("larger").click(), "-": () => byId("smaller").click() }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  showSummary();
  show(0, false);
  document.body.dataset.drawn = "true";
})();
