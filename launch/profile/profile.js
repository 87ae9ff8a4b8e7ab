// The page of a profile: its timeline, drawn on a canvas, and its tables.
//
// A lane's spans stand in rows so that no row has two at a time; within a row both begins and ends
// ascend, so the first visible span is found by bisection, and spans that share a pixel are jumped
// over: a frame costs what is visible, not what was recorded.
//
// `profileView` has what touches no element, for tests in node.
"use strict";

var profileView = (() => {
  const KIND = { STEP: 1, TASK: 2, COLLECTIVE: 3, MESSAGE: 4, COPY: 5, API: 6, COMPILE: 7 };
  const KIND_NAMES = ["", "step", "operator", "collective", "message", "copy", "call of the C interface", "plan"];

  // Sums of differences: the times that a lane's list means.
  function undiff(list) {
    const times = new Float64Array(list.length);
    let at = 0;
    for (let i = 0; i < list.length; ++i) times[i] = at += list[i];
    return times;
  }

  // Nothing nests deeper; damaged files may say so. Further spans share the last row.
  const MOST_ROWS = 32;

  // The row of each span: the first whose last span has ended. `begins` ascends.
  function rowsOf(begins, lengths) {
    const ends = [];
    const rows = new Uint16Array(begins.length);
    for (let i = 0; i < begins.length; ++i) {
      let row = 0;
      while (row < ends.length && ends[row] > begins[i]) ++row;
      row = Math.min(row, MOST_ROWS - 1);
      ends[row] = begins[i] + lengths[i];
      rows[i] = row;
    }
    return { rows, count: ends.length };
  }

  // The waiting part of a call; what else it does is of its kind.
  const WAIT = 8;

  // By slot, which is a kind or WAIT: how long the first n spans of a row are, for n = 0, 1, ...
  function sumsOf(data, row) {
    const sums = {};
    const add = (slot, n, length) => {
      if (length <= 0) return;
      sums[slot] = sums[slot] || new Float64Array(row.length + 1);
      sums[slot][n + 1] += length;
    };
    row.forEach((i, n) => {
      const waiting = Math.max(data.arrived[i], 0);
      add(WAIT, n, waiting);
      add(data.kind[i], n, data.length[i] - waiting);
    });
    for (const list of Object.values(sums)) {
      for (let n = 1; n < list.length; ++n) list[n] += list[n - 1];
    }
    return sums;
  }

  // A lane of the data, with its spans by row.
  function laneOf(data) {
    const begin = undiff(data.begin);
    const { rows, count } = rowsOf(begin, data.length);
    const sizes = new Uint32Array(count);
    for (const row of rows) ++sizes[row];
    const byRow = Array.from(sizes, (size) => new Uint32Array(size));
    sizes.fill(0);
    for (let i = 0; i < rows.length; ++i) byRow[rows[i]][sizes[rows[i]]++] = i;
    const sums = byRow.map((row) => sumsOf(data, row));
    return { data, begin, rows, byRow, sums };
  }

  const endOf = (lane, i) => lane.begin[i] + lane.data.length[i];

  // The first position at or after `from` of a row whose span ends after `time`.
  function firstEndingAfter(lane, row, time, from = 0) {
    let low = from, high = row.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (endOf(lane, row[middle]) > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  // Calls draw(x, width, i, merged, first, end) for what is visible of a row between two times, on
  // `width` pixels. Spans below a pixel that begin in one pixel are drawn as one, with `merged` true:
  // positions `first` to `end` of the row, without `end`.
  function visit(lane, row, from, to, width, draw) {
    const scale = width / (to - from);
    let at = firstEndingAfter(lane, row, from);
    while (at < row.length) {
      const i = row[at];
      const begin = lane.begin[i];
      if (begin >= to) return;
      const x = (begin - from) * scale;
      const wide = lane.data.length[i] * scale;
      if (wide >= 1) {
        draw(x, wide, i, false, at, at + 1);
        ++at;
        continue;
      }
      const next = firstEndingAfter(lane, row, from + (Math.floor(x) + 1) / scale, at + 1);
      draw(Math.floor(x), 1, i, next - at > 1, at, next);
      at = next;
    }
  }

  // For each pixel what part of its time the spans below a pixel take, by slot: arrays of numbers
  // from 0 to 1. Row 0 has the spans, too, that the data have only as sums over times (`rest`).
  // Spans of a pixel and more are drawn by wide(x, width, i).
  function sharesOf(lane, r, from, to, width, length, wide) {
    const shares = {};
    const pixels = Math.ceil(width);
    const scale = width / (to - from);
    const add = (slot, x, share) => {
      if (x < 0 || x >= pixels || share === 0) return;
      shares[slot] = shares[slot] || new Float64Array(pixels);
      shares[slot][x] += share;
    };
    visit(lane, lane.byRow[r], from, to, width, (x, size, i, merged, first, end) => {
      if (size > 1 || (!merged && lane.data.length[i] * scale >= 1)) {
        wide(x, size, i);
        return;
      }
      for (const [slot, sums] of Object.entries(lane.sums[r])) add(slot, x, (sums[end] - sums[first]) * scale);
      // The last one may end in the next pixel.
      const last = lane.byRow[r][end - 1];
      const beyond = Math.max(0, endOf(lane, last) - (from + (x + 1) / scale));
      const moving = lane.data.length[last] - Math.max(lane.data.arrived[last], 0);
      const move = (slot, time) => {
        add(slot, x + 1, time * scale);
        add(slot, x, -time * scale);
      };
      move(lane.data.kind[last], Math.min(beyond, moving));
      move(WAIT, Math.max(0, beyond - moving));
    });
    if (r === 0 && lane.data.rest) addRest(lane.data.rest, from, to, width, length, add);
    // Of spans in one row and sums of others together there may be too much.
    for (let x = 0; x < pixels; ++x) {
      const sum = Object.values(shares).reduce((all, list) => all + list[x], 0);
      if (sum > 1) for (const list of Object.values(shares)) list[x] /= sum;
    }
    return shares;
  }

  // The parts of a rank's wall time, as fractions that add up to at most 1.
  const PARTS = ["computing", "overlapped", "moving", "waiting", "preparing", "idle"];
  function partsOf(row) {
    const sum = PARTS.reduce((all, name) => all + row[`${name}_ns`], 0);
    const whole = Math.max(row.wall_ns, sum, 1);
    return PARTS.map((name) => ({ name, share: row[`${name}_ns`] / whole }));
  }

  // A roofline on double logarithmic axes: where the roof's corners and the operators are, in a box
  // of width x height; null: no operator has operations and bytes that are known.
  function rooflineOf(rows, limits, width, height) {
    const known = limits ? rows.filter((row) => row.gflops > 0 && row.intensity > 0) : [];
    if (known.length === 0) return null;
    const ridge = limits.gflops / limits.gbytes;
    const span = (values) => [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)))];
    const [left, right] = span([...known.map((row) => row.intensity), ridge / 10, ridge * 10]);
    const [bottom, top] = span([...known.map((row) => row.gflops), limits.gbytes * 10 ** left, limits.gflops * 1.01]);
    const x = (intensity) => ((Math.log10(intensity) - left) / (right - left)) * width;
    const y = (gflops) => height - ((Math.log10(gflops) - bottom) / Math.max(top - bottom, 1)) * height;
    const roof = [10 ** left, ridge, 10 ** right].map((at) => ({ x: x(at), y: y(Math.min(limits.gflops, limits.gbytes * at)) }));
    const decades = (from, to, place) => {
      const all = [];
      for (let power = from; power <= to; ++power) all.push({ value: 10 ** power, at: place(10 ** power) });
      return all;
    };
    return { roof, across: decades(left, right, x), up: decades(bottom, top, y),
      points: known.map((row) => ({ row, x: x(row.intensity), y: y(row.gflops), radius: 3 + 12 * Math.sqrt(row.share) })) };
  }

  // Adds the sums that `rest` has for equal parts of the whole time to the pixels of a window.
  function addRest(rest, from, to, width, length, add) {
    const part = length / rest.parts;
    const pixel = (to - from) / width;
    const last = Math.min(rest.parts - 1, Math.floor(to / part));
    for (let p = Math.max(0, Math.floor(from / part)); p <= last; ++p) {
      const left = Math.max(p * part, from), right = Math.min((p + 1) * part, to);
      for (let x = Math.floor((left - from) / pixel); x * pixel + from < right; ++x) {
        const here = Math.min(right, from + (x + 1) * pixel) - Math.max(left, from + x * pixel);
        for (const [slot, sums] of Object.entries(rest.sums)) {
          add(slot, x, here > 0 ? ((sums[p] / part) * here) / pixel : 0);
        }
      }
    }
  }

  // The span of a row at a time, or -1; one within `slack` counts when no other is nearer.
  function spanAt(lane, row, time, slack) {
    let best = -1, distance = slack;
    const at = firstEndingAfter(lane, row, time - slack);
    for (let k = at; k < row.length && lane.begin[row[k]] <= time + slack; ++k) {
      const i = row[k];
      const off = Math.max(lane.begin[i] - time, time - endOf(lane, i), 0);
      if (off === 0) return i;
      if (off <= distance) {
        best = i;
        distance = off;
      }
    }
    return best;
  }

  // Which indices of names or types contain what is searched, in any case of letters.
  function matching(texts, wanted) {
    const small = wanted.toLowerCase();
    return new Set(texts.flatMap((text, i) => (text.toLowerCase().includes(small) ? [i] : [])));
  }

  // A new window of time around `centre`, which keeps its place; never beyond the whole, never below
  // 20 ns or what the digits of a number can tell apart.
  function zoomed(view, centre, factor, length) {
    const span = Math.min(Math.max((view.to - view.from) * factor, 20, length * 1e-12), length);
    const part = (centre - view.from) / (view.to - view.from);
    return within({ from: centre - part * span, to: centre + (1 - part) * span }, length);
  }
  function within(view, length) {
    const span = Math.min(view.to - view.from, length);
    const from = Math.min(Math.max(view.from, 0), length - span);
    return { from, to: from + span };
  }

  // Distances between ticks are 1, 2 or 5 times a power of ten; at least `pixels` apart.
  function tickStep(span, width, pixels) {
    const least = (span * pixels) / width;
    const power = 10 ** Math.floor(Math.log10(least));
    return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= least);
  }

  // A moment with all digits that tell it from one `step` nanoseconds later: "178.25 ms".
  function momentText(ns, step) {
    const units = [[1, "ns"], [1e3, "us"], [1e6, "ms"], [1e9, "s"]];
    const [size, unit] = units.findLast(([least]) => Math.abs(ns) >= least) || units[0];
    const digits = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
    return `${(ns / size).toFixed(digits)} ${unit}`;
  }

  // What there is to say of a span: [what, value] pairs.
  function describe(data, rank, lane, i, format) {
    const of = lane.data;
    const lines = [["what", KIND_NAMES[of.kind[i]]], ["name", data.names[of.span_name[i]]]];
    if (of.type[i] >= 0 && data.types[of.type[i]]) lines.push(["type", data.types[of.type[i]]]);
    lines.push(["rank", `${rank.rank} (${rank.host}), ${of.name}`]);
    lines.push(["begin", momentText(lane.begin[i], 1)]);
    lines.push(["length", format.duration(of.length[i])]);
    if (of.arrived[i] >= 0) {
      const moving = of.length[i] - of.arrived[i];
      lines.push(["waiting", format.duration(of.arrived[i])], ["moving", format.duration(moving)]);
      if (of.bytes[i] > 0 && moving > 0) lines.push(["moved", `${(of.bytes[i] / moving).toPrecision(3)} GB/s`]);
    }
    if (of.bytes[i] > 0) lines.push(["bytes", format.bytes(of.bytes[i])]);
    if (of.group[i] >= 0) lines.push(["group", `${data.groups[of.group[i]]}, call ${of.number[i]}`]);
    if (of.kind[i] !== KIND.STEP) lines.push(["step", String(of.step[i])]);
    return lines;
  }

  return { KIND, WAIT, PARTS, partsOf, rooflineOf, sharesOf, undiff, rowsOf, laneOf, firstEndingAfter, visit, spanAt, matching, zoomed, within, tickStep, momentText, describe };
})();
if (typeof module !== "undefined") module.exports = profileView;

