#include "runtime/base/files/dump_sink.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <utility>

namespace npumesh {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

struct Sink {
  std::atomic<bool> active{false};
  std::mutex mutex;
  DumpSink::Take take;  // guarded by mutex
};

Sink& OfProcess() {
  static Sink* const sink = new Sink;
  return *sink;
}

}  // namespace

void DumpSink::Set(Take take) {
  Sink& sink = OfProcess();
  const std::lock_guard lock(sink.mutex);
  sink.take = std::move(take);
  sink.active = static_cast<bool>(sink.take);
}

bool DumpSink::Active() {
  return OfProcess().active;
}

Status DumpSink::Give(const std::string& path, const Parts& parts, bool* taken) {
  *taken = false;
  if (!Active()) return Status();
  Sink& sink = OfProcess();
  const std::lock_guard lock(sink.mutex);
  if (!sink.take) return Status();
  *taken = true;
  const uint64_t total =
      std::accumulate(parts.begin(), parts.end(), uint64_t{0},
                      [](uint64_t sum, const auto& part) { return sum + part.size(); });
  if (total == 0) return sink.take({path, {}, 0, true});
  uint64_t offset = 0;
  for (const auto& part : parts) {
    for (size_t at = 0; at < part.size(); at += kPieceBytes) {
      const auto piece = part.subspan(at, std::min<size_t>(kPieceBytes, part.size() - at));
      const bool last = offset + piece.size() == total;
      NPUMESH_RETURN_IF_ERROR(sink.take({path, piece, offset, last}));
      offset += piece.size();
    }
  }
  return Status();
}

}  // namespace npumesh
