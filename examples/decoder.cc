// A Llama-style decoder, split over all ranks, against the same decoder on one.
//
//   mpirun -n 4 build/release/examples/decoder
//   mpirun -n 2 build/release/examples/decoder --dtype bfloat16 --out decoder/
//
// Each rank builds its part of the model; together they export a package, load it back and run it.
// Rank 0 also runs the whole model alone; every rank compares its output with that. Exit code 0
// only if all match.
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>

#include "graph/export/dynamo_export.h"
#include "graph/io/model_file.h"
#include "graph/session/session.h"
#include "launch/samples/decoder_model.h"
#include "runtime/device/device_memory.h"
#include "runtime/world/gathering.h"
#include "runtime/world/world.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kFolderKey = 0x64656364;  // tells the gathering from the groups of graphs

struct Options {
  std::string dtype = "float32";
  // Folder of the package, which stays; empty: a temporary one.
  std::string out;
};

// A folder that disappears with this object.
class TemporaryFolder {
 public:
  static Result<std::unique_ptr<TemporaryFolder>> Create() {
    std::string path = (fs::temp_directory_path() / "npumesh-decoder-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) return Error(Code::kIo, "cannot create {}", path);
    return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(path));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// How far a dtype may be from the unsplit model: partial sums are rounded to the dtype before they
// are added, and outputs, normalised, are of the order of 1.
double ToleranceOf(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat16:
      return 0.02;
    case DataType::kBfloat16:
      return 0.15;
    default:
      return 1e-4;
  }
}

// What one rank has to say at the end.
struct Row {
  uint64_t operators = 0;
  uint64_t collectives = 0;
  double compute_ms = 0;
  double collective_ms = 0;
  double max_abs_diff = 0;
};

struct RunResult {
  Tensor output;
  SessionStats stats;
};

Result<RunResult> RunModel(World& world, DeviceMemory& memory, Model model, const Tensor& input) {
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(world, memory, std::move(model)));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run({input}));
  return RunResult{outputs[0], session->stats()};
}

// Collective over all ranks. Through a package, as a model would come from elsewhere.
Result<Model> ExportAndLoad(World& world, Model model, const std::string& folder) {
  ExportOptions options;
  options.export_path = folder;
  options.export_name = "decoder_rank";
  options.distributed = true;
  options.auto_atc_config_generated = true;
  NPUMESH_ASSIGN_OR_RETURN(const ExportSummary package,
                           DynamoExport(world, std::move(model), options));
  NPUMESH_ASSIGN_OR_RETURN(Model loaded, LoadModel(package.air));
  loaded.path = package.air;
  return loaded;
}

// Collective over all ranks: the output of the unsplit model, which only rank 0 computes.
Result<std::vector<float>> Reference(World& world, DeviceMemory& memory, PlainGroup* everyone,
                                     const DecoderConfig& config) {
  std::vector<float> expected(static_cast<size_t>(config.sequence) * config.hidden);
  if (world.rank() == 0) {
    NPUMESH_ASSIGN_OR_RETURN(Model whole, BuildDecoder(config, 0, 1));
    NPUMESH_ASSIGN_OR_RETURN(const RunResult result,
                             RunModel(world, memory, std::move(whole), DecoderInput(config)));
    expected = ToFloats(result.output);
  }
  if (everyone != nullptr) {
    NPUMESH_RETURN_IF_ERROR(everyone->Broadcast(expected.data(), expected.size() * sizeof(float), 0,
                                                Deadline::Never()));
  }
  return expected;
}

double MaxAbsDiff(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double diff = std::abs(static_cast<double>(a[i]) - b[i]);
    most = std::isnan(diff) ? INFINITY : std::max(most, diff);
    if (std::isinf(most)) break;
  }
  return most;
}

// Collective over all ranks. One row of each, by rank.
Result<std::vector<Row>> RunDecoder(World& world, const DecoderConfig& config,
                                    const std::string& folder) {
  std::vector<int> ranks(static_cast<size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::unique_ptr<PlainGroup> everyone;
  if (world.size() > 1) {
    NPUMESH_ASSIGN_OR_RETURN(everyone, world.transport().Group(ranks, 1, Deadline::Never()));
  }
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory, DeviceMemory::Create(world));

  NPUMESH_ASSIGN_OR_RETURN(Model built, BuildDecoder(config, world.rank(), world.size()));
  NPUMESH_ASSIGN_OR_RETURN(Model model, ExportAndLoad(world, std::move(built), folder));
  NPUMESH_ASSIGN_OR_RETURN(const RunResult split,
                           RunModel(world, *memory, std::move(model), DecoderInput(config)));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<float> expected,
                           Reference(world, *memory, everyone.get(), config));

  const RunStats& run = split.stats.run;
  const Row mine{run.steps, run.collectives, run.compute_seconds * 1e3,
                 run.collective_seconds * 1e3, MaxAbsDiff(ToFloats(split.output), expected)};
  std::vector<Row> rows(ranks.size(), mine);
  if (everyone) {
    NPUMESH_RETURN_IF_ERROR(
        everyone->AllGather(&mine, rows.data(), sizeof(mine), Deadline::Never()));
  }
  return rows;
}

