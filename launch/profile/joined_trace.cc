#include "launch/profile/joined_trace.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "launch/profile/profile_facts.h"
#include "launch/profile/rank_parts.h"
#include "runtime/base/text/json.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr size_t kPieceBytes = 1 << 20;
constexpr uint64_t kRoomAtTheEnd = uint64_t{16} << 10;
constexpr int kStepTrack = 0;

int TrackOf(const Span& span) {
  return span.kind == SpanKind::kIteration ? kStepTrack : span.lane + 1;
}

// Trace times are microseconds; three digits after the point keep every nanosecond.
std::string MicrosecondsText(int64_t ns) {
  const int64_t size = std::abs(ns);
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

std::string Quoted(std::string_view text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

// Collects events into pieces for the sink, and counts.
class EventWriter {
 public:
  explicit EventWriter(const TextSink& sink) : sink_(sink) {}

  void Add(std::string_view event) {
    piece_ += events_++ == 0 ? "\n" : ",\n";
    piece_ += event;
  }
  void AddText(std::string_view text) { piece_ += text; }
  // Gives away what has come together. Error: the sink's.
  Status Pass(size_t at_least) {
    if (piece_.size() < at_least || piece_.empty()) return Status();
    passed_ += piece_.size();
    const Status status = sink_(piece_);
    piece_.clear();
    return status;
  }
  uint64_t bytes() const { return passed_ + piece_.size(); }

 private:
  const TextSink& sink_;
  std::string piece_;
  uint64_t events_ = 0;
  uint64_t passed_ = 0;
};

// The arrow from the last member of a call to another one.
struct Arrow {
  uint64_t id = 0;
  int64_t from_ns = 0;  // when the last one entered
};

// Arrows that begin or end at a span.
struct SpanArrows {
  std::vector<Arrow> begins;
  std::vector<Arrow> ends;
};
using ArrowsBySpan = std::unordered_map<const Span*, SpanArrows>;

ArrowsBySpan ArrowsOf(const CollectiveCalls& calls, const CommonClock& clock) {
  ArrowsBySpan arrows;
  uint64_t id = 0;
  for (size_t c = 0; c < calls.size(); ++c) {
    const auto entered = [&](const CallMember& member) {
      return clock.At(member.profile, member.span->begin_ns);
    };
    const CallMember& last = *std::ranges::max_element(calls[c], {}, entered);
    for (const CallMember& member : calls[c]) {
      if (member.span == last.span) continue;
      const Arrow arrow{++id, entered(last)};
      arrows[last.span].begins.push_back(arrow);
      arrows[member.span].ends.push_back(arrow);
    }
  }
  return arrows;
}

// One rank's events.
class RankTrace {
 public:
  RankTrace(const std::vector<RankProfile>& profiles, size_t number, const CommonClock& clock,
            const ArrowsBySpan& arrows, EventWriter& out)
      : profile_(profiles[number]), number_(number), clock_(clock), arrows_(arrows), out_(out) {}

  void AddNames() {
    const ProfileOwner& owner = profile_.owner;
    AddName("process_name", kStepTrack, fmt::format("rank {} ({})", owner.rank, owner.host));
    out_.Add(fmt::format(
        R"({{"ph":"M","name":"process_sort_index","pid":{0},"tid":0,"args":{{"sort_index":{0}}}}})",
        owner.rank));
    std::set<uint16_t> lanes;
    bool has_steps = false;
    for (const Span& span : profile_.spans) {
      if (span.kind == SpanKind::kIteration) {
        has_steps = true;
      } else if (span.kind != SpanKind::kMemory) {
        lanes.insert(span.lane);
      }
    }
    if (has_steps) AddName("thread_name", kStepTrack, "steps");
    for (const uint16_t lane : lanes) AddName("thread_name", lane + 1, LaneName(lane));
  }

  void AddSpan(const Span& span) {
    switch (span.kind) {
      case SpanKind::kMemory:
        AddCounter("HBM in use", span.begin_ns, span.bytes);
        break;
      case SpanKind::kCollective:
      case SpanKind::kMessage:
        AddCall(span);
        moved_ += span.bytes;
        AddCounter("bytes on the wire", span.end_ns, moved_);
        break;
      default:
        AddSlice(span, {span.begin_ns, span.end_ns}, SpanName(profile_, span), CategoryOf(span),
                 ArgumentsOf(span));
    }
  }

 private:
  static std::string_view CategoryOf(const Span& span) {
    switch (span.kind) {
      case SpanKind::kIteration:
        return "step";
      case SpanKind::kTask:
        return "operator";
      case SpanKind::kCopy:
        return "copy";
      case SpanKind::kApi:
        return "api";
      case SpanKind::kCompile:
        return "compile";
      default:
        return "other";
    }
  }

  std::string Time(int64_t local_ns) const {
    return MicrosecondsText(clock_.At(number_, local_ns));
  }

  void AddName(std::string_view what, int track, const std::string& name) {
    out_.Add(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                         profile_.owner.rank, track, Quoted(name)));
  }

  void AddSlice(const Span& span, Stretches::Stretch time, const std::string& name,
                std::string_view category, const std::string& arguments) {
    out_.Add(fmt::format(
        R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{}}})",
        Quoted(name), category, profile_.owner.rank, TrackOf(span), Time(time.begin_ns),
        MicrosecondsText(time.end_ns - time.begin_ns), arguments));
  }

  void AddCounter(std::string_view name, int64_t local_ns, uint64_t bytes) {
    out_.Add(
        fmt::format(R"({{"ph":"C","name":"{}","pid":{},"tid":0,"ts":{},"args":{{"bytes":{}}}}})",
                    name, profile_.owner.rank, Time(local_ns), bytes));
  }

  void AddCall(const Span& span) {
    const std::string name = SpanName(profile_, span);
    const std::string arguments = ArgumentsOf(span);
    const Stretches::Stretch waiting = WaitingTime(span);
    if (waiting.end_ns > waiting.begin_ns) {
      AddSlice(span, waiting, "waiting: " + name, "waiting", arguments);
    }
    AddSlice(span, MovingTime(span), name,
             span.kind == SpanKind::kMessage ? "message" : "collective", arguments);
    const auto found = arrows_.find(&span);
    if (found == arrows_.end()) return;
    for (const Arrow& arrow : found->second.begins) {
      AddArrowEnd("s", "", arrow, span, arrow.from_ns);
    }
    const int64_t arrived = clock_.At(number_, MovingTime(span).begin_ns);
    for (const Arrow& arrow : found->second.ends) {
      AddArrowEnd("f", R"("bp":"e",)", arrow, span, std::max(arrived, arrow.from_ns));
    }
  }

  void AddArrowEnd(std::string_view phase, std::string_view binding, const Arrow& arrow,
                   const Span& span, int64_t common_ns) {
    out_.Add(fmt::format(
        R"({{"ph":"{}",{}"name":"last to enter","cat":"collective","id":{},"pid":{},"tid":{},"ts":{}}})",
        phase, binding, arrow.id, profile_.owner.rank, TrackOf(span), MicrosecondsText(common_ns)));
  }

  std::string ArgumentsOf(const Span& span) const {
    json arguments = {{"step", span.iteration}};
    if (span.bytes != 0) arguments["bytes"] = span.bytes;
    if (span.group != 0) {
      arguments["group"] = profile_.group(span).name;
      arguments["call"] = span.number;
    }
    if (span.subject != 0) AddTask(profile_.task(span), arguments);
    return arguments.dump(-1, ' ', false, json::error_handler_t::replace);
  }

  static void AddTask(const ProfiledTask& task, json& arguments) {
    const auto add_text = [&](const char* key, const std::string& text) {
      if (!text.empty()) arguments[key] = text;
    };
    const auto add_list = [&](const char* key, const std::vector<std::string>& list) {
      if (!list.empty()) arguments[key] = list;
    };
    add_text("type", task.type);
    add_text("kernel", task.kernel);
    add_text("algorithm", task.algorithm);
    add_text("data_type", task.data_type);
    add_list("input_shapes", task.input_shapes);
    add_list("input_types", task.input_types);
    add_list("output_shapes", task.output_shapes);
    if (task.count != 0) arguments["count"] = task.count;
    if (task.flops != 0) arguments["flops"] = task.flops;
    if (task.peer >= 0) arguments["peer"] = task.peer;
  }

  const RankProfile& profile_;
  size_t number_;
  const CommonClock& clock_;
  const ArrowsBySpan& arrows_;
  EventWriter& out_;
  uint64_t moved_ = 0;  // bytes of calls so far
};

