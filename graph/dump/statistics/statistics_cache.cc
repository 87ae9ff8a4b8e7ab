#include "graph/dump/statistics/statistics_cache.h"

#include <iterator>

namespace npumesh {

std::optional<TensorStatistics> StatisticsCache::Of(const DumpOperand& operand) {
  const DumpTensor& tensor = operand.tensor;
  if (tensor.size == 0 || !HasStatistics(tensor.type.dtype)) return std::nullopt;
  const auto* data = static_cast<const std::byte*>(operand.data);
  const auto found = known_.find(data);
  if (found != known_.end() && found->second.dtype == tensor.type.dtype &&
      found->second.bytes == tensor.size) {
    return found->second.statistics;
  }
  Forget(data, tensor.size);
  const auto elements = static_cast<uint64_t>(tensor.type.shape.elements());
  const auto statistics = ComputeStatistics(tensor.type.dtype, data, elements, l2norm_);
  known_[data] = {tensor.type.dtype, tensor.size, operand.constant, statistics};
  return statistics;
}

void StatisticsCache::Forget(const void* data, uint64_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  auto at = known_.lower_bound(begin);
  // The one that begins before may reach in.
  if (at != known_.begin()) {
    const auto before = std::prev(at);
    if (before->first + before->second.bytes > begin) at = before;
  }
  while (at != known_.end() && at->first < begin + bytes) at = known_.erase(at);
}

void StatisticsCache::ForgetVariables() {
  std::erase_if(known_, [](const auto& entry) { return !entry.second.constant; });
}

}  // namespace npumesh