if (typeof document !== "undefined") (() => {
  const view = profileView;
  const { data, duration, element } = npumesh;
  const byId = (id) => document.getElementById(id);
  const canvas = byId("canvas");
  const pen = canvas.getContext("2d");

  const ROW = 18, GAP = 6, RULER = 24, TITLE = 22, MEMORY = 34;
  const TITLE_FONT = "600 13px system-ui, sans-serif";
  const FONT = "12px system-ui, sans-serif";
  // Told apart also without colour: waiting is hatched. Spans below a pixel fill as much of their row
  // as of their time.
  const COLOURS = {
    light: { 1: "#c3c9d1", 2: "#7fb3e6", 3: "#5fb98a", 4: "#8fcf6a", 5: "#d9b36c", 6: "#c4a7e0", 7: "#e39a8b", wait: "#f0c7c0", hatch: "#c0564a", memory: "#b9c7d6", text: "#101418" },
    dark: { 1: "#555f69", 2: "#3d7fbf", 3: "#2f8a5d", 4: "#548f33", 5: "#9c7630", 6: "#7d5da3", 7: "#a65444", wait: "#5a3430", hatch: "#e08a7d", memory: "#3d4b59", text: "#f2f4f6" },
  };

  // What is drawn, from top to bottom: {rank, lane or memory, y, height}.
  const ranks = data.ranks.map((rank) => ({ ...rank, lanes: rank.lanes.map(view.laneOf),
    memory: { at: view.undiff(rank.memory.at), bytes: rank.memory.bytes,
      most: rank.memory.bytes.reduce((a, b) => Math.max(a, b), 1) } }));
  const bands = [];
  let height = RULER;
  for (const rank of ranks) {
    bands.push({ rank, title: `rank ${rank.rank} (${rank.host})`, y: height, height: TITLE });
    height += TITLE;
    for (const lane of rank.lanes) {
      const size = 14 + lane.byRow.length * ROW + GAP;
      bands.push({ rank, lane, y: height, height: size });
      height += size;
    }
    if (rank.memory.at.length > 0) {
      bands.push({ rank, memory: rank.memory, y: height, height: MEMORY + GAP });
      height += MEMORY + GAP;
    }
  }

  const length = Math.max(data.length, 1);
  let now = { from: 0, to: length };
  let selected = null;  // {rank, lane, i}
  let found = { names: null, types: null, wanted: "" };
  let width = 1, tall = 1, scale = 1;  // of the canvas in pixels of the page; and its pixels for each
  let top = 0;  // what the frame has scrolled
  let colours = COLOURS.light;
  let hatch = null;
  let waiting = false;

  function isFound(lane, i) {
    return found.names !== null && (found.names.has(lane.data.span_name[i]) || found.types.has(lane.data.type[i]));
  }
  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  }
  function makeHatch() {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const ink = tile.getContext("2d");
    ink.fillStyle = colours.wait;
    ink.fillRect(0, 0, 6, 6);
    ink.strokeStyle = colours.hatch;
    ink.beginPath();
    ink.moveTo(-1, 7);
    ink.lineTo(7, -1);
    ink.stroke();
    return pen.createPattern(tile, "repeat");
  }
  function resize() {
    const ratio = devicePixelRatio || 1;
    // The canvas is what the frame shows, and stays there while the frame scrolls over all ranks.
    tall = Math.min(height, Math.max(Math.round(innerHeight * 0.75), 240));
    canvas.style.height = `${tall}px`;
    byId("spacer").style.height = `${height - tall}px`;
    width = canvas.clientWidth;
    scale = ratio;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(tall * scale);
    redraw();
  }

  const toX = (time) => ((time - now.from) / (now.to - now.from)) * width;
  const toTime = (x) => now.from + (x / width) * (now.to - now.from);

  // As much of a text as fits.
  function label(text, x, y, room) {
    if (room < 24) return;
    const most = Math.floor((room - 6) / 7);
    if (most < 2) return;
    pen.fillText(text.length <= most ? text : `${text.slice(0, most - 1)}\u2026`, x + 3, y);
  }
  // From the bottom: what a rank does for itself, then moving, then waiting.
  function drawShares(shares, y) {
    const slots = Object.keys(shares).map(Number).sort((a, b) => a - b);
    const tall = ROW - 2;
    const count = slots.length === 0 ? 0 : shares[slots[0]].length;
    for (let x = 0; x < count; ++x) {
      let bottom = y + tall;
      for (const slot of slots) {
        const size = shares[slot][x] * tall;
        if (size <= 0) continue;
        bottom -= size;
        pen.fillStyle = slot === view.WAIT ? hatch : colours[slot];
        pen.fillRect(x, bottom, 1, size);
      }
    }
  }
  function drawSpan(lane, x, wide, i, y) {
    const left = Math.max(x, -1), right = Math.min(x + wide, width + 1);
    const of = lane.data;
    const size = Math.max(right - left, 1);
    pen.fillStyle = colours[of.kind[i]];
    pen.globalAlpha = found.names !== null && !isFound(lane, i) ? 0.25 : 1;
    pen.fillRect(left, y, size, ROW - 2);
    if (of.arrived[i] > 0 && wide >= 2) {
      const end = Math.min(x + (wide * of.arrived[i]) / of.length[i], width + 1);
      pen.fillStyle = hatch;
      if (end > left) pen.fillRect(left, y, end - left, ROW - 2);
    }
    pen.globalAlpha = 1;
    pen.fillStyle = colours.text;
    if (size > 24) label(data.names[of.span_name[i]], left, y + 12, size);
  }
  function drawFrame(lane, x, wide, i, y, colour) {
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    pen.strokeRect(Math.max(x, 1), y, Math.max(Math.min(wide, width - 2), 3), ROW - 2);
  }
  function drawLane(band) {
    const { lane } = band;
    pen.fillStyle = npumesh.colour("--faint");
    pen.fillText(lane.data.name, 4, band.y + 10);
    const accent = npumesh.colour("--accent");
    lane.byRow.forEach((_, r) => {
      const y = band.y + 14 + r * ROW;
      const shares = view.sharesOf(lane, r, now.from, now.to, width, length, (x, wide, i) => {
        drawSpan(lane, x, wide, i, y);
        if (isFound(lane, i) && wide >= 3) drawFrame(lane, x, wide, i, y, accent);
      });
      drawShares(shares, y);
    });
    if (selected !== null && selected.lane === lane) {
      const i = selected.i;
      const y = band.y + 14 + lane.rows[i] * ROW;
      drawFrame(lane, toX(lane.begin[i]), toX(lane.begin[i] + lane.data.length[i]) - toX(lane.begin[i]), i, y, npumesh.colour("--text"));
    }
  }
  function drawMemory(band) {
    const { at, bytes, most } = band.memory;
    pen.fillStyle = colours.memory;
    // The highest of each pixel.
    let x = -1, high = 0;
    const bar = (from, to, value) => {
      const tall = (value / most) * (MEMORY - 14);
      pen.fillRect(from, band.y + MEMORY - tall, Math.max(to - from, 1), tall);
    };
    for (let i = 0; i < at.length; ++i) {
      const begin = toX(at[i]), end = i + 1 < at.length ? toX(at[i + 1]) : toX(length);
      if (end < 0 || begin > width) continue;
      if (end - begin >= 1) {
        bar(Math.max(begin, 0), Math.min(end, width), bytes[i]);
      } else if (Math.floor(begin) !== x) {
        if (x >= 0) bar(x, x + 1, high);
        x = Math.floor(begin);
        high = bytes[i];
      } else {
        high = Math.max(high, bytes[i]);
      }
    }
    if (x >= 0) bar(x, x + 1, high);
    pen.fillStyle = npumesh.colour("--faint");
    pen.fillText(`HBM in use, at most ${npumesh.bytes(most)}`, 4, band.y + 10);
  }
  const tickStep = () => view.tickStep(now.to - now.from, width, 110);
  const ticks = () => {
    const step = tickStep();
    const all = [];
    for (let tick = Math.ceil(now.from / step) * step; tick <= now.to; tick += step) all.push(tick);
    return all;
  };
  function drawLines() {
    pen.strokeStyle = npumesh.colour("--line");
    pen.lineWidth = 1;
    for (const tick of ticks()) {
      const x = Math.round(toX(tick)) + 0.5;
      pen.beginPath();
      pen.moveTo(x, top);
      pen.lineTo(x, top + tall);
      pen.stroke();
    }
  }
  // Above the ranks, whichever of them the frame shows.
  function drawRuler() {
    pen.fillStyle = npumesh.colour("--back");
    pen.fillRect(0, top, width, RULER - 4);
    pen.fillStyle = npumesh.colour("--faint");
    const step = tickStep();
    for (const tick of ticks()) {
      const x = toX(tick);
      if (x < width - 60) pen.fillText(view.momentText(tick, step), x + 3, top + 14);
    }
  }
  function draw() {
    top = byId("timeline").scrollTop;
    pen.setTransform(scale, 0, 0, scale, 0, -top * scale);
    pen.font = FONT;
    pen.clearRect(0, top, width, tall);
    drawLines();
    for (const band of bands) {
      if (band.y + band.height < top || band.y > top + tall) continue;
      if (band.lane) {
        drawLane(band);
      } else if (band.memory) {
        drawMemory(band);
      } else {
        pen.font = TITLE_FONT;
        pen.fillStyle = npumesh.colour("--text");
        pen.fillText(band.title, 4, band.y + 16);
        pen.font = FONT;
      }
    }
    drawRuler();
    canvas.dataset.drawn = String(Math.round(performance.now()));
  }

  function show(next) {
    now = next;
    hideTooltip();
    redraw();
  }
  const zoom = (factor, centre = (now.from + now.to) / 2) => show(view.zoomed(now, centre, factor, length));
  const pan = (part) => {
    const shift = part * (now.to - now.from);
    show(view.within({ from: now.from + shift, to: now.to + shift }, length));
  };
  const fit = () => show({ from: 0, to: length });

  // The span under a point of the canvas, or null.
  function at(x, y) {
    const band = bands.find((one) => one.lane && y >= one.y + 14 && y < one.y + one.height - GAP);
    if (!band) return null;
    const row = band.lane.byRow[Math.floor((y - band.y - 14) / ROW)];
    if (!row) return null;
    const i = view.spanAt(band.lane, row, toTime(x), (2 * (now.to - now.from)) / width);
    return i < 0 ? null : { rank: band.rank, lane: band.lane, i };
  }
  const linesOf = (span) => view.describe(data, span.rank, span.lane, span.i, npumesh);

  const tooltip = byId("tooltip");
  function hideTooltip() {
    tooltip.hidden = true;
  }
  function showTooltip(span, x, y) {
    tooltip.textContent = linesOf(span).map(([what, value]) => `${what}: ${value}`).join("\n");
    tooltip.hidden = false;
    const frame = byId("timeline");
    const left = Math.max(0, Math.min(x + 12, width - tooltip.offsetWidth - 4));
    const top = Math.min(y + 16, frame.scrollTop + frame.clientHeight - tooltip.offsetHeight - 4);
    tooltip.style.left = `${left}px`;
    tooltip.style.top = `${Math.max(top, 0)}px`;
  }
  function select(span) {
    selected = span;
    const details = byId("details");
    details.hidden = span === null;
    if (span !== null) {
      const list = element("dl");
      for (const [what, value] of linesOf(span)) list.append(element("dt", {}, what), element("dd", {}, value));
      details.replaceChildren(list);
    }
    redraw();
  }
  // Brings a span into view: in time, and the timeline's frame to its lane.
  function goTo(span) {
    const begin = span.lane.begin[span.i], long = Math.max(span.lane.data.length[span.i], 20);
    if (begin < now.from || begin + long > now.to || toX(begin + long) - toX(begin) < 3) {
      show(view.within({ from: begin - 4 * long, to: begin + 5 * long }, length));
    }
    const band = bands.find((one) => one.lane === span.lane);
    const frame = byId("timeline");
    if (band.y < frame.scrollTop || band.y + band.height > frame.scrollTop + frame.clientHeight) frame.scrollTop = band.y - 40;
    select(span);
  }
  function neighbour(direction) {
    if (selected === null) {
      const rank = ranks.find((one) => one.lanes.length > 0);
      if (rank) goTo({ rank, lane: rank.lanes[0], i: 0 });
      return;
    }
    const i = selected.i + direction;
    if (i >= 0 && i < selected.lane.begin.length) goTo({ ...selected, i });
  }

  let matches = 0;
  function search() {
    const wanted = byId("search").value.trim();
    found = { wanted, names: wanted ? view.matching(data.names, wanted) : null, types: wanted ? view.matching(data.types, wanted) : null };
    matches = 0;
    for (const rank of ranks) for (const lane of rank.lanes) for (let i = 0; i < lane.begin.length; ++i) matches += isFound(lane, i) ? 1 : 0;
    byId("found").textContent = wanted ? `${matches} found` : "";
    redraw();
  }
  // The match after the selected span, in the order of ranks, lanes and time; round and round.
  function next() {
    if (matches === 0) return;
    const places = ranks.flatMap((rank) => rank.lanes.map((lane) => ({ rank, lane })));
    let p = selected === null ? 0 : places.findIndex((one) => one.lane === selected.lane);
    let i = selected === null ? 0 : selected.i + 1;
    for (;;) {
      const { rank, lane } = places[p];
      for (; i < lane.begin.length; ++i) if (isFound(lane, i)) return goTo({ rank, lane, i });
      p = (p + 1) % places.length;
      i = 0;
    }
  }

  function placeOf(event) {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top + byId("timeline").scrollTop };
  }
  // Pointers that are down, by id: one pans, two zoom.
  const pointers = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, placeOf(event));
    moved = pointers.size > 1 ? Infinity : 0;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const place = placeOf(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      const span = at(place.x, place.y);
      if (span) showTooltip(span, place.x, place.y);
      else hideTooltip();
      return;
    }
    if (pointers.size === 1) {
      moved += Math.abs(place.x - before.x);
      if (moved > 3) pan((before.x - place.x) / width);
    } else {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const apart = Math.max(Math.abs(place.x - other.x), 8);
      zoom(Math.max(Math.abs(before.x - other.x), 8) / apart, toTime((place.x + other.x) / 2));
    }
    pointers.set(event.pointerId, place);
  });
  const up = (event) => {
    const place = placeOf(event);
    if (pointers.delete(event.pointerId) && event.type === "pointerup" && moved <= 3) {
      const span = at(place.x, place.y);
      select(span);
      if (span) showTooltip(span, place.x, place.y);
      else hideTooltip();
    }
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => {
    if (pointers.size === 0) hideTooltip();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / width);
    else zoom(event.deltaY > 0 ? 1.25 : 0.8, toTime(placeOf(event).x));
  }, { passive: false });

  byId("zoom-in").addEventListener("click", () => zoom(0.5));
  byId("zoom-out").addEventListener("click", () => zoom(2));
  byId("pan-left").addEventListener("click", () => pan(-0.5));
  byId("pan-right").addEventListener("click", () => pan(0.5));
  byId("fit").addEventListener("click", fit);
  byId("next").addEventListener("click", next);
  byId("search").addEventListener("input", search);
  byId("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") next();
  });
  const keys = {
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": fit,
    ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2),
    "[": () => neighbour(-1), "]": () => neighbour(1), n: next,
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      byId("search").value = "";
      search();
      select(null);
      hideTooltip();
    } else if (event.target.tagName === "INPUT") {
      return;
    } else if (event.key === "/") {
      event.preventDefault();
      byId("search").focus();
    } else if (keys[event.key] && (event.target === canvas || event.target === document.body)) {
      event.preventDefault();
      keys[event.key]();
    }
  });

  function showNotes() {
    for (const note of data.notes) {
      const text = note.charAt(0).toUpperCase() + note.slice(1);
      byId("notes").append(element("p", note.startsWith("Warning") ? { class: "warning" } : {}, text));
    }
  }
  function showLegend() {
    const entries = [["operator", colours[2]], ["moving", colours[3]], ["waiting", null], ["message", colours[4]],
      ["copy", colours[5]], ["C interface", colours[6]], ["plan", colours[7]]];
    byId("legend").replaceChildren(...entries.map(([text, colour]) => {
      const box = element("i");
      box.style.background = colour || `repeating-linear-gradient(135deg, ${colours.wait} 0 2px, ${colours.hatch} 2px 3px)`;
      return element("span", {}, box, text);
    }));
  }
  const time = (title, key) => ({ title, value: (row) => row[key], text: (row) => duration(row[key]) });
  const part = (title, key) => ({ title, value: (row) => row[key] / Math.max(row.wall_ns, 1), text: (row) => npumesh.percent(row[key], row.wall_ns) });
  const parts = [time("wall", "wall_ns"), part("computing", "computing_ns"), part("overlapped", "overlapped_ns"),
    part("moving", "moving_ns"), part("waiting", "waiting_ns"), part("preparing", "preparing_ns"), part("idle", "idle_ns")];
  const number = (title, key) => ({ title, value: (row) => row[key] });
  function showOrigin() {
    byId("origin").textContent = [data.command, data.version, data.written].filter((text) => text).join(" \u00b7 ");
  }
  const partColour = (name) => ({ computing: colours[2], overlapped: colours[4], moving: colours[3],
    waiting: `repeating-linear-gradient(135deg, ${colours.wait} 0 2px, ${colours.hatch} 2px 3px)`,
    preparing: colours[7], idle: colours[1] })[name];
  // A bar for each rank, with the parts of its time.
  function showParts() {
    const rows = data.facts.ranks;
    byId("parts-legend").replaceChildren(...(rows.length === 0 ? [] : view.PARTS).map((name) => {
      const box = element("i");
      box.style.background = partColour(name);
      return element("span", {}, box, name);
    }));
    byId("parts").replaceChildren(...rows.map((row) => {
      const all = view.partsOf(row);
      const said = all.map(({ name, share }) => `${name} ${npumesh.percent(share, 1)}`).join(", ");
      const bar = element("div", { class: "bar", role: "img", "aria-label": said, title: said });
      for (const { name, share } of all) {
        const piece = element("span");
        piece.style.width = `${100 * share}%`;
        piece.style.background = partColour(name);
        bar.append(piece);
      }
      return element("div", {}, element("span", {}, `rank ${row.rank}`), bar);
    }));
  }
  function drawn(name, attributes, text) {
    const made = document.createElementNS(byId("roofline").namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }
  // Operators by type below what one core and memory allow.
  function showRoofline() {
    const width = 640, height = 280, left = 60, top = 16;
    const picture = view.rooflineOf(data.facts.types, data.facts.limits, width, height);
    const svg = byId("roofline");
    svg.toggleAttribute("hidden", picture === null);
    if (picture === null) return;
    svg.setAttribute("viewBox", `0 0 ${width + left + 20} ${height + top + 50}`);
    for (const { value, at } of picture.across) {
      svg.append(drawn("path", { class: "axis", d: `M${left + at} ${top}v${height}` }),
        drawn("text", { x: left + at, y: top + height + 18, "text-anchor": "middle" }, String(+value.toPrecision(1))));
    }
    for (const { value, at } of picture.up) {
      svg.append(drawn("path", { class: "axis", d: `M${left} ${top + at}h${width}` }),
        drawn("text", { x: left - 8, y: top + at + 4, "text-anchor": "end" }, String(+value.toPrecision(1))));
    }
    svg.append(drawn("path", { class: "roof", d: "M" + picture.roof.map(({ x, y }) => `${left + x} ${top + y}`).join("L") }));
    for (const { row, x, y, radius } of picture.points) {
      const circle = drawn("circle", { cx: left + x, cy: top + y, r: radius });
      circle.append(drawn("title", {}, `${row.type}: ${npumesh.rate(row.gflops)} GFLOP/s, ${npumesh.percent(row.part_of_limit, 1)} of what ${row.limited_by} allows`));
      svg.append(circle, drawn("text", { x: left + x + radius + 3, y: top + y + 4 }, row.type));
    }
    svg.append(drawn("text", { x: left, y: top + height + 40 }, "operations for each byte; upwards GFLOP/s; area: share of the time"));
  }
  function showTables() {
    const { facts } = data;
    const text = (title, key) => ({ title, value: (row) => row[key] ?? "", isText: true });
    const rate = (title, key) => ({ title, value: (row) => row[key], text: (row) => npumesh.rate(row[key]) });
    const steps = [number("step", "step"), number("rank", "rank"), ...parts];
    if (facts.steps.some((row) => !row.whole)) steps.push({ title: "", value: (row) => (row.whole ? "" : "no end") });
    const work = [time("total", "total_ns"), number("count", "count"), time("mean", "mean_ns"),
      { title: "share", value: (row) => row.share, text: (row) => npumesh.percent(row.share, 1) },
      rate("GFLOP/s", "gflops"), rate("GB/s", "gbytes")];
    if (facts.limits) {
      work.push({ title: "of its limit", value: (row) => row.part_of_limit,
        text: (row) => (row.part_of_limit === null ? "-" : `${npumesh.percent(row.part_of_limit, 1)} of ${row.limited_by}`) });
    }
    const put = (id, columns, rows, none) => byId(id).replaceChildren(
      rows.length > 0 ? npumesh.table(columns, rows, id, 15) : element("p", { class: "faint" }, none));
    put("steps", steps, facts.steps, "No step was recorded.");
    put("ranks", [number("rank", "rank"), ...parts,
      { title: "came last", value: (row) => row.came_last, text: (row) => `${row.came_last}/${row.collectives}` },
      time("others waited", "others_waited_ns"),
      { title: "HBM", value: (row) => row.highest_memory_bytes, text: (row) => npumesh.bytes(row.highest_memory_bytes) }], facts.ranks, "");
    put("types", [text("type", "type"), ...work], facts.types, "No operator was recorded.");
    put("operators", [text("name", "name"), text("type", "type"), ...work], facts.operators, "No operator was recorded.");
    put("collectives", [text("kind", "kind"), number("calls", "calls"),
      { title: "bytes", value: (row) => row.bytes, text: (row) => npumesh.bytes(row.bytes) },
      time("moving", "moving_ns"), time("waiting", "waiting_ns"), rate("GB/s", "gbytes")], facts.collectives, "No collective was recorded.");
  }
  function takeColours() {
    colours = npumesh.isDark() ? COLOURS.dark : COLOURS.light;
    hatch = makeHatch();
    showLegend();
    showParts();
    redraw();
  }

  showOrigin();
  showNotes();
  takeColours();
  showTables();
  showRoofline();
  document.addEventListener("themechange", takeColours);
  byId("timeline").addEventListener("scroll", redraw);
  addEventListener("resize", resize);
  resize();
})();
