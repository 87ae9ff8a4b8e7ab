// What the reader takes, and what it says of everything else.
#include "graph/onnx/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "tests/onnx/model_builder.h"

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::OnnxModelBuilder;

namespace fs = std::filesystem;

const TensorType kVector = {DataType::kFloat, Shape({3})};

OnnxModelBuilder Negation() {
  OnnxModelBuilder model;
  model.Input("x", kVector).Output("y", kVector);
  model.Node("Neg", {"x"}, {"y"});
  return model;
}

void ExpectUnreadable(const std::string& bytes, Code code, const std::string& text) {
  const Result<OnnxModel> model = ReadOnnx(bytes, "m.onnx");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), code) << model.status().ToString();
  EXPECT_THAT(std::string(model.status().message()), HasSubstr(text));
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("m.onnx"));
}

TEST(OnnxReader, ReadsNamesTypesAndNodes) {
  const Result<OnnxModel> model = ReadOnnx(Negation().Bytes(), "m.onnx");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ(model->opsets.at(""), 17);
  ASSERT_EQ(model->graph.nodes.size(), 1u);
  EXPECT_EQ(model->graph.nodes[0].op, "Neg");
  EXPECT_THAT(model->graph.nodes[0].inputs, ElementsAre("x"));
  EXPECT_EQ(model->graph.inputs[0].type.tensor, kVector);
}

TEST(OnnxReader, GivesPiecesBackAndReadsTheSame) {
  const TensorType type{DataType::kInt32, Shape({3, 1 << 20})};
  std::vector<int32_t> values(static_cast<size_t>(type.shape.elements()));
  std::iota(values.begin(), values.end(), 0);
  OnnxModelBuilder model = Negation();
  model.Initialiser("w", Tensor::FromVector(type, values));
  const std::string bytes = model.Bytes();
  size_t given = 0;
  const Result<OnnxModel> read = ReadOnnx(bytes, "m.onnx", [&](std::string_view piece) {
    EXPECT_EQ(piece.data(), bytes.data() + given);
    given += piece.size();
  });
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_GT(given, bytes.size() / 2);
  EXPECT_LE(given, bytes.size());
  EXPECT_THAT(read->graph.initialisers.at("w").as<int32_t>(), ::testing::ElementsAreArray(values));
}

TEST(OnnxReader, KnowsItsFilesByTheirFields) {
  EXPECT_TRUE(LooksLikeOnnx(Negation().Bytes()));
  EXPECT_FALSE(LooksLikeOnnx(""));
  EXPECT_FALSE(LooksLikeOnnx("graph { }"));
  EXPECT_FALSE(LooksLikeOnnx(std::string("\x0a\x01m\x3a\x00", 5)));  // a ModelDef: name, graph
}

// Every element type, from raw bytes and from the field of its type.
TEST(OnnxReader, ReadsTensorsOfBothForms) {
  onnx::TensorProto halves;
  halves.set_data_type(onnx::TensorProto::FLOAT16);
  halves.add_dims(2);
  for (const int bits : {0x3c00, 0xc000}) halves.add_int32_data(bits);  // 1, -2
  const Result<Tensor> half = ReadOnnxTensor(halves.SerializeAsString());
  ASSERT_TRUE(half.ok()) << half.status().ToString();
  EXPECT_EQ(half->dtype(), DataType::kFloat16);
  EXPECT_THAT(half->as<uint16_t>(), ElementsAre(0x3c00, 0xc000));

  onnx::TensorProto flags;
  flags.set_data_type(onnx::TensorProto::BOOL);
  flags.add_dims(3);
  flags.set_raw_data(std::string("\1\0\1", 3));
  const Result<Tensor> flag = ReadOnnxTensor(flags.SerializeAsString());
  ASSERT_TRUE(flag.ok()) << flag.status().ToString();
  EXPECT_THAT(flag->as<uint8_t>(), ElementsAre(1, 0, 1));

  onnx::TensorProto wide;
  wide.set_data_type(onnx::TensorProto::UINT32);
  wide.add_dims(1);
  wide.add_uint64_data(0xffffffffu);
  const Result<Tensor> number = ReadOnnxTensor(wide.SerializeAsString());
  ASSERT_TRUE(number.ok()) << number.status().ToString();
  EXPECT_EQ(number->as<uint32_t>()[0], 0xffffffffu);
}

