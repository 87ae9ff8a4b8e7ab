#!/usr/bin/env python3
"""Reads the vendor's profiler files and checks them against each other.

    tests/msprof_reader.py FOLDER RANKS       folders that npumesh has written
    tests/msprof_reader.py --write PROGRAM RANKS    has PROGRAM FOLDER RANKS write them first

FOLDER has msprof/ and torch/, with a folder for each rank (docs/formats/vendor_profile.md). All times are
taken from the files as whole nanoseconds. From the tasks and collectives of the timeline the reader
computes anew, moment by moment, what computes, communicates and is free, and compares that with the
layer Overlap Analysis and with the step table. It reads with csv and json only.
"""
import collections
import csv
import decimal
import json
import pathlib
import re
import subprocess
import sys
import tempfile

LAYERS = {7: "CANN", 14: "Ascend Hardware", 16: "Communication", 31: "Overlap Analysis"}
PARTS = ["Computing", "Communication", "Communication(Not Overlapped)", "Free"]
TRANSPORTS = {"RDMA", "HCCS", "PCIE", "SDMA", "SIO"}
checks = collections.Counter()


def equal(seen, expected, what):
    checks[what] += 1
    if seen != expected:
        sys.exit(f"{what}: {seen!r}, expected {expected!r}")


def close(seen, expected, what):
    checks[what] += 1
    if abs(seen - expected) > 1e-9 * max(1.0, abs(expected)):
        sys.exit(f"{what}: {seen!r}, expected {expected!r}")


def ns(microseconds):
    """Text or number of microseconds, three decimals at most."""
    value = decimal.Decimal(str(microseconds).strip()) * 1000
    if value != value.to_integral_value():
        sys.exit(f"{microseconds!r} us has parts of a nanosecond")
    return int(value)


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    for row in rows:
        equal(len(row), len(rows[0]), f"columns of {path.name}")
    return rows[0], [dict(zip(rows[0], row)) for row in rows[1:]]


def one(folder, pattern):
    found = [path for path in folder.iterdir() if re.fullmatch(pattern, path.name)]
    equal(len(found), 1, f"files {pattern} of {folder}")
    return found[0]


# Times.

def moments(spans):
    """Disjoint pairs that cover the same moments, by counting begins and ends."""
    edges = collections.Counter()
    for begin, end in spans:
        if begin < end:
            edges[begin] += 1
            edges[end] -= 1
    result, depth, since = [], 0, 0
    for moment in sorted(edges):
        before, depth = depth, depth + edges[moment]
        if before == 0 and depth > 0:
            since = moment
        elif before > 0 and depth == 0:
            result.append((since, moment))
    return result


def inside(spans, wall):
    return moments((max(begin, wall[0]), min(end, wall[1])) for begin, end in spans)


def length(spans):
    return sum(end - begin for begin, end in spans)


def divided(computing, communication, wall):
    """Lengths of computing, communication, communication alone, free."""
    computing, communication = inside(computing, wall), inside(communication, wall)
    either = length(moments(computing + communication))
    return [length(computing), length(communication), either - length(computing),
            wall[1] - wall[0] - either]


# The timeline.

