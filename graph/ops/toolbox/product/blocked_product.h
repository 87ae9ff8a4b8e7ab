// Products of quantised matrices in blocks: what QuantBatchMatmulV3, WeightQuantBatchMatmulV2,
// GroupedMatmul and their relatives share.
//
// A block of each operand is widened to float32, weights are dequantised on the way (or, where all
// of a column have one scale and no offset, their sums are), and the sums of a row of the block are
// handed to the caller, who scales and stores them. Scratch depends on k only. Integer operands
// give exact int32 sums, all others float32 ones.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_BLOCKED_PRODUCT_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_BLOCKED_PRODUCT_H_

#include <functional>
#include <initializer_list>

#include "graph/ops/core/check.h"
#include "graph/ops/toolbox/product/block_scale.h"
#include "graph/ops/toolbox/product/float_product.h"
#include "graph/ops/toolbox/values/element_io.h"

namespace npumesh {

// Scales and offsets of stored weights: weight = (stored + offset) * scale. The index of the factor
// of row i and column j is first + i / rows * by_rows + j * by_column, where by_column is 0 or 1
// unless the weights are transposed.
struct WeightScale {
  Factors scale, offset;
  int64_t first = 0;
  int64_t rows = 0;  // rows of weights that share a factor; 0: all
  int64_t by_rows = 0, by_column = 0;

  // Whether the sums are multiplied with it and not the weights, which saves a rounding and time.
  bool scales_sums() const { return scale.given() && !offset.given() && rows == 0; }
  // The index for column j and the rows from block * rows on.
  int64_t IndexOf(int64_t block, int64_t j) const {
    return first + block * by_rows + j * by_column;
  }
};

// Reads antiquant_scale, antiquant_offset and antiquant_group_size of weights [k, n]: one, or one
// for each column in each group of rows. Objects to other counts.
WeightScale WeightScaleOf(Check& check, const OpContext& op, int64_t k, int64_t n, bool transposed);

// A matrix in memory, as stored when `transposed`.
struct StoredMatrix {
  DataType dtype = DataType::kUndefined;
  const void* data = nullptr;
  int64_t first = 0;  // element where it begins
  bool transposed = false;
  int64_t stride = 0;  // elements from line to line as stored; 0: they lie side by side
  // Its rows (right operand: columns) are the lines of the scale; null: none.
  const BlockScale* scale = nullptr;
};

// Sums of columns [first, first + count) of a row. One of the two is not null.
struct SumSegment {
  int64_t row = 0, first = 0, count = 0;
  const int32_t* integers = nullptr;
  const float* floats = nullptr;
};
using TakeSums = std::function<void(const SumSegment&)>;

class BlockedProduct {
 public:
  BlockedProduct() = default;
  // For products over `k`. `integers`: both operands are int8 or int4 and unscaled.
  BlockedProduct(int64_t k, bool integers) : k_(k), integers_(integers) {}

  uint64_t scratch_bytes() const;

  // Hands the sums of x[m, k] w[k, n] to `take`, row segments of one block after another. The
  // first scratch_bytes() of `args.scratch` are used. Weights are read with `scale`, if any.
  Status Run(const KernelArgs& args, int64_t m, int64_t n, const StoredMatrix& x,
             const StoredMatrix& w, const WeightScale& scale, const TakeSums& take) const;

 private:
  int64_t k_ = 0;
  bool integers_ = false;
};

// What follows an integer product, or stands alone: y = (x + before) * scale * row_scale + after.
// Factors are one for all, or one for each column (row_scale: row).
struct Dequant {
  Factors before;  // added to the sums; int32 to integers, a float type to floats
  Factors scale, row_scale, after;
  bool twice = false;  // the scale is applied two times
  bool relu = false;

  // `to`, which may be segment.floats, and `room` have place for the segment.
  void Apply(const KernelArgs& args, const SumSegment& segment, float* room, float* to) const;
  // The same without anything but `before`, as int32.
  void AddIntegers(const KernelArgs& args, const SumSegment& segment, int32_t* to) const;
  // For part `index` of `parts`, of the factors of columns; those that are one for all stay.
  Dequant Part(int64_t index, int64_t parts) const;
};

// Error (kInvalidArgument) unless factors are absent, one, or one for each of `count`.
Status CheckFactors(const OpContext& op, const Factors& factors, std::string_view port,
                    int64_t count);

// Reads the bias of an integer product: an int32 one is added before the factors, others after
// them. Objects to another count than one of `counts`, if there are any.
void ReadBias(Check& check, const OpContext& op, Dequant& dequant,
              std::initializer_list<int64_t> counts = {});

// Columns of a block: room for a segment.
inline constexpr int64_t kBlockColumns = 512;

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_BLOCKED_PRODUCT_H_
