#include "launch/record/foreign/torch_export.h"

#include <algorithm>
#include <array>
#include <map>

#include "launch/record/foreign/foreign_call.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/plain_pickle.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

using nlohmann::json;

// By kind: the name that torch's analyser knows.
constexpr std::array<std::string_view, 14> kNames = {
    "",           "barrier",    "all_reduce", "all_gather", "reduce_scatter",   "broadcast",
    "all_to_all", "all_to_all", "reduce",     "scatter",    "reduce_scatter_v", "all_gather_v",
    "all_to_all", "send"};

// Elements that a rank hands in or gets of a call that counts `count`.
uint64_t ElementsOf(Portion portion, uint64_t count, uint64_t ranks) {
  switch (portion) {
    case Portion::kNothing:
      return 0;
    case Portion::kAllBlocks:
    case Portion::kAllAtRoot:
      return count > ~uint64_t{0} / 2 / std::max<uint64_t>(ranks, 1) ? count : count * ranks;
    case Portion::kBlock:
    case Portion::kBlockAtRoot:
    case Portion::kListed:
      break;
  }
  return count;
}

json Shapes(uint64_t elements) {
  return json::array({json::array({elements})});
}

// [{"name": "step", "filename": "<file>", "line": 42}] of "<file>:42 (step)".
json FramesOf(const std::string& place) {
  const size_t colon = place.rfind(':');
  if (colon == place.npos) return json::array();
  const std::string_view behind = std::string_view(place).substr(colon + 1);
  const size_t open = behind.find(" (");
  int line = 0;
  for (const char c : behind.substr(0, open)) {
    if (c < '0' || c > '9' || line > 100'000'000) return json::array();
    line = line * 10 + (c - '0');
  }
  std::string_view name = open == behind.npos ? "" : behind.substr(open + 2);
  if (name.ends_with(')')) name.remove_suffix(1);
  return json::array({{{"name", name}, {"filename", place.substr(0, colon)}, {"line", line}}});
}

// A group as the analyser wants it.
struct TorchGroup {
  std::string id;
  std::string name;
  std::vector<int> members;
};

json EntryOf(const RecordedCall& call, const TorchGroup& group, const RankRecord& record,
             uint64_t index) {
  const auto kind =
      static_cast<size_t>(call.kind) < kNames.size() ? call.kind : CollectiveKind::kBarrier;
  const bool message = kind == CollectiveKind::kSendRecv;
  std::string title = fmt::format("hccl:{}", kNames[static_cast<size_t>(kind)]);
  const uint64_t ranks = group.members.size();
  const KindTraits& traits = TraitsOf(kind);
  uint64_t sent =
      call.sent + call.received != 0 ? call.sent : ElementsOf(traits.send, call.count, ranks);
  uint64_t received =
      call.sent + call.received != 0 ? call.received : ElementsOf(traits.recv, call.count, ranks);
  if (message) {  // "0 -> 1 of tp", by world ranks; the analyser wants places in the group
    const bool sends = group.name.starts_with(fmt::format("{} -> ", record.rank));
    const bool first = !group.members.empty() && group.members.front() == record.rank;
    title = fmt::format("hccl:{} {}{}{}", sends ? "send" : "recv", first ? 0 : 1,
                        sends ? "->" : "<-", first ? 1 : 0);
    sent = sends ? call.count : 0;
    received = sends ? 0 : call.count;
  }
  const int64_t shift = record.start_realtime_ns - record.start_monotonic_ns;
  const auto time = [shift](int64_t ns) { return ns == 0 ? json() : json(ns + shift); };
  const bool completed = call.done() && call.status == Code::kOk;
  const json types = json::array({TorchNameOf(static_cast<DataType>(call.dtype))});
  const bool counted = kind != CollectiveKind::kBarrier;
  return {
      {"record_id", index},
      {"pg_id", 0},
      {"process_group", json::array({group.id, group.name})},
      {"collective_seq_id", call.call},
      {"p2p_seq_id", message ? call.call : 0},
      {"op_id", index},
      {"profiling_name", title},
      {"time_created_ns", call.entered_ns + shift},
      {"input_sizes",
       counted && (!message || sent != 0 || received == 0) ? Shapes(sent) : json::array()},
      {"input_dtypes", counted ? types : json::array()},
      {"output_sizes", counted && (!message || received != 0) ? Shapes(received) : json::array()},
      {"output_dtypes", counted ? types : json::array()},
      {"state", completed     ? "completed"
                : call.queued ? "scheduled"
                              : "started"},
      {"time_discovered_started_ns", time(call.queued ? 0 : call.entered_ns)},
      {"time_discovered_completed_ns", completed ? time(call.done_ns) : json()},
      {"retired", call.done()},
      {"timeout_ms", 0},
      {"is_p2p", message},
      {"frames", FramesOf(call.place)}};
}

}  // namespace

json TorchDump(const RankRecord& record, const Joined& joined) {
  std::map<uint64_t, TorchGroup> groups;
  for (const JoinedGroup& group : joined.groups) {
    if (!group.last.contains(record.rank)) continue;
    TorchGroup& made = groups[group.id];
    made = {fmt::format("{:016x}", group.id), group.name, group.members};
    for (const RecordedGroup& row : record.groups) {
      if (row.id != group.id) continue;
      const std::vector<int> all = RanksIn(row.members, record.world_size);
      if (all.size() == row.size && all.size() > made.members.size()) made.members = all;
    }
  }
  json config = json::object();
  for (const auto& [id, group] : groups) {
    std::string ranks;
    for (const int rank : group.members)
      ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
    config[group.id] = {
        {"name", group.id}, {"desc", group.name}, {"ranks", fmt::format("[{}]", ranks)}};
  }
  json entries = json::array();
  uint64_t index = record.forgotten;
  for (const RecordedCall& call : record.calls) {
    if (call.creates_group()) continue;
    entries.push_back(EntryOf(call, groups.at(call.group), record, index++));
  }
  return {{"version", "2.10"},
          {"comm_lib_version", "npumesh"},
          {"pg_config", config},
          {"pg_status", json::object()},
          {"entries", entries}};
}

Status WriteTorchDumps(const std::vector<RankRecord>& records, const Joined& joined,
                       const std::string& folder) {
  NPUMESH_RETURN_IF_ERROR(MakeFolders(folder, FileKind::kData));
  for (const RankRecord& record : records) {
    NPUMESH_RETURN_IF_ERROR(WriteFile(fmt::format("{}/npumesh_trace_rank_{}", folder, record.rank),
                                      WritePlainPickle(TorchDump(record, joined)),
                                      FileKind::kData));
  }
  return Status();
}

}  // namespace npumesh
