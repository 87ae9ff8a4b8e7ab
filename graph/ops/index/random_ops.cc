// Random numbers, dropout, and indices drawn by weight.
//
// Everything is a function of seed, offset and shape: the same inputs give the same bits, on every
// rank and however many threads there are. DropOutGenMask alone goes on from run to run.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/values/cast.h"
#include "runtime/base/philox.h"

namespace npumesh {
namespace {

// An integer of an input, of 32 or 64 bits.
struct Word {
  std::optional<int> slot;  // none: absent, which reads as 0
  DataType dtype = DataType::kInt64;
  int64_t index = 0;

  uint64_t Of(const KernelArgs& args) const {
    if (!slot) return 0;
    if (BitsOf(dtype) == 64) return static_cast<const uint64_t*>(args.in[*slot])[index];
    return static_cast<uint64_t>(int64_t{static_cast<const int32_t*>(args.in[*slot])[index]});
  }
};

Word WordOf(Check& check, const OpContext& op, std::string_view port, int64_t index = 0) {
  const TensorType& type = op.in(port);
  check.That(IsInteger(type.dtype) && BitsOf(type.dtype) >= 32 && type.shape.elements() > index,
             "\"{}\" is {}, expected {} or more integers of 32 or 64 bits", port, type, index + 1);
  return {op.slot(port), type.dtype, index};
}

// Where a stream begins.
struct Seed {
  Word key, low, high;

