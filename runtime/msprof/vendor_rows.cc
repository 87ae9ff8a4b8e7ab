#include "runtime/msprof/vendor_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "runtime/msprof/vendor_names.h"

namespace npumesh {
namespace {

// Whether a span is a copy on a stream; other copies block the program, so they are host rows.
bool IsDeviceCopy(const Span& span) {
  return span.kind == SpanKind::kCopy && span.lane != kHostLane;
}

bool IsHostRow(const Span& span) {
  return span.kind == SpanKind::kIteration || span.kind == SpanKind::kApi ||
         span.kind == SpanKind::kCompile || (span.kind == SpanKind::kCopy && !IsDeviceCopy(span));
}

// Graphs by number, in the order in which they are asked for.
class ModelNumbers {
 public:
  std::optional<uint64_t> Of(const ProfiledTask& task) {
    if (task.graph.empty()) return std::nullopt;
    return numbers_.try_emplace(task.graph, numbers_.size() + 1).first->second;
  }

 private:
  std::unordered_map<std::string, uint64_t> numbers_;
};

class RowBuilder {
 public:
  RowBuilder(const RankProfile& profile, const std::vector<int>& nodes) : nodes_(nodes) {
    rows_.profile = &profile;
    rows_.times = RankTimesOf(profile);
    rows_.device = profile.owner.local_rank;
  }

  VendorRows Build() && {
    AddTasks();
    for (const Span* span : rows_.times.calls) AddCall(*span);
    AddHost();
    return std::move(rows_);
  }

 private:
  const RankProfile& profile() const { return *rows_.profile; }

  void AddTasks() {
    const std::vector<const Span*>& computations = rows_.times.computations;
    const std::vector<int64_t> waits = TaskWaits(computations);
    for (size_t i = 0; i < computations.size(); ++i) AddTask(*computations[i], false, waits[i]);
    for (const Span& span : profile().spans) {
      if (IsDeviceCopy(span)) AddTask(span, true, 0);
    }
    std::stable_sort(
        rows_.tasks.begin(), rows_.tasks.end(),
        [](const TaskRow& a, const TaskRow& b) { return a.span->begin_ns < b.span->begin_ns; });
    for (size_t i = 0; i < rows_.tasks.size(); ++i) rows_.tasks[i].task_id = i;
  }

  void AddTask(const Span& span, bool copy, int64_t wait_ns) {
    TaskRow row;
    row.span = &span;
    row.task = &TaskOf(profile(), span);
    row.copy = copy;
    row.wait_ns = wait_ns;
    row.model = models_.Of(*row.task);
    row.step = rows_.times.StepOf(span);
    rows_.tasks.push_back(row);
  }

  void AddCall(const Span& span) {
    CallRow row;
    row.span = &span;
    row.task = &TaskOf(profile(), span);
    row.kind = CallKind(row.task->type);
    if (row.kind == "invalid") row.kind = CallKind(row.task->name);
    row.group = GroupIndex(span);
    const GroupRow& group = rows_.groups[row.group];
    const auto seen = std::tuple(row.group, row.kind, span.number);
    row.name = CallName(row.kind, group.hash, span.number, ++occurrences_[seen]);
    row.peer = GroupRank(group.group, row.task->peer);
    row.times = CallTimesOf(span);
    row.model = models_.Of(*row.task);
    row.step = rows_.times.StepOf(span);
    rows_.calls.push_back(std::move(row));
  }

  // -1: the group does not have it.
  static int GroupRank(const ProfiledGroup& group, int world_rank) {
    const auto at = std::find(group.world_ranks.begin(), group.world_ranks.end(), world_rank);
    return at == group.world_ranks.end() ? -1 : static_cast<int>(at - group.world_ranks.begin());
  }

  size_t GroupIndex(const Span& span) {
    const auto [at, fresh] = group_indexes_.try_emplace(span.group, rows_.groups.size());
    if (fresh) rows_.groups.push_back(RowOf(span.group == 0 ? Alone() : profile().group(span)));
    return at->second;
  }

  // For calls whose group the profile does not know.
  ProfiledGroup Alone() const {
    ProfiledGroup alone;
    alone.name = "unknown";
    alone.world_ranks = {rows_.owner().rank};
    return alone;
  }

  GroupRow RowOf(const ProfiledGroup& group) const {
    GroupRow row;
    row.group = group;
    row.id = GroupId(group);
    row.hash = GroupHash(row.id);
    row.own = std::max(0, GroupRank(group, rows_.owner().rank));
    for (const int rank : group.world_ranks) row.same_node.push_back(IsNear(rank));
    return row;
  }

  bool IsNear(int world_rank) const {
    if (world_rank < 0 || static_cast<size_t>(world_rank) >= nodes_.size()) return true;
    return nodes_[world_rank] == rows_.owner().node;
  }

  void AddHost() {
    for (const Span& span : profile().spans) {
      if (IsHostRow(span)) rows_.host.push_back(HostRowOf(span));
    }
    std::stable_sort(rows_.host.begin(), rows_.host.end(), [](const HostRow& a, const HostRow& b) {
      return a.span->begin_ns < b.span->begin_ns;
    });
  }

  HostRow HostRowOf(const Span& span) const {
    const std::string& name = TaskOf(profile(), span).name;
    switch (span.kind) {
      case SpanKind::kIteration:
        return {&span, fmt::format("Iteration {}", span.number), "model"};
      case SpanKind::kCompile:
        return {&span, name.empty() ? "compile" : name, "model"};
      case SpanKind::kCopy:
        return {&span, name.empty() ? "copy" : name, "runtime"};
      default:
        return {&span, name.empty() ? "N/A" : name, ApiLevel(name)};
    }
  }

  const std::vector<int>& nodes_;
  VendorRows rows_;
  ModelNumbers models_;
  std::map<std::tuple<size_t, std::string_view, uint64_t>, uint64_t> occurrences_;
  std::unordered_map<uint32_t, size_t> group_indexes_;
};

}  // namespace

bool CallRow::message() const {
  return IsMessageKind(kind);
}

VendorRows VendorRowsOf(const RankProfile& profile, const std::vector<int>& nodes) {
  return RowBuilder(profile, nodes).Build();
}

}  // namespace npumesh
