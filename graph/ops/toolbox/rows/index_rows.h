// Rows that index tensors name: what gathers read and scatters write.
//
// A tensor is seen as rows of neighbouring elements; an operator with indices goes through a list
// of row numbers that is made anew in every run. An index out of range is a run-time error that
// names the port, the place and the bounds.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_INDEX_ROWS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_INDEX_ROWS_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/ops/core/operator.h"
#include "graph/ops/toolbox/values/element_io.h"

namespace npumesh {

// Row number of an index that is to be passed over, and what Reader::At answers for an error.
inline constexpr int64_t kNoRow = -1;
inline constexpr int64_t kOutside = -2;

// What indices may be besides 0 <= index < bound.
enum class IndexRange {
  kStrict,         // nothing else
  kWraps,          // -bound and more, counted from the end
  kDropsNegative,  // negative ones are passed over
};

// The indices that a slot holds, into `bound` positions.
struct IndexSlot {
  std::string who;
  std::string_view port;
  int slot = 0;
  DataType dtype = DataType::kInt64;
  int64_t bound = 0;
  IndexRange range = IndexRange::kStrict;

  // The indices of a port, or of its tensor `nth`. Error (kInvalidArgument) unless they are int32
  // or int64.
  static Result<IndexSlot> Of(const OpContext& op, std::string_view port, int64_t bound,
                              IndexRange range = IndexRange::kStrict, int nth = 0);

  // Reads the indices of one run. A loop makes one before it begins, because the compiler cannot
  // know that the loop does not write to the slot itself.
  class Reader {
   public:
    Reader(const IndexSlot& from, const KernelArgs& args)
        : data_(args.in[from.slot]), dtype_(from.dtype), bound_(from.bound), range_(from.range) {}

    // Index i in [0, bound), kNoRow, or kOutside.
    int64_t At(int64_t i) const {
      const int64_t given = IntegerAt(dtype_, data_, i);
      if (given >= 0) return given < bound_ ? given : kOutside;
      if (range_ == IndexRange::kDropsNegative) return kNoRow;
      return range_ == IndexRange::kWraps && given >= -bound_ ? given + bound_ : kOutside;
    }

   private:
    const void* data_;
    DataType dtype_;
    int64_t bound_;
    IndexRange range_;
  };

  int64_t At(const KernelArgs& args, int64_t i) const { return Reader(*this, args).At(i); }
  // The error (kInvalidArgument) of an index for which At answers kOutside.
  Status OutsideError(const KernelArgs& args, int64_t i) const;
};

struct IndexRows {
  // Writes the row numbers, `count` of them, each in [0, bound) or kNoRow.
  std::function<Status(const KernelArgs& args, int64_t* rows)> find;
  int64_t count = 0;  // rows named
  int64_t bound = 0;  // rows of the tensor
  int64_t inner = 1;  // elements of a row
};

// Error (kInvalidArgument) unless a slot holds int32 or int64.
Status CheckIndexType(const OpContext& op, int slot);

// The positions of a tensor in C order, each with its offset in another tensor.
class PositionWalk {
 public:
  PositionWalk() = default;
  // `strides` are those of the other tensor, one for each dimension of `extents`.
  PositionWalk(const Shape& extents, std::vector<int64_t> strides)
      : extents_(extents.dims()), strides_(std::move(strides)) {}

  size_t rank() const { return extents_.size(); }
  // Steps `position`, rank() numbers, on, back to zeros after the last one; `offset` is that of the
  // position before. Returns the offset of the next.
  int64_t Next(int64_t* position, int64_t offset) const {
    for (size_t d = extents_.size(); d-- > 0;) {
      if (++position[d] < extents_[d]) return offset + strides_[d];
      offset -= strides_[d] * (extents_[d] - 1);
      position[d] = 0;
    }
    return offset;
  }

 private:
  std::vector<int64_t> extents_, strides_;
};

// The last dimension of `indices` addresses the first dimensions of `x`.
Result<IndexRows> RowsByTuples(const OpContext& op, std::string_view indices, const Shape& x,
                               IndexRange range);

// Rows of `x` along `axis`, for each position before it and each element of `indices`.
Result<IndexRows> RowsAlongAxis(const OpContext& op, std::string_view indices, const Shape& x,
                                int axis, IndexRange range);

// For each position of `indices` the element of `x` there, with coordinate `axis` replaced by the
// index; one below 0 counts from the end. REQUIRES: `indices` lies inside x outside of the axis.
Result<IndexRows> RowsByElements(const OpContext& op, std::string_view indices, const Shape& x,
                                 int axis);

// PyTorch's indexing with tensors: entry d of `mask` says whether the next tensor of port `indices`
// addresses dimension d of `x`; the tensors broadcast together. `shape` becomes that of x[...]: the
// indexed dimensions are replaced in place when they are neighbours, else the result comes first.
Result<IndexRows> RowsByTensors(const OpContext& op, std::string_view indices,
                                const std::vector<int64_t>& mask, const Shape& x, Shape* shape);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_INDEX_ROWS_H_
