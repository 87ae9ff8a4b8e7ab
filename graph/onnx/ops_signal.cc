// Transforms and windows of signals.
#include <numbers>

#include "graph/onnx/op_table.h"
#include "graph/onnx/rewrites.h"
#include "runtime/base/type_numbers.h"

namespace npumesh {
namespace {

// The matrix [n, bins] of cos or sin (2 pi n k / length) in double, times `factor`; `length` and
// `bins` are int64 scalars. Products n * k are taken modulo the length, so that angles stay small.
Value Waves(Lowering& at, Value length, Value bins, bool sine, double factor) {
  const Value n = at.Unsqueeze(CountTo(at, length, DataType::kInt64), {1});
  const Value turns = at.Binary("FloorMod", at.Mul(n, CountTo(at, bins, DataType::kInt64)), length);
  const auto number = [&](double value) { return at.Scalar(value, DataType::kDouble); };
  const Value part = at.Div(at.Cast(turns, DataType::kDouble), at.Cast(length, DataType::kDouble));
  const Value angle = at.Mul(part, number(2 * std::numbers::pi));
  const Value waves = at.Unary(sine ? "Sin" : "Cos", angle);
  return factor == 1 ? waves : at.Mul(waves, number(factor));
}

// Real and imaginary part of a signal along its last axis; no imaginary part: the signal is real.
struct ComplexSignal {
  Value real;
  std::optional<Value> imaginary;
};

// The transform along the last axis, in double: [.., bins] for both parts.
ComplexSignal Transformed(Lowering& at, const ComplexSignal& x, Value length, Value bins,
                          bool inverse) {
  const Value cosine = Waves(at, length, bins, false, 1);
  const Value sine = Waves(at, length, bins, true, inverse ? 1 : -1);
  const auto times = [&](Value a, Value b) { return GeneralProduct(at, a, b); };
  ComplexSignal y{times(x.real, cosine), times(x.real, sine)};
  if (x.imaginary) {
    y.real = at.Sub(y.real, times(*x.imaginary, sine));
    y.imaginary = at.Add(*y.imaginary, times(*x.imaginary, cosine));
  }
  if (!inverse) return y;
  const Value all = at.Cast(length, DataType::kDouble);
  return {at.Div(y.real, all), at.Div(*y.imaginary, all)};
}

// How many bins of a transform are kept: all, or those up to half the rate.
Value BinsOf(Lowering& at, Value length, bool onesided) {
  if (!onesided) return length;
  return at.Add(at.Binary("FloorDiv", length, at.IntScalar(2)), at.IntScalar(1));
}

// x [.., 1 or 2] with `axis` (before the last one) moved to the end of both parts, in double.
ComplexSignal Parts(Lowering& at, Value x, int axis) {
  const int rank = at.Rank(x);
  const int64_t parts = at.Dim(x, rank - 1);
  std::vector<int64_t> perm;
  for (int d = 0; d < rank - 1; ++d) {
    if (d != axis) perm.push_back(d);
  }
  perm.push_back(axis);
  const Value wide = at.Cast(x, DataType::kDouble);
  const auto part = [&](int64_t i) {
    return at.Transpose(at.Squeeze(at.Slice(wide, rank - 1, i, i + 1), {rank - 1}), perm);
  };
  ComplexSignal signal{part(0), std::nullopt};
  if (parts == 2) signal.imaginary = part(1);
  return signal;
}

// The parts side by side as `dtype`, the last axis back at `axis`.
Value Joined(Lowering& at, const ComplexSignal& y, int axis, DataType dtype) {
  const int rank = at.Rank(y.real);
  std::vector<int64_t> perm;
  for (int d = 0; d < rank - 1; ++d) perm.push_back(d);
  perm.insert(perm.begin() + axis, rank - 1);
  const auto part = [&](Value v) { return at.Unsqueeze(at.Transpose(v, perm), {rank}); };
  if (!y.imaginary) return at.Cast(part(y.real), dtype);
  return at.Cast(at.Concat({part(y.real), part(*y.imaginary)}, rank), dtype);
}

// A signal along its last axis cut or filled with zeros to `length`.
Value WithLength(Lowering& at, Value x, int64_t length) {
  const int rank = at.Rank(x);
  const int64_t now = at.Dim(x, rank - 1);
  if (!at.ok()) return x;
  if (now > length) return at.Slice(x, rank - 1, 0, length);
  if (now == length) return x;
  std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
  pads.back() = length - now;
  return at.PadWith(x, pads, 0);
}

// The real signal of `length` numbers of which x, along its last axis, is the onesided transform:
// bins between the first and the one at half the rate stand for two.
Value RealSignal(Lowering& at, const ComplexSignal& x, int64_t length) {
  const int64_t bins = length / 2 + 1;
  if (!at.Affords(length, bins)) return x.real;
  std::vector<float> twice(static_cast<size_t>(bins), 2);
  twice.front() = 1;
  if (length % 2 == 0) twice.back() = 1;
  const Value weights = at.Cast(at.Floats(twice, Shape({bins})), DataType::kDouble);
  const Value all = at.IntScalar(length), some = at.IntScalar(bins);
  const auto part = [&](Value v, bool sine) {
    const Value waves = at.Transpose(Waves(at, all, some, sine, 1), {1, 0});
    return GeneralProduct(at, at.Mul(WithLength(at, v, bins), weights), waves);
  };
  const Value sum = at.Sub(part(x.real, false), part(*x.imaginary, true));
  return at.Div(sum, at.Cast(all, DataType::kDouble));
}

void LowerDft(Lowering& at) {
  const Value x = at.in(0);
  const int rank = at.Rank(x);
  int axis = at.Axis(at.Int("axis", at.version() < 20 ? 1 : -2), rank);
  if (at.has(2)) {
    const std::optional<std::vector<int64_t>> known = at.KnownInts(at.in(2));
    if (!known || known->size() != 1) return at.Refuse("the axis is not known when it is imported");
    axis = at.Axis((*known)[0], rank);
  }
  const bool onesided = at.Int("onesided", 0) != 0, inverse = at.Int("inverse", 0) != 0;
  const int64_t parts = at.Dim(x, rank - 1);
  if (!at.ok()) return;
  if (onesided && (parts == 2) != inverse) {
    return at.Fail(Code::kCorrupt,
                   "onesided of a signal of {} parts; expected 1, and 2 for an inverse transform",
                   parts);
  }
  int64_t length = at.Dim(x, axis);
  if (onesided && inverse) length = 2 * (length - 1);
  if (at.has(1)) {
    const std::optional<std::vector<int64_t>> known = at.KnownInts(at.in(1));
    if (!known || known->size() != 1)
      return at.Refuse("dft_length is not known when it is imported");
    length = (*known)[0];
    if (length < 0) return at.Fail(Code::kCorrupt, "dft_length is {}; expected 0 or more", length);
  }
  ComplexSignal signal = Parts(at, x, axis);
  if (onesided && inverse && at.ok()) {
    const ComplexSignal y{RealSignal(at, signal, length), std::nullopt};
    return at.Out(0, Joined(at, y, axis, at.dtype(x)));
  }
  signal.real = WithLength(at, signal.real, length);
  if (signal.imaginary) signal.imaginary = WithLength(at, *signal.imaginary, length);
  const Value all = at.IntScalar(length);
  const ComplexSignal y = Transformed(at, signal, all, BinsOf(at, all, onesided), inverse);
  if (at.ok()) at.Out(0, Joined(at, y, axis, at.dtype(x)));
}

// Frames of a signal [batch, length, 1 or 2], each times the window, transformed:
// [batch, frames, bins, 2].
void LowerStft(Lowering& at) {
  const Value x = at.in(0);
  const auto scalar = [&](int i) { return at.Cast(at.Reshape(at.in(i), {}), DataType::kInt64); };
  const auto dim = [&](Value v, int64_t axis) { return at.Reshape(at.DimOf(v, axis), {}); };
  const Value step = scalar(1), all = dim(x, 1);
  const Value length = at.has(3) ? scalar(3) : at.has(2) ? dim(at.in(2), 0) : all;
  const Value one = at.IntScalar(1);
  const Value frames = at.Add(at.Binary("FloorDiv", at.Sub(all, length), step), one);
  const Value first = at.Mul(CountTo(at, frames, DataType::kInt64), step);
  const Value places = at.Add(at.Unsqueeze(first, {1}), CountTo(at, length, DataType::kInt64));
  const auto framed = [&](Value part) {  // [batch, frames, length]
    const Value y = at.Gather(part, places, 1);
    return at.has(2) ? at.Mul(y, at.Cast(at.in(2), DataType::kDouble)) : y;
  };
  if (!at.ok()) return;
  ComplexSignal signal = Parts(at, x, 1);
  signal.real = framed(signal.real);
  if (signal.imaginary) signal.imaginary = framed(*signal.imaginary);
  const Value bins = BinsOf(at, length, at.Int("onesided", 1) != 0);
  const ComplexSignal y = Transformed(at, signal, length, bins, false);
  if (at.ok()) at.Out(0, Joined(at, y, 2, at.dtype(x)));
}

DataType OutputType(Lowering& at) {
  const DataType dtype = DataTypeFromOnnx(at.Int("output_datatype", 1));
  if (dtype == DataType::kUndefined) at.Refuse("output_datatype {}", at.Int("output_datatype", 1));
  return dtype;
}

// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N) for n below the size; N is the size, or one less.
std::function<void(Lowering&)> CosineWindow(double a0, double a1, double a2) {
  return [=](Lowering& at) {
    const Value size = at.Cast(at.Reshape(at.in(0), {}), DataType::kInt64);
    const DataType dtype = OutputType(at);
    if (!at.ok()) return;
    const Value n = CountTo(at, size, DataType::kDouble);
    const auto number = [&](double value) { return at.Scalar(value, DataType::kDouble); };
    Value period = at.Cast(size, DataType::kDouble);
    if (at.Int("periodic", 1) == 0) period = at.Sub(period, number(1));
    const Value angle = at.Div(at.Mul(n, number(2 * std::numbers::pi)), period);
    Value y = at.Sub(number(a0), at.Mul(at.Unary("Cos", angle), number(a1)));
    if (a2 != 0) {
      y = at.Add(y, at.Mul(at.Unary("Cos", at.Mul(angle, number(2))), number(a2)));
    }
    at.Out(0, at.Cast(y, dtype));
  };
}

// Triangles over the bins of a spectrum, evenly spaced on the mel scale. Operands are scalars:
// number of triangles, length of the transform, rate, lowest and highest frequency.
void LowerMelWeights(Lowering& at) {
  const DataType dtype = OutputType(at), real = DataType::kDouble;
  const auto number = [&](double value) { return at.Scalar(value, real); };
  const auto scalar = [&](int i) { return at.Cast(at.Reshape(at.in(i), {}), real); };
  const Value count = scalar(0), length = scalar(1), rate = scalar(2);
  const auto mel = [&](Value hertz) {
    const Value log = at.Unary("Log", at.Add(number(1), at.Div(hertz, number(700))));
    return at.Mul(number(2595 / std::numbers::ln10), log);
  };
  const Value low = mel(scalar(3)), high = mel(scalar(4));
  const Value edges = at.Add(count, number(2));
  const Value step = at.Div(at.Sub(high, low), edges);
  const Value mels = at.Add(at.Mul(CountTo(at, at.Cast(edges, DataType::kInt64), real), step), low);
  const Value powers = at.Unary("Exp", at.Mul(mels, number(std::numbers::ln10 / 2595)));
  const Value hertz = at.Mul(number(700), at.Sub(powers, number(1)));
  const Value bins = at.Unary("Floor", at.Div(at.Mul(at.Add(length, number(1)), hertz), rate));
  // Edge i, i + 1 and i + 2 of triangle i.
  const Value triangle = CountTo(at, at.Cast(count, DataType::kInt64), DataType::kInt64);
  const auto edge = [&](int64_t i) {
    return at.Gather(bins, at.Add(triangle, at.IntScalar(i)), 0);
  };
  const Value lower = edge(0), centre = edge(1), upper = edge(2);
  const Value spectrum = at.Add(at.Unary("Floor", at.Div(length, number(2))), number(1));
  const Value j = at.Unsqueeze(CountTo(at, at.Cast(spectrum, DataType::kInt64), real), {1});
  const Value zero = number(0);
  const auto safe = [&](Value width) { return at.Max(width, number(1)); };
  const Value rise = at.Sub(centre, lower), fall = at.Sub(upper, centre);
  const Value rising = at.Div(at.Sub(j, lower), safe(rise));
  const Value falling = at.Div(at.Sub(upper, j), safe(fall));
  const auto both = [&](Value a, Value b) { return at.Binary("LogicalAnd", a, b); };
  const Value steep = both(at.Binary("Equal", rise, zero), at.Binary("Equal", j, centre));
  const Value in_rise =
      both(at.Binary("GreaterEqual", j, lower), at.Binary("LessEqual", j, centre));
  const Value in_fall = both(at.Binary("GreaterEqual", j, centre), at.Binary("Less", j, upper));
  Value y = at.Select(both(in_rise, at.Binary("Greater", rise, zero)), rising, zero);
  y = at.Select(steep, number(1), y);
  y = at.Select(both(in_fall, at.Binary("Greater", fall, zero)), falling, y);
  if (at.ok()) at.Out(0, at.Cast(y, dtype));
}

}  // namespace

void AddSignalRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"BlackmanWindow", 17, CosineWindow(0.42, 0.5, 0.08), "Range, Cos",
       "I output_datatype:int periodic:int"},
      {"DFT", 17, LowerDft, "Mul, ReduceSumD", "R I? L? axis:int<20 inverse:int onesided:int"},
      {"HammingWindow", 17, CosineWindow(25.0 / 46, 21.0 / 46, 0), "Range, Cos",
       "I output_datatype:int periodic:int"},
      {"HannWindow", 17, CosineWindow(0.5, 0.5, 0), "Range, Cos",
       "I output_datatype:int periodic:int"},
      {"MelWeightMatrix", 17, LowerMelWeights, "Range, Exp, SelectV2",
       "T=I T T U=R U output_datatype:int"},
      {"STFT", 17, LowerStft, "GatherV2, Mul, ReduceSumD", "T=R U=I T? U? onesided:int"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
