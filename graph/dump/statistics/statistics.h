// Statistics of one tensor, computed in one pass over it where it lies.
//
// Thread-safety: the functions may be called from any thread.
#ifndef NPUMESH_GRAPH_DUMP_STATISTICS_STATISTICS_H_
#define NPUMESH_GRAPH_DUMP_STATISTICS_STATISTICS_H_

#include <cstdint>
#include <optional>
#include <variant>

#include "runtime/base/data_type.h"

namespace npumesh {

// A float16, bfloat16 or float32 value is held as the double of equal value.
using StatisticNumber = std::variant<double, int64_t, uint64_t>;

struct TensorStatistics {
  // Start with element 0 and are replaced by what is greater, or less: a NaN replaces nothing, and
  // stays if it is the first.
  StatisticNumber max;
  StatisticNumber min;
  // Mean in double. Infinite if the tensor holds infinities of one sign only.
  double mean = 0;
  uint64_t count = 0;
  uint64_t nans = 0;
  uint64_t negative_infinities = 0;
  uint64_t positive_infinities = 0;
  // sqrt of the sum of squares, in double; 0 when it was not asked for.
  double l2norm = 0;

  bool finite() const { return nans + negative_infinities + positive_infinities == 0; }
};

// float32, float16, bfloat16, float64, bool and the integers of 8 to 64 bits.
bool HasStatistics(DataType dtype);

enum class L2Norm { kSkip, kCompute };

// nullopt: the type has none, or the tensor has no elements.
std::optional<TensorStatistics> ComputeStatistics(DataType dtype, const void* data, uint64_t count,
                                                  L2Norm l2norm = L2Norm::kCompute);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_STATISTICS_STATISTICS_H_
