// An export of 2 GiB of weights, which crosses the real limit: they become files, nothing is held
// in memory, every file moves the progress, and writing costs what the disk costs.
//
// The weights are made while they are read. Needs 3 GiB of disk in the temporary folder.
#include <stdlib.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "graph/export/dynamo_export.h"
#include "graph/ir/graph_builder.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

constexpr int kWeights = 16;
constexpr int64_t kRows = int64_t{1} << 13;  // of 4096 floats: 128 MiB a weight
constexpr uint64_t kMostExtraBytes = uint64_t{300} << 20;
constexpr double kMostTimesDisk = 3;  // neighbours on the disk are not counted

uint64_t PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) << 10;
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

WeightReader Pattern(uint64_t bytes) {
  return [bytes](const WeightSink& sink) -> Status {
    const std::vector<std::byte> piece(size_t{1} << 20, std::byte{0x3c});
    for (uint64_t at = 0; at < bytes; at += piece.size()) {
      NPUMESH_RETURN_IF_ERROR(sink(piece));
    }
    return Status();
  };
}

// Seconds to write as much without an export.
Result<double> DiskSeconds(const std::string& folder, uint64_t bytes) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kWeights; ++i) {
    NPUMESH_ASSIGN_OR_RETURN(const auto file,
                             SecureFile::Create(folder + "/plain", FileKind::kData));
    NPUMESH_RETURN_IF_ERROR(
        Pattern(bytes)([&](std::span<const std::byte> piece) { return file->Append(piece); }));
    NPUMESH_RETURN_IF_ERROR(file->Commit());
  }
  return SecondsSince(start);
}

Status Check(bool good, const std::string& what) {
  return good ? Status() : Error(Code::kInternal, "{}", what);
}

Status Run(World& world, const std::string& folder) {
  const TensorType type{DataType::kFloat, {kRows, 4096}};
  GraphBuilder g;
  Value sum = g.Data("x", type);
  std::vector<ExportWeight> weights;
  for (int i = 0; i < kWeights; ++i) {
    const std::string name = fmt::format("w{}", i);
    sum = g.Op("Add", {{"x1", sum}, {"x2", g.Data(name, type)}});
    weights.push_back({name, fmt::format("layer.{}", i), type, Pattern(type.bytes())});
  }
  g.Output({sum});
  NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
  NPUMESH_ASSIGN_OR_RETURN(const double disk, DiskSeconds(folder, type.bytes()));

  ExportOptions options;
  options.export_path = folder + "/package";
  size_t steps = 0;
  options.progress = [&](const ExportProgress& progress) { steps = progress.done; };
  const uint64_t before = PeakBytes();
  const auto start = std::chrono::steady_clock::now();
  NPUMESH_ASSIGN_OR_RETURN(const ExportSummary summary,
                           DynamoExport(world, std::move(model), options, std::move(weights)));
  const double seconds = SecondsSince(start);
  const uint64_t extra = PeakBytes() - before;
  std::printf("%llu bytes in %.1f s, %.1f s without export, %llu KiB more memory\n",
              static_cast<unsigned long long>(summary.weight_bytes), seconds, disk,
              static_cast<unsigned long long>(extra >> 10));
  NPUMESH_RETURN_IF_ERROR(Check(summary.external, "the weights stayed inside"));
  NPUMESH_RETURN_IF_ERROR(Check(steps == kWeights, "progress is not complete"));
  NPUMESH_RETURN_IF_ERROR(Check(extra < kMostExtraBytes, "too much memory"));
  NPUMESH_RETURN_IF_ERROR(Check(seconds < kMostTimesDisk * disk + 2, "slower than the disk"));
  std::error_code error;
  const auto size = std::filesystem::file_size(options.export_path + "/layer_15", error);
  return Check(!error && size == type.bytes(), "layer_15 has another size");
}

}  // namespace
}  // namespace npumesh

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "npumesh-2gib-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const auto statuses = npumesh::RunRanks(
      1, npumesh::Env(), [&](npumesh::World& world) { return npumesh::Run(world, folder); });
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (!statuses[0].ok()) std::fprintf(stderr, "%s\n", statuses[0].ToString().c_str());
  return npumesh::ExitCode(statuses[0]);
}
