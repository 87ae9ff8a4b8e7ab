#include "collectives/contract/flight_record.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "collectives/contract/fixed_text.h"
#include "collectives/contract/flight_layout.h"
#include "runtime/base/files/leftovers.h"
#include "runtime/base/files/path_lock.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/files/system_error.h"
#include "runtime/base/log.h"
#include "runtime/base/process/host_name.h"
#include "runtime/base/process/process_state.h"
#include "runtime/base/text/rank_list.h"
#include "runtime/world/mapping.h"

namespace npumesh {
namespace {

using flight::CallEntry;
using flight::GroupRow;
using flight::NoticeEntry;
using flight::RecordHeader;
using flight::Stage;
using flight::State;

// A store that stays after all stores before it. On x86 it is a plain one.
template <typename T>
void Publish(T& field, T value) {
  std::atomic_ref<T>(field).store(value, std::memory_order_release);
}

int64_t Now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// "0-3,8", cut at a comma so that what is left stays true.
std::string RanksInto(std::span<const int> world_ranks, size_t most) {
  std::vector<int> ranks(world_ranks.begin(), world_ranks.end());
  std::sort(ranks.begin(), ranks.end());
  std::string text = RangeText(ranks);
  if (text.size() <= most) return text;
  const size_t comma = text.rfind(',', most);
  return comma == std::string::npos ? "" : text.substr(0, comma);
}

// Eight bytes at a time: this stands in the path of every call.
uint64_t MixFact(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 32);
}

uint64_t FingerprintOf(const CallFacts& facts) {
  uint64_t hash = MixFact(static_cast<uint64_t>(facts.kind), facts.count);
  hash =
      MixFact(hash, (static_cast<uint64_t>(facts.dtype) << 32) | static_cast<uint32_t>(facts.root));
  hash = MixFact(hash, (static_cast<uint64_t>(facts.op) << 56) ^ facts.call);
  // Graphs may number their operators differently: "HcomAllReduce_3".
  std::string_view node = facts.node.substr(0, facts.node.find_last_not_of("0123456789_") + 1);
  for (; node.size() >= 8; node.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, node.data(), 8);
    hash = MixFact(hash, word);
  }
  uint64_t rest = node.size();
  for (const char c : node) rest = (rest << 8) | static_cast<unsigned char>(c);
  return MixFact(hash, rest);
}

// Creates a file and claims it. The other ranks look for leftovers in the same folder at the same
// time, and may take the file for one before it is claimed: then it is made again.
Result<UniqueFd> CreateClaimed(const std::string& path) {
  constexpr int kMostTries = 1000;
  for (int i = 0; i < kMostTries; ++i) {
    UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     FileMode(FileKind::kDebug)));
    if (!fd && errno != EEXIST) return SystemError("create", path, errno);
    if (fd && ClaimNewFile(fd.get())) return fd;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Error(Code::kIo, "{} was removed by another process each time it was made", path);
}

// Opens a new file of `bytes` zeros whose place on the disk is taken, so that a full disk is an
// error here and not a signal later.
Result<UniqueFd> MakeFile(const std::string& path, uint64_t bytes) {
  NPUMESH_ASSIGN_OR_RETURN(UniqueFd fd, CreateClaimed(path));
  const int reason = posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
  if (reason != 0) {
    (void)RealFileSystem().Remove(path);
    return SystemError(fmt::format("reserve {} bytes for", bytes), path, reason);
  }
  return fd;
}

Status RefuseLink(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return Status();
  return Error(Code::kInvalidArgument,
               "refusing to replace {}: it is {}, not the record of an earlier run", path,
               S_ISLNK(info.st_mode) ? "a symbolic link" : "no regular file");
}

void FillHeader(RecordHeader* header, const FlightRecord::Owner& owner) {
  header->soft_timeout_ns = owner.soft_timeout.count();
  header->rank = owner.rank;
  header->world_size = owner.world_size;
  header->node = owner.node;
  header->process = static_cast<int32_t>(getpid());
  header->process_start = ProcessStart(getpid());
  header->process_space = ProcessSpace();
  header->start_monotonic_ns = Now(CLOCK_MONOTONIC);
  header->start_realtime_ns = Now(CLOCK_REALTIME);
  header->state = static_cast<uint32_t>(State::kRunning);
  (void)gethostname(header->host, sizeof(header->host) - 1);
  CopyText(BootId(), header->boot_id);
}

}  // namespace

FlightRecord* FlightRecord::Of(World& world) {
  if (world.env().record.empty()) return nullptr;
  FlightRecord* made = nullptr;
  const auto make = [&]() -> std::unique_ptr<WorldCompanion> {
    auto record = Create(world.env().record,
                         {world.rank(), world.size(), world.node(), world.env().soft_timeout});
    if (record.ok()) {
      made = record->get();
      return *std::move(record);
    }
    NPUMESH_ERROR("NPUMESH_RECORD: rank {} goes on without a flight record: {}", world.rank(),
                  record.status().message());
    return nullptr;
  };
  auto* const record = static_cast<FlightRecord*>(world.Keep("flight record", make));
  if (made != nullptr) {
    WaitNotices::Of(world).Listen(
        [made](const WaitNotice& notice) { made->Note(notice, Now(CLOCK_MONOTONIC)); });
  }
  return record;
}

