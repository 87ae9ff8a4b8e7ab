// The sample graphs, end to end: every rank's file, inputs and weights as exported, outputs against
// the golden values. Ranks are threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "graph/io/model_file.h"
#include "graph/io/npy.h"
#include "graph/session/group_table.h"
#include "runtime/base/text/json.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

fs::path SamplesFolder() {
  return fs::path(NPUMESH_SHARED_DIR) / "samples";
}

// One exported model with its description.
struct Sample {
  fs::path folder;
  Json meta;

  int world_size() const { return meta["world_size"].get<int>(); }
  const Json& rank(int r) const { return meta["ranks"][static_cast<size_t>(r)]; }

  Result<Tensor> Load(std::string_view kind, int r, int64_t index, const Json& what) const {
    const std::string path = folder / kind / fmt::format("rank_{}/{}.npy", r, index);
    NPUMESH_ASSIGN_OR_RETURN(const Tensor stored, ReadNpy(path));
    const std::string dtype = what["dtype"].get<std::string>();
    return ReinterpretAs(stored, DataTypeFromName(dtype).value_or(DataType::kUndefined));
  }
};

std::vector<Sample> FindSamples() {
  std::vector<Sample> samples;
  if (!fs::exists(SamplesFolder())) return samples;
  for (const auto& entry : fs::recursive_directory_iterator(SamplesFolder())) {
    if (entry.path().filename() != "meta.json") continue;
    std::ifstream file(entry.path());
    samples.push_back({entry.path().parent_path(), Json::parse(file)});
  }
  return samples;
}

// |seen - golden| <= atol + rtol * |golden|; exactly equal where both are zero.
Status Compare(const Tensor& seen, const Tensor& golden, const Json& tolerance) {
  if (seen.type() != golden.type()) {
    return Error(Code::kInternal, "expected {}, seen {}", golden.type().ToString(),
                 seen.type().ToString());
  }
  const double rtol = tolerance["rtol"].get<double>();
  const double atol = tolerance["atol"].get<double>();
  if (rtol + atol == 0.0 || seen.dtype() != DataType::kFloat) {
    if (std::memcmp(seen.data(), golden.data(), seen.bytes()) == 0) return Status();
    return Error(Code::kInternal, "{} differs", seen.type().ToString());
  }
  for (size_t i = 0; i < seen.as<float>().size(); ++i) {
    const double s = seen.as<float>()[i];
    const double g = golden.as<float>()[i];
    if (!(std::abs(s - g) <= atol + rtol * std::abs(g))) {
      return Error(Code::kInternal, "element {}: expected {}, seen {}", i, g, s);
    }
  }
  return Status();
}

Result<std::vector<Tensor>> Inputs(const Sample& sample, int rank,
                                   const std::vector<InputSpec>& specs) {
  std::vector<Tensor> inputs;
  for (const InputSpec& spec : specs) {
    for (const Json& input : sample.rank(rank)["inputs"]) {
      if (input["data_index"].get<int64_t>() != spec.index) continue;
      NPUMESH_ASSIGN_OR_RETURN(Tensor tensor, sample.Load("inputs", rank, spec.index, input));
      inputs.push_back(std::move(tensor));
    }
  }
  return inputs;
}

// What the session took of the device is what the plan says, where there is one plan only.
Status CheckMemory(Session& session, const std::vector<Tensor>& inputs, uint64_t used) {
  NPUMESH_ASSIGN_OR_RETURN(const CompiledModel* const plan, session.Prepare(inputs));
  if (session.stats().plans > 1 || used == plan->device_bytes()) return Status();
  return Error(Code::kInternal, "{} bytes of device memory, the plan says {}", used,
               plan->device_bytes());
}

