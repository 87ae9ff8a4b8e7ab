#include "graph/compare/sources/recorder.h"

#include <cstring>
#include <utility>

#include "graph/engine/plan/compiled_model.h"

namespace npumesh {
namespace {

Tensor CopyOf(const TensorType& type, const void* address) {
  Tensor copy = Tensor::Allocate(type);
  if (copy.bytes() > 0) std::memcpy(copy.mutable_data(), address, copy.bytes());
  return copy;
}

}  // namespace

Recorder::Recorder(std::string title, uint64_t iteration, bool inputs)
    : source_(std::move(title)), iteration_(iteration), inputs_(inputs) {}

Status Recorder::BeforeStep(const StepView& view) {
  if (view.run.iteration != iteration_ || !inputs_) return Status();
  const Step& step = view.step;
  int number = 0;  // of the inputs that are fed
  for (size_t slot = 0; slot < step.inputs.size(); ++slot) {
    if (step.inputs[slot].kind == Address::Kind::kNone) continue;
    source_.Add(step.name, step.type, Side::kInput, number++,
                CopyOf(step.input_types[slot], view.args.in[slot]));
  }
  return Status();
}

Status Recorder::AfterStep(const StepView& view) {
  if (view.run.iteration != iteration_) return Status();
  const Step& step = view.step;
  for (size_t port = 0; port + step.others < step.output_types.size(); ++port) {
    source_.Add(step.name, step.type, Side::kOutput, static_cast<int>(port),
                CopyOf(step.output_types[port], view.args.out[port]));
  }
  return Status();
}

}  // namespace npumesh
