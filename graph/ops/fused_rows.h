// What AllGatherMatmul, MatmulReduceScatter and their second versions share: rows of all ranks, and
// the product of some of them. Ops reference 5.17 and 5.19.
#ifndef NPUMESH_GRAPH_OPS_FUSED_ROWS_H_
#define NPUMESH_GRAPH_OPS_FUSED_ROWS_H_

#include <memory>
#include <vector>

#include "graph/ops/fused_matmul.h"

namespace npumesh::fused {

// The plan of an operator that gathers or scatters rows, and the ranks of its group.
struct RowsPlan {
  Local local;
  int64_t ranks = 0;
  int64_t rank = 0;            // this one
  bool scaled = false;         // the operands are 8-bit numbers
  int row_scale = -1;          // slot of x1_scale
  bool scale_of_rows = false;  // one for each row of x1, not one for all
  Factors column_scale;
  DataType y_dtype = DataType::kUndefined;

  int64_t row_bytes() const { return local.k * BitsOf(local.dtype) / 8; }
};

Result<RowsPlan> PlanRows(const OpContext& op);

// The product of `m` rows into `y_dtype`. Of 8-bit numbers: with a scale for each of the m rows if
// `scale_of_rows`.
Result<std::unique_ptr<Kernel>> MakeRows(const OpContext& op, const RowsPlan& plan, int64_t m,
                                         DataType y_dtype, bool scale_of_rows);

// Where a chunk of `rows` rows of `columns` elements lies in each of the ranks' blocks of `stride`
// rows, as a collective with displacements takes it. Relative to the chunk in the first block.
struct ChunkBlocks {
  std::vector<uint64_t> counts;
  std::vector<uint64_t> displacements;

  ChunkBlocks(int64_t ranks, int64_t rows, int64_t columns, int64_t stride);
};

// The second version of a schema: scales, a type of the result, its largest element.
OpSchema WithScales(OpSchema schema, std::string_view type, int64_t y_dtype);

// Parts of RegisterRowMatmuls.
void RegisterGatherMatmuls(OpRegistry& registry);   // AllGatherMatmul, -V2
void RegisterScatterMatmuls(OpRegistry& registry);  // MatmulReduceScatter, -V2

}  // namespace npumesh::fused

#endif  // NPUMESH_GRAPH_OPS_FUSED_ROWS_H_
