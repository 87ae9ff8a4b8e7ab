// Normalisation: batches, instances, layers, channels, softmax; dropout of inference.
#include <numeric>

#include "graph/onnx/op_table.h"
#include "graph/onnx/rewrites.h"
#include "runtime/base/type_numbers.h"

namespace npumesh {
namespace {

// A vector of channels for a tensor of `rank` dimensions [N, C, ...].
Value OverChannels(Lowering& at, Value vector, int rank) {
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  if (rank > 1) shape[1] = -1;
  return at.Reshape(vector, shape);
}

std::vector<int64_t> AxesFrom(int first, int rank) {
  std::vector<int64_t> axes(static_cast<size_t>(std::max(rank - first, 0)));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

struct Moments {
  Value mean;
  Value centred;   // x - mean
  Value variance;  // over all elements, not all but one
};

// In float32 for halves: squares of theirs leave their range.
Moments MomentsOf(Lowering& at, Value narrow, const std::vector<int64_t>& axes, bool keep) {
  const Value x = at.Wide(narrow);
  const Value mean = at.Reduce("ReduceMean", x, axes, true);
  const Value centred = at.Sub(x, mean);
  const Value squares = at.Mul(centred, centred);
  Moments moments{mean, centred, at.Reduce("ReduceMean", squares, axes, keep)};
  if (!keep) moments.mean = at.Reduce("ReduceMean", x, axes, false);
  return moments;
}

// 1 / sqrt(variance + epsilon)
Value Scale(Lowering& at, Value variance, double epsilon) {
  const Value sum = at.Add(variance, at.Like(epsilon, variance));
  return at.Unary("Reciprocal", at.Unary("Sqrt", sum));
}

// ---- batches ----

// With the statistics of the batch (training_mode) outputs 1 and 2 are the running ones.
void LowerBatchNorm(Lowering& at) {
  const Value x = at.in(0);
  const int rank = at.Rank(x);
  const float epsilon = at.Float("epsilon", 1e-5F);
  Value mean = at.in(3), variance = at.in(4);
  // The scale has a type for itself from version 15 on, the statistics from 14 on.
  for (int i = 1; i < at.inputs(); ++i) {
    const DataType dtype = at.dtype(at.in(i));
    if (at.version() >= (i < 3 ? 15 : 14) || dtype == at.dtype(x)) continue;
    at.Fail(Code::kCorrupt, "input {} is {} and input 0 is {}; expected one type for both", i,
            Name(dtype), Name(at.dtype(x)));
  }
  if (!at.ok()) return;
  if (at.Int("training_mode", 0) != 0) {
    std::vector<int64_t> axes = AxesFrom(2, rank);
    axes.insert(axes.begin(), 0);
    const Moments batch = MomentsOf(at, x, axes, false);
    const double momentum = at.Float("momentum", 0.9F);
    const auto running = [&](Value old, Value now) {
      const Value kept = at.Mul(at.Wide(old), at.Like(momentum, at.Wide(old)));
      return at.Cast(at.Add(kept, at.Mul(now, at.Like(1 - momentum, now))), at.dtype(old));
    };
    at.Out(1, running(mean, batch.mean));
    at.Out(2, running(variance, batch.variance));
    mean = batch.mean;
    variance = batch.variance;
  } else if (rank == 4 && at.dtype(x) != DataType::kDouble) {
    return at.Out(
        0, at.Node("BNInfer", {x, at.in(1), at.in(2), mean, variance}, {{"epsilon", epsilon}}));
  }
  const Value scale = at.Mul(Scale(at, at.Wide(variance), epsilon), at.Wide(at.in(1)));
  const Value centred = at.Sub(at.Wide(x), OverChannels(at, at.Wide(mean), rank));
  const Value y = at.Mul(centred, OverChannels(at, scale, rank));
  at.Out(0, at.Cast(at.Add(y, OverChannels(at, at.Wide(at.in(2)), rank)), at.dtype(x)));
}

// ---- instances, groups, layers ----

void LowerInstanceNorm(Lowering& at) {
  const Value x = at.in(0);
  const int rank = at.Rank(x);
  if (!at.ok()) return;
  const Moments moments = MomentsOf(at, x, AxesFrom(2, rank), true);
  const Value scale = Scale(at, moments.variance, at.Float("epsilon", 1e-5F));
  const Value normal = at.Mul(moments.centred, scale);
  const Value y = at.Mul(normal, OverChannels(at, at.Wide(at.in(1)), rank));
  at.Out(0, at.Cast(at.Add(y, OverChannels(at, at.Wide(at.in(2)), rank)), at.dtype(x)));
}

// The elements of one group, or -1: they are open. A -1 would not do for an x without elements.
int64_t SizeOfGroup(Lowering& at, Value x, int64_t groups) {
  const int rank = at.Rank(x);
  if (at.ok() && (rank < 2 || groups < 1)) {
    at.Fail(Code::kCorrupt, "{} groups of a tensor of rank {}; expected 1 or more, rank 2 or more",
            groups, rank);
  }
  constexpr int64_t kLargest = int64_t{1} << 30;  // times a dimension it is in range
  int64_t size = 1;
  for (int d = 1; d < rank && at.ok(); ++d) {
    if (at.KnownSize(x, d) < 0) return -1;
    size *= at.Dim(x, d);
    if (size > kLargest) return -1;
  }
  if (at.ok() && at.KnownSize(x, 1) % groups != 0) {
    at.Fail(Code::kCorrupt, "{} channels in {} groups; expected a multiple", at.KnownSize(x, 1),
            groups);
  }
  return at.ok() ? size / groups : -1;
}

// Scale and bias are those of the groups until version 21.
void LowerGroupNorm(Lowering& at) {
  const Value x = at.in(0);
  const int64_t groups = at.Int("num_groups", 1);
  const Value grouped = at.ReshapeAfter(x, 1, {groups, SizeOfGroup(at, x, groups)});
  const Moments moments = MomentsOf(at, grouped, {2}, true);
  const Value scale = Scale(at, moments.variance, at.Float("epsilon", 1e-5F));
  Value y = at.Mul(moments.centred, scale);
  const bool of_channels = at.version() >= 21;
  const int rank = of_channels ? at.Rank(x) : 3;
  if (of_channels) y = at.ReshapeTo(y, at.ShapeOf(x), rank);
  y = at.Mul(y, OverChannels(at, at.Wide(at.in(1)), rank));
  y = at.Add(y, OverChannels(at, at.Wide(at.in(2)), rank));
  y = at.Cast(y, at.dtype(x));
  at.Out(0, of_channels ? y : at.ReshapeTo(y, at.ShapeOf(x), at.Rank(x)));
}

// Mean and 1 / deviation have the type that stash_type names.
void LowerLayerNorm(Lowering& at) {
  const Value x = at.in(0);
  const int rank = at.Rank(x);
  const DataType stash = DataTypeFromOnnx(at.Int("stash_type", 1));
  if (!IsFloating(stash)) return at.Refuse("stash_type {}", at.Int("stash_type", 1));
  const int first = at.Axis(at.Int("axis", -1), rank);
  if (!at.ok()) return;
  const NormedRows normed =
      LayerNorm(at, x, first, at.in(1), at.Given(2), at.Float("epsilon", 1e-5F));
  at.Out(0, at.Cast(normed.y, at.dtype(x)));
  if (at.wants(1)) at.Out(1, at.Cast(normed.mean, stash));
  if (at.wants(2)) at.Out(2, at.Cast(normed.scale, stash));
}

void LowerMeanVariance(Lowering& at) {
  const Value x = at.in(0);
  const std::vector<int64_t> axes =
      at.has_attr("axes") ? at.IntList("axes") : std::vector<int64_t>{0, 2, 3};
  const Moments moments = MomentsOf(at, x, axes, true);
  const Value deviation = at.Unary("Sqrt", moments.variance);
  const Value y = at.Div(moments.centred, at.Add(deviation, at.Like(1e-9, deviation)));
  at.Out(0, at.Cast(y, at.dtype(x)));
}

void LowerLpNorm(Lowering& at) {
  const Value x = at.Wide(at.in(0));
  const int64_t axis = at.Int("axis", -1);
  const bool absolute = at.Int("p", 2) == 1;
  const Value each = absolute ? at.Unary("Abs", x) : at.Mul(x, x);
  Value norm = at.Reduce("ReduceSum", each, {axis}, true);
  if (!absolute) norm = at.Unary("Sqrt", norm);
  const Value zero = at.Like(0, norm);  // where the norm is
  const Value y = at.Select(at.Binary("Equal", norm, zero), zero, at.Div(x, norm));
  at.Out(0, at.Cast(y, at.dtype(at.in(0))));
}

// ---- neighbouring channels ----

// Sums of squares over a window of channels, as differences of one running sum would lose digits:
// the shifted squares are added.
void LowerLrn(Lowering& at) {
  const Value x = at.Wide(at.in(0));
  const int64_t size = at.Int("size", 1), before = (size - 1) / 2;
  const int rank = at.Rank(x);
  constexpr int64_t kWidest = 1024;  // channels: one node for each
  if (at.ok() && (size < 1 || size > kWidest || rank < 2)) {
    return at.Refuse("size {} of a tensor of rank {}; expected 1 to {}, rank 2 or more", size, rank,
                     kWidest);
  }
  if (!at.ok()) return;
  std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
  pads[1] = before;
  pads[static_cast<size_t>(rank) + 1] = size - 1 - before;
  const Value squares = at.PadWith(at.Mul(x, x), pads, 0);
  const int64_t channels = at.Dim(x, 1);
  Value sum;
  for (int64_t i = 0; i < size; ++i) {
    const Value shifted = at.Slice(squares, 1, i, i + channels);
    sum = i == 0 ? shifted : at.Add(sum, shifted);
  }
  const Value scaled =
      at.Mul(sum, at.Like(double{at.Float("alpha", 1e-4F)} / static_cast<double>(size), x));
  const Value base = at.Add(scaled, at.Like(at.Float("bias", 1), x));
  const Value y = at.Div(x, at.Binary("Pow", base, at.Like(at.Float("beta", 0.75F), x)));
  at.Out(0, at.Cast(y, at.dtype(at.in(0))));
}

// ---- softmax ----

// Before version 13 all dimensions from the axis on are one row.
std::function<void(Lowering&)> Softmax(std::string type, bool flattens) {
  return [=](Lowering& at) {
    const Value x = at.in(0);
    const int rank = at.Rank(x);
    const int axis = at.Axis(at.Int("axis", flattens ? 1 : -1), rank);
    if (!at.ok()) return;
    if (!flattens || axis == rank - 1) {
      return at.Out(0, at.Node(type, {x}, {{"axes", AttrValue::Ints({axis})}}));
    }
    const Value rows = at.Op("Flatten", {x}, {{"axis", axis}});
    const Value y = at.Op(type, {rows}, {{"axes", AttrValue::Ints({1})}});
    at.Out(0, at.ReshapeTo(y, at.ShapeOf(x), rank));
  };
}

// ---- dropout ----

// Nothing is dropped: when models are trained the numbers would be random.
void LowerDropout(Lowering& at) {
  const Value x = at.in(0);
  const auto known = [&](int input, double fallback) {
    return at.has(input) ? at.KnownNumber(at.in(input)) : fallback;
  };
  const bool drops = known(2, 0) != 0.0 && known(1, 0.5) != 0.0;  // also what is not known
  if (drops)
    return at.Refuse("drops elements (training_mode); npumesh imports models for inference");
  at.Out(0, at.Node("Identity", {x}));
  if (!at.wants(1)) return;
  // Before version 10 the mask has the type of x.
  const DataType dtype = at.version() < 10 ? at.dtype(x) : DataType::kBool;
  at.Out(1, at.Filled(at.ShapeOf(x), at.Scalar(1, dtype)));
}

}  // namespace

NormedRows LayerNorm(Lowering& at, Value x, int first, Value gamma, std::optional<Value> beta,
                     float epsilon) {
  const Moments moments = MomentsOf(at, x, AxesFrom(first, at.Rank(x)), true);
  const Value scale = Scale(at, moments.variance, epsilon);
  Value y = at.Mul(at.Mul(moments.centred, scale), at.Wide(gamma));
  if (beta) y = at.Add(y, at.Wide(*beta));
  return {y, moments.mean, scale};
}

void AddNormRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"BatchNormalization", 7, LowerBatchNorm, "BNInfer",
       "R T=R T U=R U epsilon:float momentum:float spatial:int<9 training_mode:int@14"},
      {"Dropout", 7, LowerDropout, "Identity", "R R? B? ratio:float<12 seed:int@12"},
      {"GroupNormalization", 18, LowerGroupNorm, "ReduceMeanD, Mul, Add",
       "T=R T T epsilon:float num_groups:int! stash_type:int@21"},
      {"InstanceNormalization", 6, LowerInstanceNorm, "ReduceMeanD, Mul, Add",
       "T=R T T epsilon:float"},
      {"LRN", 1, LowerLrn, "PadV3, Mul, Add, Pow", "R alpha:float beta:float bias:float size:int!"},
      {"LayerNormalization", 17, LowerLayerNorm, "ReduceMeanD, Mul, Add",
       "T=R T T? axis:int epsilon:float stash_type:int"},
      {"LogSoftmax", 1, Softmax("LogSoftmaxV2", true), "LogSoftmaxV2", "R axis:int"},
      {"LogSoftmax", 13, Softmax("LogSoftmaxV2", false), "LogSoftmaxV2", "R axis:int"},
      {"LpNormalization", 1, LowerLpNorm, "ReduceSumD, Div", "R axis:int p:int"},
      {"MeanVarianceNormalization", 9, LowerMeanVariance, "ReduceMeanD, Div", "R axes:ints"},
      {"Softmax", 1, Softmax("SoftmaxV2", true), "SoftmaxV2", "R axis:int"},
      {"Softmax", 13, Softmax("SoftmaxV2", false), "SoftmaxV2", "R axis:int"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
