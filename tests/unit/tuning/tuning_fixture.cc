#include "tests/unit/tuning/tuning_fixture.h"

#include <utility>

#include "runtime/base/advice.h"

namespace npumesh::testing {

TimedKernel::TimedKernel(std::string name, int64_t* now, int64_t cost_ns, bool fails)
    : name_(std::move(name)), now_(now), cost_ns_(cost_ns), fails_(fails) {}

Status TimedKernel::Run(const KernelArgs&) {
  *now_ += cost_ns_;
  return fails_ ? Error(Code::kInternal, "\"{}\" fails", name_) : Status();
}

std::string NameOf(const Kernel& kernel) {
  return static_cast<const TimedKernel&>(kernel).name();
}

KernelTuner::MakeKernel Ways::MakerFor(KernelTuning& tuning) {
  return [this, &tuning]() -> Result<std::unique_ptr<Kernel>> {
    ++made;
    const std::string wanted = tuning.Preferred("way");
    std::vector<std::string> options;
    std::pair<std::string, double> taken = costs[0];
    for (const auto& way : costs) {
      options.push_back(way.first);
      if (way.first == wanted && wanted != objecting) taken = way;
    }
    tuning.Decided("way", std::move(options), taken.first);
    const auto cost = static_cast<int64_t>(taken.second * 1000);
    return std::unique_ptr<Kernel>(
        std::make_unique<TimedKernel>(taken.first, &now, cost, taken.first == failing));
  };
}

TunableStep StepOf(int64_t elements) {
  TunableStep step;
  step.name = "way_1";
  step.type = "Way";
  step.inputs = {{DataType::kInt64, Shape({elements})}};
  step.constants = {nullptr};
  step.outputs = step.inputs;
  return step;
}

AdviceLog::AdviceLog() {
  SetAdvicePrinter([this](std::string_view text) {
    said_.emplace_back(text);
    return true;
  });
}

AdviceLog::~AdviceLog() {
  SetAdvicePrinter(nullptr);
}

}  // namespace npumesh::testing
