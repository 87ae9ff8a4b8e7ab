#include "graph/tuning/tuning_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "runtime/base/advice.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

constexpr uint64_t kMostRecordBytes = uint64_t{1} << 22;
constexpr std::chrono::milliseconds kLongestPause{20};

using Clock = std::chrono::steady_clock;

}  // namespace

std::string TuningRecords::PathOf(std::string_view key) const {
  return fmt::format("{}/{}.json", folder_, key);
}

std::optional<TuningRecord> TuningRecords::Find(std::string_view key) {
  const std::string path = PathOf(key);
  std::error_code unknown;
  if (!std::filesystem::is_directory(folder_, unknown)) return std::nullopt;
  const Result<std::string> text = ReadFile(path, kMostRecordBytes);
  if (!text.ok() && text.status().code() == Code::kNotFound) return std::nullopt;
  Result<TuningRecord> record =
      text.ok() ? TuningRecord::Parse(*text, key) : Result<TuningRecord>(text.status());
  if (record.ok()) return *std::move(record);
  Advise(fmt::format("tuning: {} is passed over, and measured anew: {}", path,
                     record.status().message()));
  return std::nullopt;
}

// Pauses grow from a millisecond: what is waited for takes tenths of a second.
Result<TuningRecords::Turn> TuningRecords::Take(std::string_view key, const TuningRecord* stale,
                                                std::chrono::milliseconds limit) {
  NPUMESH_RETURN_IF_ERROR(MakeFolders(folder_, FileKind::kData, *fs_));
  const std::string path = folder_ + "/tuning.lock";
  const Clock::time_point end = Clock::now() + limit;
  Turn turn;
  for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, kLongestPause)) {
    NPUMESH_ASSIGN_OR_RETURN(turn.lock, KernelLock::TryTake(path));
    // With the lock, too: its last owner may have published just before.
    turn.record = Find(key);
    if (turn.record && stale != nullptr && turn.record->ToText() == stale->ToText()) {
      turn.record.reset();
    }
    if (turn.record) turn.lock.reset();
    if (turn.record || turn.lock) return turn;
    if (Clock::now() >= end) break;
    turn.waited = true;
    std::this_thread::sleep_for(pause);
  }
  NPUMESH_ASSIGN_OR_RETURN(turn.lock, KernelLock::TakeFrom(path, OwnerOf(path)));
  if (turn.lock) return turn;
  return Error(Code::kTimeout, "{} was not free within {} s", path,
               std::chrono::duration_cast<std::chrono::seconds>(limit).count());
}

Status TuningRecords::Publish(const TuningRecord& record) {
  return WriteFile(PathOf(record.key), record.ToText(), FileKind::kData, *fs_);
}

}  // namespace npumesh
