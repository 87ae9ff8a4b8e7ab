// Complex numbers: their parts, and the discrete Fourier transform. Ops reference 5.19.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>

#include "graph/ops/broadcast.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/infer_checks.h"

namespace npumesh {
namespace {

using C = std::complex<float>;
using Wide = std::complex<double>;

Status ExpectDtype(const OpContext& op, int slot, DataType expected) {
  if (op.in(slot).dtype == expected) return Status();
  return Error(Code::kUnsupported, "{}: \"{}\" is {}, expected {}", op.Who(),
               op.schema().inputs[static_cast<size_t>(slot)].name, Name(op.in(slot).dtype),
               Name(expected));
}

// Tout may only repeat what follows from the input.
Status ExpectTout(const OpContext& op, DataType expected) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType tout, op.attr_dtype("Tout"));
  if (tout == expected) return Status();
  return Error(Code::kUnsupported, "{}: Tout is {}, expected {}", op.Who(), Name(tout),
               Name(expected));
}

Status InferComplex(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectDtype(op, 0, DataType::kFloat));
  NPUMESH_RETURN_IF_ERROR(ExpectDtype(op, 1, DataType::kFloat));
  NPUMESH_RETURN_IF_ERROR(ExpectTout(op, DataType::kComplex64));
  const Shape& real = op.in(0).shape;
  const Shape& imag = op.in(1).shape;
  const bool fits = real == imag || real.elements() == 1 || imag.elements() == 1;
  const Result<Shape> shape = Broadcast(real, imag);
  if (!fits || !shape.ok()) {
    return Error(Code::kInvalidArgument, "{}: real is {} and imag {}, expected equal shapes",
                 op.Who(), real.ToString(), imag.ToString());
  }
  return SetOutput(op, 0, DataType::kComplex64, *shape);
}

Result<std::unique_ptr<Kernel>> MakeComplex(const OpContext& op) {
  const int64_t real_step = op.in(0).shape.elements() == 1 ? 0 : 1;
  const int64_t imag_step = op.in(1).shape.elements() == 1 ? 0 : 1;
  return MakeKernel(
      [count = op.out(0).shape.elements(), real_step, imag_step](const KernelArgs& args) {
        const auto* real = static_cast<const float*>(args.in[0]);
        const auto* imag = static_cast<const float*>(args.in[1]);
        auto* out = static_cast<C*>(args.out[0]);
        for (int64_t i = 0; i < count; ++i) out[i] = {real[i * real_step], imag[i * imag_step]};
        return Status();
      });
}

Status InferPart(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectDtype(op, 0, DataType::kComplex64));
  NPUMESH_RETURN_IF_ERROR(ExpectTout(op, DataType::kFloat));
  return SetOutput(op, 0, DataType::kFloat, op.in(0).shape);
}

Status InferSame(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectDtype(op, 0, DataType::kComplex64));
  return SetOutput(op, 0, DataType::kComplex64, op.in(0).shape);
}

float RealOf(C x) {
  return x.real();
}
float ImagOf(C x) {
  return x.imag();
}
float SizeOf(C x) {
  return static_cast<float>(std::hypot(static_cast<double>(x.real()), x.imag()));
}
C Conjugate(C x) {
  return {x.real(), -x.imag()};
}

template <typename To, To (*kFunction)(C)>
Result<std::unique_ptr<Kernel>> MakeEach(const OpContext& op) {
  return MakeKernel([count = op.out(0).shape.elements()](const KernelArgs& args) {
    const auto* in = static_cast<const C*>(args.in[0]);
    auto* out = static_cast<To*>(args.out[0]);
    for (int64_t i = 0; i < count; ++i) out[i] = kFunction(in[i]);
    return Status();
  });
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
  void Run(C* data, size_t stride, Wide* room) const {
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

  size_t n_;
  size_t most_terms_ = 1;
  std::vector<Wide> roots_;
};

// Transforms along the last `axes` dimensions.
class FourierKernel final : public Kernel {
 public:
  FourierKernel(const Shape& shape, int axes) : elements_(static_cast<size_t>(shape.elements())) {
    size_t stride = 1;
    for (int axis = shape.rank() - 1; axis >= shape.rank() - axes; --axis) {
      const auto n = static_cast<size_t>(shape[axis]);
      if (elements_ > 0) lines_.push_back({Fourier(n), n, stride});
      stride *= n;
    }
  }

  uint64_t scratch_bytes() const override {
    size_t most = 0;
    for (const Line& line : lines_) most = std::max(most, line.fourier.room());
    return most * sizeof(Wide);
  }

  Status Run(const KernelArgs& args) override {
    auto* out = static_cast<C*>(args.out[0]);
    if (elements_ > 0) std::memmove(out, args.in[0], elements_ * sizeof(C));
    for (const Line& line : lines_) {
      const size_t block = line.n * line.stride;
      for (size_t first = 0; first < elements_; first += block) {
        for (size_t i = 0; i < line.stride; ++i) {
          line.fourier.Run(out + first + i, line.stride, static_cast<Wide*>(args.scratch));
        }
      }
    }
    return Status();
  }

 private:
  struct Line {
    Fourier fourier;
    size_t n;
    size_t stride;
  };
  size_t elements_;
  std::vector<Line> lines_;
};

int AxesOf(const OpContext& op) {
  return op.schema().type == "FFT2D" ? 2 : 1;
}

Status InferFourier(OpContext& op) {
  const Shape& shape = op.in(0).shape;
  if (shape.rank() < AxesOf(op)) {
    return Error(Code::kInvalidArgument, "{}: \"x\" is {}, expected at least {} dimensions",
                 op.Who(), shape.ToString(), AxesOf(op));
  }
  return InferSame(op);
}

Result<std::unique_ptr<Kernel>> MakeFourier(const OpContext& op) {
  return std::unique_ptr<Kernel>(new FourierKernel(op.in(0).shape, AxesOf(op)));
}

}  // namespace

void RegisterComplexOps(OpRegistry& registry) {
  const AttrSpec to_float = {"Tout", AttrValue::Int(static_cast<int64_t>(DataType::kFloat))};
  const AttrSpec to_complex = {"Tout", AttrValue::Int(static_cast<int64_t>(DataType::kComplex64))};
  registry.Add({.schema = {"Complex", {{"real"}, {"imag"}}, {{"out"}}, {to_complex}},
                .infer = InferComplex,
                .make_kernel = MakeComplex});
  registry.Add({.schema = {"Real", {{"input"}}, {{"output"}}, {to_float}},
                .infer = InferPart,
                .make_kernel = MakeEach<float, RealOf>});
  registry.Add({.schema = {"Imag", {{"input"}}, {{"output"}}, {to_float}},
                .infer = InferPart,
                .make_kernel = MakeEach<float, ImagOf>});
  registry.Add({.schema = {"ComplexAbs", {{"x"}}, {{"y"}}, {to_float}},
                .infer = InferPart,
                .make_kernel = MakeEach<float, SizeOf>});
  registry.Add({.schema = {"Conj", {{"input"}}, {{"output"}}, {}},
                .infer = InferSame,
                .make_kernel = MakeEach<C, Conjugate>,
                .elementwise = true});
  for (const std::string_view type : {"FFT", "FFT2D"}) {
    registry.Add({.schema = {type, {{"x"}}, {{"y"}}, {}},
                  .infer = InferFourier,
                  .make_kernel = MakeFourier});
  }
}

}  // namespace npumesh
