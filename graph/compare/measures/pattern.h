// DifferencePattern: the kind of mistake that makes one tensor of another, where it is a known one:
// "every element is 1.131 times what is expected" says more than how far the elements are apart.
//
// A pattern is named only when it explains every element. What a few elements or chance could
// produce is not named.
#ifndef NPUMESH_GRAPH_COMPARE_MEASURES_PATTERN_H_
#define NPUMESH_GRAPH_COMPARE_MEASURES_PATTERN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/compare/measures/distance.h"

namespace npumesh {

enum class PatternKind : uint8_t {
  kNone,
  kZeroPart,  // a block along one axis is zero, all else is right
  kCutType,   // rounded to a shorter type
  kFactor,    // multiplied by one number
  kPermuted,  // axes change places
  kShifted,   // moved along one axis
  kReordered  // slices of one axis change places
};

struct DifferencePattern {
  PatternKind kind = PatternKind::kNone;
  double factor = 1;        // kFactor
  DataType cut{};           // kCutType: the shorter type
  bool golden_cut = false;  // kCutType: what is expected was rounded, not what is there
  std::vector<int> axes;    // kPermuted: axis i of the tensor is axis axes[i] of the expected one
  int axis = 0;             // kZeroPart, kShifted, kReordered
  int64_t by = 0;           // kShifted: element i + by stands where element i is expected
  int64_t first = 0;        // kZeroPart: the block; kReordered: a slice that is wrong
  int64_t last = 0;         // kZeroPart: the block's end; kReordered: where it is expected
  int64_t count = 0;        // kReordered: slices that are displaced
};

// Of floating tensors with equal numbers of elements. `allowance`: as for DistanceOf, on top of
// what the coarser type rounds.
DifferencePattern PatternOf(const Tensor& mine, const Tensor& golden,
                            const Allowance& allowance = {});

// "every element is 1.131 times what is expected"; empty for kNone. `shape` is the tensor's.
std::string ToText(const DifferencePattern& pattern, const Shape& shape);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_MEASURES_PATTERN_H_
