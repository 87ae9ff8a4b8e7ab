// What tests of fusion share: a graph that is compiled with and without passes and run on the same
// inputs.
#ifndef NPUMESH_TESTS_UNIT_FUSION_FUSION_FIXTURE_H_
#define NPUMESH_TESTS_UNIT_FUSION_FUSION_FIXTURE_H_

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "graph/engine/plan/compiled_model.h"
#include "graph/engine/run/executor.h"
#include "graph/ir/graph_builder.h"
#include "graph/ops/builtin_ops.h"
#include "graph/ops/toolbox/values/cast.h"
#include "graph/passes/fusion/fusion.h"

namespace npumesh {

class FusionTest : public testing::Test {
 protected:
  static constexpr DataType kFloat = DataType::kFloat;
  static constexpr DataType kHalf = DataType::kFloat16;

  struct Outcome {
    std::vector<std::string> steps;  // types
    std::vector<Tensor> outputs;
    int static_steps = 0;
    std::vector<std::string> said;  // of what was not fused: "<step>: <what is said>"
  };

  // Values between -4 and 4 that need rounding, in C order; equal for equal seeds.
  static Tensor Fill(const TensorType& type, uint32_t seed) {
    std::vector<float> values(static_cast<size_t>(type.shape.elements()));
    for (float& value : values) {
      seed = seed * 1664525 + 1013904223;
      value = static_cast<float>(static_cast<int32_t>(seed >> 8) - (1 << 23)) * 0x1p-21f;
    }
    Tensor tensor = Tensor::Allocate(type);
    FindConvert(kFloat, type.dtype)(values.data(), tensor.mutable_data(), values.size());
    return tensor;
  }
  static std::vector<double> Doubles(const Tensor& tensor) {
    std::vector<double> values(static_cast<size_t>(tensor.type().shape.elements()));
    FindConvert(tensor.dtype(), DataType::kDouble)(tensor.data(), values.data(), values.size());
    return values;
  }

  // Begins a new graph.
  void SetUpAnew() {
    g_ = GraphBuilder();
    inputs_.clear();
    model_.reset();
  }

  // An input of the graph, filled as Fill does with another seed.
  Value In(const TensorType& type) {
    return In(Fill(type, static_cast<uint32_t>(inputs_.size()) + 1));
  }
  Value In(Tensor values) {
    inputs_.push_back(std::move(values));
    return g_.Data("in" + std::to_string(inputs_.size()), inputs_.back().type());
  }
  Value Scalar(float value, DataType dtype = kFloat) {
    Tensor tensor = Tensor::Allocate({dtype, Shape()});
    FindConvert(kFloat, dtype)(&value, tensor.mutable_data(), 1);
    return g_.Const("scalar" + std::to_string(++constants_), tensor);
  }
  Value Weight(const TensorType& type) {
    ++constants_;
    return g_.Const("weight" + std::to_string(constants_),
                    Fill(type, static_cast<uint32_t>(constants_) + 100));
  }
  Value Two(const std::string& type, Value a, Value b) {
    return g_.Op(type, {{"x1", a}, {"x2", b}});
  }
  Value One(const std::string& type, Value x) { return g_.Op(type, {{"x", x}}); }
  Value Cast(Value x, DataType to) {
    return g_.Op("Cast", {{"x", x}}, {{"dst_type", AttrValue::Int(static_cast<int64_t>(to))}});
  }

  // Compiles the graph with the passes for which `on` holds, and with static kernels where a source
  // is given, and runs it once.
  Outcome Run(const std::function<bool(std::string_view)>& on,
              StaticKernelSource* static_kernels = nullptr) {
    if (!model_) {
      Result<Model> built = g_.Build();
      EXPECT_TRUE(built.ok()) << built.status().ToString();
      if (!built.ok()) return {};
      model_ = std::make_unique<Model>(std::move(*built));
    }
    CompileOptions options;
    options.fuses = on;
    options.static_kernels = static_kernels;
    std::vector<TensorType> types;
    for (const Tensor& input : inputs_) types.push_back(input.type());
    const auto compiled =
        CompiledModel::Compile(*model_, BuiltinOps(), types, inputs_, nullptr, options);
    EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
    return compiled.ok() ? RunCompiled(**compiled) : Outcome();
  }
  Outcome Fused() {
    return Run([](std::string_view) { return true; });
  }
  Outcome Unfused() { return Run(nullptr); }

