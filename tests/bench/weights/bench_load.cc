// Loading weights beside a plain read of the same files, in the same run.
//
// Eight files of 64 MiB, not sparse, are written, dropped from the page cache and read once by
// read(2) into one buffer; dropped again and loaded by a session that compiles and packs a chain of
// products. The counter `ratio` is the time of loading over that of reading: 1 is the speed of the
// disk. `cached_ratio` is the same with the files in the page cache, where loading costs what
// packing does. The folder is NPUMESH_BENCH_FOLDER, or that of temporary files.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <omp.h>
#include <unistd.h>

#include <filesystem>

#include "graph/ir/graph_builder.h"
#include "graph/session/session.h"
#include "tests/bench/timing.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

constexpr int kFiles = 8;
constexpr uint64_t kFileBytes = uint64_t{64} << 20;
constexpr uint64_t kPiece = uint64_t{4} << 20;
constexpr int kRounds = 3;

class WeightFiles {
 public:
  WeightFiles() {
    const char* wanted = std::getenv("NPUMESH_BENCH_FOLDER");  // NOLINT: before any thread
    folder_ = (wanted != nullptr ? fs::path(wanted) : fs::temp_directory_path()) /
              fmt::format("npumesh_weights_{}", getpid());
    fs::create_directories(folder_);
  }
  ~WeightFiles() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string path(int i) const { return (folder_ / fmt::format("w{}", i)).string(); }

  bool Write() const {
    std::vector<uint16_t> piece(kPiece / sizeof(uint16_t));
    uint32_t seed = 1;
    for (int i = 0; i < kFiles; ++i) {
      const int fd = open(path(i).c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
      bool ok = fd >= 0;
      for (uint64_t done = 0; ok && done < kFileBytes; done += kPiece) {
        // Numbers between 2^-15 and 2^-1 in float16, and small ones in float32.
        for (uint16_t& value : piece) {
          seed = seed * 1664525 + 1013904223;
          value = static_cast<uint16_t>(seed >> 16 & 0x37ff);
        }
        ok = write(fd, piece.data(), kPiece) == static_cast<ssize_t>(kPiece);
      }
      ok = ok && fsync(fd) == 0;
      if (fd >= 0) close(fd);
      if (!ok) return false;
    }
    return true;
  }

  // Clean pages of a file leave the page cache when asked to.
  void Drop() const {
    for (int i = 0; i < kFiles; ++i) {
      const int fd = open(path(i).c_str(), O_RDONLY);
      if (fd < 0) continue;
      posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
      close(fd);
    }
  }

  void Read() const {
    std::vector<char> buffer(kPiece);
    for (int i = 0; i < kFiles; ++i) {
      const int fd = open(path(i).c_str(), O_RDONLY);
      if (fd < 0) continue;
      posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
      while (read(fd, buffer.data(), buffer.size()) > 0) benchmark::DoNotOptimize(buffer.data());
      close(fd);
    }
  }

 private:
  fs::path folder_;
};

// y = x w0 w1 .., every second weight stored transposed; float32 [4096, 4096] or float16 [8192,
// 4096] and back.
Result<Model> Chain(const WeightFiles& files, DataType dtype) {
  GraphBuilder g("chain");
  const int64_t narrow = 4096;
  const int64_t wide =
      static_cast<int64_t>(kFileBytes * 8 / static_cast<uint64_t>(BitsOf(dtype))) / narrow;
  Value x = g.Data("x", {dtype, {1, wide}});
  for (int i = 0; i < kFiles; ++i) {
    const Value w = g.FileConstant(fmt::format("w{}", i), {dtype, {wide, narrow}}, files.path(i));
    x = g.Op("MatMul", {{"x1", x}, {"x2", w}}, {{"transpose_x2", AttrValue::Bool(i % 2 == 1)}});
  }
  g.Output({x});
  return g.Build();
}

// Seconds until the plan is made: everything mapped and packed.
Result<double> LoadSeconds(World& world, const WeightFiles& files, DataType dtype) {
  NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
  NPUMESH_ASSIGN_OR_RETURN(Model model, Chain(files, dtype));
  const Tensor x = Tensor::Allocate(
      {dtype,
       {1, static_cast<int64_t>(kFileBytes * 8 / static_cast<uint64_t>(BitsOf(dtype))) / 4096}});
  Status status;
  const double seconds = SecondsOf([&] {
    status = [&]() -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const auto session,
                               Session::Create(world, *memory, std::move(model), SessionOptions()));
      return session->Prepare({x}).status();
    }();
  });
  NPUMESH_RETURN_IF_ERROR(status);
  return seconds;
}

void LoadBesideRead(benchmark::State& state) {
  omp_set_num_threads(1);
  const auto dtype = state.range(0) == 16 ? DataType::kFloat16 : DataType::kFloat;
  const WeightFiles files;
  if (!files.Write()) return state.SkipWithError("the weights cannot be written");
  Env env;
  env.hbm_bytes = uint64_t{256} << 20;
  const Result<std::unique_ptr<World>> world = World::Start(env);
  if (!world.ok()) return state.SkipWithError(world.status().ToString().c_str());
  for (auto _ : state) {
    std::vector<double> loads, reads, cached_loads, cached_reads;
    for (int round = 0; round < kRounds; ++round) {
      for (auto* times : {&reads, &cached_reads}) {
        if (times == &reads) files.Drop();
        times->push_back(SecondsOf([&] { files.Read(); }));
      }
      for (auto* times : {&loads, &cached_loads}) {
        if (times == &loads) files.Drop();
        const Result<double> seconds = LoadSeconds(**world, files, dtype);
        if (!seconds.ok()) return state.SkipWithError(seconds.status().ToString().c_str());
        times->push_back(*seconds);
      }
    }
    const double megabytes = kFiles * kFileBytes * 1e-6;
    state.SetIterationTime(MedianOf(loads));
    state.counters["load_MBps"] = megabytes / MedianOf(loads);
    state.counters["read_MBps"] = megabytes / MedianOf(reads);
    state.counters["ratio"] = MedianOf(loads) / MedianOf(reads);
    state.counters["cached_ratio"] = MedianOf(cached_loads) / MedianOf(cached_reads);
  }
}
BENCHMARK(LoadBesideRead)
    ->ArgName("bits")
    ->Arg(32)
    ->Arg(16)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace npumesh
