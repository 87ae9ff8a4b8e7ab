// The page of a comparison: the operator at which two dumps part, what stands around it, and all that
// differs.
//
// `compareView` has what touches no element, for tests in node.
"use strict";

var compareView = (() => {
  // The indexes that a cell of a map holds, of `count` in `cells` cells: [first, last].
  function cellRange(cell, count, cells) {
    return [Math.ceil((cell * count) / cells), Math.ceil(((cell + 1) * count) / cells) - 1];
  }

  // "all 4 rows", "row 2 of 4", "rows 1 to 2 of 4". A range is [first, last].
  function rangeText([first, last], count, one) {
    if (first === 0 && last === count - 1) return count === 1 ? `the only ${one}` : `all ${count} ${one}s`;
    if (first === last) return `${one} ${first} of ${count}`;
    return `${one}s ${first} to ${last} of ${count}`;
  }

  // Where in the matrix of a tensor the differences lie.
  function placeText(difference) {
    const columns = rangeText(difference.in_columns, difference.columns, "column");
    if (difference.rows === 1) return columns;
    return `${rangeText(difference.in_rows, difference.rows, "row")}, ${columns}`;
  }

  // How much of a cell differs, from 0 to 1.
  function shareOf(difference, row, column) {
    const [top, bottom] = cellRange(row, difference.rows, difference.map_rows);
    const [left, right] = cellRange(column, difference.columns, difference.map_columns);
    const count = difference.map[row * difference.map_columns + column];
    return count / ((bottom - top + 1) * (right - left + 1));
  }

  // Numbers of representable values between two, as long as they say something.
  const MOST_ULP = 65536;
  const ulpText = (ulp) => (ulp > MOST_ULP ? `more than ${MOST_ULP}` : String(ulp));

  // As npumesh.percent has it, and never 0 of something.
  const shareText = (part, whole) => (part > 0 && part < 0.0005 * whole ? "<0.1%" : `${((100 * part) / Math.max(whole, 1)).toFixed(1)}%`);

  const number = (value) => (typeof value === "number" ? String(Number(value.toPrecision(6))) : String(value));

  // Indexes of ranks: the one to blame, then those that differ, then the rest.
  function rankOrder(ranks, blamed) {
    const place = (i) => (i === blamed ? 0 : ranks[i].first >= 0 ? 1 : 2);
    return ranks.map((_, i) => i).sort((a, b) => place(a) - place(b) || a - b);
  }

  // The tensor of an operator that says most: the output that differs most, else the input.
  function worstOf(row) {
    const weight = (tensor) => (tensor.reason ? Infinity : tensor.max_abs);
    const differing = row.tensors.filter((tensor) => tensor.reason || tensor.differing > 0);
    const outputs = differing.filter((tensor) => tensor.side === "output");
    const among = outputs.length > 0 ? outputs : differing;
    return among.reduce((best, tensor) => (best === null || weight(tensor) > weight(best) ? tensor : best), null);
  }

  // How an operator stands. What it was given may differ although no operator before it does.
  const STANDINGS = {
    origin: "differs although nothing it saw did",
    consequence: "differs after something before it",
    same: "the same",
    unseen: "not compared",
  };
  function standingText(row) {
    if (!row.inputs_differ) return STANDINGS[row.standing];
    if (row.standing === "consequence") return `${STANDINGS.consequence}, and so do its inputs`;
    return "differs, and so do its inputs, although no operator before it does: a weight or an input of the graph, " +
      "memory that was overwritten, or an operator that was not dumped";
  }

  const rankName = (rank) => `rank ${rank.rank}${rank.step === null ? "" : `, step ${rank.step}`}`;

  return { cellRange, rangeText, placeText, shareOf, ulpText, shareText, number, rankOrder, worstOf, STANDINGS, standingText, rankName };
})();
if (typeof module !== "undefined") module.exports = compareView;