  PhiloxStream Stream(const KernelArgs& args) const {
    return PhiloxStream(key.Of(args), low.Of(args), high.Of(args));
  }
};

// What is drawn: `count` numbers, from which `store` makes output 0.
struct DrawPlan : Planned {
  Seed seed;
  DataType dtype = DataType::kFloat;
  int64_t count = 0;
  int prob = 0;              // slot of probabilities
  ConvertFn load = nullptr;  // of them
  ConvertFn store = nullptr;
  Workspace<double> y;
};

// Sets count and output 0. Objects to a shape that has unknown dimensions or too many elements.
void SetDrawn(Check& check, const OpContext& op, Shape shape, DrawPlan* plan) {
  check.Keep(shape.Check().WithContext(op.Who()));
  check.That(shape.is_static(), "shape is {}, every dimension must be known", shape);
  if (!check.ok()) return;
  plan->count = shape.elements();
  plan->outputs = {{plan->dtype, std::move(shape)}};
}

// ---- StatelessRandomUniformV2, StatelessRandomNormalV2 ----

// [0, 1) with as many random bits as the type's fraction has: they become the fraction of a number
// in [1, 2).
double UniformOf(uint32_t word, DataType dtype) {
  const int bits = dtype == DataType::kFloat16 ? 10 : dtype == DataType::kBfloat16 ? 7 : 23;
  return std::ldexp(static_cast<double>(word & ((1u << bits) - 1)), -bits);
}

double NextUniform(PhiloxStream& stream, DataType dtype) {
  if (dtype != DataType::kDouble) return UniformOf(stream.Next(), dtype);
  const uint64_t low = stream.Next();
  const uint64_t high = stream.Next() & 0xfffff;
  return std::ldexp(static_cast<double>(high << 32 | low), -52);
}

// Box and Muller, in TensorFlow's order: the sine first.
void FillNormal(PhiloxStream& stream, DataType dtype, double* y, int64_t count) {
  const DataType uniform = dtype == DataType::kDouble ? dtype : DataType::kFloat;
  for (int64_t i = 0; i < count; i += 2) {
    const double u1 = std::max(NextUniform(stream, uniform), 1e-7);
    const double angle = 2 * std::numbers::pi * NextUniform(stream, uniform);
    const double radius = std::sqrt(-2 * std::log(u1));
    y[i] = radius * std::sin(angle);
    if (i + 1 < count) y[i + 1] = radius * std::cos(angle);
  }
}

struct RandomPlan : DrawPlan {
  Word algorithm;
};

RandomPlan PlanRandom(const OpContext& op, Check& check) {
  RandomPlan plan;
  plan.dtype = check.TypeOf("dtype", kFloatsAndDouble);
  plan.seed = {WordOf(check, op, "key"), WordOf(check, op, "counter", 0),
               WordOf(check, op, "counter", 1)};
  plan.algorithm = WordOf(check, op, "alg");
  SetDrawn(check, op, Shape(check.Take(op.Ints("shape"))), &plan);
  check.Keep(AskForLists(op, plan.count, sizeof(double)));
  plan.store = FindConvert(DataType::kDouble, plan.dtype);
  plan.y = plan.scratch.Take<double>(plan.count);
  return plan;
}

template <bool kNormal>
Status RunRandom(const RandomPlan& plan, const KernelArgs& args) {
  const uint64_t algorithm = plan.algorithm.Of(args);
  if (algorithm != 1) {
    return Error(Code::kUnsupported, "{}: \"alg\" is {}; only 1, Philox, is known", plan.who,
                 algorithm);
  }
  PhiloxStream stream = plan.seed.Stream(args);
  double* y = plan.y(args);
  if (kNormal) {
    FillNormal(stream, plan.dtype, y, plan.count);
  } else {
    for (int64_t i = 0; i < plan.count; ++i) y[i] = NextUniform(stream, plan.dtype);
  }
  plan.store(y, args.out[0], static_cast<size_t>(plan.count));
  return Status();
}

// ---- StatelessBernoulli, StatelessRandperm ----

struct BernoulliPlan : DrawPlan {
  int64_t limits = 0;  // one for all, or one for each element
  Workspace<double> limit;
};

BernoulliPlan PlanBernoulli(const OpContext& op, Check& check) {
  BernoulliPlan plan;
  plan.dtype = check.Take(op.attr_dtype("dtype"));
  const Shape shape(check.Take(op.Ints("shape")));
  SetDrawn(check, op, shape, &plan);
  plan.seed = {WordOf(check, op, "seed"), {}, WordOf(check, op, "offset")};
  plan.prob = op.slot("prob");
  const TensorType& prob = op.in(plan.prob);
  plan.load = FindConvert(prob.dtype, DataType::kDouble);
  plan.store = FindConvert(DataType::kDouble, plan.dtype);
  plan.limits = prob.shape.elements();
  check.That(
      (plan.limits == 1 || prob.shape == shape) && IsFloating(prob.dtype) && plan.store != nullptr,
      "\"prob\" is {}, expected floats, one or in the shape {}", prob, shape);
  check.Keep(AskForLists(op, plan.count, 2 * sizeof(double)));
  plan.limit = plan.scratch.Take<double>(plan.limits);
  plan.y = plan.scratch.Take<double>(plan.count);
  return plan;
}

Status RunBernoulli(const BernoulliPlan& plan, const KernelArgs& args) {
  double *limit = plan.limit(args), *y = plan.y(args);
  plan.load(args.in[plan.prob], limit, static_cast<size_t>(plan.limits));
  PhiloxStream stream = plan.seed.Stream(args);
  for (int64_t i = 0; i < plan.count; ++i) {
    const double uniform = UniformOf(stream.Next(), DataType::kFloat);
    y[i] = uniform < limit[plan.limits == 1 ? 0 : i] ? 1 : 0;
  }
  plan.store(y, args.out[0], static_cast<size_t>(plan.count));
  return Status();
}

struct RandpermPlan : DrawPlan {
  Workspace<int64_t> order;
};

RandpermPlan PlanRandperm(const OpContext& op, Check& check) {
  RandpermPlan plan;
  plan.dtype = check.Take(op.attr_dtype("dtype"));
  SetDrawn(check, op, {check.Take(op.Int("n"))}, &plan);
  plan.seed = {WordOf(check, op, "seed"), {}, WordOf(check, op, "offset")};
  plan.store = FindConvert(DataType::kInt64, plan.dtype);
  check.Supported(plan.store != nullptr, "no permutation of type {}", Name(plan.dtype));
  check.Keep(AskForLists(op, plan.count));
  plan.order = plan.scratch.Take<int64_t>(plan.count);
  return plan;
}

// Fisher and Yates, from the end. The remainder of 64 random bits is biased by less than n / 2^64.
Status RunRandperm(const RandpermPlan& plan, const KernelArgs& args) {
  PhiloxStream stream = plan.seed.Stream(args);
  int64_t* order = plan.order(args);
  std::iota(order, order + plan.count, 0);
  for (auto left = static_cast<uint64_t>(plan.count); left > 1; --left) {
    const uint64_t low = stream.Next();
    const uint64_t word = uint64_t{stream.Next()} << 32 | low;
    std::swap(order[left - 1], order[word % left]);
  }
  plan.store(order, args.out[0], static_cast<size_t>(plan.count));
  return Status();
}

// ---- StatelessDropOutGenMask, DropOutGenMask, DropOutDoMask ----

// Bytes of a mask of one bit an element, in blocks of 128 bits.
int64_t MaskBytes(int64_t elements) {
  return (elements + 127) / 128 * 16;
}

// A bit is 1 with probability `keep`; bits past the elements are 0.
void FillMask(PhiloxStream& stream, double keep, int64_t elements, uint8_t* mask) {
  std::fill_n(mask, MaskBytes(elements), uint8_t{0});
  for (int64_t i = 0; i < elements; ++i) {
    const double uniform = std::ldexp(static_cast<double>(stream.Next()) + 0.5, -32);
    if (uniform < keep) mask[i / 8] = static_cast<uint8_t>(mask[i / 8] | 1u << (i % 8));
  }
}

double KeepOf(const DrawPlan& plan, const KernelArgs& args) {
  double keep = 0;
  plan.load(args.in[plan.prob], &keep, 1);
  return keep;
}

DrawPlan PlanMask(const OpContext& op, Check& check) {
  DrawPlan plan;
  plan.prob = op.slot("prob");
  const TensorType& prob = op.in(plan.prob);
  plan.load = FindConvert(prob.dtype, DataType::kDouble);
  SetDrawn(check, op, Shape(check.Take(op.Ints("shape"))), &plan);
  check.That(IsFloating(prob.dtype) && prob.shape.elements() == 1,
             "\"prob\" is {}, expected one float", prob);
  plan.outputs = {{DataType::kUint8, {MaskBytes(plan.count)}}};
  return plan;
}

DrawPlan PlanGenMask(const OpContext& op, Check& check) {
  DrawPlan plan = PlanMask(op, check);
  plan.seed.key = WordOf(check, op, "seed");
  if (op.has("offset")) {
    plan.seed.low = WordOf(check, op, "offset");
    if (op.in("offset").shape.elements() > 1) plan.seed.high = WordOf(check, op, "offset", 1);
  }
  return plan;
}

Status RunGenMask(const DrawPlan& plan, const KernelArgs& args) {
  PhiloxStream stream = plan.seed.Stream(args);
  FillMask(stream, KeepOf(plan, args), plan.count, static_cast<uint8_t*>(args.out[0]));
  return Status();
}

// A kernel with a state: every run takes up the stream of the two seeds where the last one left it.
// Seeds of 0 ask for unpredictable numbers; they get the stream of key 0, so that a run can be
// repeated.
Result<std::unique_ptr<Kernel>> MakeStatefulMask(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(DrawPlan plan, define::PlanCall<PlanMask>(op));
  const PhiloxStream start(static_cast<uint64_t>(op.attr_int("seed")), 0,
                           static_cast<uint64_t>(op.attr_int("seed2")));
  return MakeKernel([stream = start, plan = std::move(plan)](const KernelArgs& args) mutable {
    FillMask(stream, KeepOf(plan, args), plan.count, static_cast<uint8_t*>(args.out[0]));
    return Status();
  });
}

struct DoMaskPlan : DrawPlan {
  ConvertFn load_x = nullptr;
};

DoMaskPlan PlanDoMask(const OpContext& op, Check& check) {
  const TensorType &x = op.in("x"), &mask = op.in("mask"), &keep = op.in("keep_prob");
  DoMaskPlan plan;
  plan.count = x.shape.elements();
  plan.prob = op.slot("keep_prob");
  plan.load = FindConvert(keep.dtype, DataType::kDouble);
  plan.load_x = FindConvert(x.dtype, DataType::kDouble);
  plan.store = FindConvert(DataType::kDouble, x.dtype);
  check.That(IsFloating(x.dtype) && IsFloating(keep.dtype) && keep.shape.elements() == 1,
             "x {} and keep_prob {}: expected floats, and one", x, keep);
  check.That(mask.dtype == DataType::kUint8 && mask.shape.elements() * 8 >= plan.count,
             "\"mask\" is {}, expected {} bits in bytes", mask, plan.count);
  plan.y = plan.scratch.Take<double>(plan.count);
  plan.outputs = {x};
  return plan;
}

Status RunDoMask(const DoMaskPlan& plan, const KernelArgs& args) {
  const double keep = KeepOf(plan, args);
  double* x = plan.y(args);
  plan.load_x(args.in[0], x, static_cast<size_t>(plan.count));
  const auto* mask = static_cast<const uint8_t*>(args.in[1]);
  for (int64_t i = 0; i < plan.count; ++i) {
    x[i] = (mask[i / 8] >> (i % 8) & 1u) != 0 ? x[i] / keep : 0;
  }
  plan.store(x, args.out[0], static_cast<size_t>(plan.count));
  return Status();
}

// ---- MultinomialWithReplacement ----

// No document says which index a number becomes. Here it is the first whose running sum of weights
// exceeds the number times the sum of all; without replacement an index that was drawn has no
// weight any more.
struct Draw : Planned {
  int64_t rows = 1, columns = 0, samples = 0;
  bool replacement = false;
};

Draw PlanDraw(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  const int rank = x.rank();
  check.Keep(ExpectReal(op, "x"));
  for (const std::string_view port : {"seed", "offset"}) {
    check.Keep(ExpectCount(op, port, 1, "generator"));
    check.That(IsInteger(op.in(port).dtype), "\"{}\" is {}, expected an integer", port,
               op.in(port));
  }
  Draw draw;
  draw.samples = op.attr_int("numsamples");
  draw.replacement = op.attr_bool("replacement");
  check.That(rank >= 1 && rank <= 2 && draw.samples >= 1,
             "{} samples of x {}; expected one or more, of a row or of rows", draw.samples, x);
  if (!check.ok()) return {};
  draw.columns = x[rank - 1];
  draw.rows = rank == 2 ? x[0] : 1;
  check.That(draw.columns > 0 && (draw.replacement || draw.samples <= draw.columns),
             "{} samples without replacement of {} columns", draw.samples, draw.columns);
  draw.outputs = {
      {DataType::kInt64, rank == 1 ? Shape({draw.samples}) : Shape({draw.rows, draw.samples})}};
  return draw;
}

// The sum of a row's weights. Errors name the row: a weight is negative or no number, or too few
// are above zero.
Result<double> SumOfRow(const Draw& draw, const double* weights, int64_t row) {
  double sum = 0;
  int64_t possible = 0;
  for (int64_t i = 0; i < draw.columns; ++i) {
    if (!(weights[i] >= 0) || std::isinf(weights[i])) {
      return Error(Code::kInvalidArgument, "{}: weight {} of row {} is {}", draw.who, i, row,
                   weights[i]);
    }
    possible += weights[i] > 0 ? 1 : 0;
    sum += weights[i];
  }
  if (possible >= (draw.replacement ? 1 : draw.samples)) return sum;
  return Error(Code::kInvalidArgument, "{}: row {} has {} weights above zero, {} samples are asked",
               draw.who, row, possible, draw.samples);
}

// The index of a number in [0, 1), by the weights that are left.
int64_t IndexOf(const double* weights, int64_t columns, double sum, double uniform) {
  int64_t last = 0;
  double running = 0;
  for (int64_t i = 0; i < columns; ++i) {
    if (weights[i] == 0) continue;
    last = i;
    running += weights[i];
    if (running > uniform * sum) break;
  }
  return last;
}

// 53 random bits a number.
double NextUniform(PhiloxStream& stream) {
  const uint64_t low = stream.Next();
  const uint64_t high = stream.Next();
  return std::ldexp(static_cast<double>((high << 32 | low) >> 11), -53);
}

Status DrawRows(const Draw& draw, RealTensors& t) {
  PhiloxStream stream(static_cast<uint64_t>(static_cast<int64_t>(t.in[1][0])), 0,
                      static_cast<uint64_t>(static_cast<int64_t>(t.in[2][0])));
  size_t next = 0;
  for (int64_t row = 0; row < draw.rows; ++row) {
    double* weights = t.in[0].data() + row * draw.columns;
    NPUMESH_ASSIGN_OR_RETURN(double sum, SumOfRow(draw, weights, row));
    for (int64_t sample = 0; sample < draw.samples; ++sample) {
      const int64_t index = IndexOf(weights, draw.columns, sum, NextUniform(stream));
      t.out[0][next++] = static_cast<double>(index);
      if (draw.replacement) continue;
      sum -= weights[index];
      weights[index] = 0;
    }
  }
  return Status();
}

}  // namespace

void RegisterRandomOps(OpRegistry& registry) {
  registry.Add(Define<PlanRandom, RunRandom<false>>(
      "StatelessRandomUniformV2(shape, key, counter, alg; dtype=0) -> y",
      {.value_inputs = {"shape"}}));
  registry.Add(Define<PlanRandom, RunRandom<true>>(
      "StatelessRandomNormalV2(shape, key, counter, alg; dtype=0) -> y",
      {.value_inputs = {"shape"}}));
  registry.Add(Define<PlanBernoulli, RunBernoulli>(
      "StatelessBernoulli(shape, prob, seed, offset; dtype=0) -> y", {.value_inputs = {"shape"}}));
  registry.Add(Define<PlanRandperm, RunRandperm>(
      "StatelessRandperm(n, seed, offset; layout=0, dtype=9) -> y", {.value_inputs = {"n"}}));
  registry.Add(Define<PlanGenMask, RunGenMask>(
      "StatelessDropOutGenMask(shape, prob, seed, seed1, offset?) -> y",
      {.value_inputs = {"shape"}}));
  registry.Add({.schema = Signature("DropOutGenMask(shape, prob; seed=0, seed2=0) -> y"),
                .infer = define::Infer<PlanMask>,
                .make_kernel = MakeStatefulMask,
                .value_inputs = {"shape"},
                .pure = false});
  registry.Add(Define<PlanDoMask, RunDoMask>("DropOutDoMask(x, mask, keep_prob) -> y"));
  registry.Add(DefineReal<PlanDraw, DrawRows>(
      "MultinomialWithReplacement(x, seed, offset; numsamples:int, replacement=false) -> y"));
}

}  // namespace npumesh
