#include "launch/record/timeline.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "runtime/base/text/json.h"

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
  if (!call.place.empty()) args["place"] = call.place;
  args["status"] = call.done() ? std::string(CodeName(call.status)) : "never left";
  return args;
}

// "attn (allreduce)", "allreduce" without an operator.
std::string NameOfCall(const RecordedCall& call) {
  if (call.creates_group()) return "creation of the group";
  const std::string kind(NameOf(call.kind, {}));
  return call.node.empty() ? kind : fmt::format("{} ({})", call.node, kind);
}

// A moment: `scope` "t" marks a track, "p" a process, "g" the whole trace.
json Instant(const std::string& name, std::string_view scope, int rank, int64_t at_ns) {
  return {{"ph", "i"},   {"name", name}, {"cat", "verdict"},
          {"pid", rank}, {"tid", 0},     {"ts", static_cast<double>(at_ns) / 1e3},
          {"s", scope}};
}

// "wait for rank 2": whom a call waited for.
class Waiting {
 public:
  Waiting(const std::vector<RankRecord>& records, const Joined& joined,
          const std::vector<int64_t>& offsets)
      : joined_(joined) {
    for (size_t i = 0; i < records.size(); ++i) offsets_[records[i].rank] = offsets[i];
    for (const Wait& wait : WaitsOf(records, joined.groups)) {
      waits_[{wait.rank, wait.group}].insert(wait.for_rank);
    }
  }

  std::string TextOf(int rank, size_t group, const RecordedCall& call) const {
    const std::set<int> ranks = call.arrived_ns == 0 ? Missing(rank, call) : Last(group, call);
    if (ranks.empty() || ranks == std::set<int>{rank}) return "wait for arrival";
    return fmt::format("wait for rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
  }

 private:
  std::set<int> Missing(int rank, const RecordedCall& call) const {
    const auto waits = waits_.find({rank, call.group});
    return waits == waits_.end() ? std::set<int>() : waits->second;
  }

  // The member that entered last; empty when not all of them recorded the call.
  std::set<int> Last(size_t group, const RecordedCall& call) const {
    const JoinedGroup& joined = joined_.groups[group];
    const auto members = joined.calls.find(call.call);
    if (members == joined.calls.end() || members->second.size() != joined.members.size()) return {};
    int last = -1;
    int64_t latest = std::numeric_limits<int64_t>::min();
    for (const auto& [rank, entry] : members->second) {
      const int64_t entered = entry->entered_ns + offsets_.at(rank);
      if (entered <= latest) continue;
      latest = entered;
      last = rank;
    }
    return {last};
  }

  const Joined& joined_;
  std::map<int, int64_t> offsets_;                           // by rank
  std::map<std::pair<int, uint64_t>, std::set<int>> waits_;  // of a rank in a group
};

// The blamed ranks, at the last moment of their records, and the problems at the end of the trace.
void AddVerdict(const std::vector<RankRecord>& records, const Joined& joined,
                const std::vector<int64_t>& offsets, int64_t begin, int64_t end, Trace& trace) {
  const std::vector<int>& blamed = joined.blame.ranks;
  const std::string text = BlameText(joined.blame);
  bool is_marked = text.empty();
  for (size_t i = 0; i < records.size(); ++i) {
    const RankRecord& record = records[i];
    if (!std::ranges::binary_search(blamed, record.rank)) continue;
    trace.Add(Instant(text, "p", record.rank, record.last_ns() + offsets[i] - begin));
    is_marked = true;
  }
  const int place = blamed.empty() ? 0 : blamed.front();
  // A rank may be blamed because it left no record.
  if (!is_marked) trace.Add(Instant(text, "g", place, end - begin));
  for (const std::string& problem : joined.problems) {
    trace.Add(Instant(problem, "g", place, end - begin));
  }
}

}  // namespace

std::string TimelineJson(const std::vector<RankRecord>& records, const Joined& joined,
                         uint64_t most_calls) {
  const std::vector<int64_t> offsets = ClockOffsets(records);
  int64_t begin = std::numeric_limits<int64_t>::max();
  int64_t end = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    begin = std::min(begin, records[i].start_monotonic_ns + offsets[i]);
    end = std::max(end, records[i].last_ns() + offsets[i]);
  }
  std::map<uint64_t, size_t> tracks;
  for (size_t t = 0; t < joined.groups.size(); ++t) tracks[joined.groups[t].id] = t;
  const Waiting waiting(records, joined, offsets);
  Trace trace;
  for (size_t i = 0; i < records.size(); ++i) {
    const RankRecord& record = records[i];
    const int64_t shift = offsets[i] - begin;
    trace.Add(NameEvent("process_name", record.rank, 0,
                        fmt::format("rank {} ({})", record.rank, record.host)));
    for (const RecordedGroup& group : record.groups) {
      trace.Add(NameEvent("thread_name", record.rank, tracks.at(group.id), group.name));
    }
    uint64_t left_out = record.calls.size() - std::min<uint64_t>(record.calls.size(), most_calls);
    for (const RecordedCall& call : record.calls) {
      const bool is_old = left_out > 0;
      if (is_old) --left_out;
      if (is_old && call.done()) continue;
      const size_t track = tracks.at(call.group);
      const std::string name = NameOfCall(call);
      const int64_t left = call.done() ? call.done_ns + shift : end - begin;
      json slice = Slice(name, "collective", record.rank, track, call.entered_ns + shift, left);
      slice["args"] = Arguments(call, joined.groups[track].name);
      trace.Add(slice);
      const int64_t arrived = call.arrived_ns == 0 ? left : call.arrived_ns + shift;
      trace.Add(Slice(waiting.TextOf(record.rank, track, call), "wait", record.rank, track,
                      call.entered_ns + shift, arrived));
    }
  }
  AddVerdict(records, joined, offsets, begin, end, trace);
  return trace.Text();
}

}  // namespace npumesh
