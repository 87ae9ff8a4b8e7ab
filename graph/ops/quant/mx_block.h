// MX quantisation: blocks of values that share a power of two, whose quotients are 8-bit or 4-bit
// floats. Elements are rounded as the OCP formats say.
//
//   scale_alg 0: scale = 2^(floor(log2(max|v|)) - emax), emax the exponent of the largest element
//   scale_alg 1: max|v| / largest element, rounded up to a power of two
//
// Quotients past the largest element become it. A block without a value but zero has the least
// scale, 2^-127; a block with an infinity or NaN has scale NaN, and zeros.
#ifndef NPUMESH_GRAPH_OPS_QUANT_MX_BLOCK_H_
#define NPUMESH_GRAPH_OPS_QUANT_MX_BLOCK_H_

#include "graph/ops/core/check.h"
#include "graph/ops/toolbox/product/block_scale.h"
#include "graph/ops/toolbox/values/ceil_div.h"

namespace npumesh {

enum class MxRounding : uint8_t { kNearestEven, kNearestAway, kFloor };

struct MxFormat {
  DataType dtype = DataType::kFloat8E5M2;
  MxRounding rounding = MxRounding::kNearestEven;
  bool rounds_up = false;  // scale_alg 1
};

// Reads dst_type, round_mode, scale_alg, and checks dst_type_max and max_low_bound where the
// operator has them. Objections: kUnsupported, naming the attribute; kInvalidArgument to a result
// of shape `y` whose rows do not fill whole bytes.
MxFormat MxFormatOf(Check& check, const OpContext& op, const Shape& y);

// The byte of the float8_e8m0 scale of values whose largest magnitude is `most` (NaN: not finite).
uint8_t MxScaleByte(const MxFormat& format, float most);

// Largest magnitude of `count` values, `stride` apart; NaN if one of them is not finite.
float MxMagnitude(const float* values, int64_t count, int64_t stride);

// Divides values by a scale and stores them as elements [first, first + count). For 4-bit floats
// `first` and `count` are even.
void StoreMx(const MxFormat& format, uint8_t scale, const float* values, int64_t count, void* data,
             int64_t first);

// A tensor around the axis that blocks run along.
struct MxAxis {
  int64_t outer = 1, length = 0, inner = 1, block = kMxBlock;

  int64_t blocks() const { return CeilDiv(length, block); }
  int64_t pairs() const { return (blocks() + 1) / 2; }
  // Scale of a block: the axis holds pairs, and a last dimension the two of a pair.
  int64_t ScaleAt(int64_t o, int64_t b, int64_t i) const {
    return ((o * pairs() + b / 2) * inner + i) * 2 + b % 2;
  }
};

MxAxis MxAxisOf(const Shape& shape, int axis, int64_t block = kMxBlock);

// The scales of a tensor: the axis becomes pairs of blocks, and a dimension of 2 follows.
TensorType MxScaleType(Shape shape, int axis, int64_t block = kMxBlock);

// Finds the scales of block `b` of part `o` and stores its elements. `values`: the elements of the
// block, [its length, inner]. For 4-bit floats the tensor's rows are even.
void QuantiseMxBlock(const MxFormat& format, const MxAxis& axis, int64_t o, int64_t b,
                     const float* values, void* data, uint8_t* scales);

// The same for the blocks of row `r`, which run along the last dimension.
void QuantiseMxRow(const MxFormat& format, const MxAxis& axis, int64_t r, const float* row,
                   void* data, void* scales);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_QUANT_MX_BLOCK_H_
