// StatisticsCache: what is known of the tensors in device memory, until it is written to.
//
// An output is the input of the steps that follow, and weights are the same in every run; each is
// read once. Internal to graph/dump.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_DUMP_STATISTICS_STATISTICS_CACHE_H_
#define NPUMESH_GRAPH_DUMP_STATISTICS_STATISTICS_CACHE_H_

#include <cstddef>
#include <map>
#include <optional>

#include "graph/dump/statistics/operands.h"
#include "graph/dump/statistics/statistics.h"

namespace npumesh {

class StatisticsCache {
 public:
  explicit StatisticsCache(L2Norm l2norm = L2Norm::kCompute) : l2norm_(l2norm) {}

  // Computes them unless they are known. nullopt: the type has none, or there are no elements.
  std::optional<TensorStatistics> Of(const DumpOperand& operand);

  // These bytes are about to change, or have changed.
  void Forget(const void* data, uint64_t bytes);
  // Anything may have changed but constants.
  void ForgetVariables();
  void ForgetAll() { known_.clear(); }

 private:
  struct Known {
    DataType dtype;
    uint64_t bytes;
    bool constant;
    std::optional<TensorStatistics> statistics;
  };
  const L2Norm l2norm_;
  std::map<const std::byte*, Known> known_;  // by address; they do not overlap
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_STATISTICS_STATISTICS_CACHE_H_
