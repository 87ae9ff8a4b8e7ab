#include "launch/record/record_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>

#include "collectives/contract/flight_layout.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/process/host_name.h"
#include "runtime/base/process/process_state.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

using flight::CallEntry;
using flight::GroupRow;
using flight::NoticeEntry;
using flight::RecordHeader;
using flight::Stage;
using flight::State;

constexpr uint64_t kMostBytes = uint64_t{1} << 30;
constexpr uint32_t kMostGroups = 1 << 16;
constexpr uint64_t kMostCalls = 1 << 22;
constexpr uint32_t kMostNotices = 1 << 16;
constexpr int kMostRanks = 1 << 20;
constexpr int64_t kLatestNs = int64_t{1} << 61;  // sums of two times stay in range

// The text up to its zero, with unprintable characters made visible.
template <size_t N>
std::string Text(const char (&source)[N]) {
  std::string text(source, strnlen(source, N));
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) c = '?';
  }
  return text;
}

template <typename T>
T Take(std::string_view bytes, uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

bool IsTime(int64_t ns) {
  return ns >= 0 && ns <= kLatestNs;
}

// What is wrong with the header; OK when the rest can be read.
Status CheckHeader(const RecordHeader& h, uint64_t file_bytes) {
  if (std::memcmp(h.magic, flight::kMagic.data(), flight::kMagic.size()) != 0) {
    return Error(Code::kCorrupt, "it does not begin as a flight record does");
  }
  if (h.byte_order != flight::kByteOrder) {
    return Error(Code::kCorrupt,
                 "it has the byte order of another machine; read it on one like the writer's");
  }
  if (h.version < flight::kOldestVersion || h.version > flight::kVersion) {
    return Error(Code::kCorrupt,
                 "it has version {}, this npumesh reads {} to {}; use the npumesh that wrote it",
                 h.version, flight::kOldestVersion, flight::kVersion);
  }
  if (h.header_bytes != sizeof(RecordHeader) || h.group_bytes != sizeof(GroupRow) ||
      h.entry_bytes != sizeof(CallEntry)) {
    return Error(Code::kCorrupt, "it states parts of {}, {} and {} bytes, expected {}, {} and {}",
                 h.header_bytes, h.group_bytes, h.entry_bytes, sizeof(RecordHeader),
                 sizeof(GroupRow), sizeof(CallEntry));
  }
  const uint32_t notice_bytes = h.version < flight::kVersion ? 0 : sizeof(NoticeEntry);
  if (h.notice_bytes != notice_bytes) {
    return Error(Code::kCorrupt, "it states notices of {} bytes, expected {}", h.notice_bytes,
                 notice_bytes);
  }
  if (h.group_capacity > kMostGroups || h.call_capacity == 0 || h.call_capacity > kMostCalls ||
      h.notice_capacity > (notice_bytes == 0 ? 0 : kMostNotices)) {
    return Error(Code::kCorrupt, "it states room for {} groups, {} calls and {} notices",
                 h.group_capacity, h.call_capacity, h.notice_capacity);
  }
  if (flight::PlacesOf(h).bytes != file_bytes) {
    return Error(Code::kCorrupt, "it has {} bytes, expected {}; was it copied whole?", file_bytes,
                 flight::PlacesOf(h).bytes);
  }
  if (h.world_size < 1 || h.world_size > kMostRanks || h.rank < 0 || h.rank >= h.world_size) {
    return Error(Code::kCorrupt, "it states rank {} of {}", h.rank, h.world_size);
  }
  if (h.state < static_cast<uint32_t>(State::kRunning) ||
      h.state > static_cast<uint32_t>(State::kAbandoned)) {
    return Error(Code::kCorrupt, "it states {} as its end", h.state);
  }
  for (const int64_t time :
       {h.start_monotonic_ns, h.start_realtime_ns, h.end_monotonic_ns, h.soft_timeout_ns}) {
    if (!IsTime(time)) return Error(Code::kCorrupt, "it states {} ns as a time", time);
  }
  return Status();
}

// False for an entry that makes no sense.
bool Sensible(const CallEntry& e, uint64_t index, const RecordHeader& h) {
  return (e.sequence - 1) % h.call_capacity == index && e.sequence <= h.calls &&
         e.stage >= static_cast<uint32_t>(Stage::kEntered) &&
         e.stage <= static_cast<uint32_t>(Stage::kDone) &&
         e.status <= static_cast<uint32_t>(Code::kInternal) && IsTime(e.entered_ns) &&
         IsTime(e.arrived_ns) && IsTime(e.done_ns);
}

RecordedCall ToCall(const CallEntry& e) {
  RecordedCall call;
  call.sequence = e.sequence;
  call.group = e.group;
  call.call = e.call;
  call.count = e.count;
  call.fingerprint = e.fingerprint;
  call.entered_ns = e.entered_ns;
  call.arrived_ns = e.arrived_ns;
  call.done_ns = e.done_ns;
  call.kind = static_cast<CollectiveKind>(e.kind);
  call.dtype = e.dtype;
  call.op = e.op;
  call.root = e.root;
  call.stage = static_cast<Stage>(e.stage);
  call.status = static_cast<Code>(e.status);
  call.node = Text(e.node);
  return call;
}

bool Sensible(const NoticeEntry& e, uint64_t index, const RecordHeader& h) {
  return (e.sequence - 1) % h.notice_capacity == index && e.sequence <= h.notices &&
         e.reason >= static_cast<uint32_t>(WaitReason::kLate) &&
         e.reason <= static_cast<uint32_t>(WaitReason::kCircle) && e.gave_up <= 1 &&
         IsTime(e.time_ns) && IsTime(e.waited_ns);
}

RecordedNotice ToNotice(const NoticeEntry& e, int world_size) {
  RecordedNotice recorded;
  recorded.time_ns = e.time_ns;
  WaitNotice& notice = recorded.notice;
  notice.gave_up = e.gave_up != 0;
  notice.reason = static_cast<WaitReason>(e.reason);
  notice.ranks = RanksIn(Text(e.ranks), world_size);
  notice.group = e.group;
  notice.call = e.call;
  notice.waited =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::nanoseconds(e.waited_ns));
  notice.text = Text(e.text);
  return recorded;
}