std::string Ending(const CommonClock& clock, const CauseCheck& causes,
                   const TraceSummary& summary) {
  const json about = {{"clock_bound_ns", clock.bound_ns()},
                      {"clock_guessed", clock.guessed()},
                      {"hosts", clock.hosts()},
                      {"collectives_checked", causes.calls},
                      {"effects_before_causes", causes.violations},
                      {"spans", summary.spans},
                      {"spans_left_out", summary.left_out}};
  return fmt::format("\n],\"displayTimeUnit\":\"ns\",\"otherData\":{}}}\n", about.dump());
}

}  // namespace

std::string LaneName(uint16_t lane) {
  switch (lane) {
    case kComputeLane:
      return "compute stream";
    case kCommunicationLane:
      return "communication stream";
    case kHostLane:
      return "host";
    default:
      return fmt::format("stream {}", lane);
  }
}

std::string SpanName(const RankProfile& profile, const Span& span) {
  if (span.kind == SpanKind::kIteration) return fmt::format("step {}", span.number);
  if (span.subject != 0) {
    const ProfiledTask& task = profile.task(span);
    return task.name.empty() ? task.type : task.name;
  }
  switch (span.kind) {
    case SpanKind::kCollective:
      return "collective";
    case SpanKind::kMessage:
      return "message";
    case SpanKind::kCopy:
      return "copy";
    case SpanKind::kCompile:
      return "plan";
    default:
      return "task";
  }
}