class Trace:
    def __init__(self, path):
        events = json.loads(path.read_text(encoding="utf-8"))
        self.layer_of = {}
        for event in events:
            if event["ph"] == "M" and event["name"] == "process_sort_index":
                self.layer_of[event["pid"]] = event["args"]["sort_index"]
        self.names = {}
        for event in events:
            if event["ph"] == "M" and event["name"] == "process_name":
                self.names[self.layer_of[event["pid"]]] = event["args"]["name"]
        equal(self.names, LAYERS, "layers of the timeline")
        for pid, layer in self.layer_of.items():
            equal(pid >> 5 & 31, layer, "layer in the process number")
        self.threads = {(event["pid"], event["tid"]): event["args"]["name"] for event in events
                        if event["ph"] == "M" and event["name"] == "thread_name"}
        self.spans = collections.defaultdict(list)
        for event in events:
            if event["ph"] != "X":
                continue
            equal(type(event["ts"]), str, "type of ts")
            begin = ns(event["ts"])
            event["begin"], event["end"] = begin, begin + ns(event["dur"])
            self.spans[self.layer_of[event["pid"]]].append(event)
            equal((event["pid"], event["tid"]) in self.threads, True, "threads have names")
        self.check_flows([event for event in events if event["ph"] in "sf"])

    def check_flows(self, ends):
        starts = {event["id"]: event for event in ends if event["ph"] == "s"}
        hits = {event["id"]: event for event in ends if event["ph"] == "f"}
        equal(set(starts), set(hits), "ends of flows")
        equal(len(starts) + len(hits), len(ends), "flows have two ends")
        works = {str(event["args"]["connection_id"]): event for event in self.spans[14] + self.calls()}
        hosts = {(event["tid"], event["begin"]) for event in self.spans[7]}
        for number, hit in hits.items():
            equal(hit["name"], f"HostToDevice{number}", "name of a flow")
            equal(ns(hit["ts"]), works[number]["begin"], "moment of a flow's end")
            equal(hit["bp"], "e", "bp of a flow's end")
            start = starts[number]
            equal((start["tid"], ns(start["ts"])) in hosts, True, "flows start at host events")

    def calls(self):
        return [event for event in self.spans[16]
                if re.fullmatch(r"Group \d+ Communication", self.threads[event["pid"], event["tid"]])]

    def planes(self):
        return [event for event in self.spans[16]
                if self.threads[event["pid"], event["tid"]].startswith("Plane")]

    def kernels(self):
        return [event for event in self.spans[14] if event["args"]["Task Type"] != "MEMCPY_ASYNC"]

    def iterations(self):
        return [(int(event["args"]["item_id"]), (event["begin"], event["end"]))
                for event in self.spans[7] if event["args"]["Mode"] == "iteration"]

    def times(self, events):
        return [(event["begin"], event["end"]) for event in events]

    def check_overlap(self):
        parts = {name: self.times(event for event in self.spans[31] if event["name"] == name)
                 for name in PARTS}
        everything = self.times(self.kernels() + self.calls()) + [w for _, w in self.iterations()]
        wall = (min(begin for begin, _ in everything), max(end for _, end in everything))
        expected = divided(self.times(self.kernels()), self.times(self.calls()), wall)
        equal([length(parts[name]) for name in PARTS], expected, "Overlap Analysis")
        for name in PARTS:
            equal(moments(parts[name]), sorted(parts[name]), f"disjoint {name}")
        shares = [parts[PARTS[0]], parts[PARTS[2]], parts[PARTS[3]]]
        equal(moments(sum(shares, [])), [wall], "parts cover the profile")
        equal(sum(length(share) for share in shares), wall[1] - wall[0], "parts do not overlap")

    def check_planes(self):
        covered = collections.defaultdict(int)
        for event in self.planes():
            covered[event["tid"] - 1] += event["end"] - event["begin"]
        for tid, total in covered.items():
            calls = [event for event in self.calls() if event["tid"] == tid]
            equal(total, length(self.times(calls)), "planes make up their calls")


# Tables.

def durations_by(rows, key, duration):
    result = collections.defaultdict(list)
    for row in rows:
        result[key(row)].append(duration(row))
    return dict(result)


def check_statistic(rows, columns, durations, what, units=(" Time(us)", "Total Time(us)")):
    """Rows of a statistic against all durations of what they name."""
    unit, total_column = units
    whole = sum(map(sum, durations.values()))
    equal({tuple(row[column] for column in columns) for row in rows}, set(durations), f"rows of {what}")
    totals = [ns(row[total_column]) for row in rows]
    equal(totals, sorted(totals, reverse=True), f"order of {what}")
    for row in rows:
        times = durations[tuple(row[column] for column in columns)]
        average = sum(times) / len(times)
        equal(int(row["Count"]), len(times), f"count of {what}")
        equal(ns(row[total_column]), sum(times), f"total of {what}")
        equal(ns(row[f"Min{unit}"]), min(times), f"least of {what}")
        equal(ns(row[f"Max{unit}"]), max(times), f"most of {what}")
        rounded(row[f"Avg{unit}"], average / 1000, f"average of {what}")
        if "Ratio(%)" in row:
            rounded(row["Ratio(%)"], 100 * sum(times) / whole, f"ratio of {what}")
        if "Variance" in row:
            variance = sum((time - average) ** 2 for time in times) / len(times) / 1e6
            rounded(row["Variance"], variance, f"variance of {what}")


