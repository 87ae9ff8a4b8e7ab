// Scales of blocks: a quantised matrix whose elements share a factor with their neighbours along k,
// the inner dimension of the product.
//
// A line is what k runs along: a row of a left operand, a column of a right one. MX scales are
// powers of two (float8_e8m0) for blocks of 32, stored in pairs of blocks.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_BLOCK_SCALE_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_BLOCK_SCALE_H_

#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/element_io.h"

namespace npumesh {

struct BlockScale {
  Factors factors;
  int64_t first = 0;     // factor of the first block
  int64_t depth = 1;     // neighbours along k that share a factor
  int64_t lines = 1;     // lines that share one
  int64_t by_lines = 0;  // distance of the factors of the next `lines` lines
  int64_t by_pair = 0;   // of the block after the next along k
  int64_t by_block = 0;  // of the odd block of a pair

  bool given() const { return factors.given(); }

  // Multiplies `count` lines of k elements from line `line` on. Element i of a line is at
  // (line's number) * by_line + i * by_element of `panel`.
  void Apply(const KernelArgs& args, int64_t line, int64_t count, int64_t k, int64_t by_line,
             int64_t by_element, float* panel) const;
};

inline constexpr int64_t kMxBlock = 32;

// MX scales of `count` lines over k: [lines, pairs, 2], or [pairs, lines, 2] when `pairs_first`;
// pairs = k / 64, rounded up. Dimensions in front count matrices, `matrices` of them or one for
// all. Error (kInvalidArgument) names the port and the shape it should have.
Result<BlockScale> MxScale(const OpContext& op, std::string_view port, int64_t lines, int64_t k,
                           bool pairs_first, int64_t matrices);

// Number of factors of one matrix of MxScale.
inline int64_t MxFactors(int64_t lines, int64_t k) {
  return lines * CeilDiv(k, 2 * kMxBlock) * 2;
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_BLOCK_SCALE_H_