Result<TraceSummary> WriteTrace(const std::vector<RankProfile>& profiles,
                                const CollectiveCalls& calls, const CommonClock& clock,
                                const TextSink& sink, uint64_t most_bytes) {
  const ArrowsBySpan arrows = ArrowsOf(calls, clock);
  EventWriter out(sink);
  TraceSummary summary;
  // The last span, which may begin just before, and the ending stay below the limit.
  const uint64_t spans_end = most_bytes - std::min(kRoomAtTheEnd, most_bytes / 8);
  out.AddText("{\"traceEvents\":[");
  for (size_t p = 0; p < profiles.size(); ++p) {
    RankTrace rank(profiles, p, clock, arrows, out);
    rank.AddNames();
    const uint64_t left = spans_end - std::min(spans_end, out.bytes());
    const uint64_t most_here = out.bytes() + left / (profiles.size() - p);
    for (size_t s = 0; s < profiles[p].spans.size(); ++s) {
      if (out.bytes() >= most_here) {
        summary.left_out += profiles[p].spans.size() - s;
        break;
      }
      rank.AddSpan(profiles[p].spans[s]);
      ++summary.spans;
      NPUMESH_RETURN_IF_ERROR(out.Pass(kPieceBytes));
    }
  }
  out.AddText(Ending(clock, CheckCauses(calls, clock), summary));
  NPUMESH_RETURN_IF_ERROR(out.Pass(0));
  summary.bytes = out.bytes();
  return summary;
}

}  // namespace npumesh