def rounded(text, expected, what):
    """Three decimals."""
    equal(re.fullmatch(r"\d+\.\d{3}", text) is not None, True, f"form of the {what}")
    equal(abs(float(text) - expected) < 0.000501, True, what)


def check_statistics(folder, summary, names):
    """op_statistic against the rows of op_summary or kernel_details. Returns those of operators."""
    _, kind, core, duration = names
    operators = [row for row in summary if row[core] not in ("COMMUNICATION", "HCCL")]
    _, statistic = table(one(folder, r"op_statistic(_\d{14})?\.csv"))
    check_statistic(statistic, ["OP Type", "Core Type"],
                    durations_by(operators, lambda row: (row[kind], row[core]),
                                 lambda row: ns(row[duration])), "op_statistic")
    return operators


def check_waits(rows, columns):
    """Operators, which are in order of their begin, wait for the end of the one before."""
    start, duration, wait = columns
    before = None
    for row in rows:
        begin = ns(row[start])
        equal(ns(row[wait]), 0 if before is None else max(0, begin - before), "wait time")
        before = begin + ns(row[duration])


def check_kernels(rows, trace, names):
    name, _, core, duration = names
    start = "Task Start Time(us)" if core == "Task Type" else "Start Time(us)"
    listed = sorted((row[name], ns(row[start]), ns(row[duration])) for row in rows)
    drawn = sorted((event["name"], event["begin"], event["end"] - event["begin"])
                   for event in trace.kernels() + trace.calls())
    equal(listed, drawn, "table of operators and timeline")


# Collectives.

def check_call(name, info, event):
    times = info["Communication Time Info"]
    close(times["Elapse Time(ms)"] * 1e6, event["end"] - event["begin"], "elapsed time of a call")
    close(times["Transit Time(ms)"] + times["Wait Time(ms)"] + times["Idle Time(ms)"],
          times["Elapse Time(ms)"], "parts of a call")
    whole = times["Wait Time(ms)"] + times["Transit Time(ms)"]
    close(times["Wait Time Ratio"] * whole, times["Wait Time(ms)"], "wait ratio")
    equal(abs(times["Start Timestamp(us)"] * 1000 - event["begin"]) < 1000, True, "start of a call")
    equal(set(info["Communication Bandwidth Info"]), TRANSPORTS, "transports")
    check_traffic(info["Communication Bandwidth Info"])
    equal(re.fullmatch(r"hcom_[a-zA-Z]+__\d{3}_\d+_\d+@\d+", name) is not None, True, "name of a call")
    equal(name.split("__")[1][:3], f"{int(name.split('@')[1]) % 1000:03}", "group in the name")


def check_traffic(bandwidth):
    for traffic in bandwidth.values():
        sizes = traffic["Size Distribution"]
        close(sum(float(size) * count for size, (count, _) in sizes.items()),
              traffic["Transit Size(MB)"], "sizes of packets")
        close(sum(time for _, time in sizes.values()), traffic["Transit Time(ms)"], "times of packets")
        equal(traffic["Large Packet Ratio"], 0, "large packets")
        check_speed(traffic)


def check_speed(traffic):
    time, size = traffic["Transit Time(ms)"], traffic["Transit Size(MB)"]
    close(traffic["Bandwidth(GB/s)"], size / time if time else 0, "bandwidth")


