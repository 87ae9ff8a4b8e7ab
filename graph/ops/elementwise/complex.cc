// Complex numbers: their parts, and the discrete Fourier transform.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>
#include <type_traits>

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/copy/broadcast.h"
#include "graph/ops/toolbox/rows/double_kernel.h"

namespace npumesh {
namespace {

using Complex = std::complex<float>;
using Wide = std::complex<double>;

struct ComplexPlan : Planned {
  int64_t real_step = 1;  // 0: one element for all
  int64_t imag_step = 1;
};

ComplexPlan PlanComplex(const OpContext& op, Check& check) {
  check.Keep(ExpectType(op, "real", DataType::kFloat));
  check.Keep(ExpectType(op, "imag", DataType::kFloat));
  check.TypeOf("Tout", DataType::kComplex64);  // may only repeat what follows from the input
  const Shape &real = op.in(0).shape, &imag = op.in(1).shape;
  ComplexPlan plan;
  plan.real_step = real.elements() == 1 ? 0 : 1;
  plan.imag_step = imag.elements() == 1 ? 0 : 1;
  const bool fits = real == imag || plan.real_step == 0 || plan.imag_step == 0;
  const Result<Shape> shape = Broadcast(real, imag);
  check.That(fits && shape.ok(), "real is {} and imag {}, expected equal shapes", real, imag);
  if (check.ok()) plan.outputs = {{DataType::kComplex64, *shape}};
  return plan;
}

Status RunComplex(const ComplexPlan& plan, const KernelArgs& args) {
  const auto *real = static_cast<const float*>(args.in[0]),
             *imag = static_cast<const float*>(args.in[1]);
  auto* out = static_cast<Complex*>(args.out[0]);
  const int64_t count = plan.outputs[0].shape.elements();
  for (int64_t i = 0; i < count; ++i) out[i] = {real[i * plan.real_step], imag[i * plan.imag_step]};
  return Status();
}

// Of one complex input.
template <typename To>
Planned PlanEach(const OpContext& op, Check& check) {
  constexpr bool kPart = std::is_same_v<To, float>;
  check.Keep(ExpectType(op, op.schema().inputs[0].name, DataType::kComplex64));
  if (kPart) check.TypeOf("Tout", DataType::kFloat);
  Planned plan;
  plan.outputs = {{kPart ? DataType::kFloat : DataType::kComplex64, op.in(0).shape}};
  return plan;
}

template <typename To, auto kFunction>
Status RunEach(const Planned& plan, const KernelArgs& args) {
  const auto* in = static_cast<const Complex*>(args.in[0]);
  auto* out = static_cast<To*>(args.out[0]);
  const int64_t count = plan.outputs[0].shape.elements();
  for (int64_t i = 0; i < count; ++i) out[i] = kFunction(in[i]);
  return Status();
}

size_t SmallestFactor(size_t n) {
  for (size_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

// The transform of one length: y[k] = sum over j of x[j] e^(-2 pi i j k / n), by splitting n into
// its prime factors. Computed in double.
class Fourier {
 public:
  explicit Fourier(size_t n) : n_(n), roots_(n) {
    for (size_t j = 0; j < n; ++j) {
      const double angle = -2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n);
      roots_[j] = {std::cos(angle), std::sin(angle)};
    }
    for (size_t rest = n; rest > 1; rest /= SmallestFactor(rest)) {
      most_terms_ = std::max(most_terms_, SmallestFactor(rest));
    }
  }

  // Room that Run needs, in elements.
  size_t room() const { return 2 * n_ + most_terms_; }

  // In place, elements `stride` apart. `room` has room() elements.
  void Run(Complex* data, size_t stride, Wide* room) const {
    Wide* const from = room;
    Wide* const to = room + n_;
    for (size_t i = 0; i < n_; ++i) from[i] = data[i * stride];
    Transform(from, 1, to, n_, to + n_);
    for (size_t i = 0; i < n_; ++i) {
      data[i * stride] = {static_cast<float>(to[i].real()), static_cast<float>(to[i].imag())};
    }
  }

 private:
  static Wide Product(Wide a, Wide b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }

  void Transform(const Wide* x, size_t stride, Wide* y, size_t n, Wide* terms) const {
    if (n == 1) {
      *y = *x;
      return;
    }
    const size_t parts = SmallestFactor(n);
    const size_t length = n / parts;
    for (size_t r = 0; r < parts; ++r) {
      Transform(x + r * stride, stride * parts, y + r * length, length, terms);
    }
    const size_t step = n_ / n;  // between roots of order n
    for (size_t k = 0; k < length; ++k) {
      for (size_t r = 0; r < parts; ++r) {
        terms[r] = Product(y[r * length + k], roots_[r * k * step]);
      }
      for (size_t q = 0; q < parts; ++q) {
        Wide sum = terms[0];
        for (size_t r = 1; r < parts; ++r) {
          sum += Product(terms[r], roots_[r * q % parts * length * step]);
        }
        y[q * length + k] = sum;
      }
    }
  }

  size_t n_, most_terms_ = 1;
  std::vector<Wide> roots_;
};

struct FourierPlan : Planned {
  // Transforms of length n along one dimension.
  struct Line {
    Fourier fourier;
    size_t n;
    size_t stride;
  };
  std::vector<Line> lines;
  Workspace<Wide> room;
};

// Along the last dimension, or the last two.
template <int kAxes>
FourierPlan PlanFourier(const OpContext& op, Check& check) {
  check.Keep(ExpectType(op, "x", DataType::kComplex64));
  check.RankAtLeast("x", DataType::kComplex64, kAxes);
  FourierPlan plan;
  plan.outputs = {op.in(0)};
  return plan;
}

template <int kAxes>
Status PrepareFourier(const OpContext& op, FourierPlan* plan) {
  const Shape& shape = op.in(0).shape;
  if (shape.elements() == 0) return Status();
  size_t stride = 1, room = 0;
  for (int axis = shape.rank() - 1; axis >= shape.rank() - kAxes; --axis) {
    const auto n = static_cast<size_t>(shape[axis]);
    plan->lines.push_back({Fourier(n), n, stride});
    room = std::max(room, plan->lines.back().fourier.room());
    stride *= n;
  }
  plan->room = plan->scratch.Take<Wide>(static_cast<int64_t>(room));
  return Status();
}

Status RunFourier(const FourierPlan& plan, const KernelArgs& args) {
  auto* out = static_cast<Complex*>(args.out[0]);
  const auto elements = static_cast<size_t>(plan.outputs[0].shape.elements());
  if (elements > 0) std::memmove(out, args.in[0], elements * sizeof(Complex));
  for (const FourierPlan::Line& line : plan.lines) {
    for (size_t first = 0; first < elements; first += line.n * line.stride) {
      for (size_t i = 0; i < line.stride; ++i) {
        line.fourier.Run(out + first + i, line.stride, plan.room(args));
      }
    }
  }
  return Status();
}

}  // namespace

void RegisterComplexOps(OpRegistry& registry) {
  registry.Add(Define<PlanComplex, RunComplex>("Complex(real, imag; Tout=16) -> out"));
  constexpr auto real = [](Complex x) { return x.real(); };
  constexpr auto imag = [](Complex x) { return x.imag(); };
  constexpr auto magnitude = [](Complex x) {
    return static_cast<float>(std::hypot(static_cast<double>(x.real()), x.imag()));
  };
  constexpr auto conjugate = [](Complex x) { return Complex(x.real(), -x.imag()); };
  registry.Add(Define<PlanEach<float>, RunEach<float, real>>("Real(input; Tout=0) -> output"));
  registry.Add(Define<PlanEach<float>, RunEach<float, imag>>("Imag(input; Tout=0) -> output"));
  registry.Add(Define<PlanEach<float>, RunEach<float, magnitude>>("ComplexAbs(x; Tout=0) -> y"));
  registry.Add(Define<PlanEach<Complex>, RunEach<Complex, conjugate>>("Conj(input) -> output",
                                                                      {.axes = "[..]"}));
  registry.Add(Define<PlanFourier<1>, RunFourier, PrepareFourier<1>>("FFT(x) -> y"));
  registry.Add(Define<PlanFourier<2>, RunFourier, PrepareFourier<2>>("FFT2D(x) -> y"));
}

}  // namespace npumesh
