// What tests of the engine share: tiny operators, a small device, and a way to run a graph once.
#ifndef NPUMESH_TESTS_UNIT_ENGINE_ENGINE_FIXTURE_H_
#define NPUMESH_TESTS_UNIT_ENGINE_ENGINE_FIXTURE_H_

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "graph/engine/plan/compiled_model.h"
#include "graph/engine/run/executor.h"
#include "tests/unit/engine/tiny_ops.h"

namespace npumesh {

// HBM of one rank without a world.
class SmallSegment final : public NodeSegment {
 public:
  static constexpr uint64_t kBytes = uint64_t{1} << 20;
  std::byte* part(int) const override { return memory_->data(); }
  uint64_t bytes() const override { return kBytes; }

 private:
  struct alignas(4096) Memory : std::array<std::byte, kBytes> {};
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
};

class EngineTest : public testing::Test {
 protected:
  using Compiled = Result<std::unique_ptr<CompiledModel>>;

  // Builds the graph and compiles it for inputs of these types and values.
  Compiled Compile(const std::vector<TensorType>& types, const std::vector<Tensor>& values = {}) {
    if (!model_) {
      Result<Model> built = g_.Build();
      if (!built.ok()) return built.status();
      model_ = std::make_unique<Model>(std::move(built).value());
    }
    return CompiledModel::Compile(*model_, registry_, types, values, nullptr, options_);
  }

  Compiled CompileFor(const std::vector<Tensor>& inputs) {
    std::vector<TensorType> types;
    for (const Tensor& input : inputs) types.push_back(input.type());
    return Compile(types, inputs);
  }

  static void Write(Executor& executor, int position, const Tensor& tensor) {
    std::memcpy(executor.input_buffer(position), tensor.data(), tensor.bytes());
  }

  static std::vector<int64_t> Read(const CompiledModel& model, const Executor& executor,
                                   int output) {
    const TensorType& type = model.output_types()[static_cast<size_t>(output)];
    const auto* data = static_cast<const int64_t*>(executor.output(output));
    return {data, data + type.shape.elements()};
  }

  // Compiles, runs once, and returns the integers of all outputs; on an error its message, once,
  // through the test's failure, and nothing.
  std::vector<std::vector<int64_t>> Run(const std::vector<Tensor>& inputs) {
    const Compiled model = CompileFor(inputs);
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    if (!model.ok()) return {};
    Result<std::unique_ptr<Executor>> executor = Executor::Create(**model, memory_);
    EXPECT_TRUE(executor.ok()) << executor.status().ToString();
    if (!executor.ok()) return {};
    for (size_t i = 0; i < inputs.size(); ++i) Write(**executor, static_cast<int>(i), inputs[i]);
    const Result<RunStats> stats = (*executor)->Run();
    EXPECT_TRUE(stats.ok()) << stats.status().ToString();
    std::vector<std::vector<int64_t>> outputs;
    for (size_t i = 0; i < (*model)->outputs().size(); ++i) {
      outputs.push_back(Read(**model, **executor, static_cast<int>(i)));
    }
    return outputs;
  }

  static std::vector<std::string> StepNames(const CompiledModel& model) {
    std::vector<std::string> names;
    for (const Step& step : model.steps()) names.push_back(step.name);
    return names;
  }

  const OpRegistry registry_ = TinyOps();
  CompileOptions options_;
  GraphBuilder g_;
  std::unique_ptr<Model> model_;
  DeviceMemory memory_{std::make_unique<SmallSegment>(), 0};
};

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_ENGINE_ENGINE_FIXTURE_H_
