#include "graph/ir/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace npumesh {
namespace {

constexpr uint64_t kAlignment = 64;

}  // namespace

Tensor Tensor::Allocate(TensorType type) {
  Tensor tensor;
  const uint64_t bytes = type.bytes();
  const uint64_t rounded = (bytes + kAlignment) / kAlignment * kAlignment;  // never zero
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  std::memset(memory, 0, rounded);
  tensor.data_ = std::shared_ptr<const std::byte>(
      memory, [](const std::byte* p) { std::free(const_cast<std::byte*>(p)); });
  tensor.type_ = std::move(type);
  return tensor;
}

Tensor Tensor::FromString(TensorType type, std::string bytes) {
  return FromShared(std::move(type), std::make_shared<const std::string>(std::move(bytes)));
}

Tensor Tensor::FromShared(TensorType type, std::shared_ptr<const std::string> bytes) {
  Tensor tensor;
  tensor.type_ = std::move(type);
  tensor.string_ = bytes.get();
  const auto* data = reinterpret_cast<const std::byte*>(bytes->data());
  tensor.data_ = std::shared_ptr<const std::byte>(std::move(bytes), data);
  return tensor;
}

std::shared_ptr<const std::string> Tensor::string() const {
  if (string_ == nullptr || string_->size() != bytes()) return nullptr;
  return {data_, string_};
}

Tensor Tensor::FromFile(TensorType type, std::shared_ptr<const MappedFile> file, uint64_t offset) {
  Tensor tensor;
  tensor.type_ = std::move(type);
  const std::byte* data = file->data() + offset;
  tensor.file_ = file.get();
  tensor.data_ = std::shared_ptr<const std::byte>(std::move(file), data);
  return tensor;
}

Tensor Tensor::FromMemory(TensorType type, const void* data) {
  Tensor tensor;
  tensor.type_ = std::move(type);
  tensor.data_ = std::shared_ptr<const std::byte>(std::shared_ptr<const std::byte>(),
                                                  static_cast<const std::byte*>(data));
  return tensor;
}

void Tensor::Stream(uint64_t piece,
                    const std::function<void(uint64_t offset, uint64_t bytes)>& take) const {
  const uint64_t total = bytes();
  uint64_t asked = 0;  // of the file, to be read
  for (uint64_t offset = 0; offset < total; offset += piece) {
    const uint64_t count = std::min(piece, total - offset);
    for (int ahead = 0; file_ != nullptr && ahead < 3 && asked < total; ++ahead) {
      if (asked > offset + 2 * piece) break;
      const uint64_t more = std::min(piece, total - asked);
      file_->ReadAhead(data() + asked, more);
      asked += more;
    }
    take(offset, count);
    if (file_ != nullptr) file_->Release(data() + offset, count);
  }
}

Tensor Tensor::WithType(TensorType type) const {
  Tensor tensor = *this;
  tensor.type_ = std::move(type);
  return tensor;
}

}  // namespace npumesh
