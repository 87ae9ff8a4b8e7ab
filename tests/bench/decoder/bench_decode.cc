// A decode step (one token, a cache of 1024) beside a plain read of its weights, one thread, in
// turns. The counter `bandwidth` is the part of the read's bandwidth that the step reaches when
// only the weights count, which it reads once; it reads the cache besides. Design: at least 0.6.
#include <benchmark/benchmark.h>
#include <omp.h>

#include "graph/ir/graph_builder.h"
#include "tests/bench/decoder/rounds.h"

namespace npumesh {
namespace {

constexpr int kCache = 1024;
constexpr int kRounds = 41;
constexpr DataType kFloat = DataType::kFloat;

class DecodeWriter {
 public:
  Result<Model> Write() {
    const Value x = g_.Data("hidden", {kFloat, {1, kHidden}});
    const Value slot = g_.Data("slot", {DataType::kInt32, {1}});
    keys_ = g_.RefData("keys", {kFloat, {1, kCache, kHidden}});
    values_ = g_.RefData("values", {kFloat, {1, kCache, kHidden}});
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
    const Value gamma = Constant({kHidden}, 1.0f);
    return g_.Op("RmsNorm", {{"x", x}, {"gamma", gamma}}, {}, {}, 2);
  }
  Value MatMul(Value x, int rows, int columns) {
    return g_.Op("MatMul", {{"x1", x}, {"x2", Constant({rows, columns}, 0.01f)}});
  }
  Value Constant(const Shape& shape, float value) {
    const std::vector<float> values(static_cast<size_t>(shape.elements()), value);
    return g_.Const(fmt::format("constant{}", constants_++),
                    Tensor::FromVector({kFloat, shape}, values));
  }

  GraphBuilder g_{"decode"};
  Value keys_, values_;
  int constants_ = 0;
};

// Reads all of it, as fast as the C library can: the byte it looks for is not there.
bool Read(const std::vector<float>& ones) {
  return std::memchr(ones.data(), 0xff, ones.size() * sizeof(float)) != nullptr;
}

Tensor Zeros(const TensorType& type) {
  Tensor tensor = Tensor::Allocate(type);
  std::memset(tensor.mutable_data(), 0, tensor.bytes());
  return tensor;
}

Result<std::unique_ptr<CompiledGraph>> Step(World& world) {
  NPUMESH_ASSIGN_OR_RETURN(Model model, DecodeWriter().Write());
  const TensorType cache{kFloat, {1, kCache, kHidden}};
  return CompiledGraph::Create(
      world, std::move(model),
      {Tensor::FromVector({kFloat, {1, kHidden}}, std::vector<float>(kHidden, 0.5f)),
       Zeros({DataType::kInt32, {1}}), Zeros(cache), Zeros(cache)});
}

void StepBesideRead(benchmark::State& state) {
  omp_set_num_threads(1);
  Env env;
  env.hbm_bytes = uint64_t{256} << 20;
  const Result<std::unique_ptr<World>> world = World::Start(env);
  if (!world.ok()) return state.SkipWithError(world.status().ToString().c_str());
  const Result<std::unique_ptr<CompiledGraph>> step = Step(**world);
  if (!step.ok()) return state.SkipWithError(step.status().ToString().c_str());
  const size_t floats = 4 * kHidden * kHidden + 3 * kHidden * kFfn;
  const std::vector<float> weights(floats, 1.0f);
  StepTimes times;
  for (auto _ : state) {
    const auto [ours, read] = MediansInTurn(
        kRounds, [&] { benchmark::DoNotOptimize((*step)->Run(&times)); },
        [&] { benchmark::DoNotOptimize(Read(weights)); });
    state.SetIterationTime(ours);
    state.counters["read_ms"] = read * 1e3;
    state.counters["read_GBps"] = static_cast<double>(floats) * 4e-9 / read;
    state.counters["bandwidth"] = read / ours;
  }
  for (const auto& [name, seconds] : times.shortest()) {
    double& sum = state.counters[name.substr(0, name.find(' ')) + "_ms"].value;
    sum += seconds * 1e3;
  }
}
BENCHMARK(StepBesideRead)->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace npumesh
