// What the operators of mixtures of experts share. Ops reference 5.12.
//
// K is the number of experts of a token, E that of all experts. Ties go to the smaller index.
#ifndef NPUMESH_GRAPH_OPS_MOE_H_
#define NPUMESH_GRAPH_OPS_MOE_H_

#include <cstdint>
#include <vector>

namespace npumesh {

// The indices of the `k` largest of `count` values, largest first, a NaN above all. `order` is room
// for `count` of them; the first k are the result. REQUIRES: k <= count.
void LargestFirst(const float* values, int64_t count, int64_t k, std::vector<int32_t>& order);

// One row of `from` times its factors, if any, scaled to int8: to = round(from * 127 / max|from|).
// Returns max|from| / 127; a row of zeros stays one.
float QuantiseRow(float* from, int64_t count, int8_t* to);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_MOE_H_
