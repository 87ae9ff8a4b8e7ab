#include "tests/unit/record/records.h"

#include <cstring>

#include "collectives/contract/flight_layout.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh::testing {
namespace {

constexpr uint32_t kGroups = 16;
constexpr uint64_t kCalls = 16;
constexpr uint32_t kNotices = 4;

template <size_t N>
void CopyText(const std::string& text, char (&target)[N]) {
  std::memcpy(target, text.data(), std::min(text.size(), N - 1));
}

template <typename T>
void Append(std::string& bytes, const T& part) {
  bytes.append(reinterpret_cast<const char*>(&part), sizeof(part));
}

flight::RecordHeader HeaderOf(const RankRecord& record) {
  flight::RecordHeader header = flight::EmptyHeader(kGroups, kCalls, kNotices);
  header.notices = record.notices.size();
  header.soft_timeout_ns = record.soft_timeout_ns;
  header.process_start = record.process_start;
  header.process_space = record.process_space;
  header.rank = record.rank;
  header.world_size = record.world_size;
  header.process = record.process;
  header.start_monotonic_ns = record.start_monotonic_ns;
  header.start_realtime_ns = record.start_realtime_ns;
  header.end_monotonic_ns = record.end_monotonic_ns;
  header.state = static_cast<uint32_t>(record.state);
  header.groups = static_cast<uint32_t>(record.groups.size());
  header.calls = record.calls.size();
  CopyText(record.host, header.host);
  CopyText(record.boot_id, header.boot_id);
  return header;
}

flight::CallEntry EntryOf(const RecordedCall& call) {
  flight::CallEntry entry{};
  entry.sequence = call.sequence;
  entry.group = call.group;
  entry.call = call.call;
  entry.count = call.count;
  entry.entered_ns = call.entered_ns;
  entry.arrived_ns = call.arrived_ns;
  entry.done_ns = call.done_ns;
  entry.kind = static_cast<uint32_t>(call.kind);
  entry.dtype = call.dtype;
  entry.op = call.op;
  entry.root = call.root;
  entry.stage = static_cast<uint32_t>(call.stage);
  entry.status = static_cast<uint32_t>(call.status);
  CopyText(call.node, entry.node);
  return entry;
}

flight::NoticeEntry EntryOf(const RecordedNotice& recorded, uint64_t sequence) {
  const WaitNotice& notice = recorded.notice;
  flight::NoticeEntry entry{};
  entry.sequence = sequence;
  entry.group = notice.group;
  entry.call = notice.call;
  entry.time_ns = recorded.time_ns;
  entry.waited_ns = std::chrono::nanoseconds(notice.waited).count();
  entry.gave_up = notice.gave_up ? 1 : 0;
  entry.reason = static_cast<uint32_t>(notice.reason);
  CopyText(RangeText(notice.ranks), entry.ranks);
  CopyText(notice.text, entry.text);
  return entry;
}

}  // namespace

RankRecord RecordOf(int rank, int world_size) {
  RankRecord record;
  record.path = fmt::format("rank_{}.npr", rank);
  record.rank = rank;
  record.world_size = world_size;
  record.process = 100 + rank;
  record.start_monotonic_ns = 1000;
  record.start_realtime_ns = 1'700'000'000'000'000'000;
  record.end_monotonic_ns = 1'000'000;
  record.state = flight::State::kShutDown;
  record.host = "h";
  record.boot_id = "b";
  return record;
}

void AddGroup(RankRecord& record, uint64_t id, const std::string& name,
              const std::string& members) {
  record.groups.push_back({id, 2, 0, name, members});
}

RecordedCall& AddCall(RankRecord& record, uint64_t group, uint64_t call, int64_t at_ns) {
  RecordedCall entry;
  entry.sequence = record.calls.size() + 1;
  entry.group = group;
  entry.call = call;
  entry.count = 64;
  entry.entered_ns = at_ns;
  entry.arrived_ns = at_ns + 10;
  entry.done_ns = at_ns + 20;
  entry.kind = CollectiveKind::kAllReduce;
  entry.dtype = static_cast<int32_t>(DataType::kFloat);
  entry.stage = flight::Stage::kDone;
  entry.node = "attn";
  return record.calls.emplace_back(std::move(entry));
}

RecordedCall& AddCreation(RankRecord& record, uint64_t group, int64_t at_ns) {
  RecordedCall& call = AddCall(record, group, 0, at_ns);
  call.kind = CollectiveKind::kNone;
  call.count = 0;
  call.node.clear();
  return call;
}

void CutAt(RankRecord& record, flight::Stage stage) {
  RecordedCall& last = record.calls.back();
  last.stage = stage;
  last.done_ns = 0;
  if (stage == flight::Stage::kEntered) last.arrived_ns = 0;
  record.state = flight::State::kRunning;
  record.end_monotonic_ns = 0;
}

std::string ToBytes(const RankRecord& record) {
  std::string bytes;
  Append(bytes, HeaderOf(record));
  for (const RecordedGroup& group : record.groups) {
    flight::GroupRow row{};
    row.id = group.id;
    row.size = group.size;
    row.group_rank = group.group_rank;
    CopyText(group.name, row.name);
    CopyText(group.members, row.members);
    Append(bytes, row);
  }
  bytes.resize(sizeof(flight::RecordHeader) + kGroups * sizeof(flight::GroupRow));
  for (const RecordedCall& call : record.calls) Append(bytes, EntryOf(call));
  bytes.resize(sizeof(flight::RecordHeader) + kGroups * sizeof(flight::GroupRow) +
               kCalls * sizeof(flight::CallEntry));
  for (size_t i = 0; i < record.notices.size(); ++i) {
    Append(bytes, EntryOf(record.notices[i], i + 1));
  }
  bytes.resize(sizeof(flight::RecordHeader) + kGroups * sizeof(flight::GroupRow) +
               kCalls * sizeof(flight::CallEntry) + kNotices * sizeof(flight::NoticeEntry));
  return bytes;
}

}  // namespace npumesh::testing