// True when every rank matches.
bool PrintTable(const DecoderConfig& config, const std::vector<Row>& rows) {
  const double tolerance = ToleranceOf(config.dtype);
  fmt::print("decoder: {} layers, hidden {}, {} heads, sequence {}, {}, {} rank{}\n", config.layers,
             config.hidden, config.heads, config.sequence, Name(config.dtype), rows.size(),
             rows.size() == 1 ? "" : "s");
  fmt::print("{:>5} {:>10} {:>12} {:>12} {:>15} {:>14}\n", "rank", "operators", "collectives",
             "compute ms", "collectives ms", "max abs diff");
  double worst = 0;
  for (size_t rank = 0; rank < rows.size(); ++rank) {
    const Row& row = rows[rank];
    worst = std::max(worst, row.max_abs_diff);
    fmt::print("{:>5} {:>10} {:>12} {:>12.3f} {:>15.3f} {:>14.3g}{}\n", rank, row.operators,
               row.collectives, row.compute_ms, row.collective_ms, row.max_abs_diff,
               row.max_abs_diff <= tolerance ? "" : "  DIFFERS");
  }
  fmt::print("times are CPU time of this machine, not of an NPU\n");
  const bool all_match = worst <= tolerance;
  fmt::print("{} against 1 rank: {}, max abs diff {:.3g}, tolerance {:g}\n",
             rows.size() == 1 ? "1 rank" : fmt::format("{} ranks", rows.size()),
             all_match ? "matches" : "DIFFERS", worst, tolerance);
  return all_match;
}

Result<bool> RunOn(World& world, const Options& options) {
  DecoderConfig config;
  config.dtype = DataTypeFromName(options.dtype).value_or(DataType::kUndefined);
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<TemporaryFolder> temporary,
                           TemporaryFolder::Create());
  // The ranks export into one folder: that of rank 0, unless the user names one.
  NPUMESH_ASSIGN_OR_RETURN(const auto gathering, Gathering::Create(world, kFolderKey));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> folders,
                           gathering->Share(options.out.empty() ? temporary->path() : options.out));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Row> rows, RunDecoder(world, config, folders[0]));
  // No rank removes the package while others may still read it.
  NPUMESH_RETURN_IF_ERROR(gathering->AgreeOn(Status()));
  std::error_code ignored;
  if (options.out.empty()) fs::remove_all(folders[0], ignored);  // on hosts of their own disks, too
  if (world.rank() == 0) return PrintTable(config, rows);
  return std::all_of(rows.begin(), rows.end(),
                     [&](const Row& row) { return row.max_abs_diff <= ToleranceOf(config.dtype); });
}

int Fail(const Status& status) {
  fmt::print(stderr, "decoder: {}\n", status.message());
  return ExitCode(status);
}

int Run(const Options& options) {
  const Result<Env> env = Env::FromProcess();
  if (!env.ok()) return Fail(env.status());
  const Result<std::unique_ptr<World>> world = World::Start(*env);
  if (!world.ok()) return Fail(world.status());
  const Result<bool> matches = RunOn(**world, options);
  if (!matches.ok()) {
    // A rank that fails says so before it leaves; the others do not wait for it.
    (*world)->board().PublishFailure(matches.status());
    return Fail(matches.status().WithContext(
        fmt::format("rank {} of {}", (*world)->rank(), (*world)->size())));
  }
  const Status end = (*world)->Shutdown();
  if (!end.ok()) return Fail(end);
  return *matches ? 0 : 1;
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  CLI::App app("A decoder over all ranks, compared with the same decoder on one", "decoder");
  npumesh::Options options;
  app.add_option("--dtype", options.dtype, "float32, float16 or bfloat16")
      ->check(CLI::IsMember({"float32", "float16", "bfloat16"}))
      ->capture_default_str();
  app.add_option("--out", options.out, "Folder of the package; default: temporary");
  app.footer("Example:\n  mpirun -n 4 decoder --dtype bfloat16");
  CLI11_PARSE(app, argc, argv);
  return npumesh::Run(options);
}
