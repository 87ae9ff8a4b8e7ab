#include "launch/run/weight_progress.h"

#include <fmt/format.h>

namespace npumesh {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kLeastShown = 16 * kMiB;

}  // namespace

std::string WeightProgressText(const WeightProgress& progress) {
  if (progress.total < kLeastShown) return "";
  std::string text = fmt::format("\rload weights {}% {}/{} MiB",
                                 progress.done / kMiB * 100 / (progress.total / kMiB),
                                 progress.done / kMiB, progress.total / kMiB);
  if (progress.done == progress.total) text += "\n";
  return text;
}

}  // namespace npumesh
