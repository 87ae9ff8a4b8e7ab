// Random numbers and dropout. Ops reference 5.16.
//
// Everything is a function of seed, offset and shape: the same inputs give the same bits, on every
// rank and however many threads there are. DropOutGenMask alone goes on from run to run.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "graph/ops/cast.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/layer_families.h"
#include "graph/ops/philox.h"

namespace npumesh {
namespace {

// Integer i of a tensor of 32 or 64 bits.
uint64_t WordAt(const void* data, DataType dtype, int64_t i) {
  if (BitsOf(dtype) == 64) return static_cast<const uint64_t*>(data)[i];
  return static_cast<uint64_t>(int64_t{static_cast<const int32_t*>(data)[i]});
}

Status ExpectWords(const OpContext& op, std::string_view port, int64_t least) {
  const TensorType& type = op.in(port);
  const bool fits = IsInteger(type.dtype) && BitsOf(type.dtype) >= 32;
  if (fits && type.shape.elements() >= least) return Status();
  return Error(Code::kInvalidArgument,
               "{}: \"{}\" is {}, expected {} or more integers of 32 or 64 bits", op.Who(), port,
               type.ToString(), least);
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
void FillNormal(PhiloxStream& stream, DataType dtype, std::vector<double>& y) {
  const DataType uniform = dtype == DataType::kDouble ? dtype : DataType::kFloat;
  for (size_t i = 0; i < y.size(); i += 2) {
    const double u1 = std::max(NextUniform(stream, uniform), 1e-7);
    const double angle = 2 * std::numbers::pi * NextUniform(stream, uniform);
    const double radius = std::sqrt(-2 * std::log(u1));
    y[i] = radius * std::sin(angle);
    if (i + 1 < y.size()) y[i + 1] = radius * std::cos(angle);
  }
}

Result<DataType> FloatType(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, op.attr_dtype("dtype"));
  if (IsFloating(dtype) && FindConvert(DataType::kDouble, dtype) != nullptr) return dtype;
  return Error(Code::kUnsupported, "{}: attribute \"dtype\" asks for {}, expected a floating type",
               op.Who(), Name(dtype));
}

Status InferRandom(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, FloatType(op));
  NPUMESH_RETURN_IF_ERROR(ExpectWords(op, "key", 1));
  NPUMESH_RETURN_IF_ERROR(ExpectWords(op, "counter", 2));
  NPUMESH_RETURN_IF_ERROR(ExpectWords(op, "alg", 1));
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> dims, op.Ints("shape"));
  return SetOutput(op, 0, dtype, Shape(std::move(dims)));
}

Result<std::unique_ptr<Kernel>> MakeRandom(const OpContext& op, bool normal) {
  NPUMESH_RETURN_IF_ERROR(AskForLists(op, op.out(0).shape.elements(), sizeof(double)));
  const DataType dtype = op.out(0).dtype;
  return MakeKernel([dtype, normal, who = op.Who(), key = op.slot("key"),
                     counter = op.slot("counter"), alg = op.slot("alg"),
                     key_type = op.in("key").dtype, counter_type = op.in("counter").dtype,
                     alg_type = op.in("alg").dtype, store = FindConvert(DataType::kDouble, dtype),
                     y = std::vector<double>(static_cast<size_t>(op.out(0).shape.elements()))](
                        const KernelArgs& args) mutable -> Status {
    const uint64_t algorithm = WordAt(args.in[alg], alg_type, 0);
    if (algorithm != 1) {
      return Error(Code::kUnsupported, "{}: \"alg\" is {}; only 1, Philox, is known", who,
                   algorithm);
    }
    PhiloxStream stream(WordAt(args.in[key], key_type, 0),
                        WordAt(args.in[counter], counter_type, 0),
                        WordAt(args.in[counter], counter_type, 1));
    if (normal) {
      FillNormal(stream, dtype, y);
    } else {
      for (double& value : y) value = NextUniform(stream, dtype);
    }
    store(y.data(), args.out[0], y.size());
    return Status();
  });
}

// ---- StatelessBernoulli, StatelessRandperm ----

Status InferBernoulli(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, op.attr_dtype("dtype"));
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> dims, op.Ints("shape"));
  NPUMESH_RETURN_IF_ERROR(ExpectWords(op, "seed", 1));
  NPUMESH_RETURN_IF_ERROR(ExpectWords(op, "offset", 1));
  const Shape shape(std::move(dims));
  NPUMESH_RETURN_IF_ERROR(shape.Check().WithContext(op.Who()));
  const TensorType& prob = op.in("prob");
  const bool fits = prob.shape.elements() == 1 || prob.shape == shape;
  if (!fits || !IsFloating(prob.dtype) || FindConvert(DataType::kDouble, dtype) == nullptr) {
    return Error(Code::kInvalidArgument,
                 "{}: \"prob\" is {}, expected floats, one or in the shape {}", op.Who(),
                 prob.ToString(), shape.ToString());
  }
  return SetOutput(op, 0, dtype, shape);
}

