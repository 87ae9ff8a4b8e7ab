// A decode step (one token, a cache of 1024) beside a plain read of as many bytes and beside the
// same step in float32, one thread, in turns: with weights of float32, float16, bfloat16, and of
// int8 with a factor for each column beside float16. A step has to read its weights and its cache
// once; the counter `bandwidth` is the part of the plain read's bandwidth that it reaches.
// `speed_up` is the time of the step in float32 over that of this one. Design: bandwidth at least
// 0.88 in float32 and float16, speed_up at least 1.7 for 16 bits, 3 for int8.
#include <benchmark/benchmark.h>
#include <omp.h>

#include "graph/ir/graph_builder.h"
#include "graph/ops/toolbox/product/packed_weights.h"
#include "tests/bench/decoder/rounds.h"

namespace npumesh {
namespace {

constexpr int kCache = 1024;
constexpr int kRounds = 41;
constexpr DataType kFloat = DataType::kFloat;

// Of everything else in a step with these weights.
DataType NumbersBeside(DataType weights) {
  return weights == DataType::kInt8 ? DataType::kFloat16 : weights;
}

class DecodeWriter {
 public:
  explicit DecodeWriter(DataType weights) : weights_(weights) {}

  Result<Model> Write() {
    const Value x = g_.Data("hidden", {numbers_, {1, kHidden}});
    const Value slot = g_.Data("slot", {DataType::kInt32, {1}});
    keys_ = g_.RefData("keys", {numbers_, {1, kCache, kHidden}});
    values_ = g_.RefData("values", {numbers_, {1, kCache, kHidden}});
    const Value attended = Add(x, Attention(Norm(x), slot));
    const Value both = MatMul(Norm(attended), kHidden, 2 * kFfn);
    const Value out = Add(attended, MatMul(g_.Op("SwiGlu", {{"x", both}}), kFfn, kHidden));
    g_.Output({out});
    return g_.Build();
  }

 private:
  Value Attention(Value x, Value slot) {
    const Value q = MatMul(x, kHidden, kHidden);
    const Value k = MatMul(x, kHidden, kHidden);
    const Value v = MatMul(x, kHidden, kHidden);
    const Value caches = g_.Op("ScatterPaKvCache",
                               {{"key", k},
                                {"key_cache", keys_},
                                {"slot_mapping", slot},
                                {"value", v},
                                {"value_cache", values_}},
                               {}, {}, 2);
    const Value query = g_.Op("Reshape", {{"x", q}, {"shape", g_.Ints({1, 1, kHidden})}});
    const Value seen = g_.Op("FusedInferAttentionScore",
                             {{"query", query}, {"key0", caches}, {"value0", g_.Port(caches, 1)}},
                             {{"num_heads", AttrValue::Int(kHeads)},
                              {"input_layout", AttrValue::String("BSH")},
                              {"scale", AttrValue::Float(0.125f)}},
                             {}, 2);
    const Value rows = g_.Op("Reshape", {{"x", seen}, {"shape", g_.Ints({1, kHidden})}});
    return MatMul(rows, kHidden, kHidden);
  }

  Value Add(Value a, Value b) { return g_.Op("Add", {{"x1", a}, {"x2", b}}); }
  Value Norm(Value x) {
    const Value gamma = Constant(numbers_, {kHidden}, 1.0f);
    return g_.Op("RmsNorm", {{"x", x}, {"gamma", gamma}}, {}, {}, 2);
  }
  Value MatMul(Value x, int rows, int columns) {
    if (weights_ != DataType::kInt8) {
      return g_.Op("MatMul", {{"x1", x}, {"x2", Constant(weights_, {rows, columns}, 0.01f)}});
    }
    const Value weight = Constant(DataType::kInt8, {rows, columns}, 1.0f);
    const Value scale = Constant(numbers_, {columns}, 0.01f);
    return g_.Op("WeightQuantBatchMatmulV2",
                 {{"x", x}, {"weight", weight}, {"antiquant_scale", scale}});
  }
  Value Constant(DataType dtype, const Shape& shape, float value) {
    return g_.Const(fmt::format("constant{}", constants_++), Filled(dtype, shape, value));
  }