  // All passes together make these steps, with the outputs of the graph without fusion, bit by bit.
  void ExpectSame(const std::vector<std::string>& steps) {
    const Outcome fused = Fused();
    const Outcome plain = Unfused();
    EXPECT_THAT(fused.steps, testing::ElementsAreArray(steps));
    ASSERT_EQ(fused.outputs.size(), plain.outputs.size());
    for (size_t i = 0; i < fused.outputs.size(); ++i) {
      ASSERT_EQ(fused.outputs[i].type(), plain.outputs[i].type());
      EXPECT_EQ(
          std::memcmp(fused.outputs[i].data(), plain.outputs[i].data(), plain.outputs[i].bytes()),
          0)
          << "output " << i;
    }
  }

  // The same, where a result may differ by `bound` of the largest magnitude of the output.
  void ExpectNear(const std::vector<std::string>& steps, double bound) {
    const Outcome fused = Fused();
    const Outcome plain = Unfused();
    EXPECT_THAT(fused.steps, testing::ElementsAreArray(steps));
    ASSERT_EQ(fused.outputs.size(), plain.outputs.size());
    for (size_t i = 0; i < fused.outputs.size(); ++i) {
      const std::vector<double> seen = Doubles(fused.outputs[i]);
      const std::vector<double> expected = Doubles(plain.outputs[i]);
      double largest = 0;
      for (const double value : expected) largest = std::max(largest, std::fabs(value));
      for (size_t j = 0; j < seen.size(); ++j) {
        EXPECT_LE(std::fabs(seen[j] - expected[j]), bound * largest) << "element " << j;
      }
    }
  }

  // Nothing is fused.
  void ExpectUntouched() { EXPECT_EQ(Fused().steps, Unfused().steps); }

  GraphBuilder g_;
  std::vector<Tensor> inputs_;

 private:
  class Segment final : public NodeSegment {
   public:
    std::byte* part(int) const override { return memory_->data(); }
    uint64_t bytes() const override { return kBytes; }

   private:
    static constexpr uint64_t kBytes = uint64_t{4} << 20;
    struct alignas(4096) Memory : std::array<std::byte, kBytes> {};
    std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  };

  Outcome RunCompiled(CompiledModel& compiled) {
    Outcome outcome;
    for (const Step& step : compiled.steps()) {
      outcome.steps.push_back(step.type);
      if (step.kernel->choice().name.starts_with("static kernel")) ++outcome.static_steps;
    }
    for (const UnfusedNode& node : compiled.facts().unfused) {
      outcome.said.push_back(node.step + ": " + node.ToString());
    }
    DeviceMemory memory(std::make_unique<Segment>(), 0);
    const auto executor = Executor::Create(compiled, memory);
    EXPECT_TRUE(executor.ok()) << executor.status().ToString();
    if (!executor.ok()) return outcome;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      std::memcpy((*executor)->input_buffer(static_cast<int>(i)), inputs_[i].data(),
                  inputs_[i].bytes());
    }
    const Result<RunStats> stats = (*executor)->Run();
    EXPECT_TRUE(stats.ok()) << stats.status().ToString();
    for (size_t i = 0; stats.ok() && i < compiled.output_types().size(); ++i) {
      Tensor& output = outcome.outputs.emplace_back(Tensor::Allocate(compiled.output_types()[i]));
      std::memcpy(output.mutable_data(), (*executor)->output(static_cast<int>(i)), output.bytes());
    }
    return outcome;
  }

  std::unique_ptr<Model> model_;
  int constants_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_FUSION_FUSION_FIXTURE_H_
