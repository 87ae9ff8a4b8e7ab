// Compiled once for each instruction set by Highway's foreach_target; the last pass (HWY_ONCE) adds
// the functions that are called.
#include "launch/profile/machine_limits.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "launch/profile/machine_limits.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks for.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Multiply-adds in twelve independent chains: more than latency times throughput of any processor,
// and few enough for sixteen registers. Adds what it computed to `sum`, so that no compiler leaves
// it out; returns the number of operations.
double MultiplyAdds(int turns, float* sum) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999F);
  const auto term = hn::Set(d, 0.001F);
  auto a0 = hn::Iota(d, 0), a1 = hn::Iota(d, 1), a2 = hn::Iota(d, 2), a3 = hn::Iota(d, 3);
  auto a4 = hn::Iota(d, 4), a5 = hn::Iota(d, 5), a6 = hn::Iota(d, 6), a7 = hn::Iota(d, 7);
  auto a8 = hn::Iota(d, 8), a9 = hn::Iota(d, 9), a10 = hn::Iota(d, 10), a11 = hn::Iota(d, 11);
  for (int turn = 0; turn < turns; ++turn) {
    a0 = hn::MulAdd(a0, factor, term);
    a1 = hn::MulAdd(a1, factor, term);
    a2 = hn::MulAdd(a2, factor, term);
    a3 = hn::MulAdd(a3, factor, term);
    a4 = hn::MulAdd(a4, factor, term);
    a5 = hn::MulAdd(a5, factor, term);
    a6 = hn::MulAdd(a6, factor, term);
    a7 = hn::MulAdd(a7, factor, term);
    a8 = hn::MulAdd(a8, factor, term);
    a9 = hn::MulAdd(a9, factor, term);
    a10 = hn::MulAdd(a10, factor, term);
    a11 = hn::MulAdd(a11, factor, term);
  }
  const auto low = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), hn::Add(a4, a5));
  const auto high = hn::Add(hn::Add(hn::Add(a6, a7), hn::Add(a8, a9)), hn::Add(a10, a11));
  *sum += hn::GetLane(hn::SumOfLanes(d, hn::Add(low, high)));
  constexpr int kChains = 12;
  constexpr int kOperations = 2;
  return static_cast<double>(turns) * kChains * kOperations * static_cast<double>(hn::Lanes(d));
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {

HWY_EXPORT(MultiplyAdds);

namespace {

using LimitClock = std::chrono::steady_clock;

constexpr auto kMeasureTime = std::chrono::milliseconds(100);

// The best rate of `run`, which returns what it has done, in 1e9 a second.
template <typename Run>
double BestRate(Run run) {
  double best = 0;
  const auto end = LimitClock::now() + kMeasureTime;
  do {
    const auto begin = LimitClock::now();
    const double done = run();
    const std::chrono::duration<double, std::nano> took = LimitClock::now() - begin;
    best = std::max(best, done / std::max(took.count(), 1.0));
  } while (LimitClock::now() < end);
  return best;
}

double CopyRate() {
  constexpr size_t kBytes = size_t{32} << 20;  // larger than a core's caches
  std::vector<std::byte> from(kBytes, std::byte{1});
  std::vector<std::byte> to(kBytes);
  return BestRate([&] {
    std::memcpy(to.data(), from.data(), kBytes);
    from[0] = to[kBytes - 1];  // the copy has a reader
    return 2.0 * kBytes;
  });
}

}  // namespace

MachineLimits MeasureMachineLimits() {
  constexpr int kTurns = 100'000;
  float sum = 0;
  MachineLimits limits;
  limits.gflops = BestRate([&] { return HWY_DYNAMIC_DISPATCH(MultiplyAdds)(kTurns, &sum); });
  limits.gbytes = CopyRate();
  // Never true: the chains converge to 1.
  if (sum < 0) limits.gflops = 0;
  return limits;
}

double Roofline(const MachineLimits& limits, double intensity) {
  return std::min(limits.gflops, intensity * limits.gbytes);
}

}  // namespace npumesh
#endif  // HWY_ONCE