def check_links(links, info):
    """The links of a rank: to itself without bytes, to others during the transit of the call."""
    own = [link for link, what in links.items() if what["Transport Type"] == "LOCAL"]
    equal(len(own) == 1 and len(set(own[0].split("-"))) == 1, True, "link of a rank to itself")
    sent = collections.Counter()
    for link, what in links.items():
        check_speed(what)
        close(what["Transit Time(ms)"],
              0 if link in own else info["Communication Time Info"]["Transit Time(ms)"], "time of a link")
        sent[what["Transport Type"]] += what["Transit Size(MB)"]
    equal(sent["LOCAL"], 0, "bytes to itself")
    for transport in ("HCCS", "RDMA", "PCIE", "SIO"):
        traffic = info["Communication Bandwidth Info"][transport]
        close(sent[transport], traffic["Transit Size(MB)"], "links make up the bandwidth")
        close(traffic["Transit Time(ms)"],
              info["Communication Time Info"]["Transit Time(ms)"] if sent[transport] else 0,
              "time of a transport")
    equal(info["Communication Bandwidth Info"]["SDMA"], info["Communication Bandwidth Info"]["HCCS"],
          "SDMA is what stays on the node")


def check_calls(communication, matrix, trace):
    """Both files have the calls of the timeline."""
    events = {event["name"] + "@" + trace.threads[event["pid"], event["tid"]].split()[1]: event
              for event in trace.calls()}
    equal(set(communication), set(events), "calls of communication.json")
    equal(set(matrix), set(events), "calls of communication_matrix.json")
    for name, info in communication.items():
        check_call(name, info, events[name])
        check_links(matrix[name], info)


def check_totals(step):
    for kind in ("p2p", "collective"):
        calls = {name: info for name, info in step[kind].items() if name != "Total Op Info"}
        total = step[kind]["Total Op Info"]
        for name in ("Elapse Time(ms)", "Transit Time(ms)", "Wait Time(ms)"):
            close(total["Communication Time Info"][name],
                  sum(info["Communication Time Info"][name] for info in calls.values()), f"total {name}")
        for transport in TRANSPORTS:
            close(total["Communication Bandwidth Info"][transport]["Transit Size(MB)"],
                  sum(info["Communication Bandwidth Info"][transport]["Transit Size(MB)"]
                      for info in calls.values()), "total size")
        check_traffic(total["Communication Bandwidth Info"])


# Folders.

def read_msprof(folder):
    """Rank, node and links of one folder of msprof."""
    equal(re.fullmatch(r"PROF_\d{6}_\d{17}_\d{8}[A-R]{8}", folder.name) is not None, True, "PROF_ name")
    device = one(folder, r"device_\d+")
    info = json.loads(one(device, r"info\.json\.\d{1,2}").read_text())
    equal(info["DeviceInfo"][0]["id"], int(device.name.split("_")[1]), "device")
    output = folder / "mindstudio_profiler_output"
    trace = Trace(one(output, r"msprof_\d{14}\.json"))
    trace.check_overlap()
    trace.check_planes()
    _, summary = table(one(output, r"op_summary_\d{14}\.csv"))
    names = ("Op Name", "OP Type", "Task Type", "Task Duration(us)")
    operators = check_statistics(output, summary, names)
    check_waits(operators, ("Task Start Time(us)", "Task Duration(us)", "Task Wait Time(us)"))
    check_kernels(summary, trace, names)
    check_task_time(output, operators, trace)
    check_communication_statistic(output, summary)
    check_step_trace(output, trace)
    check_api(output, trace)
    communication = json.loads((folder / "analyze/communication.json").read_text())
    matrix = json.loads((folder / "analyze/communication_matrix.json").read_text())
    check_calls(communication, matrix, trace)
    return info["rank_id"], info["hostname"], matrix, trace


def check_task_time(output, operators, trace):
    _, tasks = table(one(output, r"task_time_\d{14}\.csv"))
    kernels = [row for row in tasks if row["kernel_type"] != "MEMCPY_ASYNC"]
    equal(sum(ns(row["task_time(us)"]) for row in kernels),
          sum(ns(row["Task Duration(us)"]) for row in operators), "task_time and op_summary")
    equal(len(tasks), len(trace.spans[14]), "tasks of the timeline")
    for row in tasks:
        start, stop = ns(row["task_start(us)"]), ns(row["task_stop(us)"])
        equal(stop - start, ns(row["task_time(us)"]), "start and stop")
    equal([(row["task_id"], row["task_start(us)"], row["task_time(us)"]) for row in kernels],
          [(row["Task ID"], row["Task Start Time(us)"], row["Task Duration(us)"]) for row in operators],
          "task_time and op_summary, by task")


