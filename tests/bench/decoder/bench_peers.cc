// The decoder block beside the same block in ONNX Runtime, with the same weights, on one thread and
// on two. ONNX Runtime runs two forms of it: `plain`, in the operators of ONNX, and `fused`, in its
// own. All three take turns; `ratio` is our time over that of its faster form. The results of all
// three must agree. NPUMESH_ORT names the library of ONNX Runtime.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "launch/samples/decoder_model.h"
#include "tests/bench/decoder/onnx_block.h"
#include "tests/bench/decoder/onnx_runtime.h"
#include "tests/bench/decoder/rounds.h"

namespace npumesh {
namespace {

constexpr int kWarmUps = 3;
constexpr int kRounds = 41;
// Of the largest value. Both compute in float32; products of 3072 terms differ by the order in
// which they are added up.
constexpr float kTolerance = 1e-3f;
// OpenMP's threads spin for some milliseconds before they sleep: on two cores, what ran next on two
// threads without a rest took 20 ms instead of 13.
constexpr std::chrono::milliseconds kRest(10);

// Milliseconds of a run, medians over the rounds.
struct PeerTimes {
  double ours = 0;
  double plain = 0;
  double fused = 0;
};

// Ours and both forms of ONNX Runtime, ready to run on the same input.
class Peers {
 public:
  static Result<std::unique_ptr<Peers>> Create(World& world, int threads) {
    const char* const library = std::getenv("NPUMESH_ORT");
    if (library == nullptr) {
      return Error(Code::kNotFound, "NPUMESH_ORT is not set: let it name libonnxruntime.so");
    }
    std::unique_ptr<Peers> peers(new Peers());
    NPUMESH_ASSIGN_OR_RETURN(peers->onnx_runtime_, OnnxRuntime::Load(library));
    NPUMESH_RETURN_IF_ERROR(peers->Open(world, threads));
    return peers;
  }

  // Error (kMismatch): a result of ONNX Runtime is not ours.
  Status Agree() {
    NPUMESH_RETURN_IF_ERROR(block_->Run().status());
    const auto* const first = static_cast<const float*>(block_->output(0));
    const std::vector<float> ours(first, first + plain_->output().size());
    for (OnnxSession* const peer : {plain_.get(), fused_.get()}) {
      NPUMESH_RETURN_IF_ERROR(peer->Run());
      NPUMESH_RETURN_IF_ERROR(
          SameAs(ours, peer->output())
              .WithContext(peer == plain_.get() ? "the plain form" : "the fused form"));
    }
    return Status();
  }

  // REQUIRES: Agree() is fine, so that nothing fails here.
  PeerTimes Measure() {
    std::vector<double> ours, plain, fused;
    for (int round = 0; round < kWarmUps + kRounds; ++round) {
      const double of_ours = RestedSecondsOf([&] { return block_->Run().status(); });
      const double of_plain = RestedSecondsOf([&] { return plain_->Run(); });
      const double of_fused = RestedSecondsOf([&] { return fused_->Run(); });
      if (round < kWarmUps) continue;
      ours.push_back(of_ours);
      plain.push_back(of_plain);
      fused.push_back(of_fused);
    }
    return {MedianOf(ours) * 1e3, MedianOf(plain) * 1e3, MedianOf(fused) * 1e3};
  }

 private:
  Peers() = default;

  Status Open(World& world, int threads) {
    const DecoderConfig config{1, kHidden, kHeads, kFfn, kSequence, DataType::kFloat, 1};
    NPUMESH_ASSIGN_OR_RETURN(Model model, BuildDecoder(config, 0, 1));
    NPUMESH_ASSIGN_OR_RETURN(const OnnxModel plain, PlainOnnxBlock(config, model));
    NPUMESH_ASSIGN_OR_RETURN(plain_, onnx_runtime_->Open(plain, threads));
    NPUMESH_ASSIGN_OR_RETURN(const OnnxModel fused, FusedOnnxBlock(config, model));
    NPUMESH_ASSIGN_OR_RETURN(fused_, onnx_runtime_->Open(fused, threads));
    const Tensor input = DecoderInput(config);
    std::ranges::copy(input.as<float>(), plain_->input().begin());
    std::ranges::copy(input.as<float>(), fused_->input().begin());
    NPUMESH_ASSIGN_OR_RETURN(
        block_, CompiledGraph::Create(world, std::move(model), {input}, "",
                                      [&](CompileOptions& options) { options.threads = threads; }));
    return Status();
  }

  static Status SameAs(const std::vector<float>& ours, const std::vector<float>& theirs) {
    float largest = 0, difference = 0;
    for (size_t i = 0; i < ours.size(); ++i) {
      if (!std::isfinite(theirs[i])) return Error(Code::kMismatch, "value {} is not finite", i);
      largest = std::max(largest, std::abs(ours[i]));
      difference = std::max(difference, std::abs(ours[i] - theirs[i]));
    }
    if (difference <= kTolerance * largest) return Status();
    return Error(Code::kMismatch, "differs from ours by up to {}, the largest value is {}",
                 difference, largest);
  }

  template <typename Work>
  static double RestedSecondsOf(Work work) {
    std::this_thread::sleep_for(kRest);
    return SecondsOf([&] { benchmark::DoNotOptimize(work()); });
  }

  std::unique_ptr<OnnxRuntime> onnx_runtime_;
  std::unique_ptr<OnnxSession> plain_, fused_;
  std::unique_ptr<CompiledGraph> block_;
};

void BlockBesideOnnxRuntime(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(0));
  omp_set_num_threads(threads);
  Env env;
  env.hbm_bytes = uint64_t{512} << 20;
  const Result<std::unique_ptr<World>> world = World::Start(env);
  if (!world.ok()) return state.SkipWithError(world.status().ToString().c_str());
  const Result<std::unique_ptr<Peers>> peers = Peers::Create(**world, threads);
  if (!peers.ok()) return state.SkipWithError(peers.status().ToString().c_str());
  const Status agree = (*peers)->Agree();
  if (!agree.ok()) return state.SkipWithError(agree.ToString().c_str());
  for (auto _ : state) {
    const PeerTimes times = (*peers)->Measure();
    const double theirs = std::min(times.plain, times.fused);
    state.SetIterationTime(times.ours * 1e-3);
    state.counters["ours_ms"] = times.ours;
    state.counters["ort_ms"] = theirs;
    state.counters["ort_plain_ms"] = times.plain;
    state.counters["ort_fused_ms"] = times.fused;
    state.counters["ratio"] = times.ours / theirs;
  }
}
BENCHMARK(BlockBesideOnnxRuntime)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace npumesh
