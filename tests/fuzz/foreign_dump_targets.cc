#include <set>

#include "graph/compare/sources/msprobe_folder.h"
#include "graph/io/torch_file.h"
#include "tests/fuzz/targets.h"

namespace npumesh::fuzz {

std::string CheckTorchFile(std::string_view bytes) {
  const Result<TorchTensorPlace> place = FindTorchTensor(bytes);
  if (!place.ok()) return FlawOf(place.status());
  const Shape& shape = place->type.shape;
  if (place->strides.size() != static_cast<size_t>(shape.rank())) return "strides of other axes";
  if (shape.elements() == 0) return "";
  // No sum of products of 63 bits overflows here.
  __extension__ typedef unsigned __int128 Wide;
  const auto width = static_cast<Wide>(BitsOf(place->type.dtype) / 8);
  Wide end = place->offset + width;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    end += static_cast<Wide>(shape[axis] - 1) *
           static_cast<Wide>(place->strides[static_cast<size_t>(axis)]) * width;
  }
  return end <= bytes.size() ? "" : "elements behind the file";
}

std::string CheckMsprobe(std::string_view text) {
  const Result<std::unique_ptr<TensorSource>> source =
      ReadMsprobeDump(std::string(text), "fuzz", true);
  if (!source.ok()) return FlawOf(source.status());
  std::set<std::string> keys;
  for (const SourceOperator& op : (*source)->operators()) {
    if (!keys.insert(op.key).second) return "two calls of one name";
    for (const Side side : {Side::kInput, Side::kOutput}) {
      for (const int index : op.indexes(side)) {
        const bool in_file = !(*source)->FileOf(op.key, side, index).empty();
        const bool loads = !in_file && (*source)->Load(op.key, side, index).ok();
        if (loads != (!in_file && (*source)->HasElements(op.key, side, index))) {
          return "elements that do not load";
        }
        if (!(*source)->StatisticsOf(op.key, side, index))
          return "a tensor of which nothing is known";
      }
    }
  }
  return "";
}

}  // namespace npumesh::fuzz
