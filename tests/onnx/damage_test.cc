// Damaged files of ONNX: a model, or one error that is fit for a terminal.
#include <gtest/gtest.h>

#include "graph/onnx/import.h"
#include "graph/onnx/reader.h"
#include "graph/ops/builtin_ops.h"
#include "tests/fuzz/mutator.h"
#include "tests/fuzz/targets.h"
#include "tests/onnx/model_builder.h"

namespace npumesh {
namespace {

using testing::OnnxModelBuilder;
using testing::SetInt;
using testing::SetInts;

const TensorType kImage = {DataType::kFloat, Shape({1, 2, 4, 4})};

std::string ImageModel() {
  OnnxModelBuilder g;
  const TensorType filter{DataType::kFloat, Shape({2, 2, 3, 3})};
  g.Input("x", kImage).Output("y", {DataType::kFloat, Shape({1, 2})});
  g.Initialiser("w", Tensor::Allocate(filter));
  onnx::NodeProto& conv = g.Node("Conv", {"x", "w"}, {"c"});
  SetInts(conv, "pads", {1, 1, 1, 1});
  onnx::NodeProto& pool = g.Node("MaxPool", {"c"}, {"p", "places"});
  SetInts(pool, "kernel_shape", {2, 2});
  SetInts(pool, "dilations", {2, 1});
  onnx::NodeProto& mean = g.Node("ReduceMean", {"p"}, {"y"});
  SetInts(mean, "axes", {2, 3});
  SetInt(mean, "keepdims", 0);
  return g.Bytes();
}

std::string ShapeModel() {
  OnnxModelBuilder g;
  g.Input("x", {DataType::kFloat, Shape({-1, 6})}).Output("y", {DataType::kFloat, Shape({-1, 3})});
  g.Initialiser("shape", Tensor::FromVector<int64_t>({DataType::kInt64, Shape({2})}, {-1, 3}));
  g.Node("Reshape", {"x", "shape"}, {"r"});
  g.Node("Softmax", {"r"}, {"s"});
  SetInt(g.Node("Concat", {"s", "s"}, {"k"}), "axis", 0);
  SetInt(g.Node("Split", {"k"}, {"y", "z"}), "axis", 0);
  return g.Bytes();
}

// What is wrong with what becomes of these bytes; empty: nothing.
std::string FlawIn(const std::string& bytes) {
  (void)LooksLikeOnnx(bytes);
  const Result<OnnxModel> read = ReadOnnx(bytes, "m.onnx");
  if (!read.ok()) return fuzz::FlawOf(read.status());
  const Result<Model> imported = ImportOnnx(*read, BuiltinOps());
  if (!imported.ok()) return fuzz::FlawOf(imported.status());
  const Status verified = imported->graph.Verify();
  return verified.ok() ? "" : "a damaged graph: " + verified.ToString();
}

TEST(DamagedOnnx, IsAModelOrAnError) {
  const std::vector<std::string> seeds = {ImageModel(), ShapeModel()};
  for (const std::string& seed : seeds) ASSERT_TRUE(ReadOnnx(seed, "").ok());
  fuzz::Mutator mutator(7);
  for (int i = 0; i < 4000; ++i) {
    const std::string& seed = seeds[static_cast<size_t>(i) % seeds.size()];
    ASSERT_EQ(FlawIn(mutator.Mutate(seed, seeds)), "") << i;
  }
}

TEST(DamagedOnnx, CutAtEachByte) {
  for (const std::string& seed : {ImageModel(), ShapeModel()}) {
    for (size_t size = 0; size < seed.size(); ++size) {
      ASSERT_EQ(FlawIn(seed.substr(0, size)), "") << size;
    }
  }
}

}  // namespace
}  // namespace npumesh
