// Tensor: a type and its bytes on the host: constants, inputs, outputs.
//
// The bytes are shared between copies of a Tensor and are little-endian, in C order, packed. They
// may live in memory of their own or in a mapped file.
//
// Thread-safety: as for a std::shared_ptr to the bytes.
#ifndef NPUMESH_GRAPH_IR_TENSOR_H_
#define NPUMESH_GRAPH_IR_TENSOR_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/shape.h"
#include "runtime/base/files/mapped_file.h"

namespace npumesh {

class Tensor {
 public:
  Tensor() = default;  // undefined dtype, no bytes

  // Separate zero-filled memory, 64-byte aligned. REQUIRES: a static, checked type.
  static Tensor Allocate(TensorType type);
  // Takes over `bytes`, which must hold at least type.bytes(); checked by the caller.
  static Tensor FromString(TensorType type, std::string bytes);
  // The same over bytes that others may share; `data()` need not be aligned.
  static Tensor FromShared(TensorType type, std::shared_ptr<const std::string> bytes);
  // [offset, offset + type.bytes()) of a mapped file; checked by the caller.
  static Tensor FromFile(TensorType type, std::shared_ptr<const MappedFile> file, uint64_t offset);
  // Memory of another owner, which must outlive the tensor and its copies.
  static Tensor FromMemory(TensorType type, const void* data);
  // Copies `values` (as many as the shape has elements).
  template <typename T>
  static Tensor FromVector(TensorType type, const std::vector<T>& values) {
    Tensor tensor = Allocate(std::move(type));
    std::copy(values.begin(), values.end(), reinterpret_cast<T*>(tensor.mutable_data()));
    return tensor;
  }

  const TensorType& type() const { return type_; }
  DataType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }
  int64_t elements() const { return type_.shape.elements(); }
  uint64_t bytes() const { return type_.bytes(); }

  const std::byte* data() const { return data_.get(); }
  // What the bytes are the whole of; null unless the tensor was made of a string of their number.
  std::shared_ptr<const std::string> string() const;
  // REQUIRES: made by Allocate and not shared.
  std::byte* mutable_data() { return const_cast<std::byte*>(data_.get()); }
  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_.get()), static_cast<size_t>(elements())};
  }
  // Calls `take(offset, bytes)` for pieces that follow each other and together are all bytes; each
  // but the last has `piece` bytes. From a mapped file the next piece is read while `take` works on
  // one, and the memory of those before is given back: what passes through here stays in the file.
  void Stream(uint64_t piece,
              const std::function<void(uint64_t offset, uint64_t bytes)>& take) const;
  // The same bytes under another type of equal size.
  Tensor WithType(TensorType type) const;

 private:
  TensorType type_;
  std::shared_ptr<const std::byte> data_;
  const MappedFile* file_ = nullptr;     // that data_ keeps; null: memory
  const std::string* string_ = nullptr;  // the same
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IR_TENSOR_H_
