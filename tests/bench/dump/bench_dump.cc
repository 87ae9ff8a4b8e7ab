// What a dump costs a step of the decoder, on one rank. Each round runs the plain step and the
// other thing in turn, so that both see the same machine. Goals: a dump that skips the step costs
// nothing measurable; statistics less than 10 % of the step; a full dump at least 70 % of the
// bandwidth of a plain copy (dd) into the same folder.
//
// The folder is NPUMESH_BENCH_FOLDER, or one below the system's temporary folder.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "graph/dump/writer/dumper.h"
#include "graph/session/session.h"
#include "launch/samples/decoder_model.h"
#include "runtime/world/thread_transport.h"
#include "tests/bench/timing.h"

namespace npumesh {
namespace {

std::string Folder() {
  const char* named = std::getenv("NPUMESH_BENCH_FOLDER");
  const std::filesystem::path parent =
      named != nullptr ? std::filesystem::path(named) : std::filesystem::temp_directory_path();
  const std::filesystem::path folder = parent / fmt::format("npumesh_bench_dump_{}", getpid());
  std::filesystem::create_directories(folder);
  return folder.string();
}

// As `dd if=/dev/zero bs=1M`: fills a block, writes it, without a sync. False: it could not.
bool CopyLikeDd(const std::string& path, uint64_t bytes) {
  constexpr uint64_t kBlock = uint64_t{1} << 20;
  std::vector<std::byte> block(kBlock);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  bool written = true;
  for (uint64_t at = 0; at < bytes && written; at += kBlock) {
    const uint64_t size = std::min(kBlock, bytes - at);
    std::memset(block.data(), 0, size);
    benchmark::DoNotOptimize(block.data());
    written = write(fd, block.data(), size) == static_cast<ssize_t>(size);
  }
  close(fd);
  return written;
}

// A decoder on a world of one rank.
class Bench {
 public:
  Bench() { Note(Start()); }
  ~Bench() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  void Step(StepObserver* observer) { Note(session_->Run(inputs_, observer).status()); }

  std::unique_ptr<Dumper> MakeDumper(DumpContent content, std::string_view steps) {
    DumpSettings settings;
    settings.path = folder_;
    settings.models = true;
    settings.mode = DumpMode::kAll;
    settings.content = content;
    settings.steps = StepSet::Parse(steps, false, "steps").value();
    DumpPlace place;
    place.time = fmt::format("{:014}", ++dumps_);
    return std::make_unique<Dumper>(settings, place, DumpLimits{});
  }

  const std::string& folder() const { return folder_; }
  const std::string& error() const { return error_; }

 private:
  Status Start() {
    DecoderConfig config;
    config.hidden = 512;
    config.ffn = 1024;
    config.sequence = 128;
    NPUMESH_ASSIGN_OR_RETURN(
        world_, World::Start(Env(), MakeThreadTransport(MakeThreadFabric(1, {}, {}), 0)));
    NPUMESH_ASSIGN_OR_RETURN(memory_, DeviceMemory::Create(*world_));
    NPUMESH_ASSIGN_OR_RETURN(Model model, BuildDecoder(config, 0, 1));
    NPUMESH_ASSIGN_OR_RETURN(session_, Session::Create(*world_, *memory_, std::move(model)));
    inputs_ = {DecoderInput(config)};
    folder_ = Folder();
    return session_->Run(inputs_).status();
  }
  void Note(const Status& status) {
    if (!status.ok()) error_ = status.ToString();
  }

  std::unique_ptr<World> world_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<Session> session_;
  std::vector<Tensor> inputs_;
  std::string folder_;
  std::string error_;
  int dumps_ = 0;
};

// The median step under `dumper` beside the median plain one: "added" is a part of the latter.
void CompareSteps(benchmark::State& state, Bench& bench, Dumper& dumper) {
  std::vector<double> plain;
  std::vector<double> observed;
  for (auto _ : state) {
    plain.push_back(SecondsOf([&] { bench.Step(nullptr); }));
    observed.push_back(SecondsOf([&] { bench.Step(&dumper); }));
    state.SetIterationTime(observed.back());
  }
  state.counters["added"] = MedianOf(observed) / MedianOf(plain) - 1;
  state.counters["plain_ms"] = MedianOf(plain) * 1e3;
}

// A dumper that looks at no step, against none at all.
void BM_Off(benchmark::State& state) {
  Bench bench;
  if (!bench.error().empty()) return state.SkipWithError(bench.error().c_str());
  const auto dumper = bench.MakeDumper(DumpContent::kTensor, "1000000000");
  CompareSteps(state, bench, *dumper);
}
BENCHMARK(BM_Off)->UseManualTime()->Unit(benchmark::kMillisecond);

void BM_Statistics(benchmark::State& state) {
  Bench bench;
  if (!bench.error().empty()) return state.SkipWithError(bench.error().c_str());
  const auto dumper = bench.MakeDumper(DumpContent::kStatistics, "");
  CompareSteps(state, bench, *dumper);
}
BENCHMARK(BM_Statistics)->UseManualTime()->Unit(benchmark::kMillisecond);

// Five steps until the last byte is handed over, against dd of as many bytes: with the computing of
// the steps ("of_dd") and by the time that the dump adds to them ("of_dd_added").
// Nothing is removed in between: for seconds after it, ext4 avoids the inodes of removed files one
// by one, which takes as long as writing them.
void BM_Full(benchmark::State& state) {
  constexpr int kSteps = 5;
  Bench bench;
  if (!bench.error().empty()) return state.SkipWithError(bench.error().c_str());
  double computing = 0;
  double dumping = 0;
  double copying = 0;
  uint64_t bytes = 0;
  for (auto _ : state) {
    computing += SecondsOf([&] {
      for (int i = 0; i < kSteps; ++i) bench.Step(nullptr);
    });
    auto dumper = bench.MakeDumper(DumpContent::kTensor, "");
    DumpReport report;
    const double seconds = SecondsOf([&] {
      for (int i = 0; i < kSteps; ++i) bench.Step(dumper.get());
      report = dumper->Finish();
    });
    if (!report.error.ok()) return state.SkipWithError(report.error.ToString().c_str());
    bool copied = false;
    const std::string copy = fmt::format("{}/dd{}", bench.folder(), bytes);
    copying += SecondsOf([&] { copied = CopyLikeDd(copy, report.counts.bytes); });
    if (!copied) return state.SkipWithError("the folder cannot take a plain copy");
    dumping += seconds;
    bytes += report.counts.bytes;
    state.SetIterationTime(seconds);
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
  state.counters["of_dd"] = copying / dumping;
  state.counters["of_dd_added"] = copying / (dumping - computing);  // without the steps themselves
  state.counters["dd_MB/s"] = static_cast<double>(bytes) / copying / 1e6;
}
BENCHMARK(BM_Full)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace
}  // namespace npumesh