void ReadNotices(std::string_view bytes, const RecordHeader& h, RankRecord& record) {
  const uint64_t start = flight::PlacesOf(h).notices;
  const uint64_t used = std::min<uint64_t>(h.notices, h.notice_capacity);
  std::map<uint64_t, RecordedNotice> notices;  // by sequence
  for (uint64_t i = 0; i < used; ++i) {
    const auto entry = Take<NoticeEntry>(bytes, start + i * sizeof(NoticeEntry));
    if (entry.sequence == 0) continue;
    if (Sensible(entry, i, h)) {
      notices[entry.sequence] = ToNotice(entry, h.world_size);
    } else {
      ++record.damaged;
    }
  }
  for (auto& [sequence, notice] : notices) record.notices.push_back(std::move(notice));
  record.forgotten_notices = h.notices - used;
}

void ReadGroups(std::string_view bytes, const RecordHeader& h, RankRecord& record) {
  const uint64_t start = flight::PlacesOf(h).groups;
  const uint32_t rows = std::min(h.groups, h.group_capacity);
  record.has_all_groups = h.groups <= h.group_capacity;
  for (uint32_t i = 0; i < rows; ++i) {
    const auto row = Take<GroupRow>(bytes, start + i * sizeof(GroupRow));
    if (row.id == 0) continue;
    record.groups.push_back({row.id, row.size, row.group_rank, Text(row.name), Text(row.members)});
  }
}

void ReadCalls(std::string_view bytes, const RecordHeader& h, RankRecord& record) {
  const uint64_t start = flight::PlacesOf(h).calls;
  const uint64_t used = std::min(h.calls, h.call_capacity);
  for (uint64_t i = 0; i < used; ++i) {
    const auto entry = Take<CallEntry>(bytes, start + i * sizeof(CallEntry));
    if (entry.sequence == 0) continue;  // its rank was stopped in the middle of writing it
    if (Sensible(entry, i, h)) {
      record.calls.push_back(ToCall(entry));
    } else {
      ++record.damaged;
    }
  }
  std::sort(record.calls.begin(), record.calls.end(),
            [](const RecordedCall& a, const RecordedCall& b) { return a.sequence < b.sequence; });
  record.forgotten = h.calls - used;
}

// True when `found(first, last)` is for one of the ranges of "0-3,8"; false, too, from the first
// part on that is no range.
template <typename Found>
bool VisitRanges(std::string_view text, Found found) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const size_t dash = std::min(part.find('-'), part.size());
    const auto first = ParseInt(part.substr(0, dash), 0, kMostRanks, "rank");
    const auto last =
        dash == part.size() ? first : ParseInt(part.substr(dash + 1), 0, kMostRanks, "rank");
    if (!first.ok() || !last.ok()) return false;
    if (found(static_cast<int>(*first), static_cast<int>(*last))) return true;
  }
  return false;
}

