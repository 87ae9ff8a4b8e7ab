// The vectorised pass over float tensors. Internal to graph/dump.
#ifndef NPUMESH_GRAPH_DUMP_STATISTICS_FLOAT_PASS_H_
#define NPUMESH_GRAPH_DUMP_STATISTICS_FLOAT_PASS_H_

#include <cstddef>
#include <cstdint>

namespace npumesh {

// What was found so far. Before the first call `max` and `min` are the tensor's element 0.
template <typename T>
struct FloatFindings {
  T max;
  T min;
  double sum = 0;
  double squares = 0;  // stays 0 unless it was asked for
  uint64_t nans = 0;
  uint64_t negative_infinities = 0;
  uint64_t positive_infinities = 0;
};

// Adds `count` more elements; `values` need not be aligned. Squares cost a third of the pass.
void PassOverFloats(const float* values, size_t count, bool with_squares,
                    FloatFindings<float>* findings);
void PassOverDoubles(const double* values, size_t count, bool with_squares,
                     FloatFindings<double>* findings);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_STATISTICS_FLOAT_PASS_H_
