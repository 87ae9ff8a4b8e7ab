// Tensor: who owns the bytes.
#include "graph/ir/tensor.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace npumesh {
namespace {

using ::testing::ElementsAre;

TEST(Tensor, AllocatesZeroedAlignedMemory) {
  for (int64_t elements : {0, 1, 15, 16, 17, 1000}) {
    const Tensor tensor = Tensor::Allocate({DataType::kFloat, Shape({elements})});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % 64, 0u);
    EXPECT_EQ(tensor.bytes(), static_cast<uint64_t>(elements) * 4);
    for (float value : tensor.as<float>()) EXPECT_EQ(value, 0.0f);
  }
}

TEST(Tensor, CopiesShareTheirBytes) {
  const Tensor tensor =
      Tensor::FromVector<int32_t>({DataType::kInt32, Shape({2, 2})}, {1, 2, 3, 4});
  const Tensor copy = tensor;
  EXPECT_EQ(copy.data(), tensor.data());
  const Tensor flat = copy.WithType({DataType::kInt32, Shape({4})});
  EXPECT_EQ(flat.data(), tensor.data());
  EXPECT_EQ(flat.shape(), Shape({4}));
  EXPECT_THAT(flat.as<int32_t>(), ElementsAre(1, 2, 3, 4));
}

TEST(Tensor, TakesStrings) {
  const TensorType type{DataType::kUint8, Shape({3})};
  EXPECT_THAT(Tensor::FromString(type, "abc").as<uint8_t>(), ElementsAre('a', 'b', 'c'));
  const auto bytes = std::make_shared<const std::string>("abcd");  // more than is needed
  const Tensor shared = Tensor::FromShared(type, bytes);
  EXPECT_EQ(reinterpret_cast<const char*>(shared.data()), bytes->data());
  EXPECT_EQ(shared.elements(), 3);
  EXPECT_EQ(shared.string(), nullptr);
  EXPECT_EQ(Tensor::Allocate(type).string(), nullptr);
  const auto all = std::make_shared<const std::string>("abc");
  EXPECT_EQ(Tensor::FromShared(type, all).string(), all);
}

TEST(Tensor, DefaultIsUndefined) {
  const Tensor tensor;
  EXPECT_EQ(tensor.dtype(), DataType::kUndefined);
  EXPECT_EQ(tensor.bytes(), 0u);
  EXPECT_EQ(tensor.data(), nullptr);
}

std::string Streamed(const Tensor& tensor, uint64_t piece) {
  std::string bytes;
  tensor.Stream(piece, [&](uint64_t offset, uint64_t count) {
    EXPECT_EQ(offset, bytes.size());
    EXPECT_LE(count, piece);
    bytes.append(reinterpret_cast<const char*>(tensor.data()) + offset, count);
  });
  return bytes;
}

TEST(Tensor, StreamsAllItsBytesInOrder) {
  const TensorType type{DataType::kUint8, Shape({10})};
  const Tensor tensor = Tensor::FromString(type, "0123456789");
  for (const uint64_t piece : {1, 3, 5, 9, 10, 100}) {
    EXPECT_EQ(Streamed(tensor, piece), "0123456789") << piece;
  }
  EXPECT_EQ(Streamed(Tensor(), 4), "");
}

TEST(Tensor, AStreamedFileCanBeReadAgain) {
  const std::string path = testing::TempDir() + "/streamed_" + std::to_string(getpid());
  std::string content;
  for (int i = 0; i < 50'000; ++i) content += static_cast<char>(i * 31);
  std::ofstream(path, std::ios::binary) << content;
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::remove(path);
  for (const uint64_t offset : {0, 64, 4096, 5000}) {
    const auto bytes = static_cast<int64_t>(content.size() - offset);
    const Tensor tensor = Tensor::FromFile({DataType::kUint8, Shape({bytes})}, *file, offset);
    EXPECT_EQ(Streamed(tensor, 7000), content.substr(offset));
    EXPECT_EQ(Streamed(tensor, 4096), content.substr(offset));
  }
}

}  // namespace
}  // namespace npumesh