Result<std::unique_ptr<FlightRecord>> FlightRecord::Create(const std::string& folder,
                                                           const Owner& owner,
                                                           uint64_t call_capacity) {
  NPUMESH_RETURN_IF_ERROR(MakeFolders(folder, FileKind::kDebug));
  ClearLeftoversOf(folder, LeftoverDepth::kFolder);
  const std::string path = fmt::format("{}/rank_{}.npr", folder, owner.rank);
  NPUMESH_RETURN_IF_ERROR(RefuseLink(path));
  const std::string aside = fmt::format("{}/.rank_{}.npr.{}.tmp", folder, owner.rank, getpid());
  NPUMESH_RETURN_IF_ERROR(RealFileSystem().Remove(aside));
  const RecordHeader header = flight::EmptyHeader(kGroupCapacity, call_capacity, kNoticeCapacity);
  const flight::Places places = flight::PlacesOf(header);
  const uint64_t bytes = places.bytes;
  NPUMESH_ASSIGN_OR_RETURN(const UniqueFd fd, MakeFile(aside, bytes));
  // Populated: the first use of a page would cost more than all calls in it.
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (data == MAP_FAILED) {
    const int reason = errno;
    (void)RealFileSystem().Remove(aside);
    return SystemError("map", aside, reason);
  }
  std::unique_ptr<FlightRecord> record(new FlightRecord(static_cast<std::byte*>(data), bytes));
  record->call_capacity_ = call_capacity;
  record->notices_ = reinterpret_cast<NoticeEntry*>(record->data_ + places.notices);
  *record->header_ = header;
  FillHeader(record->header_, owner);
  NPUMESH_RETURN_IF_ERROR(RealFileSystem().Rename(aside, path));
  return record;
}

FlightRecord::FlightRecord(std::byte* data, uint64_t bytes)
    : data_(data),
      bytes_(bytes),
      header_(reinterpret_cast<RecordHeader*>(data)),
      groups_(reinterpret_cast<GroupRow*>(data + sizeof(RecordHeader))),
      calls_(reinterpret_cast<CallEntry*>(groups_ + kGroupCapacity)) {}

FlightRecord::~FlightRecord() {
  End(State::kAbandoned);
  munmap(data_, bytes_);
}

void FlightRecord::OnShutdown() {
  End(State::kShutDown);
}

void FlightRecord::End(State state) {
  if (header_->state != static_cast<uint32_t>(State::kRunning)) return;
  header_->end_monotonic_ns = Now(CLOCK_MONOTONIC);
  Publish(header_->state, static_cast<uint32_t>(state));
}

void FlightRecord::OpenGroup(const GroupFacts& group) {
  const uint32_t index =
      std::atomic_ref<uint32_t>(header_->groups).fetch_add(1, std::memory_order_relaxed);
  if (index >= kGroupCapacity) return;
  GroupRow& row = groups_[index];
  row.size = static_cast<uint32_t>(group.world_ranks.size());
  row.group_rank = group.group_rank;
  CopyText(group.name, row.name);
  CopyText(RanksInto(group.world_ranks, sizeof(row.members) - 1), row.members);
  Publish(row.id, group.id);
}

CallEntry* FlightRecord::Begin(uint64_t group, const CallFacts& facts, int64_t now_ns) {
  std::atomic_ref<uint64_t> claimed(header_->calls);
  for (;;) {
    const uint64_t sequence = claimed.fetch_add(1, std::memory_order_relaxed) + 1;
    CallEntry* entry = &calls_[(sequence - 1) % call_capacity_];
    const bool open = entry->sequence != 0 && entry->stage != static_cast<uint32_t>(Stage::kDone);
    if (open) continue;
    Publish(entry->sequence, uint64_t{0});
    std::atomic_signal_fence(std::memory_order_seq_cst);
    entry->group = group;
    entry->call = facts.call;
    entry->count = facts.count;
    entry->fingerprint = FingerprintOf(facts);
    entry->entered_ns = now_ns;
    entry->arrived_ns = 0;
    entry->done_ns = 0;
    entry->kind = static_cast<uint32_t>(facts.kind);
    entry->dtype = static_cast<int32_t>(facts.dtype);
    entry->op = static_cast<uint32_t>(facts.op);
    entry->root = facts.root;
    entry->stage = static_cast<uint32_t>(Stage::kEntered);
    entry->status = 0;
    CopyText(facts.node, entry->node);
    Publish(entry->sequence, sequence);
    return entry;
  }
}

void FlightRecord::Arrived(CallEntry* entry, int64_t now_ns) {
  entry->arrived_ns = now_ns;
  Publish(entry->stage, static_cast<uint32_t>(Stage::kRunning));
}

void FlightRecord::Departing(CallEntry* entry) {
  Publish(entry->stage, static_cast<uint32_t>(Stage::kDeparting));
}

void FlightRecord::Done(CallEntry* entry, Code code, int64_t now_ns) {
  entry->done_ns = now_ns;
  entry->status = static_cast<uint32_t>(code);
  Publish(entry->stage, static_cast<uint32_t>(Stage::kDone));
}

void FlightRecord::Note(const WaitNotice& notice, int64_t now_ns) {
  const uint64_t sequence =
      std::atomic_ref<uint64_t>(header_->notices).fetch_add(1, std::memory_order_relaxed) + 1;
  NoticeEntry& entry = notices_[(sequence - 1) % kNoticeCapacity];
  Publish(entry.sequence, uint64_t{0});
  std::atomic_signal_fence(std::memory_order_seq_cst);
  entry.group = notice.group;
  entry.call = notice.call;
  entry.time_ns = now_ns;
  entry.waited_ns = std::chrono::nanoseconds(notice.waited).count();
  entry.gave_up = notice.gave_up ? 1 : 0;
  entry.reason = static_cast<uint32_t>(notice.reason);
  CopyText(RanksInto(notice.ranks, sizeof(entry.ranks) - 1), entry.ranks);
  CopyText(notice.text, entry.text);
  Publish(entry.sequence, sequence);
}

}  // namespace npumesh
