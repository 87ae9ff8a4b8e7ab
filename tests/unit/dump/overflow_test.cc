// Overflow dump, with operators of the real registry: tiny ones know integers only.
#include <gtest/gtest.h>

#include <limits>

#include "graph/dump/statistics/overflow.h"
#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/op_registry.h"
#include "runtime/base/float16.h"
#include "tests/unit/dump/dumper_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;

DumpOperand OperandOf(DataType dtype, int64_t elements, const void* data) {
  DumpOperand operand;
  operand.tensor.type = {dtype, Shape({elements})};
  operand.tensor.size = operand.tensor.type.bytes();
  operand.data = data;
  return operand;
}

TEST(Overflow, OutOfRange) {
  const float fine[] = {1, std::numeric_limits<float>::max()};
  const float infinite[] = {1, std::numeric_limits<float>::infinity()};
  const float nan[] = {std::numeric_limits<float>::quiet_NaN()};
  const uint16_t half[] = {Float16::FromFloat(-65504)};
  const uint16_t fine_half[] = {Float16::FromFloat(65472)};
  const int32_t integer[] = {std::numeric_limits<int32_t>::max()};
  EXPECT_FALSE(OutOfRange({OperandOf(DataType::kFloat, 2, fine)}));
  EXPECT_TRUE(OutOfRange({OperandOf(DataType::kFloat, 2, infinite)}));
  EXPECT_TRUE(OutOfRange({OperandOf(DataType::kFloat, 1, nan)}));
  EXPECT_TRUE(OutOfRange({OperandOf(DataType::kFloat16, 1, half)}));
  EXPECT_FALSE(OutOfRange({OperandOf(DataType::kFloat16, 1, fine_half)}));
  EXPECT_FALSE(OutOfRange({OperandOf(DataType::kInt32, 1, integer)}));
  EXPECT_TRUE(
      OutOfRange({OperandOf(DataType::kFloat, 2, fine), OperandOf(DataType::kFloat, 2, infinite)}));
}

uint64_t At(const std::string& bytes, size_t offset, size_t size) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, size);
  return value;
}

TEST(Overflow, Record) {
  const std::string core = OverflowRecord(1, 2, 3, false);
  ASSERT_EQ(core.size(), 2048u);
  EXPECT_EQ(At(core, 0, 4), 0x5A5A5A5Au);
  EXPECT_EQ(At(core, 4, 4), 0u);    // version
  EXPECT_EQ(At(core, 8, 4), 1u);    // valid
  EXPECT_EQ(At(core, 12, 4), 0u);   // AI core
  EXPECT_EQ(At(core, 20, 4), 88u);  // eleven fields
  EXPECT_EQ(At(core, 24, 8), 1u);
  EXPECT_EQ(At(core, 32, 8), 2u);
  EXPECT_EQ(At(core, 40, 8), 3u);
  EXPECT_EQ(At(core, 56, 8), 65535u);
  EXPECT_EQ(At(core, 24 + 80, 8), 1u);  // status
  EXPECT_EQ(At(core, 24 + 88, 4), 0u);  // no further record
  const std::string sdma = OverflowRecord(1, 2, 3, true);
  EXPECT_EQ(At(sdma, 12, 4), 3u);
  EXPECT_EQ(At(sdma, 20, 4), 80u);  // ten fields
}

// Exp(100) and Exp(10): only what leaves the range while its inputs are fine is written.
TEST(Overflow, OnlyTheOperatorThatOverflows) {
  TemporaryFolder folder;
  GraphBuilder g;
  const TensorType type{DataType::kFloat, Shape({2})};
  const Value x = g.Data("x", type);
  const Value loud = g.Op("Exp", {{"x", x}}, {}, "loud");
  g.Output({g.Op("Neg", {{"x", loud}}, {}, "follower"), g.Op("Abs", {{"x", x}}, {}, "quiet")});
  const Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const auto compiled = CompiledModel::Compile(*model, BuiltinOps(), {type}, {}, nullptr, {});
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  DeviceMemory memory(std::make_unique<SmallSegment>(), 0);
  const auto executor = Executor::Create(**compiled, memory);
  ASSERT_TRUE(executor.ok());
  DumpSettings settings;
  settings.path = folder.path();
  settings.overflow = true;
  settings.mode = DumpMode::kAll;
  DumpPlace place;
  place.time = "1";
  Dumper dumper(settings, place, {});
  for (const float value : {100.0f, 10.0f}) {
    const float input[] = {1.0f, value};
    std::memcpy((*executor)->input_buffer(0), input, sizeof input);
    ASSERT_TRUE((*executor)->Run(&dumper).ok());
  }
  const DumpReport report = dumper.Finish();
  EXPECT_EQ(report.overflows, 1u);
  EXPECT_EQ(report.counts.files, 2u);
  const std::string step = ModelFolder(settings, place, model->graph.name()) + "/0";
  std::vector<std::string> types;
  for (const auto& entry : std::filesystem::directory_iterator(step)) {
    const auto name = ParseDumpFileName(entry.path().filename().string());
    ASSERT_TRUE(name.has_value());
    types.push_back(name->op_type + "." + name->op_name);
    const Result<DumpFile> file = DumpFile::Open(entry.path().string());
    ASSERT_TRUE(file.ok());
    if (name->op_type == "Exp") {
      // The output may have taken over the input's buffer; the file shows the input as it was.
      float seen[2];
      std::memcpy(seen, file->payload(file->record().inputs.at(0)).data(), sizeof seen);
      EXPECT_EQ(seen[1], 100.0f);
    } else {
      EXPECT_EQ(file->record().outputs.at(0).size, 2048u);
      EXPECT_EQ(file->record().op_name, "Node_OpDebug");
    }
  }
  std::sort(types.begin(), types.end());
  EXPECT_THAT(types, ElementsAre("Exp.loud", "Opdebug.Node_OpDebug"));
  EXPECT_FALSE(std::filesystem::exists(ModelFolder(settings, place, model->graph.name()) + "/1"));
}

}  // namespace
}  // namespace npumesh
