#include "graph/compare/sources/tensor_source.h"

#include <algorithm>

namespace npumesh {

std::string OperatorKey(std::string_view name) {
  std::string key(name);
  for (char& c : key) {
    if (c == ' ' || c == '.' || c == '/' || c == '\\') c = '_';
  }
  return key;
}

std::string_view Name(Side side) {
  return side == Side::kInput ? "input" : "output";
}

Status NoSuchTensor(const TensorSource& source, std::string_view key, Side side, int index) {
  return Error(Code::kNotFound, "{}: there is no {} {} of operator \"{}\"", source.title(),
               Name(side), index, key);
}

void AddIndex(SourceOperator& op, Side side, int index) {
  std::vector<int>& indexes = side == Side::kInput ? op.inputs : op.outputs;
  const auto place = std::lower_bound(indexes.begin(), indexes.end(), index);
  if (place == indexes.end() || *place != index) indexes.insert(place, index);
}

const SourceOperator* TensorSource::Find(std::string_view key) const {
  for (const SourceOperator& op : operators()) {
    if (op.key == key) return &op;
  }
  return nullptr;
}

void MemorySource::Add(std::string_view name, std::string_view type, Side side, int index,
                       Tensor tensor) {
  const std::string key = OperatorKey(name);
  const auto [place, added] = places_.emplace(key, operators_.size());
  if (added) operators_.push_back({key, std::string(name), std::string(type), {}, {}});
  AddIndex(operators_[place->second], side, index);
  tensors_[{key, side, index}] = std::move(tensor);
}

Result<Tensor> MemorySource::Load(const std::string& key, Side side, int index) const {
  const auto tensor = tensors_.find({key, side, index});
  if (tensor == tensors_.end()) return NoSuchTensor(*this, key, side, index);
  return tensor->second;
}

}  // namespace npumesh
