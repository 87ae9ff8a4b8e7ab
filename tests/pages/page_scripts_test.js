// The functions of the pages' scripts that touch no element: node page_scripts_test.js <source root>.
"use strict";
const assert = require("assert");
const path = require("path");
const root = process.argv[2];
const npumesh = require(path.join(root, "launch/page/page.js"));
const view = require(path.join(root, "launch/profile/profile.js"));
const compare = require(path.join(root, "launch/dump/compare.js"));
const drawing = require(path.join(root, "launch/page/drawing.js"));
const graph = require(path.join(root, "launch/view/graph.js"));
const record = require(path.join(root, "launch/record/record.js"));

const tests = {
  // Against the cell of each index by itself.
  cellsHoldWhatTheMapCounts() {
    for (const [count, cells] of [[1, 1], [5, 5], [33, 32], [100, 32], [4096, 32], [31, 31]]) {
      const first = new Map(), last = new Map();
      for (let i = 0; i < count; ++i) {
        const cell = Math.floor((i * cells) / count);
        if (!first.has(cell)) first.set(cell, i);
        last.set(cell, i);
      }
      for (let cell = 0; cell < cells; ++cell) {
        assert.deepStrictEqual(compare.cellRange(cell, count, cells), [first.get(cell), last.get(cell)]);
      }
    }
  },

  placesAreSaidInWords() {
    const where = (rows, columns, in_rows, in_columns) => compare.placeText({ rows, columns, in_rows, in_columns });
    assert.strictEqual(where(4, 64, [0, 3], [32, 63]), "all 4 rows, columns 32 to 63 of 64");
    assert.strictEqual(where(4, 64, [2, 2], [0, 63]), "row 2 of 4, all 64 columns");
    assert.strictEqual(where(1, 8, [0, 0], [5, 5]), "column 5 of 8");
    assert.strictEqual(where(2, 1, [1, 1], [0, 0]), "row 1 of 2, the only column");
  },

  sharesOfCellsAreOfTheirSize() {
    const difference = { rows: 3, columns: 2, map_rows: 2, map_columns: 1, map: [4, 1] };
    assert.strictEqual(compare.shareOf(difference, 0, 0), 1);
    assert.strictEqual(compare.shareOf(difference, 1, 0), 0.5);
  },

  aSearchFindsNamesTypesAndAttributes() {
    const nodes = [
      { name: "layers.1.scale", type: "Muls", attributes: [{ name: "value", value: "0.4", source: "node" }] },
      { name: "layers.0.scale", type: "Muls", attributes: [{ name: "value", value: "0.35", source: "node" }] },
      { name: "soft", type: "SoftmaxV2", attributes: [{ name: "axes", value: "[-1]", source: "default" }] }];
    const found = (text) => graph.search(nodes, text).map((node) => node.name);
    assert.deepStrictEqual(found("MULS"), ["layers.1.scale", "layers.0.scale"]);
    assert.deepStrictEqual(found("scale value=0.4"), ["layers.1.scale"]);
    assert.deepStrictEqual(found("axes"), ["soft"]);
    assert.deepStrictEqual(found("layers.0"), ["layers.0.scale"]);
    assert.deepStrictEqual(found("nothing"), []);
    assert.deepStrictEqual(found("  "), []);
  },

  ranksBeginWithTheBlamed() {
    const ranks = [{ first: -1 }, { first: 0 }, { first: 0 }, { first: -1 }];
    assert.deepStrictEqual(compare.rankOrder(ranks, 2), [2, 1, 0, 3]);
    assert.deepStrictEqual(compare.rankOrder(ranks.slice(0, 1), -1), [0]);
  },

  theWorstTensorIsAnOutput() {
    const tensor = (side, differing, max_abs, reason = "") => ({ side, differing, max_abs, reason });
    const small = tensor("output", 1, 1), large = tensor("output", 1, 5), input = tensor("input", 9, 100);
    assert.strictEqual(compare.worstOf({ tensors: [input, small, large] }), large);
    assert.strictEqual(compare.worstOf({ tensors: [input, tensor("output", 0, 7)] }), input);
    const shapes = tensor("output", 0, 0, "shape");
    assert.strictEqual(compare.worstOf({ tensors: [large, shapes] }), shapes);
    assert.strictEqual(compare.worstOf({ tensors: [] }), null);
  },

  onlyWhatIsSeenOfALargeGraphIsDrawn() {
    const boxes = [0, 100, 200, 300].map((y) => ({ x: 0, y, w: 50, h: 38 }));
    const edges = [{ from: 0, to: 1 }, { from: 0, to: 3 }, { from: 2, to: 3 }];
    const view = { left: 10, right: 90, top: 90, bottom: 150 };
    assert.deepStrictEqual(drawing.visibleBoxes({ boxes, edges }, view), [boxes[1]]);
    assert.deepStrictEqual(drawing.visibleEdges({ boxes, edges }, view), [edges[0], edges[1]]);
    assert.strictEqual(drawing.visibleBoxes({ boxes, edges }, { ...view, left: 60 }).length, 0);
    assert.strictEqual(drawing.visibleEdges({ boxes, edges }, null).length, 3);
  },

  numbersOfTheComparison() {
    assert.strictEqual(compare.ulpText(12), "12");
    assert.strictEqual(compare.ulpText(2111709028), "more than 65536");
    assert.strictEqual(compare.shareText(1, 8192), "<0.1%");
    assert.strictEqual(compare.shareText(1, 8), "12.5%");
    assert.strictEqual(compare.shareText(0, 0), "0.0%");
    assert.strictEqual(compare.number(0.123456789), "0.123457");
    assert.strictEqual(compare.number("nan"), "nan");
    assert.strictEqual(compare.rankName({ rank: 2, step: "5" }), "rank 2, step 5");
    assert.strictEqual(compare.rankName({ rank: 2, step: null }), "rank 2");
  },

  formats() {
    assert.strictEqual(npumesh.duration(999), "999 ns");
    assert.strictEqual(npumesh.duration(1234), "1.23 us");
    assert.strictEqual(npumesh.duration(999600), "1.00 ms");
    assert.strictEqual(npumesh.bytes(1500000), "1.50 MB");
    assert.strictEqual(npumesh.percent(1, 8), "12.5%");
    assert.strictEqual(npumesh.percent(1, 0), "");
    assert.strictEqual(npumesh.rate(null), "-");
  },

  sortingKeepsUnknownValuesLast() {
    const rows = [{ v: 2 }, { v: null }, { v: 3 }, { v: 1 }];
    assert.deepStrictEqual(npumesh.sorted(rows, (row) => row.v, true).map((row) => row.v), [3, 2, 1, null]);
    assert.deepStrictEqual(npumesh.sorted(rows, (row) => row.v, false).map((row) => row.v), [1, 2, 3, null]);
    assert.strictEqual(rows[0].v, 2);
  },

  rowsNeverOverlap() {
    const { rows, count } = view.rowsOf([0, 0, 10, 50, 90, 100], [100, 40, 10, 10, 20, 5]);
    assert.deepStrictEqual([...rows], [0, 1, 2, 1, 1, 0]);
    assert.strictEqual(count, 3);
  },

  // Against all spans one by one, on random lanes and windows.
  visitingFindsWhatIsVisible() {
    let seed = 1;
    const random = (most) => (seed = (seed * 48271) % 2147483647) % most;
    for (let round = 0; round < 200; ++round) {
      const gaps = Array.from({ length: 300 }, () => random(20));
      const lane = laneOf(gaps, gaps.map(() => random(30)));
      const from = random(1500), to = from + 1 + random(3000), width = 1 + random(500);
      const covered = new Set(), expected = new Set();
      let calls = 0;
      for (const row of lane.byRow) {
        let right = -Infinity;
        view.visit(lane, row, from, to, width, (x, wide, i, merged) => {
          ++calls;
          // What is below a pixel begins with a whole one.
          assert.ok(x > right - 1 - 1e-6, "drawn from left to right");
          if (!merged) covered.add(i);
          right = merged ? x + 1 : x;
        });
        const scale = width / (to - from);
        for (const i of row) {
          const end = lane.begin[i] + lane.data.length[i];
          if (end > from && lane.begin[i] < to && lane.data.length[i] * scale >= 1) expected.add(i);
        }
      }
      for (const i of expected) assert.ok(covered.has(i), `span ${i} is not drawn`);
      assert.ok(calls <= lane.byRow.length * (2 * width + 2), `${calls} for ${width} pixels`);
    }
  },

  // 100,000 spans in one view are a few thousand rectangles.
  mergesBelowAPixel() {
    const count = 100000;
    const lane = laneOf(Array(count).fill(100), Array(count).fill(60));
    let drawn = 0, merged = 0;
    view.visit(lane, lane.byRow[0], 0, 100 * count, 1400, (x, wide, i, isMerged) => {
      ++drawn;
      merged += isMerged ? 1 : 0;
    });
    // Two a pixel: one span begins in it and ends in the next.
    assert.ok(drawn <= 2801 && merged >= 1390, `${drawn} drawn, ${merged} merged`);
  },

  // Regression: merged spans took the colour of one of them, so the overview said "moving" of lanes
  // that wait for two thirds of the time.
  sharesOfAPixelAreThoseOfItsTime() {
    const count = 10000;  // of 100 ns each: 40 waiting, 10 moving, 50 nothing
    const lane = laneOf(Array(count).fill(100), Array(count).fill(50), { kind: view.KIND.COLLECTIVE, arrived: 40 });
    const length = 100 * count;
    const shares = view.sharesOf(lane, 0, 0, length, 100, length, () => assert.fail("nothing is wide"));
    assert.deepStrictEqual(Object.keys(shares).sort(), ["3", "8"]);
    for (let x = 1; x < 99; ++x) {
      assert.ok(Math.abs(shares[3][x] - 0.1) < 0.01 && Math.abs(shares[view.WAIT][x] - 0.4) < 0.01);
    }
  },

  // Of any lane: the shares and the wide spans are all of the time.
  sharesAddUpToWhatIsRecorded() {
    let seed = 7;
    const random = (most) => (seed = (seed * 48271) % 2147483647) % most;
    for (let round = 0; round < 50; ++round) {
      const lengths = Array.from({ length: 2000 }, () => random(3) === 0 ? random(300) : random(4));
      const lane = laneOf(lengths.map((length, i) => (i === 0 ? 0 : lengths[i - 1] + 3)), lengths);
      const length = lane.begin[1999] + lengths[1999] + 1, width = 50 + random(300);
      let wide = 0;
      const shares = view.sharesOf(lane, 0, 0, length, width, length, (x, size, i) => { wide += lane.data.length[i]; });
      const narrow = Object.values(shares).flatMap((list) => [...list]).reduce((a, b) => a + b, 0);
      const all = lengths.reduce((a, b) => a + b, 0);
      assert.ok(Math.abs(wide + (narrow * length) / width - all) < 0.02 * all + (2 * length) / width);
    }
  },

  sumsStandForSpansThatAreNotThere() {
    const lane = laneOf([0], [1000]);
    lane.data.rest = { parts: 10, sums: { 2: [0, 50, 50, 0, 0, 0, 0, 0, 0, 100] } };
    const wide = [];
    const at = (from, to, width) => view.sharesOf(lane, 0, from, to, width, 1000, (x) => wide.push(x));
    const whole = at(0, 1000, 10);
    assert.deepStrictEqual([...whole[2]], [0, 0.5, 0.5, 0, 0, 0, 0, 0, 0, 1]);
    assert.deepStrictEqual([...at(0, 1000, 5)[2]], [0.25, 0.25, 0, 0, 0.5]);
    assert.deepStrictEqual([...at(100, 200, 2)[2]], [0.5, 0.5]);
    assert.strictEqual(wide.length, 3);
  },

  findsTheSpanAtATime() {
    const lane = laneOf([100, 100, 100], [50, 50, 1]);
    const row = lane.byRow[0];
    assert.strictEqual(view.spanAt(lane, row, 120, 0), 0);
    assert.strictEqual(view.spanAt(lane, row, 160, 0), -1);
    assert.strictEqual(view.spanAt(lane, row, 160, 15), 0);
    assert.strictEqual(view.spanAt(lane, row, 303, 5), 2);
    assert.strictEqual(view.spanAt(lane, row, 199, 60), 1);
  },

  zoomKeepsItsCentreAndTheEnds() {
    const zoomed = view.zoomed({ from: 0, to: 1000 }, 250, 0.5, 1000);
    assert.deepStrictEqual(zoomed, { from: 125, to: 625 });
    assert.deepStrictEqual(view.zoomed({ from: 0, to: 500 }, 0, 8, 1000), { from: 0, to: 1000 });
    assert.deepStrictEqual(view.within({ from: 900, to: 1100 }, 1000), { from: 800, to: 1000 });
    const least = view.zoomed({ from: 0, to: 21 }, 10, 1e-9, 1000);
    assert.ok(Math.abs(least.to - least.from - 20) < 1e-9);
  },

  ticksAreRoundNumbers() {
    assert.strictEqual(view.tickStep(1000, 1000, 90), 100);
    assert.strictEqual(view.tickStep(1000, 300, 90), 500);
    for (let span = 1; span < 1e12; span *= 3) assert.ok((view.tickStep(span, 1000, 90) * 1000) / span >= 90);
  },

  momentsHaveTheDigitsThatTellThemApart() {
    assert.strictEqual(view.momentText(178250000, 50000), "178.25 ms");
    assert.strictEqual(view.momentText(178000000, 1e6), "178 ms");
    assert.strictEqual(view.momentText(178123456, 1), "178.123456 ms");
    assert.strictEqual(view.momentText(0, 100), "0 ns");
    assert.strictEqual(view.momentText(2e9, 5e8), "2.0 s");
  },

  partsOfARankAddUpToItsTime() {
    const row = { wall_ns: 100, computing_ns: 50, overlapped_ns: 0, moving_ns: 10, waiting_ns: 20, preparing_ns: 0, idle_ns: 20 };
    const share = (name) => view.partsOf(row).find((part) => part.name === name).share;
    assert.strictEqual(share("computing"), 0.5);
    assert.strictEqual(share("idle"), 0.2);
    assert.strictEqual(view.partsOf({ ...row, wall_ns: 0, computing_ns: 0, moving_ns: 0, waiting_ns: 0, idle_ns: 0 })[0].share, 0);
  },

  operatorsStandBelowTheRoof() {
    const limits = { gflops: 100, gbytes: 10 };
    assert.strictEqual(view.rooflineOf([{ gflops: 5, intensity: 1 }], null, 640, 280), null);
    assert.strictEqual(view.rooflineOf([{ gflops: null, intensity: null }], limits, 640, 280), null);
    const picture = view.rooflineOf([{ gflops: 20, intensity: 4, share: 0.5 }, { gflops: 100, intensity: 100, share: 0.1 }], limits, 640, 280);
    // The ridge, where 10 operations meet each byte, and the roof to its right are equally high.
    assert.strictEqual(picture.roof[1].y, picture.roof[2].y);
    assert.ok(picture.roof[0].y > picture.roof[1].y);
    const [below, at] = picture.points;
    assert.ok(below.y > at.y && below.x < at.x);
    assert.ok(Math.abs(at.y - picture.roof[1].y) < 1e-9);
    for (const { x, y } of [...picture.points, ...picture.roof]) assert.ok(x >= 0 && x <= 640 && y >= 0 && y <= 280);
  },

  lanesOfARecordHaveCallsAndWhomTheyWaitedFor() {
    const call = (pid, ts, dur, status = "OK") => ({ ph: "X", name: "a (allreduce)", cat: "collective", pid, tid: 0, ts, dur, args: { status } });
    const wait = (pid, ts, dur, name) => ({ ph: "X", name, cat: "wait", pid, tid: 0, ts, dur });
    const lanes = record.lanesOf([
      { ph: "M", name: "process_name", pid: 1, tid: 0, args: { name: "rank 1 (h)" } },
      { ph: "M", name: "thread_name", pid: 1, tid: 0, args: { name: "tp" } },
      call(1, 5, 10), wait(1, 5, 0, "wait for arrival"), call(0, 0, 20, "never left"), wait(0, 0, 20, "wait for rank 1"),
      { ph: "i", name: "look here", pid: 1, tid: 0, ts: 30 }]);
    assert.deepStrictEqual(lanes.map((rank) => rank.rank), [0, 1]);
    assert.strictEqual(lanes[1].title, "rank 1 (h)");
    assert.strictEqual(lanes[1].tracks[0].name, "tp");
    const [stuck] = lanes[0].tracks[0].calls;
    assert.deepStrictEqual([stuck.open, stuck.waited, stuck.wait], [true, 20, "wait for rank 1"]);
    assert.strictEqual(lanes[1].tracks[0].calls[0].open, false);
    assert.deepStrictEqual(record.spanOf(lanes), { from: 0, to: 30 });
    assert.deepStrictEqual(record.spanOf([]), { from: 0, to: 1 });
  },

  whomALaneWaitsForIsThatOfItsLastOpenCall() {
    const call = (from, open, wait) => ({ from, to: 9, open, wait });
    const lane = (...calls) => ({ tracks: calls.map((one) => ({ calls: [one] })) });
    assert.strictEqual(record.waitOf(lane(call(1, true, "wait for rank 3"), call(2, true, "wait for ranks 1, 2"))), "waits for ranks 1, 2");
    assert.strictEqual(record.waitOf(lane(call(1, true, "wait for rank 3"), call(2, false, "wait for rank 1"))), "waits for rank 3");
    assert.strictEqual(record.waitOf(lane(call(1, true, "wait for arrival"))), "");
    assert.strictEqual(record.waitOf(lane(call(1, false, "wait for rank 3"))), "");
    assert.strictEqual(record.waitOf({ tracks: [] }), "");
  },

  ofManyCallsInViewTheLongestAreDrawn() {
    const calls = Array.from({ length: 100 }, (_, i) => ({ from: i, to: i + (i % 10) / 10 }));
    assert.strictEqual(record.visible(calls, { from: 10.95, to: 20.05 }, 50).length, 9 + 1);
    assert.ok(record.visible(calls, { from: 0, to: 100 }, 10).every((one) => one.to - one.from > 0.85));
  },

  aWindowStaysInTheWhole() {
    const whole = { from: 0, to: 100 };
    assert.deepStrictEqual(record.zoomed(whole, 0.5, whole), { from: 25, to: 75 });
    assert.deepStrictEqual(record.zoomed({ from: 0, to: 50 }, 4, whole), whole);
    assert.deepStrictEqual(record.within({ from: 90, to: 120 }, whole), { from: 70, to: 100 });
  },

  searchIgnoresCase() {
    assert.deepStrictEqual([...view.matching(["MatMul", "Add", "matmul2"], "MATM")], [0, 2]);
  },

  describesACollective() {
    const lane = laneOf([10], [100]);
    Object.assign(lane.data, { name: "communication stream", kind: [3], span_name: [0], type: [0], group: [0], arrived: [60], bytes: [80], step: [4], number: [9] });
    const data = { names: ["sum"], types: ["HcomAllReduce"], groups: ["tp"] };
    const lines = new Map(view.describe(data, { rank: 2, host: "h" }, lane, 0, npumesh));
    assert.strictEqual(lines.get("waiting"), "60 ns");
    assert.strictEqual(lines.get("moving"), "40 ns");
    assert.strictEqual(lines.get("moved"), "2.00 GB/s");
    assert.strictEqual(lines.get("group"), "tp, call 9");
    assert.strictEqual(lines.get("rank"), "2 (h), communication stream");
    assert.strictEqual(lines.get("step"), "4");
  },
};

// A lane of operators, or of other spans that all wait `arrived` long.
function laneOf(gaps, lengths, { kind = view.KIND.TASK, arrived = -1 } = {}) {
  return view.laneOf({ begin: gaps, length: lengths, kind: gaps.map(() => kind), arrived: gaps.map(() => arrived) });
}

for (const [name, test] of Object.entries(tests)) {
  test();
  console.log(`ok ${name}`);
}
