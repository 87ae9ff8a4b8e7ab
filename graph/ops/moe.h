// What the operators of mixtures of experts share.
#ifndef NPUMESH_GRAPH_OPS_MOE_H_
#define NPUMESH_GRAPH_OPS_MOE_H_

#include <cstdint>

namespace npumesh {

// One row of `from` scaled to int8: to = round(from * 127 / max|from|). Returns max|from| / 127; a
// row of zeros stays one.
float QuantiseRow(float* from, int64_t count, int8_t* to);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_MOE_H_