  const DataType weights_, numbers_ = NumbersBeside(weights_);
  GraphBuilder g_{"decode"};
  Value keys_, values_;
  int constants_ = 0;
};

// Zeros that lie as packed weights do, in huge pages where the system grants them.
class Zeros {
 public:
  explicit Zeros(size_t bytes) : bytes_(bytes), data_(AllocatePacked(bytes)) {
    std::memset(data_.get(), 0, bytes_);
  }

  // Reads all of them, as fast as the C library can: the byte it looks for is not there.
  bool Read() const { return std::memchr(data_.get(), 0xff, bytes_) != nullptr; }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
  std::shared_ptr<std::byte> data_;
};

// The bytes that a step cannot but read.
size_t BytesOfStep(DataType weights) {
  return *BytesOf(weights, 4 * kHidden * kHidden + 3 * kHidden * kFfn) +
         2 * *BytesOf(NumbersBeside(weights), kCache * kHidden);
}

Tensor ZeroTensor(const TensorType& type) {
  Tensor tensor = Tensor::Allocate(type);
  std::memset(tensor.mutable_data(), 0, tensor.bytes());
  return tensor;
}

Result<std::unique_ptr<CompiledGraph>> Step(World& world, DataType weights) {
  NPUMESH_ASSIGN_OR_RETURN(Model model, DecodeWriter(weights).Write());
  const DataType numbers = NumbersBeside(weights);
  const TensorType cache{numbers, {1, kCache, kHidden}};
  return CompiledGraph::Create(
      world, std::move(model),
      {Filled(numbers, {1, kHidden}, 0.5f), ZeroTensor({DataType::kInt32, {1}}), ZeroTensor(cache),
       ZeroTensor(cache)});
}

void StepBesideRead(benchmark::State& state, DataType weights) {
  omp_set_num_threads(1);
  Env env;
  env.hbm_bytes = uint64_t{256} << 20;
  const Result<std::unique_ptr<World>> world = World::Start(env);
  if (!world.ok()) return state.SkipWithError(world.status().ToString().c_str());
  const auto step = Step(**world, weights);
  const auto in_floats = Step(**world, kFloat);
  if (!step.ok()) return state.SkipWithError(step.status().ToString().c_str());
  if (!in_floats.ok()) return state.SkipWithError(in_floats.status().ToString().c_str());
  const Zeros zeros(BytesOfStep(weights));
  StepTimes times;
  for (auto _ : state) {
    std::vector<double> ours, floats, reads;
    for (int round = 0; round < kRounds; ++round) {
      ours.push_back(SecondsOf([&] { benchmark::DoNotOptimize((*step)->Run(&times)); }));
      reads.push_back(SecondsOf([&] { benchmark::DoNotOptimize(zeros.Read()); }));
      floats.push_back(SecondsOf([&] { benchmark::DoNotOptimize((*in_floats)->Run()); }));
    }
    const double seconds = MedianOf(ours), read = MedianOf(reads);
    state.SetIterationTime(seconds);
    state.counters["read_ms"] = read * 1e3;
    state.counters["read_GBps"] = static_cast<double>(zeros.bytes()) * 1e-9 / read;
    state.counters["bandwidth"] = read / seconds;
    state.counters["speed_up"] = MedianOf(floats) / seconds;
  }
  for (const auto& [name, seconds] : times.shortest()) {
    double& sum = state.counters[name.substr(0, name.find(' ')) + "_ms"].value;
    sum += seconds * 1e3;
  }
}

void Settings(benchmark::internal::Benchmark* bench) {
  bench->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(StepBesideRead, float32, kFloat)->Apply(Settings);
BENCHMARK_CAPTURE(StepBesideRead, float16, DataType::kFloat16)->Apply(Settings);
BENCHMARK_CAPTURE(StepBesideRead, bfloat16, DataType::kBfloat16)->Apply(Settings);
BENCHMARK_CAPTURE(StepBesideRead, int8, DataType::kInt8)->Apply(Settings);

}  // namespace
}  // namespace npumesh
