// The page of flight records: the verdict, and the calls of each rank as a lane.
//
// `recordView` has what touches no element, for tests in node.
"use strict";

var recordView = (() => {
  // More rectangles make a page slow; of those in view the longest are drawn.
  const MOST = 4000;

  // Ranks in order, each with its tracks (one for each group) and their calls: {name, from, to (us),
  // waited (us of it, at its begin), open, wait (whom it waited for), args}.
  function lanesOf(events) {
    const ranks = new Map();
    const rankOf = (pid) => {
      if (!ranks.has(pid)) ranks.set(pid, { rank: pid, title: `rank ${pid}`, tracks: new Map(), marks: [] });
      return ranks.get(pid);
    };
    const trackOf = (event) => {
      const { tracks } = rankOf(event.pid);
      if (!tracks.has(event.tid)) tracks.set(event.tid, { name: "", calls: [] });
      return tracks.get(event.tid);
    };
    for (const event of events) {
      if (event.ph === "M" && event.name === "process_name") rankOf(event.pid).title = event.args.name;
      if (event.ph === "M" && event.name === "thread_name") trackOf(event).name = event.args.name;
      if (event.ph === "i") rankOf(event.pid).marks.push({ text: event.name, at: event.ts });
      if (event.ph !== "X") continue;
      const { calls } = trackOf(event);
      if (event.cat === "wait" && calls.length > 0) {
        const call = calls[calls.length - 1];
        call.waited = event.dur;
        call.wait = event.name;
      } else {
        calls.push({ name: event.name, from: event.ts, to: event.ts + event.dur, waited: 0, wait: "",
          open: event.args.status === "never left", args: event.args });
      }
    }
    return [...ranks.values()].sort((a, b) => a.rank - b.rank).map((rank) => ({ ...rank, tracks: [...rank.tracks.values()] }));
  }

  // The whole time of all calls and marks, in us; never empty.
  function spanOf(lanes) {
    let to = 1;
    for (const rank of lanes) {
      for (const track of rank.tracks) for (const call of track.calls) to = Math.max(to, call.to);
      for (const mark of rank.marks) to = Math.max(to, mark.at);
    }
    return { from: 0, to };
  }

  // "waits for rank 2": of the last call that a rank never left; empty: it left all.
  function waitOf(lane) {
    let last = null;
    for (const track of lane.tracks) {
      for (const call of track.calls) if (call.open && (last === null || call.from >= last.from)) last = call;
    }
    return last === null || !last.wait.startsWith("wait for rank") ? "" : last.wait.replace("wait", "waits");
  }

  // Calls of a track that are to be seen between two times: the longest.
  function visible(calls, span, most = MOST) {
    const seen = calls.filter((call) => call.to >= span.from && call.from <= span.to);
    if (seen.length <= most) return seen;
    return seen.sort((a, b) => (b.to - b.from) - (a.to - a.from)).slice(0, most);
  }

  // The same window, `factor` times as long around its middle, within the whole.
  function zoomed(span, factor, whole) {
    const half = Math.max(((span.to - span.from) * factor) / 2, 0.5);
    const middle = (span.from + span.to) / 2;
    return within({ from: middle - half, to: middle + half }, whole);
  }
  function within(span, whole) {
    const long = Math.min(span.to - span.from, whole.to - whole.from);
    const from = Math.min(Math.max(span.from, whole.from), whole.to - long);
    return { from, to: from + long };
  }

  return { lanesOf, spanOf, waitOf, visible, zoomed, within, MOST };
})();
if (typeof module !== "undefined") module.exports = recordView;