TEST(OnnxReader, RefusesTensorsThatDoNotFit) {
  OnnxModelBuilder model = Negation();
  onnx::TensorProto* tensor = model.proto().mutable_graph()->add_initializer();
  tensor->set_name("w");
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  tensor->add_dims(2);
  tensor->set_raw_data("1234");
  ExpectUnreadable(model.Bytes(), Code::kCorrupt,
                   "initialiser \"w\": is float32[2], 8 bytes, but raw_data has 4");
  tensor->clear_raw_data();
  ExpectUnreadable(model.Bytes(), Code::kCorrupt, "2 elements, but float_data has 0");
  tensor->set_dims(0, -2);
  ExpectUnreadable(model.Bytes(), Code::kCorrupt, "has the dimension -2");
  tensor->set_dims(0, int64_t{1} << 40);
  tensor->add_dims(int64_t{1} << 40);
  EXPECT_FALSE(ReadOnnx(model.Bytes(), "m.onnx").ok());
  tensor->clear_dims();
  tensor->set_data_type(77);
  ExpectUnreadable(model.Bytes(), Code::kUnsupported, "has data_type 77");
}

TEST(OnnxReader, RefusesModelsWithoutTheirParts) {
  OnnxModelBuilder model = Negation();
  model.proto().set_ir_version(2);
  ExpectUnreadable(model.Bytes(), Code::kUnsupported, "has ir_version 2; npumesh reads 3 to 13");
  model.proto().set_ir_version(8);
  model.proto().clear_opset_import();
  ExpectUnreadable(model.Bytes(), Code::kCorrupt, "has no opset_import");
  onnx::ModelProto empty;
  empty.set_ir_version(8);
  empty.add_opset_import()->set_version(17);
  ExpectUnreadable(empty.SerializeAsString(), Code::kCorrupt, "has no graph");
  ExpectUnreadable("no model", Code::kCorrupt, "are not a binary");
}

// Cut at each byte: a model or an error with the name of the file.
TEST(OnnxReader, SurvivesCutFiles) {
  OnnxModelBuilder model = Negation();
  model.Initialiser("w", Tensor::FromVector<float>(kVector, {1, 2, 3}));
  const std::string bytes = model.Bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Result<OnnxModel> read = ReadOnnx(bytes.substr(0, size), "m.onnx");
    const std::string text = read.ok() ? "m.onnx" : std::string(read.status().message());
    EXPECT_THAT(text, HasSubstr("m.onnx")) << size;
  }
}

class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("onnx_reader_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
               std::to_string(getpid()));
    fs::create_directories(folder_);
    std::ofstream(folder_ / "w.bin", std::ios::binary)
        << std::string(4, '\0') << "\0\0\x80?" << std::string(8, '\0');
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A model whose initialiser w is in a file: location, offset, length.
  Result<OnnxModel> Read(const std::string& location, const std::string& offset) const {
    OnnxModelBuilder model = Negation();
    onnx::TensorProto* tensor = model.proto().mutable_graph()->add_initializer();
    tensor->set_name("w");
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->add_dims(2);
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    const auto add = [&](const std::string& key, const std::string& value) {
      auto* entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    };
    add("location", location);
    add("offset", offset);
    return ReadOnnx(model.Bytes(), (folder_ / "m.onnx").string());
  }

  fs::path folder_;
};

TEST_F(ExternalData, IsReadFromItsPlace) {
  std::ofstream(folder_ / "f.bin", std::ios::binary).write("abcd\0\0\x80?\0\0\0@", 12);
  const Result<OnnxModel> model = Read("f.bin", "4");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_THAT(model->graph.initialisers.at("w").as<float>(), ElementsAre(1.0F, 2.0F));
}

TEST_F(ExternalData, StaysInTheFolderAndInTheFile) {
  EXPECT_THAT(Read("../w.bin", "0").status().ToString(), HasSubstr("leaves the folder"));
  EXPECT_THAT(Read("/etc/passwd", "0").status().ToString(), HasSubstr("leaves the folder"));
  EXPECT_THAT(Read("absent.bin", "0").status().ToString(), HasSubstr("absent.bin"));
  EXPECT_THAT(Read("w.bin", "100").status().ToString(), HasSubstr("which has"));
  EXPECT_THAT(Read("w.bin", "x").status().ToString(), HasSubstr("offset"));
}

}  // namespace
}  // namespace npumesh
