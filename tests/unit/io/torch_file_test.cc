#include "graph/io/torch_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "graph/io/stored_zip.h"
#include "runtime/base/files/secure_file.h"
#include "tests/unit/io/torch_files.h"

namespace npumesh {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SavedTensor;
using testing::StoredZip;
using testing::TorchFile;
using testing::TorchPickle;

std::string BytesOfFloats(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// 0 to 11.
SavedTensor Twelve(std::vector<int64_t> shape, std::vector<int64_t> strides, int64_t offset = 0) {
  return {.bytes = BytesOfFloats({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}),
          .offset = offset,
          .shape = std::move(shape),
          .strides = std::move(strides)};
}

Result<Tensor> Load(const std::string& file) {
  const std::string path =
      (std::filesystem::path(::testing::TempDir()) / fmt::format("torch_{}.pt", ::getpid()))
          .string();
  EXPECT_TRUE(WriteFile(path, file, FileKind::kData).ok());
  Result<Tensor> tensor = ReadTorchTensor(path);
  std::filesystem::remove(path);
  return tensor;
}

std::vector<float> FloatsOf(const std::string& file) {
  const Result<Tensor> tensor = Load(file);
  EXPECT_TRUE(tensor.ok()) << tensor.status().message();
  if (!tensor.ok() || tensor->dtype() != DataType::kFloat) return {};
  const std::span<const float> floats = tensor->as<float>();
  return {floats.begin(), floats.end()};
}

std::string Pickle(const std::string& opcodes) {
  return "\x80\x02" + opcodes;
}

std::string Refusal(const std::string& file) {
  const Result<TorchTensorPlace> place = FindTorchTensor(file);
  return place.ok() ? place->type.ToString() : std::string(place.status().message());
}

TEST(TorchFile, PackedTensorsAndViews) {
  EXPECT_THAT(FloatsOf(TorchFile(Twelve({2, 2}, {2, 1}))), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(FloatsOf(TorchFile(Twelve({2, 2}, {2, 1}, 3))), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(FloatsOf(TorchFile(Twelve({3, 2}, {1, 4}, 1))), ElementsAre(1, 5, 2, 6, 3, 7))
      << "transposed";
  EXPECT_THAT(FloatsOf(TorchFile(Twelve({2, 3}, {0, 1}))), ElementsAre(0, 1, 2, 0, 1, 2))
      << "expanded";
  EXPECT_THAT(FloatsOf(TorchFile(Twelve({}, {}, 11))), ElementsAre(11));
  EXPECT_THAT(FloatsOf(TorchFile(Twelve({0, 3}, {3, 1}))), ElementsAre());
  SavedTensor parameter = Twelve({2}, {1});
  parameter.parameter = true;
  EXPECT_THAT(FloatsOf(TorchFile(parameter)), ElementsAre(0, 1));
  EXPECT_THAT(FloatsOf(TorchFile(Twelve({2}, {6}), true)), ElementsAre(0, 6))
      << "numbers of 64 bits";
}

TEST(TorchFile, EveryDtypeOfTorch) {
  const std::pair<const char*, DataType> storages[] = {{"Float", DataType::kFloat},
                                                       {"Half", DataType::kFloat16},
                                                       {"BFloat16", DataType::kBfloat16},
                                                       {"Double", DataType::kDouble},
                                                       {"Long", DataType::kInt64},
                                                       {"Int", DataType::kInt32},
                                                       {"Short", DataType::kInt16},
                                                       {"Char", DataType::kInt8},
                                                       {"Byte", DataType::kUint8},
                                                       {"Bool", DataType::kBool},
                                                       {"ComplexFloat", DataType::kComplex64},
                                                       {"ComplexDouble", DataType::kComplex128}};
  for (const auto& [name, dtype] : storages) {
    SavedTensor saved = Twelve({3}, {1});
    saved.storage = fmt::format("torch {}Storage", name);
    const Result<Tensor> tensor = Load(TorchFile(saved));
    ASSERT_TRUE(tensor.ok()) << tensor.status().message();
    EXPECT_EQ(tensor->dtype(), dtype);
    EXPECT_EQ(std::memcmp(tensor->data(), saved.bytes.data(), tensor->bytes()), 0) << name;
  }
  const std::pair<const char*, DataType> untyped[] = {{"float8_e4m3fn", DataType::kFloat8E4M3Fn},
                                                      {"float8_e5m2", DataType::kFloat8E5M2},
                                                      {"float8_e8m0fnu", DataType::kFloat8E8M0},
                                                      {"uint16", DataType::kUint16},
                                                      {"uint32", DataType::kUint32},
                                                      {"uint64", DataType::kUint64}};
  for (const auto& [name, dtype] : untyped) {
    SavedTensor saved = Twelve({3}, {1});
    saved.storage = "torch.storage UntypedStorage";
    saved.dtype = name;
    const Result<Tensor> tensor = Load(TorchFile(saved));
    ASSERT_TRUE(tensor.ok()) << tensor.status().message();
    EXPECT_EQ(tensor->dtype(), dtype) << name;
  }
}

TEST(TorchFile, WhatLiesBehindTheStorageIsRefused) {
  const std::string behind = "its elements lie behind their storage";
  EXPECT_THAT(Refusal(TorchFile(Twelve({13}, {1}))), HasSubstr(behind));
  EXPECT_THAT(Refusal(TorchFile(Twelve({2}, {12}))), HasSubstr(behind));
  EXPECT_THAT(Refusal(TorchFile(Twelve({}, {}, 12))), HasSubstr(behind));
  EXPECT_THAT(Refusal(TorchFile(Twelve({3, 3}, {INT64_MAX / 2, INT64_MAX / 2}))),
              HasSubstr(behind));
  EXPECT_THAT(Refusal(TorchFile(Twelve({2}, {-1}))), HasSubstr("a stride is no number"));
  EXPECT_THAT(Refusal(TorchFile(Twelve({2}, {1, 1}))), HasSubstr("not a stride for each axis"));
  EXPECT_THAT(Refusal(TorchFile(Twelve({2}, {1}, -1))), HasSubstr("where its elements begin"));
  const Result<Tensor> large = Load(TorchFile(Twelve({int64_t{1} << 30}, {0})));
  ASSERT_FALSE(large.ok());
  EXPECT_THAT(std::string(large.status().message()),
              AllOf(HasSubstr("repeated"), HasSubstr(".pt")));
}

TEST(TorchFile, OtherFilesSayWhatTheyAre) {
  SavedTensor quantised = Twelve({2}, {1});
  quantised.storage = "torch QInt8Storage";
  EXPECT_THAT(Refusal(TorchFile(quantised)), HasSubstr("those of torch.QInt8Storage"));
  quantised.storage = "torch.storage UntypedStorage";
  quantised.dtype = "int4";
  EXPECT_THAT(Refusal(TorchFile(quantised)), HasSubstr("its elements are torch.int4"));
  EXPECT_THAT(Refusal(StoredZip({{"x/data.pkl", Pickle("].")}})), HasSubstr("holds a list"));
  EXPECT_THAT(Refusal(StoredZip({{"x/data.pkl", Pickle("ccollections\nOrderedDict\n)R.")}})),
              HasSubstr("an object that collections.OrderedDict makes"));
  EXPECT_THAT(Refusal(StoredZip({{"x/data.pkl", Pickle("cos\nsystem\nU\4true\x85R.")}})),
              HasSubstr("an object that os.system makes"));
  EXPECT_THAT(Refusal(StoredZip({{"x/data.pkl", TorchPickle(Twelve({1}, {1}))}})),
              HasSubstr("lacks the storage"));
  EXPECT_THAT(Refusal(StoredZip({{"x/data.pkl", Pickle("N.")}, {"x/byteorder", "big"}})),
              HasSubstr("big-endian"));
  EXPECT_THAT(Refusal(StoredZip({{"word/document.xml", "x"}})), HasSubstr("no data.pkl"));
  EXPECT_THAT(Refusal("\x80\x02"
                      "\x8a\x0al\xfc\x9c"),
              HasSubstr("torch before version 1.6"));
  EXPECT_THAT(Refusal("text"), HasSubstr("no zip archive"));
}

TEST(TorchFile, EachCutAndEachChangedByteEndsWell) {
  const std::string whole = TorchFile(Twelve({3, 2}, {1, 4}, 1));
  for (size_t length = 0; length < whole.size(); ++length) {
    const Result<TorchTensorPlace> place = FindTorchTensor(whole.substr(0, length));
    EXPECT_FALSE(place.ok()) << length;
  }
  size_t refused = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0xff);
    const Result<Tensor> tensor = Load(damaged);
    refused += tensor.ok() ? 0 : 1;
    if (tensor.ok()) continue;
    EXPECT_EQ(tensor.status().message().find('\n'), std::string::npos);
  }
  EXPECT_GT(refused, whole.size() / 4);
}

TEST(StoredZipFile, CompressedMembersAreRefused) {
  std::string zip = StoredZip({{"a", "xyz"}});
  EXPECT_EQ(ListStoredZip(zip)->front().name, "a");
  EXPECT_EQ(ListStoredZip(zip + "comment")->front().bytes, 3u);
  zip[zip.find("PK\x01\x02") + 10] = 8;
  EXPECT_THAT(std::string(ListStoredZip(zip).status().message()), HasSubstr("compressed"));
}

}  // namespace
}  // namespace npumesh