(() => {
  if (typeof document === "undefined") return;
  const { data, element } = npumesh;
  const view = recordView;
  const byId = (id) => document.getElementById(id);
  const { report } = data;
  const lanes = view.lanesOf(data.trace.traceEvents);
  const tracks = lanes.reduce((sum, lane) => sum + lane.tracks.length, 0);
  const mostOfTrack = Math.max(view.MOST / Math.max(tracks, 1), 20);
  const whole = view.spanOf(lanes);
  let now = whole;
  let firstBlamed = 0;  // where its lane begins, in units of the drawing
  const WIDTH = 1000, LEFT = 130, ROW = 18, RANK = 30;
  const duration = (us) => npumesh.duration(us * 1000);

  function drawn(name, attributes, text) {
    const made = document.createElementNS(byId("lanes").namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }
  const toX = (time) => LEFT + ((time - now.from) / (now.to - now.from)) * (WIDTH - LEFT - 10);
  const clamped = (time) => toX(Math.min(Math.max(time, now.from), now.to));

  function wordsOf(rank, track, call) {
    const waited = call.waited > 0 ? `, of which ${duration(call.waited)} ${call.wait}` : "";
    const end = call.open ? "was never left" : `took ${duration(call.to - call.from)}${waited}`;
    const place = call.args.place ? `, called at ${call.args.place}` : "";
    return `rank ${rank.rank}, group ${track.name}${call.args.kind === "creation" ? "" : `, call ${call.args.call}`}: ${call.name} ${call.args.dtype}[${call.args.count}] ` +
      `began at ${duration(call.from)} and ${end}${call.open && call.wait ? `: ${call.wait}` : ""}; ${call.args.status}${place}`;
  }
  function addCall(svg, rank, track, call, y) {
    const from = clamped(call.from), to = Math.max(clamped(call.to), from + 1);
    const between = Math.min(Math.max(clamped(call.from + call.waited), from), to);
    const add = (x, wide, kind) => {
      const box = drawn("rect", { x, y, width: Math.max(wide, 0.5), height: ROW - 4, class: kind });
      box.append(drawn("title", {}, wordsOf(rank, track, call)));
      box.addEventListener("click", () => { byId("said").textContent = wordsOf(rank, track, call); });
      svg.append(box);
    };
    add(from, between - from, call.open ? "open" : "wait");
    if (!call.open) add(between, to - between, "call");
  }
  function draw() {
    const svg = byId("lanes");
    svg.replaceChildren();
    let y = 6;
    firstBlamed = 0;
    for (const rank of lanes) {
      const blamed = report.look_first_at.ranks.includes(rank.rank);
      if (blamed && firstBlamed === 0) firstBlamed = y;
      const wait = view.waitOf(rank);
      svg.append(drawn("text", { x: 6, y: y + 14, class: blamed ? "blamed" : "" },
        rank.title + (blamed ? ": look here first" : "") + (wait ? `: ${wait}` : "")));
      y += RANK - 8;
      for (const track of rank.tracks) {
        svg.append(drawn("text", { x: 14, y: y + 11, class: "faint" }, track.name.slice(0, 18)));
        svg.append(drawn("line", { x1: LEFT, x2: WIDTH - 10, y1: y + ROW - 3, y2: y + ROW - 3 }));
        for (const call of view.visible(track.calls, now, mostOfTrack)) addCall(svg, rank, track, call, y);
        y += ROW;
      }
      y += 8;
    }
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${y}`);
    byId("span").textContent = `${duration(now.from)} to ${duration(now.to)} of ${duration(whole.to)}`;
  }
  const show = (span) => {
    now = view.within(span, whole);
    draw();
  };
  const pan = (part) => show({ from: now.from + part * (now.to - now.from), to: now.to + part * (now.to - now.from) });
  byId("zoom-in").addEventListener("click", () => show(view.zoomed(now, 0.5, whole)));
  byId("zoom-out").addEventListener("click", () => show(view.zoomed(now, 2, whole)));
  byId("pan-left").addEventListener("click", () => pan(-0.5));
  byId("pan-right").addEventListener("click", () => pan(0.5));
  byId("end").addEventListener("click", () => show({ from: whole.to - Math.max(whole.to / 50, 1), to: whole.to }));
  byId("all").addEventListener("click", () => show(whole));

  function showVerdict() {
    byId("origin").textContent = [data.command, data.version, data.written].filter((text) => text).join(" \u00b7 ");
    const { ranks, text } = report.look_first_at;
    const box = byId("verdict");
    if (data.problems.length === 0) {
      box.append(element("p", {}, "Nothing is wrong."));
      return;
    }
    if (text) box.append(element("p", { class: "warning" }, `Look first at rank${ranks.length === 1 ? "" : "s"} ${ranks.join(", ")}: ${text}`));
    const list = element("ul");
    for (const problem of data.problems) list.append(element("li", {}, problem));
    box.append(list);
  }
  function showLeftOut() {
    if (data.left_out === 0) return;
    byId("legend").append(element("span", {}, ` ${data.left_out} earlier calls are not drawn; npumesh record --timeline has all`));
  }
  // The lane of the rank to look at first, in the middle of the frame.
  function scrollToBlamed() {
    const frame = byId("frame"), svg = byId("lanes");
    const scale = svg.getBoundingClientRect().width / WIDTH;
    frame.scrollTop = Math.max(firstBlamed * scale - frame.clientHeight / 2, 0);
  }
  const number = (title, key) => ({ title, value: (row) => row[key] });
  const words = (title, key) => ({ title, value: (row) => String(row[key]), isText: true });
  const ms = (title, key) => ({ title, value: (row) => row[key], text: (row) => npumesh.duration(row[key] * 1e6) });
  function showTables() {
    byId("ranks").append(npumesh.table([number("rank", "rank"), words("host", "host"), number("process", "process"),
      words("end", "end"), number("calls", "calls")], report.ranks, "ranks"));
    byId("groups").append(npumesh.table([words("group", "name"), words("ranks", "ranks"), number("all have done call", "all_have_done_call")], report.groups, "groups"));
    byId("arrivals").append(npumesh.table([number("rank", "rank"), number("calls", "calls"), number("came last", "came_last"),
      ms("late in all", "late_ms"), ms("most late", "most_late_ms"), ms("waited in all", "waited_ms")], report.arrivals, "arrivals"));
  }
  showVerdict();
  showTables();
  showLeftOut();
  draw();
  scrollToBlamed();
  document.body.dataset.drawn = "1";
})();
