// A tensor as rows that run along some of its axes.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_AXIS_ROWS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_AXIS_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/ir/tensor.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {

// A slot or an output port, and how its elements become those that are computed with, or come from
// them.
struct RowSide {
  int place = -1;
  size_t width = 0;  // bytes of an element
  ConvertFn convert = nullptr;
  size_t computed = sizeof(double);  // bytes of an element that is computed with
};

// A tensor as rows: the chosen axes are the columns, in their order, the other axes the rows.
//
// Thread-safety: immutable.
class AxisRows {
 public:
  // REQUIRES: `chosen` has an entry for each dimension.
  AxisRows(const Shape& shape, const std::vector<bool>& chosen);

  int64_t rows() const { return static_cast<int64_t>(starts_.size()); }
  int64_t columns() const { return static_cast<int64_t>(steps_.size()); }

  // The rows lie one after the other.
  bool packed() const { return packed_; }

  // Converts a row of the tensor at `data` into the elements at `to`, or back.
  void Load(const RowSide& side, const void* data, int64_t row, void* to) const {
    Load(side, data, row, 0, columns(), to);
  }
  void Store(const RowSide& side, const void* from, void* data, int64_t row) const {
    Store(side, from, data, row, 0, columns());
  }
  // The same of columns [first, first + count).
  void Load(const RowSide& side, const void* data, int64_t row, int64_t first, int64_t count,
            void* to) const;
  void Store(const RowSide& side, const void* from, void* data, int64_t row, int64_t first,
             int64_t count) const;

 private:
  std::vector<int64_t> starts_;  // element at column 0 of each row
  std::vector<int64_t> steps_;   // distance of each column from column 0
  bool contiguous_;              // the columns lie side by side
  bool packed_;
};

// Element numbers of all positions of the marked dimensions, in C order, at 0 in the others.
std::vector<int64_t> MarkedElements(const Shape& shape, const std::vector<bool>& marked);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_AXIS_ROWS_H_
