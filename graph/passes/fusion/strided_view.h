// StridedView: where the elements of a tensor lie that Reshape, Transpose and broadcasts made of
// another one, as long as it is not computed.
//
// Each dimension is a list of factors, outermost first: a Reshape that joins dimensions which do
// not follow each other in memory (the heads of grouped queries, repeated) joins their lists.
//
// Thread-safety: immutable but for the member functions that are not const.
#ifndef NPUMESH_GRAPH_PASSES_FUSION_STRIDED_VIEW_H_
#define NPUMESH_GRAPH_PASSES_FUSION_STRIDED_VIEW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/ir/shape.h"

namespace npumesh {

class StridedView {
 public:
  // `extent` steps of `stride` elements.
  struct Factor {
    int64_t extent = 1;
    int64_t stride = 0;
    bool operator==(const Factor&) const = default;
  };
  using Factors = std::vector<Factor>;

  StridedView() = default;
  // A tensor in C order. REQUIRES: static, with elements.
  explicit StridedView(const Shape& shape);

  int rank() const { return static_cast<int>(dims_.size()); }
  // Factors of 1 left out, and those that follow each other in memory put together.
  const Factors& dim(int i) const { return dims_[static_cast<size_t>(i)]; }
  int64_t extent(int i) const;
  // Elements from one index of a dimension to the next, 0 for an extent of 1; nullopt where that is
  // not one number.
  std::optional<int64_t> stride(int i) const;

  // Dimension i is dimension order[i] of before. REQUIRES: a permutation.
  void Permute(const std::vector<int64_t>& order);
  // As broadcasting does: extents of 1 grow, dimensions are added in front. False, and nothing
  // happens, where `shape` is no broadcast of this one.
  bool Broadcast(const Shape& shape);
  // The same elements in the same order. False, and nothing happens, where a dimension would end
  // inside of a factor.
  bool Reshape(const Shape& shape);

 private:
  std::vector<Factors> dims_;
};

// Appends a factor to a list, without what StridedView::dim leaves out.
void AppendFactor(StridedView::Factors& list, StridedView::Factor factor);

// The list cut into one list for each extent, outermost first; nullopt where it does not divide so.
std::optional<std::vector<StridedView::Factors>> CutFactors(StridedView::Factors list,
                                                            const std::vector<int64_t>& extents);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_FUSION_STRIDED_VIEW_H_
