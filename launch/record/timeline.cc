#include "launch/record/timeline.h"

#include <algorithm>
#include <limits>

#include "runtime/base/json.h"

namespace npumesh {
namespace {

using nlohmann::json;

// Appends events; a trace may be far larger than what a tree of JSON values should hold.
class Trace {
 public:
  void Add(const json& event) {
    text_ += text_.empty() ? "" : ",\n";
    text_ += event.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  std::string Text() const {
    return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + text_ + "\n]}\n";
  }

 private:
  std::string text_;
};

json NameEvent(std::string_view what, int rank, size_t track, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", track}, {"args", {{"name", name}}}};
}

json Slice(const std::string& name, std::string_view category, int rank, size_t track,
           int64_t begin_ns, int64_t end_ns) {
  return {{"ph", "X"},
          {"name", name},
          {"cat", category},
          {"pid", rank},
          {"tid", track},
          {"ts", static_cast<double>(begin_ns) / 1e3},
          {"dur", static_cast<double>(std::max<int64_t>(end_ns - begin_ns, 0)) / 1e3}};
}

json Arguments(const RecordedCall& call, const std::string& group) {
  json args = {{"group", group},
               {"call", call.call},
               {"kind", call.creates_group() ? "creation" : Name(call.kind)},
               {"operator", call.node},
               {"dtype", Name(static_cast<DataType>(call.dtype))},
               {"count", call.count},
               {"root", call.root}};
  args["status"] = call.done() ? std::string(CodeName(call.status)) : "never left";
  return args;
}

}  // namespace

std::string TimelineJson(const std::vector<RankRecord>& records, const Joined& joined) {
  const std::vector<int64_t> offsets = ClockOffsets(records);
  int64_t begin = std::numeric_limits<int64_t>::max();
  int64_t end = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    begin = std::min(begin, records[i].start_monotonic_ns + offsets[i]);
    end = std::max(end, records[i].last_ns() + offsets[i]);
  }
  std::map<uint64_t, size_t> tracks;
  for (size_t t = 0; t < joined.groups.size(); ++t) tracks[joined.groups[t].id] = t;
  Trace trace;
  for (size_t i = 0; i < records.size(); ++i) {
    const RankRecord& record = records[i];
    const int64_t shift = offsets[i] - begin;
    trace.Add(NameEvent("process_name", record.rank, 0,
                        fmt::format("rank {} ({})", record.rank, record.host)));
    for (const RecordedGroup& group : record.groups) {
      trace.Add(NameEvent("thread_name", record.rank, tracks.at(group.id), group.name));
    }
    for (const RecordedCall& call : record.calls) {
      const size_t track = tracks.at(call.group);
      const std::string name = call.node.empty() ? NameOf(call.kind, {}) : call.node;
      const int64_t left = call.done() ? call.done_ns + shift : end - begin;
      json slice = Slice(name, "collective", record.rank, track, call.entered_ns + shift, left);
      slice["args"] = Arguments(call, joined.groups[track].name);
      trace.Add(slice);
      const int64_t arrived = call.arrived_ns == 0 ? left : call.arrived_ns + shift;
      trace.Add(
          Slice("wait for arrival", "wait", record.rank, track, call.entered_ns + shift, arrived));
    }
  }
  return trace.Text();
}

}  // namespace npumesh
