#include "graph/tuning/contest.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/base/visit_stored.h"

namespace npumesh {
namespace {

constexpr double kLeastGain = 0.97;  // of the ordinary time: less is noise
constexpr int64_t kTooSlow = 2;      // times the fastest

// Knuth's MMIX generator: the same numbers on every machine.
class Numbers {
 public:
  uint32_t Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 32);
  }
  // Multiples of 1/64 in [-1, 1), which all float types hold.
  float NextFloat() { return static_cast<float>(static_cast<int>(Next() >> 25) - 64) / 64.0f; }

 private:
  uint64_t state_ = 1;
};

// Integers of more than 8 bits stay the zeros that Allocate makes.
void Fill(Tensor& tensor, Numbers& numbers) {
  const bool bytes = tensor.dtype() == DataType::kInt8 || tensor.dtype() == DataType::kUint8;
  if (!bytes && !IsFloating(tensor.dtype())) return;
  const auto fill = [&]<typename T>() {
    std::generate_n(reinterpret_cast<T*>(tensor.mutable_data()), tensor.elements(), [&] {
      if constexpr (std::integral<T>) {
        return static_cast<T>(numbers.Next() >> 24);
      } else {
        return static_cast<T>(numbers.NextFloat());
      }
    });
  };
  VisitStored(tensor.dtype(), fill, [] {});
}

// Constants of a file lie anywhere; on the device they are aligned.
bool IsAligned(const Tensor& tensor) {
  constexpr uintptr_t kAlignment = 64;
  return reinterpret_cast<uintptr_t>(tensor.data()) % kAlignment == 0;
}

Tensor AlignedCopy(const Tensor& tensor) {
  Tensor copy = Tensor::Allocate(tensor.type());
  if (tensor.bytes() > 0) std::memcpy(copy.mutable_data(), tensor.data(), tensor.bytes());
  return copy;
}

struct Runner {
  Kernel* kernel = nullptr;
  std::vector<int64_t> times;
  bool out = false;
  std::string failure;
};

void RunOnce(Runner& runner, ContestOperands& operands, const TuningClock& clock, bool timed) {
  const KernelArgs args = operands.ArgsFor(*runner.kernel);
  const int64_t start = clock();
  const Status status = runner.kernel->Run(args);
  const int64_t end = clock();
  if (timed) runner.times.push_back(end - start);
  if (status.ok()) return;
  runner.failure = status.message();
  runner.out = true;
}

void DropSlowOnes(std::vector<Runner>& runners) {
  int64_t fastest = -1;
  for (const Runner& runner : runners) {
    if (runner.out) continue;
    if (fastest < 0 || runner.times[0] < fastest) fastest = runner.times[0];
  }
  // The ordinary one is what the others are compared with.
  for (size_t i = 1; i < runners.size(); ++i) {
    Runner& runner = runners[i];
    runner.out = runner.out || runner.times[0] > kTooSlow * fastest;
  }
}

double MedianMicroseconds(std::vector<int64_t> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return static_cast<double>(*middle) / 1000.0;
}

}  // namespace

TuningClock SteadyTuningClock() {
  return [] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  };
}

std::optional<ContestOperands> ContestOperands::Make(const TunableStep& step, uint64_t most_bytes) {
  uint64_t bytes = 0;
  for (size_t slot = 0; slot < step.inputs.size(); ++slot) {
    const Tensor* const given = step.constants[slot];
    const bool fed = step.inputs[slot].dtype != DataType::kUndefined;
    if (fed && (given == nullptr || !IsAligned(*given))) bytes += step.inputs[slot].bytes();
  }
  for (const TensorType& output : step.outputs) bytes += output.bytes();
  if (bytes > most_bytes) return std::nullopt;
  ContestOperands operands;
  Numbers numbers;
  for (size_t slot = 0; slot < step.inputs.size(); ++slot) {
    Tensor& tensor = operands.inputs_.emplace_back();
    const Tensor* const given = step.constants[slot];
    if (given != nullptr) {
      tensor = IsAligned(*given) ? *given : AlignedCopy(*given);
    } else if (step.inputs[slot].dtype != DataType::kUndefined) {
      tensor = Tensor::Allocate(step.inputs[slot]);
      Fill(tensor, numbers);
    }
    operands.in_.push_back(tensor.data());
  }
  for (const TensorType& output : step.outputs) {
    operands.outputs_.push_back(Tensor::Allocate(output));
    operands.out_.push_back(operands.outputs_.back().mutable_data());
  }
  return operands;
}

KernelArgs ContestOperands::ArgsFor(const Kernel& kernel) {
  const uint64_t wanted = kernel.scratch_bytes();
  if (wanted > scratch_.bytes()) {
    scratch_ = Tensor::Allocate({DataType::kUint8, Shape({static_cast<int64_t>(wanted)})});
  }
  return {in_.data(), out_.data(), scratch_.mutable_data()};
}

std::vector<ContestTime> RunContest(const std::vector<Kernel*>& kernels, ContestOperands& operands,
                                    const ContestRules& rules, const TuningClock& clock) {
  std::vector<Runner> runners;
  for (Kernel* const kernel : kernels) runners.push_back({kernel, {}, false, {}});
  const auto round = [&](bool timed) {
    for (Runner& runner : runners) {
      if (!runner.out) RunOnce(runner, operands, clock, timed);
    }
  };
  const int64_t start = clock();
  round(/*timed=*/false);
  for (int rounds = 0; rounds < rules.most_rounds; ++rounds) {
    if (rounds >= rules.least_rounds && clock() - start >= rules.budget_ns) break;
    round(/*timed=*/true);
    if (rounds == 0) DropSlowOnes(runners);
  }
  std::vector<ContestTime> times;
  for (Runner& runner : runners) {
    ContestTime& time = times.emplace_back();
    time.failure = std::move(runner.failure);
    time.runs = static_cast<int>(runner.times.size());
    if (time.failure.empty()) time.median_us = MedianMicroseconds(std::move(runner.times));
  }
  return times;
}

size_t WinnerOf(const std::vector<ContestTime>& times) {
  size_t winner = 0;
  for (size_t i = 1; i < times.size(); ++i) {
    if (times[i].failure.empty() && times[i].median_us < times[winner].median_us) winner = i;
  }
  return times[winner].median_us <= kLeastGain * times[0].median_us ? winner : 0;
}

}  // namespace npumesh