def check_communication_statistic(output, summary):
    calls = [row for row in summary if row["Task Type"] == "COMMUNICATION"]
    _, statistic = table(one(output, r"communication_statistic_\d{14}\.csv"))
    check_statistic(statistic, ["OP Type"],
                    durations_by(calls, lambda row: (row["OP Type"],),
                                 lambda row: ns(row["Task Duration(us)"])), "communication_statistic")


def check_step_trace(output, trace):
    header, rows = table(one(output, r"step_trace_\d{14}\.csv"))
    equal([(int(row["Iteration ID"]), ns(row["Iteration End(us)"]), ns(row["Iteration Time(us)"]))
           for row in rows],
          [(number, end, end - begin) for number, (begin, end) in trace.iterations()], "step_trace")
    before = None
    for row in rows:
        check_points(row, before)
        before = ns(row["Iteration End(us)"])
    check_reductions(one(output, r"step_trace_\d{14}\.csv"), header.index("Model ID") + 1, trace)


def check_points(row, before):
    """Times from and to fp_point and bp_point; `before`: when the iteration before ended."""
    names = ("FP Start", "BP End", "FP to BP Time", "Iteration Refresh", "Data Aug Bound")
    times = [row[f"{name}(us)"].strip() for name in names]
    if times[:2] == ["N/A"] * 2:  # the profile has no points
        equal(times, ["N/A"] * len(names), "times without points")
        return
    start, end = ns(times[0]), ns(times[1])
    equal(ns(times[2]), end - start, "forward and backward")
    equal(ns(times[3]), ns(row["Iteration End(us)"]) - end, "refresh")
    equal(times[4] if before is None else ns(times[4]),
          "N/A" if before is None else start - before, "bound")


def check_reductions(path, first, trace):
    """The calls of each iteration, filled with N/A; a job of one rank has none."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    for row, (_, (begin, end)) in zip(rows, trace.iterations()):
        cells = [cell.strip() for cell in row[first:] if cell != "N/A"]
        pairs = list(zip(map(ns, cells[::2]), map(ns, cells[1::2])))
        calls = sorted((event["begin"], event["end"] - event["begin"]) for event in trace.calls()
                       if begin <= event["begin"] < end)
        equal(pairs, calls if row[first:] else [], "reductions of step_trace")


def check_api(output, trace):
    _, rows = table(one(output, r"api_statistic_\d{14}\.csv"))
    calls = [event for event in trace.spans[7] if event["args"]["Mode"] == "api"]
    check_statistic(rows, ["Level", "API Name"],
                    durations_by(calls, lambda event: (event["args"]["level"], event["name"]),
                                 lambda event: event["end"] - event["begin"]),
                    "api_statistic", ("(us)", "Time(us)"))


def read_torch(folder):
    """Rank and timeline of one folder of PyTorch's profiler."""
    equal(re.fullmatch(r".+_\d{17}_ascend_pt", folder.name) is not None, True, "_ascend_pt name")
    info = one(folder, r"profiler_info_\d+\.json")
    rank = int(re.search(r"\d+", info.name).group())
    equal(json.loads(info.read_text())["rank_id"], rank, "rank of profiler_info")
    metadata = json.loads((folder / "profiler_metadata.json").read_text())
    for group in metadata["parallel_group_info"].values():
        equal(group["global_ranks"][group["group_rank"]], rank, "rank in its group")
    output = folder / "ASCEND_PROFILER_OUTPUT"
    trace = Trace(output / "trace_view.json")
    trace.check_overlap()
    _, kernels = table(output / "kernel_details.csv")
    names = ("Name", "Type", "Accelerator Core", "Duration(us)")
    operators = check_statistics(output, kernels, names)
    check_waits(operators, ("Start Time(us)", "Duration(us)", "Wait Time(us)"))
    check_kernels(kernels, trace, names)
    check_step_times(output, trace)
    communication = json.loads((output / "communication.json").read_text())
    matrix = json.loads((output / "communication_matrix.json").read_text())
    equal(set(communication), {f"step{number}" for number, _ in trace.iterations()}, "steps")
    flat, links = {}, {}
    for name, step in communication.items():
        check_totals(step)
        for kind in ("p2p", "collective"):
            step[kind].pop("Total Op Info")
            equal(set(step[kind]), set(matrix[name][kind]), "calls of a step")
            for call in step[kind]:
                message = re.match("hcom_(send|receive|batchsendrecv)_", call) is not None
                equal(message, kind == "p2p", "messages are p2p")
            flat.update(step[kind])
            links.update(matrix[name][kind])
    check_calls(flat, links, trace)
    return rank, trace


