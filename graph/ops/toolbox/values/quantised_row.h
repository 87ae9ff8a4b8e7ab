// Rows of floats, scaled and rounded to int8, int4 or an 8-bit float: what operators that compute
// and quantise in one step share.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_QUANTISED_ROW_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_QUANTISED_ROW_H_

#include "graph/ops/toolbox/values/element_io.h"

namespace npumesh {

// The number that the largest magnitude of a row is scaled to: 127, 7, 57344, 448, 32768.
float LargestNarrow(DataType dtype);

// Rounds elements: integers as told and clipped, 8-bit floats to the nearest. REQUIRES: a type of
// kNarrow; the alignment of StoreIntegers.
void StoreNarrow(DataType dtype, Rounding rounding, const float* from, void* data, int64_t first,
                 int64_t count);

// The largest magnitude of a row, 0 of none; NaN counts for nothing.
float LargestMagnitude(const float* row, int64_t count);

// Divides a row by its scale, the largest magnitude / `largest`, and stores it. Returns the scale;
// a row of zeros has scale 0 and stays zeros. `row` is changed.
float QuantiseRow(DataType dtype, Rounding rounding, float largest, float* row, int64_t count,
                  void* data, int64_t first);
// The same as instructions; of types that programs cannot write, `row` is -1.
struct LoopQuantised {
  LoopValue row = -1, scale = -1;
};
LoopQuantised LoopQuantiseRow(LoopBuilder& loop, DataType dtype, Rounding rounding, LoopValue row);
// QuantiseRow to int8, to the nearest: to = round(row * 127 / max|row|).
inline float QuantiseToInt8(float* row, int64_t count, int8_t* to) {
  return QuantiseRow(DataType::kInt8, Rounding::kNearest, 127.0f, row, count, to, 0);
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_QUANTISED_ROW_H_