// The R of "rank_<R>.npr"; an error for other names.
Result<int64_t> RankOfName(std::string_view name) {
  constexpr std::string_view kFront = "rank_";
  constexpr std::string_view kBack = ".npr";
  if (!name.starts_with(kFront) || !name.ends_with(kBack)) {
    return Error(Code::kNotFound, "{} is no record", name);
  }
  name.remove_prefix(kFront.size());
  name.remove_suffix(kBack.size());
  return ParseInt(name, 0, kMostRanks, "rank");
}

}  // namespace

int64_t RankRecord::last_ns() const {
  int64_t last = std::max(start_monotonic_ns, end_monotonic_ns);
  for (const RecordedCall& call : calls) {
    last = std::max({last, call.entered_ns, call.arrived_ns, call.done_ns});
  }
  for (const RecordedNotice& notice : notices) last = std::max(last, notice.time_ns);
  return last;
}

bool RankRecord::HasGroup(uint64_t id) const {
  return std::any_of(groups.begin(), groups.end(),
                     [id](const RecordedGroup& row) { return row.id == id; });
}

bool RecordedGroup::HasMember(int world_rank) const {
  return VisitRanges(members, [world_rank](int first, int last) {
    return first <= world_rank && world_rank <= last;
  });
}

std::vector<int> RanksIn(std::string_view text, int size) {
  std::vector<int> ranks;
  const bool strange = VisitRanges(text, [&](int first, int last) {
    if (last >= size || (!ranks.empty() && first <= ranks.back())) return true;
    for (int rank = first; rank <= last; ++rank) ranks.push_back(rank);
    return false;
  });
  return strange ? std::vector<int>() : ranks;
}

Result<RankRecord> ParseRecord(std::string_view bytes, const std::string& path) {
  if (bytes.size() < sizeof(RecordHeader)) {
    return Error(Code::kCorrupt, "{} is no flight record: it has {} bytes, expected at least {}",
                 path, bytes.size(), sizeof(RecordHeader));
  }
  const auto header = Take<RecordHeader>(bytes, 0);
  NPUMESH_RETURN_IF_ERROR(
      CheckHeader(header, bytes.size()).WithContext(path + " cannot be read as a flight record"));
  RankRecord record;
  record.path = path;
  record.rank = header.rank;
  record.world_size = header.world_size;
  record.node = header.node;
  record.process = header.process;
  record.start_monotonic_ns = header.start_monotonic_ns;
  record.start_realtime_ns = header.start_realtime_ns;
  record.end_monotonic_ns = header.end_monotonic_ns;
  record.state = static_cast<State>(header.state);
  record.host = Text(header.host);
  record.boot_id = Text(header.boot_id);
  record.soft_timeout_ns = header.soft_timeout_ns;
  record.process_start = header.process_start;
  record.process_space = header.process_space;
  ReadGroups(bytes, header, record);
  ReadCalls(bytes, header, record);
  ReadNotices(bytes, header, record);
  return record;
}

ProcessFate FateOf(const RankRecord& record) {
  const bool here = record.process_start != 0 && record.boot_id == BootId() &&
                    record.process_space == ProcessSpace() && ProcessSpace() != 0;
  if (!here || record.state != State::kRunning) return ProcessFate::kUnknown;
  const char state = ProcessState(record.process);
  const bool same = ProcessStart(record.process) == record.process_start;
  if (!same || state == 0 || state == 'Z' || state == 'X') return ProcessFate::kGone;
  return state == 'T' || state == 't' ? ProcessFate::kStopped : ProcessFate::kRunning;
}

Result<std::vector<RankRecord>> ReadRecords(const std::string& folder) {
  std::error_code failed;
  std::vector<std::pair<int64_t, std::string>> files;
  for (auto it = std::filesystem::directory_iterator(folder, failed);
       !failed && it != std::filesystem::directory_iterator(); it.increment(failed)) {
    const std::string name = it->path().filename().string();
    const Result<int64_t> rank = RankOfName(name);
    if (rank.ok() && name == fmt::format("rank_{}.npr", *rank))
      files.emplace_back(*rank, it->path().string());
  }
  if (failed) return Error(Code::kNotFound, "cannot read folder {}: {}", folder, failed.message());
  if (files.empty()) {
    return Error(Code::kNotFound,
                 "{} has no rank_<R>.npr; start the ranks with NPUMESH_RECORD set to a folder",
                 folder);
  }
  std::sort(files.begin(), files.end());
  std::vector<RankRecord> records;
  for (const auto& [rank, path] : files) {
    NPUMESH_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMostBytes));
    NPUMESH_ASSIGN_OR_RETURN(RankRecord record, ParseRecord(bytes, path));
    if (record.rank != rank) {
      return Error(Code::kCorrupt, "{} is the record of rank {}; was it renamed?", path,
                   record.rank);
    }
    record.fate = FateOf(record);
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace npumesh