def check_step_times(output, trace):
    header, rows = table(output / "step_trace_time.csv")
    equal(header[2:], ["Computing", "Communication(Not Overlapped)", "Overlapped", "Communication", "Free",
                       "Stage", "Bubble", "Communication(Not Overlapped and Exclude Receive)", "Preparing"],
          "columns of step_trace_time")
    iterations = trace.iterations()
    equal([int(row["Step"]) for row in rows], [number for number, _ in iterations], "steps of the table")
    for row, (_, wall) in zip(rows, iterations):
        seen = {name: ns(row[name]) for name in header[2:]}
        works = trace.times(trace.kernels() + trace.calls())
        computing, communication, alone, free = divided(
            trace.times(trace.kernels()), trace.times(trace.calls()), wall)
        bubble = length(inside(trace.times(event for event in trace.calls()
                                           if event["name"].startswith("hcom_receive")), wall))
        equal(seen, {"Computing": computing, "Communication(Not Overlapped)": alone,
                     "Overlapped": communication - alone, "Communication": communication, "Free": free,
                     "Stage": computing + alone + free - bubble, "Bubble": bubble,
                     "Communication(Not Overlapped and Exclude Receive)": alone - bubble,
                     "Preparing": min(begin for begin, _ in inside(works, wall)) - wall[0]},
              "step_trace_time")
        equal(computing + alone + free, wall[1] - wall[0], "an iteration is the sum of its parts")


def check_job(ranks):
    """What the folders of all ranks say about the same calls."""
    hosts = {rank: host for rank, (host, _) in ranks.items()}
    by_call = collections.defaultdict(dict)
    for rank, (_, matrix) in ranks.items():
        for call, links in matrix.items():
            own = next(int(link.split("-")[0]) for link, what in links.items()
                       if what["Transport Type"] == "LOCAL")
            by_call[call][own] = (rank, links)
    for members in by_call.values():
        equal(sorted(members), list(range(len(members))), "group ranks of a call")
        for rank, links in members.values():
            for link, what in links.items():
                source, target = map(int, link.split("-"))
                near = hosts[members[source][0]] == hosts[members[target][0]]
                expected = "LOCAL" if source == target else "HCCS" if near else "RDMA"
                equal(what["Transport Type"], expected, "transport between hosts")
                equal(rank in (members[source][0], members[target][0]), True, "links of the rank")


def read(folder, count):
    ranks, texts = {}, {}
    for each in sorted((folder / "msprof").iterdir()):
        rank, host, matrix, trace = read_msprof(each)
        ranks[rank], texts[rank] = (host, matrix), trace.spans
    equal(sorted(ranks), list(range(count)), "ranks of msprof")
    check_job(ranks)
    seen = []
    for each in sorted((folder / "torch").iterdir()):
        rank, trace = read_torch(each)
        equal(trace.spans, texts[rank], "both timelines of a rank")
        seen.append(rank)
    equal(sorted(seen), list(range(count)), "ranks of torch")


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--write":
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.argv[2], folder, sys.argv[3]], check=True)
            read(pathlib.Path(folder), int(sys.argv[3]))
    elif len(sys.argv) == 3:
        read(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
    else:
        sys.exit(__doc__)
    print(f"{sum(checks.values())} checks of {len(checks)} kinds hold")


main()
