#include "launch/profile/profile_page.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <unordered_map>

#include "launch/page/page.h"
#include "launch/profile/joined_trace.h"
#include "launch/profile/profile_report.h"
#include "launch/profile/rank_parts.h"
#include "launch/profile/units.h"
#include "runtime/base/text/json.h"

namespace npumesh {
namespace {

using nlohmann::json;

std::string Dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Texts that many spans share, by their index.
class TextTable {
 public:
  int64_t IndexOf(const std::string& text) {
    const auto [found, is_new] = indices_.try_emplace(text, texts_.size());
    if (is_new) texts_.push_back(text);
    return static_cast<int64_t>(found->second);
  }
  std::string Text() const { return Dumped(texts_); }

 private:
  std::unordered_map<std::string, size_t> indices_;
  std::vector<std::string> texts_;
};

// A list of numbers as it grows.
class NumberList {
 public:
  void Add(int64_t number) {
    text_ += text_.empty() ? "" : ",";
    text_ += std::to_string(number);
  }
  std::string Text() const { return "[" + text_ + "]"; }

 private:
  std::string text_;
};

int64_t LengthOf(const Span& span) {
  return span.end_ns - span.begin_ns;
}

bool IsDrawn(const Span& span) {
  return span.kind != SpanKind::kMemory;
}

// The spans that are drawn: all, or the longest. Of equally long ones the first.
class LongestSpans {
 public:
  LongestSpans(const std::vector<RankProfile>& profiles, size_t most) {
    std::vector<int64_t> lengths;
    for (const RankProfile& profile : profiles) {
      for (const Span& span : profile.spans) {
        if (IsDrawn(span)) lengths.push_back(LengthOf(span));
      }
    }
    if (lengths.size() <= most) return;
    left_out_ = lengths.size() - most;
    std::ranges::nth_element(lengths, lengths.begin() + static_cast<ptrdiff_t>(left_out_));
    shortest_ = lengths[left_out_];
    for (size_t i = left_out_; i < lengths.size(); ++i) room_ += lengths[i] == shortest_ ? 1 : 0;
  }

  bool Takes(const Span& span) {
    const int64_t length = LengthOf(span);
    if (left_out_ == 0 || length > shortest_) return true;
    if (length < shortest_ || room_ == 0) return false;
    --room_;
    return true;
  }
  uint64_t left_out() const { return left_out_; }

 private:
  uint64_t left_out_ = 0;
  int64_t shortest_ = 0;
  uint64_t room_ = 0;  // for spans that are as long as the shortest
};

// Spans of a lane that are not drawn one by one: what they take of equal parts of the whole time.
class RestOfLane {
 public:
  // `begin_ns` on the common clock; `length_ns`: of the whole time.
  void Add(const Span& span, int64_t begin_ns, int64_t length_ns) {
    const int64_t waiting = WaitingTime(span).end_ns - WaitingTime(span).begin_ns;
    Spread(kWaitSlot, begin_ns, begin_ns + waiting, length_ns);
    Spread(static_cast<int>(span.kind), begin_ns + waiting, begin_ns + LengthOf(span), length_ns);
  }

  // Empty: there are none.
  std::string Text() const {
    if (sums_.empty()) return "";
    std::string text;
    for (const auto& [slot, sums] : sums_) {
      NumberList list;
      for (const double sum : sums) list.Add(std::llround(sum));
      text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", slot, list.Text());
    }
    return fmt::format(",\"rest\":{{\"parts\":{},\"sums\":{{{}}}}}", kParts, text);
  }

 private:
  static constexpr int kWaitSlot = 8;  // WAIT of profile.js
  static constexpr int64_t kParts = 2048;

  void Spread(int slot, int64_t begin_ns, int64_t end_ns, int64_t length_ns) {
    if (end_ns <= begin_ns || length_ns <= 0) return;
    std::vector<double>& sums = sums_[slot];
    sums.resize(kParts);
    const double part = static_cast<double>(length_ns) / kParts;
    const auto last =
        std::min(kParts - 1, static_cast<int64_t>(static_cast<double>(end_ns) / part));
    const auto first =
        std::max<int64_t>(0, static_cast<int64_t>(static_cast<double>(begin_ns) / part));
    for (int64_t p = first; p <= last; ++p) {
      const double from = std::max(static_cast<double>(begin_ns), part * static_cast<double>(p));
      const double to = std::min(static_cast<double>(end_ns), part * static_cast<double>(p + 1));
      sums[static_cast<size_t>(p)] += std::max(0.0, to - from);
    }
  }

  std::map<int, std::vector<double>> sums_;  // by slot: a kind, or the waiting of calls
};

// Writes the data of all ranks.
class PageWriter {
 public:
  PageWriter(const CommonClock& clock, LongestSpans& selection)
      : clock_(clock), selection_(selection) {}

  std::string RankText(const RankProfile& profile, size_t number) {
    std::map<uint32_t, std::vector<const Span*>> lanes;
    std::map<uint32_t, RestOfLane> rests;
    for (const Span& span : profile.spans) {
      if (!IsDrawn(span)) continue;
      std::vector<const Span*>& lane = lanes[TrackOfPage(span)];
      if (selection_.Takes(span)) {
        lane.push_back(&span);
      } else {
        rests[TrackOfPage(span)].Add(span, clock_.At(number, span.begin_ns), clock_.length_ns());
      }
    }
    std::string text;
    for (auto& [track, spans] : lanes) {
      text += text.empty() ? "" : ",";
      text += LaneText(profile, number, track, spans, rests[track].Text());
    }
    return fmt::format("{{\"rank\":{},\"host\":{},\"memory\":{},\"lanes\":[{}]}}",
                       profile.owner.rank, Dumped(profile.owner.host), MemoryText(profile, number),
                       text);
  }
  std::string TablesText() const {
    return fmt::format("\"names\":{},\"types\":{},\"groups\":{}", names_.Text(), types_.Text(),
                       groups_.Text());
  }

