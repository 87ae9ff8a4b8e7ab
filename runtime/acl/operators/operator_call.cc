#include "runtime/acl/operators/operator_call.h"

#include <cstring>
#include <type_traits>

namespace npumesh {
namespace {

// Bytes that begin with their length, so that no two sequences of parts are written alike.
class Key {
 public:
  void Add(const void* data, size_t bytes) {
    text_.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    text_.append(static_cast<const char*>(data), bytes);
  }
  void Add(const std::string& text) { Add(text.data(), text.size()); }
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void Add(T number) { text_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  template <typename T>
  void Add(const std::vector<T>& values) {
    Add(values.size());
    for (const auto& value : values) Add(static_cast<const T&>(value));
  }
  void Add(const CallTensor& tensor) {
    Add(tensor.dtype);
    Add(tensor.dims);
    Add(tensor.format);
    Add(tensor.origin_dims);
    Add(tensor.origin_format);
    Add(tensor.name);
    Add(tensor.list);
    Add(tensor.value != nullptr);
    if (tensor.value != nullptr) Add(tensor.value->data(), tensor.value->size());
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

std::string KeyOf(const OperatorCall& call) {
  Key key;
  key.Add(call.type);
  key.Add(call.inputs);
  key.Add(call.outputs);
  key.Add(call.attrs.size());
  for (const auto& [name, value] : call.attrs) {
    key.Add(name);
    key.Add(value.index());
    std::visit([&key](const auto& held) { key.Add(held); }, value);
  }
  return key.Take();
}

}  // namespace npumesh
