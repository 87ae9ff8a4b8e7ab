// Damaged files of ONNX: a model, or one error that is fit for a terminal.
#include <gtest/gtest.h>

#include "graph/onnx/import.h"
#include "graph/onnx/reader.h"
#include "graph/ops/builtin_ops.h"
#include "tests/fuzz/mutator.h"
#include "tests/fuzz/targets.h"
#include "tests/onnx/example_models.h"

namespace npumesh {
namespace {

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

TEST(DamagedOnnx, IsWholeAtFirst) {
  for (const std::string& seed : testing::ExampleOnnxModels()) {
    const Result<OnnxModel> read = ReadOnnx(seed, "m.onnx");
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    const Status imported = ImportOnnx(*read, BuiltinOps()).status();
    EXPECT_TRUE(imported.ok()) << imported.ToString();
  }
}

TEST(DamagedOnnx, IsAModelOrAnError) {
  const std::vector<std::string> seeds = testing::ExampleOnnxModels();
  for (const std::string& seed : seeds) ASSERT_EQ(FlawIn(seed), "");
  fuzz::Mutator mutator(7);
  for (int i = 0; i < 4000; ++i) {
    const std::string& seed = seeds[static_cast<size_t>(i) % seeds.size()];
    ASSERT_EQ(FlawIn(mutator.Mutate(seed, seeds)), "") << i;
  }
}

TEST(DamagedOnnx, CutAtEachByte) {
  for (const std::string& seed : testing::ExampleOnnxModels()) {
    for (size_t size = 0; size < seed.size(); ++size) {
      ASSERT_EQ(FlawIn(seed.substr(0, size)), "") << size;
    }
  }
}

}  // namespace
}  // namespace npumesh