 private:
  // Steps above all lanes, the host below them.
  static uint32_t TrackOfPage(const Span& span) {
    return span.kind == SpanKind::kIteration ? 0 : uint32_t{span.lane} + 1;
  }

  std::string LaneText(const RankProfile& profile, size_t number, uint32_t track,
                       std::vector<const Span*>& spans, const std::string& rest) {
    // Those that contain others come before them.
    std::ranges::sort(spans, {},
                      [](const Span* span) { return std::pair(span->begin_ns, -span->end_ns); });
    NumberList begin, length, arrived, kind, name, type, group, bytes, step, call;
    int64_t before = 0;
    for (const Span* span : spans) {
      const int64_t at = clock_.At(number, span->begin_ns);
      begin.Add(at - before);
      before = at;
      length.Add(LengthOf(*span));
      const bool meets = span->kind == SpanKind::kCollective || span->kind == SpanKind::kMessage;
      const bool waits = meets && span->arrived_ns != 0;
      arrived.Add(waits ? WaitingTime(*span).end_ns - span->begin_ns : -1);
      kind.Add(static_cast<int64_t>(span->kind));
      name.Add(names_.IndexOf(SpanName(profile, *span)));
      type.Add(span->subject == 0 ? -1 : types_.IndexOf(profile.task(*span).type));
      group.Add(span->group == 0 ? -1 : groups_.IndexOf(profile.group(*span).name));
      bytes.Add(static_cast<int64_t>(span->bytes));
      step.Add(span->iteration);
      call.Add(static_cast<int64_t>(span->number));
    }
    return fmt::format(
        "{{\"name\":{},\"begin\":{},\"length\":{},\"arrived\":{},\"kind\":{},\"span_name\":{},"
        "\"type\":{},\"group\":{},\"bytes\":{},\"step\":{},\"number\":{}{}}}",
        Dumped(track == 0 ? "steps" : LaneName(static_cast<uint16_t>(track - 1))), begin.Text(),
        length.Text(), arrived.Text(), kind.Text(), name.Text(), type.Text(), group.Text(),
        bytes.Text(), step.Text(), call.Text(), rest);
  }

  std::string MemoryText(const RankProfile& profile, size_t number) const {
    NumberList at, bytes;
    int64_t before = 0;
    for (const Span& span : profile.spans) {
      if (span.kind != SpanKind::kMemory) continue;
      const int64_t now = clock_.At(number, span.begin_ns);
      at.Add(now - before);
      before = now;
      bytes.Add(static_cast<int64_t>(span.bytes));
    }
    return fmt::format("{{\"at\":{},\"bytes\":{}}}", at.Text(), bytes.Text());
  }

  const CommonClock& clock_;
  LongestSpans& selection_;
  TextTable names_, types_, groups_;
};

json NotesOf(const ProfileFacts& facts, const std::optional<MachineLimits>& limits,
             uint64_t left_out) {
  json notes = json::array({facts.slowest.text});
  for (const std::string& gap : facts.gaps) notes.push_back("Warning: " + gap + ".");
  for (const std::string& text : {ClockText(facts), CauseText(facts.causes)}) {
    if (!text.empty()) notes.push_back(text);
  }
  if (left_out != 0) {
    notes.push_back(
        fmt::format("The timeline shows the {} shortest spans only as shares of the time; tables "
                    "count them.",
                    left_out));
  }
  if (limits) {
    notes.push_back(
        fmt::format("One core of the machine that made this page: {:.1f} GFLOP/s, "
                    "{:.1f} GB/s.",
                    limits->gflops, limits->gbytes));
  }
  return notes;
}

}  // namespace

std::string PageData(const std::vector<RankProfile>& profiles, const CommonClock& clock,
                     const ProfileFacts& facts, const std::optional<MachineLimits>& limits,
                     const PageOrigin& origin, size_t most_spans, uint64_t& left_out) {
  LongestSpans selection(profiles, most_spans);
  left_out = selection.left_out();
  PageWriter writer(clock, selection);
  std::string ranks;
  for (size_t p = 0; p < profiles.size(); ++p) {
    ranks += ranks.empty() ? "" : ",\n";
    ranks += writer.RankText(profiles[p], p);
  }
  CommandReport report = ProfileReport(facts, limits);
  return fmt::format(
      "{{\"command\":{},\"version\":{},\"written\":{},\n\"facts\":{},\n\"notes\":{},\n"
      "\"length\":{},\n{},\n\"ranks\":[{}]}}",
      Dumped(origin.command), Dumped(origin.version), Dumped(origin.written),
      Dumped(report.details), Dumped(NotesOf(facts, limits, left_out)), clock.length_ns(),
      writer.TablesText(), ranks);
}

ProfilePageText ProfilePage(const std::vector<RankProfile>& profiles, const CommonClock& clock,
                            const ProfileFacts& facts, const std::optional<MachineLimits>& limits,
                            const PageOrigin& origin, size_t most_spans) {
  ProfilePageText page;
  const std::string data =
      PageData(profiles, clock, facts, limits, origin, most_spans, page.left_out);
  const std::string title = fmt::format("npumesh profile: {}", CountText(profiles.size(), "rank")) +
                            (facts.command.empty() ? "" : ", " + facts.command);
  page.html = HtmlPage({.title = title, .texts = ProfileTexts(), .data = data});
  return page;
}

}  // namespace npumesh
