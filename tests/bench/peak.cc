#include "tests/bench/peak.h"

#include <cstdint>

#include "tests/bench/timing.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/peak.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;

// More sums than a multiply-add takes cycles, times two a cycle.
constexpr int kSums = 12;
constexpr int64_t kRounds = 400'000;

// x = x * factor + summand, which no compiler turns into anything shorter, for several x.
template <int kLeft>
struct Chains {
  Vector x;
  Chains<kLeft - 1> rest;

  HWY_INLINE void Start(Vector from) {
    x = from;
    rest.Start(hn::Add(from, from));  // no two are the same
  }
  HWY_INLINE void Step(Vector factor, Vector summand) {
    x = hn::MulAdd(x, factor, summand);
    rest.Step(factor, summand);
  }
  HWY_INLINE Vector Sum() const { return hn::Add(x, rest.Sum()); }
};
template <>
struct Chains<0> {
  HWY_INLINE void Start(Vector) {}
  HWY_INLINE void Step(Vector, Vector) {}
  HWY_INLINE Vector Sum() const { return hn::Zero(Floats()); }
};

// Alone in a function, so that the sums stay in registers.
HWY_NOINLINE float Work(float start) {
  const Vector factor = hn::Set(Floats(), start), summand = factor;
  Chains<kSums> chains;
  chains.Start(factor);
  for (int64_t i = 0; i < kRounds; ++i) chains.Step(factor, summand);
  return hn::GetLane(chains.Sum());
}

double Gflops() {
  volatile float start = 0.5f;
  volatile float kept = 0.0f;
  const double seconds = SecondsOf([&] { kept = Work(start); });
  static_cast<void>(kept);
  const auto lanes = static_cast<double>(hn::Lanes(Floats()));
  return 2.0 * kSums * static_cast<double>(kRounds) * lanes / seconds / 1e9;
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {
namespace {

HWY_EXPORT(Gflops);

}  // namespace

double PeakGflops() {
  return HWY_DYNAMIC_DISPATCH(Gflops)();
}

}  // namespace npumesh
#endif  // HWY_ONCE
