// A decoder block beside its matrix products alone, called straight through oneDNN with packed
// weights, one thread. The two take turns; the counter `ratio` is the block's time over that of the
// products. Design: at most 1.15. `apart_ratio` is the same of the block whose attention is not
// fused. The other counters are milliseconds of each kind of step.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "examples/decoder_model.h"
#include "graph/passes/fusion/fusion.h"
#include "tests/bench/decoder/rounds.h"

namespace npumesh {
namespace {

using dnnl::memory;

constexpr int kRounds = 41;

// y = x w with everything prepared: w packed as oneDNN wants it when it is constant.
class Product {
 public:
  Product(const memory::dims& x, const memory::dims& w, const memory::dims& y, bool packed,
          bool transposed, const dnnl::engine& engine, dnnl::stream& stream) {
    const auto plain = [](const memory::dims& dims) {
      return memory::desc(dims, memory::data_type::f32,
                          dims.size() == 2 ? memory::format_tag::ab : memory::format_tag::abc);
    };
    memory::desc weights = plain(w);
    if (transposed) weights = memory::desc(w, memory::data_type::f32, memory::format_tag::acb);
    if (packed) weights = memory::desc(w, memory::data_type::f32, memory::format_tag::any);
    const dnnl::matmul::primitive_desc chosen({plain(x), weights, plain(y)}, engine);
    primitive_ = dnnl::matmul(chosen);
    memory from(packed ? plain(w) : weights, engine);
    Fill(from);
    memory x_memory(plain(x), engine), w_memory(chosen.weights_desc(), engine);
    Fill(x_memory);
    dnnl::reorder(from, w_memory).execute(stream, from, w_memory);
    args_ = {{DNNL_ARG_SRC, x_memory},
             {DNNL_ARG_WEIGHTS, w_memory},
             {DNNL_ARG_DST, memory(plain(y), engine)}};
  }

  void Run(dnnl::stream& stream) const { primitive_.execute(stream, args_); }

 private:
  static void Fill(const memory& to) {
    auto* values = static_cast<float*>(to.get_data_handle());
    std::fill_n(values, to.get_desc().get_size() / sizeof(float), 0.01f);
  }

  dnnl::matmul primitive_;
  std::unordered_map<int, memory> args_;
};

// The products of the block: q, k, v, scores, seen, o, gate and up, down.
class Products {
 public:
  Products() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const int64_t s = kSequence, h = kHidden, n = kHeads, d = kHidden / kHeads, f = kFfn;
    for (int i = 0; i < 3; ++i) Weights(s, h, h);
    products_.emplace_back(memory::dims{n, s, d}, memory::dims{n, d, s}, memory::dims{n, s, s},
                           false, true, engine_, stream_);
    products_.emplace_back(memory::dims{n, s, s}, memory::dims{n, s, d}, memory::dims{n, s, d},
                           false, false, engine_, stream_);
    Weights(s, h, h);
    Weights(s, h, 2 * f);
    Weights(s, f, h);
  }

  void Run() {
    for (const Product& product : products_) product.Run(stream_);
    stream_.wait();
  }

 private:
  void Weights(int64_t m, int64_t k, int64_t n) {
    products_.emplace_back(memory::dims{m, k}, memory::dims{k, n}, memory::dims{m, n}, true, false,
                           engine_, stream_);
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<Product> products_;
};

Result<std::unique_ptr<CompiledGraph>> Block(World& world, std::string_view without = "") {
  const DecoderConfig config{1, kHidden, kHeads, kFfn, kSequence, DataType::kFloat, 1};
  NPUMESH_ASSIGN_OR_RETURN(Model model, BuildDecoder(config, 0, 1));
  return CompiledGraph::Create(world, std::move(model), {DecoderInput(config)}, without);
}

void ReportSteps(CompiledGraph& block, benchmark::State& state) {
  StepTimes times;
  for (int round = 0; round < kRounds; ++round) (void)block.Run(&times);
  std::map<std::string, double> by_type;
  for (const auto& [step, seconds] : times.shortest()) {
    by_type[step.substr(0, step.find(' '))] += seconds;
  }
  for (const auto& [type, seconds] : by_type) state.counters[type + "_ms"] = seconds * 1e3;
}

void BlockBesideProducts(benchmark::State& state) {
  omp_set_num_threads(1);
  Env env;
  env.hbm_bytes = uint64_t{512} << 20;
  const Result<std::unique_ptr<World>> world = World::Start(env);
  if (!world.ok()) return state.SkipWithError(world.status().ToString().c_str());
  const Result<std::unique_ptr<CompiledGraph>> block = Block(**world);
  if (!block.ok()) return state.SkipWithError(block.status().ToString().c_str());
  const auto apart = Block(**world, kAttentionFusionPass);
  if (!apart.ok()) return state.SkipWithError(apart.status().ToString().c_str());
  Products products;
  for (auto _ : state) {
    std::vector<double> ours, alone, unfused;
    for (int round = 0; round < kRounds; ++round) {
      unfused.push_back(SecondsOf([&] { benchmark::DoNotOptimize((*apart)->Run()); }));
      ours.push_back(SecondsOf([&] { benchmark::DoNotOptimize((*block)->Run()); }));
      alone.push_back(SecondsOf([&] { products.Run(); }));
    }
    state.SetIterationTime(MedianOf(ours));
    state.counters["products_ms"] = MedianOf(alone) * 1e3;
    state.counters["ratio"] = MedianOf(ours) / MedianOf(alone);
    state.counters["apart_ratio"] = MedianOf(unfused) / MedianOf(alone);
  }
  ReportSteps(**block, state);
}
BENCHMARK(BlockBesideProducts)->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace npumesh