// Twice, since the second run meets warm buffers.
Status RunRank(const Sample& sample, bool fuses, bool overlap, World& world, DeviceMemory& memory) {
  const int rank = world.rank();
  const std::string air = sample.rank(rank)["air"].get<std::string>();
  NPUMESH_ASSIGN_OR_RETURN(Model model, LoadModel(sample.folder / air));
  SessionOptions options;
  if (fuses) options.compile.fuses = [](std::string_view) { return true; };
  options.compile.overlap_collectives = overlap;
  NPUMESH_ASSIGN_OR_RETURN(options.groups, ReadGroupTable(sample.folder));
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(world, memory, std::move(model), std::move(options)));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs,
                           Inputs(sample, rank, session->inputs()));
  const uint64_t used_before = memory.used_bytes();
  for (int run = 0; run < 2; ++run) {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run(inputs));
    const Json& declared = sample.rank(rank)["outputs"];
    if (outputs.size() != declared.size()) {
      return Error(Code::kInternal, "expected {} outputs, seen {}", declared.size(),
                   outputs.size());
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      NPUMESH_ASSIGN_OR_RETURN(const Tensor golden,
                               sample.Load("golden", rank, static_cast<int64_t>(i), declared[i]));
      NPUMESH_RETURN_IF_ERROR(Compare(outputs[i], golden, sample.meta["tolerance"])
                                  .WithContext(fmt::format("run {} output {}", run, i)));
    }
  }
  return CheckMemory(*session, inputs, memory.used_bytes() - used_before);
}

// The types of the steps of the first plan, fused.
Result<std::vector<std::string>> FusedSteps(const Sample& sample, World& world,
                                            DeviceMemory& memory) {
  const std::string air = sample.rank(world.rank())["air"].get<std::string>();
  NPUMESH_ASSIGN_OR_RETURN(Model model, LoadModel(sample.folder / air));
  SessionOptions options;
  options.compile.fuses = [](std::string_view) { return true; };
  NPUMESH_ASSIGN_OR_RETURN(options.groups, ReadGroupTable(sample.folder));
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(world, memory, std::move(model), std::move(options)));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs,
                           Inputs(sample, world.rank(), session->inputs()));
  NPUMESH_ASSIGN_OR_RETURN(const CompiledModel* const plan, session->Prepare(inputs));
  std::vector<std::string> types;
  for (const Step& step : plan->steps()) types.push_back(step.type);
  return types;
}

// Attention as TorchAir exports it is one step.
TEST(SamplesOfLlama, AttentionIsFused) {
  int seen = 0;
  for (const Sample& sample : FindSamples()) {
    if (sample.folder.parent_path().filename() != "c_llama_block") continue;
    SCOPED_TRACE(sample.folder.filename().string());
    ++seen;
    const auto check = [&](World& world, DeviceMemory& memory) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> steps,
                               FusedSteps(sample, world, memory));
      const std::string attention =
          "Transpose+BatchMatMul+RealDiv+Add+SoftmaxV2+Transpose+BatchMatMul";
      std::vector<std::string> softmax;
      for (const std::string& step : steps) {
        if (step.find("SoftmaxV2") != std::string::npos) softmax.push_back(step);
      }
      if (softmax == std::vector<std::string>{attention}) return Status();
      return Error(Code::kInternal, "the steps are {}", fmt::join(steps, ", "));
    };
    for (const Status& status : OnRanks(sample.world_size(), check)) {
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
  }
  if (seen == 0) GTEST_SKIP() << "no sample graphs in " << SamplesFolder();
}

class SamplesTest : public testing::TestWithParam<bool> {};

TEST_P(SamplesTest, OutputsMatchTheGoldenValues) {
  const std::vector<Sample> samples = FindSamples();
  if (samples.empty()) GTEST_SKIP() << "no sample graphs in " << SamplesFolder();
  for (const Sample& sample : samples) {
    for (const bool overlap : {false, true}) {
      SCOPED_TRACE(fs::relative(sample.folder, SamplesFolder()).string());
      const std::vector<Status> statuses =
          OnRanks(sample.world_size(), [&](World& world, DeviceMemory& memory) {
            return RunRank(sample, GetParam(), overlap, world, memory);
          });
      for (size_t rank = 0; rank < statuses.size(); ++rank) {
        EXPECT_TRUE(statuses[rank].ok())
            << "rank " << rank << (overlap ? " overlapping: " : ": ") << statuses[rank].ToString();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, SamplesTest, testing::Bool(),
                         [](const auto& fuses) { return fuses.param ? "Fused" : "AsWritten"; });

}  // namespace
}  // namespace npumesh