Result<std::unique_ptr<Kernel>> MakeBernoulli(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(AskForLists(op, op.out(0).shape.elements(), 2 * sizeof(double)));
  const int prob = op.slot("prob"), seed = op.slot("seed"), offset = op.slot("offset");
  return MakeKernel([=, seed_type = op.in(seed).dtype, offset_type = op.in(offset).dtype,
                     load = FindConvert(op.in(prob).dtype, DataType::kDouble),
                     store = FindConvert(DataType::kDouble, op.out(0).dtype),
                     limit = std::vector<double>(static_cast<size_t>(op.in(prob).shape.elements())),
                     y = std::vector<double>(static_cast<size_t>(op.out(0).shape.elements()))](
                        const KernelArgs& args) mutable {
    load(args.in[prob], limit.data(), limit.size());
    PhiloxStream stream(WordAt(args.in[seed], seed_type, 0), 0,
                        WordAt(args.in[offset], offset_type, 0));
    for (size_t i = 0; i < y.size(); ++i) {
      const double uniform = UniformOf(stream.Next(), DataType::kFloat);
      y[i] = uniform < limit[limit.size() == 1 ? 0 : i] ? 1 : 0;
    }
    store(y.data(), args.out[0], y.size());
    return Status();
  });
}

Status InferRandperm(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, op.attr_dtype("dtype"));
  NPUMESH_ASSIGN_OR_RETURN(const int64_t n, op.Int("n"));
  NPUMESH_RETURN_IF_ERROR(ExpectWords(op, "seed", 1));
  NPUMESH_RETURN_IF_ERROR(ExpectWords(op, "offset", 1));
  if (FindConvert(DataType::kInt64, dtype) == nullptr) {
    return Error(Code::kUnsupported, "{}: no permutation of type {}", op.Who(), Name(dtype));
  }
  return SetOutput(op, 0, dtype, {n});
}

// Fisher and Yates, from the end. The remainder of 64 random bits is biased by less than n / 2^64.
Result<std::unique_ptr<Kernel>> MakeRandperm(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(AskForLists(op, op.out(0).shape.elements()));
  const int seed = op.slot("seed"), offset = op.slot("offset");
  return MakeKernel([=, seed_type = op.in(seed).dtype, offset_type = op.in(offset).dtype,
                     store = FindConvert(DataType::kInt64, op.out(0).dtype),
                     y = std::vector<int64_t>(static_cast<size_t>(op.out(0).shape.elements()))](
                        const KernelArgs& args) mutable {
    PhiloxStream stream(WordAt(args.in[seed], seed_type, 0), 0,
                        WordAt(args.in[offset], offset_type, 0));
    std::iota(y.begin(), y.end(), 0);
    for (size_t left = y.size(); left > 1; --left) {
      const uint64_t low = stream.Next();
      const uint64_t word = uint64_t{stream.Next()} << 32 | low;
      std::swap(y[left - 1], y[word % left]);
    }
    store(y.data(), args.out[0], y.size());
    return Status();
  });
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

Status InferMask(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> dims, op.Ints("shape"));
  const Shape shape(std::move(dims));
  NPUMESH_RETURN_IF_ERROR(shape.Check().WithContext(op.Who()));
  const TensorType& prob = op.in("prob");
  if (!shape.is_static() || !IsFloating(prob.dtype) || prob.shape.elements() != 1) {
    return Error(Code::kInvalidArgument, "{}: \"prob\" is {}, expected one float; shape {}",
                 op.Who(), prob.ToString(), shape.ToString());
  }
  return SetOutput(op, 0, DataType::kUint8, {MaskBytes(shape.elements())});
}

Status InferGenMask(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectWords(op, "seed", 1));
  if (op.has("offset")) NPUMESH_RETURN_IF_ERROR(ExpectWords(op, "offset", 1));
  return InferMask(op);
}

Result<std::unique_ptr<Kernel>> MakeGenMask(const OpContext& op) {
  const int prob = op.slot("prob"), seed = op.slot("seed");
  const int offset = op.has("offset") ? op.slot("offset") : -1;
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> dims, op.Ints("shape"));
  return MakeKernel(
      [=, elements = Shape(dims).elements(), seed_type = op.in(seed).dtype,
       offset_type = offset >= 0 ? op.in(offset).dtype : DataType::kUndefined,
       words = offset >= 0 ? op.in(offset).shape.elements() : 0,
       load = FindConvert(op.in(prob).dtype, DataType::kDouble)](const KernelArgs& args) {
        double keep = 0;
        load(args.in[prob], &keep, 1);
        const auto half = [&](int64_t i) {
          return i < words ? WordAt(args.in[offset], offset_type, i) : 0;
        };
        PhiloxStream stream(WordAt(args.in[seed], seed_type, 0), half(0), half(1));
        FillMask(stream, keep, elements, static_cast<uint8_t*>(args.out[0]));
        return Status();
      });
}