if (typeof document !== "undefined") (() => {
  const { element, table, data } = npumesh;
  const { placeText, shareOf, ulpText, shareText, number, rankOrder, worstOf, rankName, cellRange, rangeText, STANDINGS, standingText } = compareView;
  const { svg, link, view, nodeLists } = npumeshDrawing;
  const byId = (id) => document.getElementById(id);
  const start = data.blamed >= 0 ? { rank: data.blamed, row: data.ranks[data.blamed].first } : null;
  let chosen = start;

  function showOrigin() {
    const parts = [data.command, data.version, data.written].filter((text) => text);
    byId("origin").textContent = parts.join(" · ");
  }

  function showVerdict() {
    const box = element("div", { class: data.verdict ? "verdict bad" : "verdict" });
    if (data.verdict) {
      const rank = data.ranks[data.blamed];
      const row = rank.rows[start.row];
      box.append(element("p", {}, element("b", {}, rankName(rank)), " differs first, at ",
        link(row.name, () => choose(start, true)), ":"));
      box.append(element("p", {}, data.verdict.text));
      if (data.verdict.cause) box.append(element("p", { class: "warning" }, data.verdict.cause));
      if (data.verdict.called_at) box.append(element("p", {}, "called at ", data.verdict.called_at));
    } else {
      box.append(element("p", {}, "No operator differs."));
    }
    byId("verdict").append(box);
  }

  function mapOf(difference) {
    const { map_rows: rows, map_columns: columns } = difference;
    const side = 9;
    const picture = svg("svg", { class: "map", role: "img", viewBox: `0 0 ${columns * side} ${rows * side}`,
      "aria-label": `where it differs: ${placeText(difference)}`, preserveAspectRatio: "none",
      style: `height:${Math.max(18, Math.min(288, rows * side))}px` });
    for (let r = 0; r < rows; ++r) {
      for (let c = 0; c < columns; ++c) {
        const count = difference.map[r * columns + c];
        if (count === 0) continue;
        const cell = svg("rect", { x: c * side, y: r * side, width: side, height: side,
          "fill-opacity": (0.25 + 0.75 * shareOf(difference, r, c)).toFixed(3) });
        cell.append(svg("title", {}, `${count} differ in ${rangeText(cellRange(r, difference.rows, rows), difference.rows, "row")}, ` +
          rangeText(cellRange(c, difference.columns, columns), difference.columns, "column")));
        picture.append(cell);
      }
    }
    return picture;
  }

  function tensorPart(tensor) {
    const name = `${tensor.side} ${tensor.index}, ${tensor.type}`;
    const part = element("div", { class: "tensor" });
    const facts = element("dl", { class: "facts" });
    const say = (term, text) => facts.append(element("dt", {}, term), element("dd", {}, text));
    say("tensor", name);
    if (tensor.golden !== tensor.type) say("golden", tensor.golden);
    if (tensor.pattern) say("pattern", tensor.pattern);
    if (tensor.reason) {
      say("differs", tensor.reason);
    } else {
      say("differs", `${tensor.differing} of ${tensor.elements} elements`);
      if (tensor.difference) say("where", placeText(tensor.difference));
      say("largest error", `${number(tensor.max_abs)} at ${tensor.max_abs_at}`);
      say("ULP", ulpText(tensor.max_ulp));
      if (tensor.cosine !== null) say("cosine", tensor.cosine);
      say("NaN", `${tensor.nan[0]}, expected ${tensor.nan[1]}`);
      say("infinite", `${tensor.inf[0]}, expected ${tensor.inf[1]}`);
    }
    part.append(element("div", {}, facts));
    if (tensor.difference) {
      part.append(element("div", {}, mapOf(tensor.difference),
        element("p", { class: "faint" }, tensor.difference.rows === 1 ? "its elements" : "down: all axes but the last; right: the last axis")));
      part.append(element("div", {}, table([
        { title: "element", value: (one) => one.at, isText: true },
        { title: "expected", value: (one) => one.golden },
        { title: "seen", value: (one) => one.mine }], tensor.difference.samples, "the first elements that differ")));
    }
    return part;
  }

  function showOperator() {
    byId("operator").hidden = chosen === null;
    if (chosen === null) return;
    const rank = data.ranks[chosen.rank];
    const row = rank.rows[chosen.row];
    byId("operator-name").textContent = `${row.name} (${row.type}) on ${rankName(rank)}`;
    const differing = row.tensors.filter((tensor) => tensor.reason || tensor.differing > 0);
    const worst = worstOf(row);
    const parts = [worst, ...differing.filter((tensor) => tensor !== worst)].filter(Boolean).map(tensorPart);
    byId("operator-body").replaceChildren(element("p", {}, element("i", { class: row.standing }), standingText(row)), parts[0] ?? "");
    if (parts.length > 1) {
      byId("operator-body").append(element("details", {}, element("summary", {}, `${parts.length - 1} more tensor${parts.length === 2 ? "" : "s"} of it differ${parts.length === 2 ? "s" : ""}`), ...parts.slice(1)));
    }
    byId("operator-body").append(...graphPart(row));
  }

  // What the graph says of the operator, where the page has it.
  function graphPart(row) {
    const node = data.graph !== null && chosen.rank === data.graph.rank ? data.graph.nodes[row.key] : undefined;
    return node ? [element("details", { open: "" }, element("summary", {}, "what the graph says of it"), ...nodeLists(node, (name, text) => text))] : [];
  }

  const drawing = view(byId("graph"),
    (box) => ({ classes: `${box.kind} ${box.standing}`, title: `${box.type} ${box.name}\n${STANDINGS[box.standing]}`, data: { row: box.row } }),
    (box, asks) => {
      if (box.row >= 0 && !asks) choose({ rank: data.graph.rank, row: box.row }, false);
      return box.row >= 0;
    });

  // The box of the chosen operator, if its rank's graph is the one that is drawn.
  function mark() {
    drawing.mark((box) => chosen !== null && data.graph !== null && chosen.rank === data.graph.rank && box.row === chosen.row);
  }

  function choose(next, scroll) {
    chosen = next;
    showOperator();
    mark();
    if (!scroll) return;
    byId("operator").scrollIntoView({ block: "start" });
    byId("operator-name").focus({ preventScroll: true });
  }

  function step(by) {
    if (chosen === null) return;
    const rows = data.ranks[chosen.rank].rows;
    choose({ rank: chosen.rank, row: Math.min(Math.max(chosen.row + by, 0), rows.length - 1) }, true);
  }

  function showRank(index) {
    const rank = data.ranks[index];
    const part = element("details", { id: `rank-${index}` });
    part.open = index === data.blamed;
    part.append(element("summary", {}, data.lines[index]));
    part.append(element("p", { class: "faint" }, `${rank.mine} against ${rank.golden}`));
    const rows = rank.rows.map((row, i) => ({ row, i, worst: worstOf(row) }));
    const worst = (title, value, text) => ({ title, value: (one) => (one.worst === null || one.worst.reason ? null : value(one.worst)),
      text: (one) => (one.worst === null || one.worst.reason ? "" : text ? text(one.worst) : number(value(one.worst))) });
    const columns = [
      { title: "operator", value: (one) => one.row.name, isText: true,
        node: (one) => link(one.row.name, () => choose({ rank: index, row: one.i }, true)) },
      { title: "type", value: (one) => one.row.type, isText: true },
      { title: "order", value: (one) => one.i + 1 },
      { title: "standing", value: (one) => one.row.standing, isText: true, node: (one) =>
        element("span", { title: STANDINGS[one.row.standing] }, element("i", { class: one.row.standing }), one.row.standing) },
      { title: "tensor", value: (one) => (one.worst ? `${one.worst.side} ${one.worst.index} ${one.worst.reason || one.worst.type}` : ""), isText: true },
      worst("differing", (tensor) => tensor.differing),
      worst("of elements", (tensor) => tensor.differing / Math.max(tensor.elements, 1), (tensor) => shareText(tensor.differing, tensor.elements)),
      worst("max abs", (tensor) => tensor.max_abs),
      worst("ULP", (tensor) => tensor.max_ulp, (tensor) => ulpText(tensor.max_ulp)),
      worst("cosine", (tensor) => Number(tensor.cosine), (tensor) => tensor.cosine ?? ""),
    ];
    if (rows.length > 0) part.append(table(columns, rows, `operators of ${rankName(rank)} that differ`, 20));
    folded(part, `${rank.same.length} operators are the same`, rank.same.length, () => table([
      { title: "operator", value: (one) => one[0], isText: true }, { title: "type", value: (one) => one[1], isText: true },
      { title: "tensors", value: (one) => one[2] }, { title: "max abs (allowed)", value: (one) => one[3], text: (one) => number(one[3]) }],
      rank.same, `operators of ${rankName(rank)} that are the same`));
    for (const [key, side] of [["only_mine", rank.mine], ["only_golden", rank.golden]]) {
      folded(part, `${rank[key].length} operators only in ${side}`, rank[key].length,
        () => table([{ title: "operator", value: (one) => one, isText: true }], rank[key], `operators only in ${side}`));
    }
    return part;
  }

  // Filled when it is opened, because most readers leave it closed.
  function folded(part, title, count, make) {
    if (count === 0) return;
    const details = element("details", {}, element("summary", { class: "faint" }, title));
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) details.append(make());
    });
    part.append(details);
  }

  function showGraph() {
    if (data.graph === null) return;
    const { near, whole } = data.graph;
    byId("graph-part").hidden = false;
    byId("legend").replaceChildren(...Object.entries(STANDINGS).map(([name, text]) => element("span", {}, element("i", { class: name }), text)),
      element("span", {}, "round: collective"), element("span", {}, "faint: nothing needs it"), element("span", {}, "dashed line: order only"));
    byId("graph-title").textContent = near ? `Around it, on ${rankName(data.ranks[data.graph.rank])}` : "Graph";
    byId("whole").textContent = `whole graph (${whole.boxes.length} operators)`;
    byId("near").hidden = near === null;
    byId("culprit").hidden = start === null;
    const draw = (one) => {
      drawing.draw(one);
      mark();
    };
    byId("near").addEventListener("click", () => draw(near));
    byId("whole").addEventListener("click", () => draw(whole));
    byId("smaller").addEventListener("click", () => drawing.zoom(0.8));
    byId("larger").addEventListener("click", () => drawing.zoom(1.25));
    byId("culprit").addEventListener("click", () => choose(start, false));
    if (near) draw(near);
  }

  function showRanks() {
    byId("ranks").replaceChildren(...rankOrder(data.ranks, data.blamed).map(showRank));
  }

  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input") || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { n: () => step(1), p: () => step(-1), c: () => start && choose(start, true),
      "+": () => byId("larger").click(), "-": () => byId("smaller").click() }[event.key];
    if (act) act();
  });

  showOrigin();
  showVerdict();
  showOperator();
  showGraph();
  showRanks();
  document.body.dataset.drawn = "true";
})();
