// What the benchmarks of the decoder share: their block, and measuring two things in turns.
#ifndef NPUMESH_TESTS_BENCH_DECODER_ROUNDS_H_
#define NPUMESH_TESTS_BENCH_DECODER_ROUNDS_H_

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/engine/run/plan_cache.h"
#include "graph/ops/builtin_ops.h"
#include "graph/ops/toolbox/values/cast.h"
#include "graph/session/group_set.h"
#include "graph/session/session_config.h"
#include "tests/bench/timing.h"

namespace npumesh {

// The block of the speed targets, in float32.
inline constexpr int kHidden = 768;
inline constexpr int kHeads = 12;
inline constexpr int kFfn = 3072;
inline constexpr int kSequence = 128;

// A tensor of floats of any width, or of int8, with `value` everywhere.
inline Tensor Filled(DataType dtype, const Shape& shape, float value) {
  const std::vector<float> values(static_cast<size_t>(shape.elements()), value);
  Tensor tensor = Tensor::Allocate({dtype, shape});
  if (dtype == DataType::kFloat) {
    std::memcpy(tensor.mutable_data(), values.data(), tensor.bytes());
  } else {
    FindConvert(DataType::kFloat, dtype)(values.data(), tensor.mutable_data(), values.size());
  }
  return tensor;
}

// A model compiled as sessions compile by default, on the device of `world`.
class CompiledGraph {
 public:
  // Inputs without values are zeros. The fusion pass `without` is off. `change` may be null, and
  // changes what is compiled how. Collective over the graph's groups.
  static Result<std::unique_ptr<CompiledGraph>> Create(
      World& world, Model model, const std::vector<Tensor>& inputs, std::string_view without = "",
      const std::function<void(CompileOptions&)>& change = nullptr) {
    std::unique_ptr<CompiledGraph> made(new CompiledGraph(std::move(model)));
    NPUMESH_ASSIGN_OR_RETURN(made->memory_, DeviceMemory::Create(world));
    made->groups_ = std::make_unique<GroupSet>(world, *made->memory_, GroupTable());
    NPUMESH_ASSIGN_OR_RETURN(SessionOptions options, SessionOptionsFor(CompilerConfig()));
    options.compile.fuses = [fuses = options.compile.fuses, without](std::string_view pass) {
      return pass != without && fuses(pass);
    };
    if (change) change(options.compile);
    std::vector<TensorType> types;
    for (const Tensor& input : inputs) types.push_back(input.type());
    NPUMESH_ASSIGN_OR_RETURN(made->compiled_,
                             CompiledModel::Compile(made->model_, BuiltinOps(), types, inputs,
                                                    made->groups_.get(), options.compile));
    NPUMESH_ASSIGN_OR_RETURN(made->executor_, Executor::Create(*made->compiled_, *made->memory_));
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::memcpy(made->executor_->input_buffer(static_cast<int>(i)), inputs[i].data(),
                  inputs[i].bytes());
    }
    return made;
  }

  // Collective over all ranks: returns when all have come.
  Status Meet() {
    NPUMESH_ASSIGN_OR_RETURN(Communicator* const all, groups_->Group(std::string(kWorldGroup)));
    return all->Barrier();
  }
  Result<RunStats> Run(StepObserver* observer = nullptr) { return executor_->Run(observer); }
  // Output `index` of the last run.
  const void* output(int index) const { return executor_->output(index); }
  const CompiledModel& compiled() const { return *compiled_; }

 private:
  explicit CompiledGraph(Model model) : model_(std::move(model)) {}

  Model model_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<GroupSet> groups_;
  std::unique_ptr<CompiledModel> compiled_;
  std::unique_ptr<Executor> executor_;
};

// Adds up what each step took; keeps the shortest of all runs.
class StepTimes final : public StepObserver {
 public:
  Status AfterStep(const StepView& view) override {
    if (view.index >= shortest_.size()) shortest_.resize(view.index + 1, {"", 1e9});
    auto& [name, seconds] = shortest_[view.index];
    name = view.step.type + " " + view.step.name;
    seconds = std::min(seconds, view.seconds);
    return Status();
  }
  // "<type> <name>" and seconds, by step.
  const std::vector<std::pair<std::string, double>>& shortest() const { return shortest_; }

 private:
  std::vector<std::pair<std::string, double>> shortest_;
};

}  // namespace npumesh

#endif  // NPUMESH_TESTS_BENCH_DECODER_ROUNDS_H_