// Every run takes up the stream of the two seeds where the last one left it. Seeds of 0 ask for
// numbers that nobody can foresee; they get the stream of key 0, so that a run can be repeated.
Result<std::unique_ptr<Kernel>> MakeStatefulMask(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> dims, op.Ints("shape"));
  const PhiloxStream start(static_cast<uint64_t>(op.attr_int("seed")), 0,
                           static_cast<uint64_t>(op.attr_int("seed2")));
  return MakeKernel(
      [stream = start, elements = Shape(dims).elements(), prob = op.slot("prob"),
       load = FindConvert(op.in("prob").dtype, DataType::kDouble)](const KernelArgs& args) mutable {
        double keep = 0;
        load(args.in[prob], &keep, 1);
        FillMask(stream, keep, elements, static_cast<uint8_t*>(args.out[0]));
        return Status();
      });
}

Status InferDoMask(OpContext& op) {
  const TensorType& x = op.in("x");
  const TensorType& mask = op.in("mask");
  const TensorType& keep = op.in("keep_prob");
  if (!IsFloating(x.dtype) || FindConvert(x.dtype, DataType::kDouble) == nullptr ||
      !IsFloating(keep.dtype) || keep.shape.elements() != 1) {
    return Error(Code::kInvalidArgument, "{}: x {} and keep_prob {}: expected floats, and one",
                 op.Who(), x.ToString(), keep.ToString());
  }
  if (mask.dtype != DataType::kUint8 || mask.shape.elements() * 8 < x.shape.elements()) {
    return Error(Code::kInvalidArgument, "{}: \"mask\" is {}, expected {} bits in bytes", op.Who(),
                 mask.ToString(), x.shape.elements());
  }
  return SetOutput(op, 0, x.dtype, x.shape);
}

Result<std::unique_ptr<Kernel>> MakeDoMask(const OpContext& op) {
  const DataType dtype = op.in("x").dtype;
  return MakeKernel([load = FindConvert(dtype, DataType::kDouble),
                     load_keep = FindConvert(op.in("keep_prob").dtype, DataType::kDouble),
                     store = FindConvert(DataType::kDouble, dtype),
                     x = std::vector<double>(static_cast<size_t>(op.in("x").shape.elements()))](
                        const KernelArgs& args) mutable {
    double keep = 1;
    load(args.in[0], x.data(), x.size());
    load_keep(args.in[2], &keep, 1);
    const auto* mask = static_cast<const uint8_t*>(args.in[1]);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = (mask[i / 8] >> (i % 8) & 1u) != 0 ? x[i] / keep : 0;
    }
    store(x.data(), args.out[0], x.size());
    return Status();
  });
}

}  // namespace

void RegisterRandomOps(OpRegistry& registry) {
  const AttrSpec float_type = {"dtype", AttrValue::Int(0)};
  for (const bool normal : {false, true}) {
    registry.Add({.schema = {normal ? "StatelessRandomNormalV2" : "StatelessRandomUniformV2",
                             {{"shape"}, {"key"}, {"counter"}, {"alg"}},
                             {{"y"}},
                             {float_type}},
                  .infer = InferRandom,
                  .make_kernel = [normal](const OpContext& op) { return MakeRandom(op, normal); },
                  .value_inputs = {"shape"}});
  }
  registry.Add({.schema = {"StatelessBernoulli",
                           {{"shape"}, {"prob"}, {"seed"}, {"offset"}},
                           {{"y"}},
                           {float_type}},
                .infer = InferBernoulli,
                .make_kernel = MakeBernoulli,
                .value_inputs = {"shape"}});
  registry.Add({.schema = {"StatelessRandperm",
                           {{"n"}, {"seed"}, {"offset"}},
                           {{"y"}},
                           {{"layout", AttrValue::Int(0)}, {"dtype", AttrValue::Int(9)}}},
                .infer = InferRandperm,
                .make_kernel = MakeRandperm,
                .value_inputs = {"n"}});
  registry.Add(
      {.schema = {"StatelessDropOutGenMask",
                  {{"shape"}, {"prob"}, {"seed"}, {"seed1"}, {"offset", PortKind::kOptional}},
                  {{"y"}},
                  {}},
       .infer = InferGenMask,
       .make_kernel = MakeGenMask,
       .value_inputs = {"shape"}});
  registry.Add({.schema = {"DropOutGenMask",
                           {{"shape"}, {"prob"}},
                           {{"y"}},
                           {{"seed", AttrValue::Int(0)}, {"seed2", AttrValue::Int(0)}}},
                .infer = InferMask,
                .make_kernel = MakeStatefulMask,
                .value_inputs = {"shape"},
                .pure = false});
  registry.Add({.schema = {"DropOutDoMask", {{"x"}, {"mask"}, {"keep_prob"}}, {{"y"}}, {}},
                .infer = InferDoMask,
                .make_kernel = MakeDoMask});
}

}  // namespace npumesh
