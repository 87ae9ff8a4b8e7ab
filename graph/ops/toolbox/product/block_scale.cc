#include "graph/ops/toolbox/product/block_scale.h"

#include <algorithm>

namespace npumesh {

void BlockScale::Apply(const KernelArgs& args, int64_t line, int64_t count, int64_t k,
                       int64_t by_line, int64_t by_element, float* panel) const {
  for (int64_t l = 0; l < count; ++l) {
    const int64_t own = first + (line + l) / lines * by_lines;
    for (int64_t i = 0; i < k; i += depth) {
      const int64_t block = i / depth;
      const float factor = factors.At(args, own + block / 2 * by_pair + block % 2 * by_block);
      float* element = panel + l * by_line + i * by_element;
      const int64_t end = std::min(depth, k - i);
      for (int64_t e = 0; e < end; ++e) element[e * by_element] *= factor;
    }
  }
}

Result<BlockScale> MxScale(const OpContext& op, std::string_view port, int64_t lines, int64_t k,
                           bool pairs_first, int64_t matrices) {
  BlockScale scale;
  NPUMESH_ASSIGN_OR_RETURN(scale.factors, Factors::Of(op, port));
  const int64_t pairs = CeilDiv(k, 2 * kMxBlock);
  scale.depth = kMxBlock;
  scale.by_lines = pairs_first ? 2 : 2 * pairs;
  scale.by_pair = pairs_first ? 2 * lines : 2;
  scale.by_block = 1;
  const TensorType& type = op.in(port);
  const int rank = type.shape.rank();
  const int64_t outer = pairs_first ? pairs : lines, inner = pairs_first ? lines : pairs;
  const int64_t count = type.shape.elements();
  const bool fits = type.dtype == DataType::kFloat8E8M0 && rank >= 3 && type.shape[rank - 1] == 2 &&
                    type.shape[rank - 2] == inner && type.shape[rank - 3] == outer &&
                    (count == outer * inner * 2 || count == matrices * outer * inner * 2);
  if (fits) return scale;
  return Error(Code::kInvalidArgument,
               "{}: \"{}\" is {}, expected float8_e8m0 [{},{},2] for blocks of {} along {} "
               "elements",
               op.Who(), port, type.ToString(), outer, inner, kMxBlock, k);
}

}  // namespace npumesh
