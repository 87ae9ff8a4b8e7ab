// Models whose structure was damaged: each is refused with an error or runs; none ends the process,
// hangs, or takes memory without end.
//
//   mutate_air --first=1 --mutations=3000 --save=failed
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>

#include "graph/io/model_file.h"
#include "graph/ops/builtin_ops.h"
#include "runtime/base/log.h"
#include "runtime/base/text/parse.h"
#include "tests/fuzz/engine/child_process.h"
#include "tests/fuzz/engine/engine_run.h"
#include "tests/fuzz/engine/generator.h"
#include "tests/fuzz/engine/graph_mutator.h"
#include "tests/fuzz/engine/plain_tensor.h"
#include "tests/fuzz/engine/saved_case.h"

namespace npumesh::fuzz {
namespace {

struct MutationRun {
  uint64_t first = 1;
  uint64_t mutations = 3000;
  std::string save;  // folder; empty: nothing is written
};

MutationRun& Asked() {
  static MutationRun asked;
  return asked;
}

constexpr uint64_t kMutationsOfAChild = 300;
// Each generated graph is damaged so often before the next one is made.
constexpr uint64_t kMutationsOfAGraph = 10;
constexpr int64_t kMostNumber = int64_t{1} << 50;
constexpr uint64_t kMostBytes = uint64_t{4} << 30;

// Models that others wrote, where they are at hand.
const std::vector<std::string>& Samples() {
  static const std::vector<std::string> paths = [] {
    std::vector<std::string> found;
    std::error_code failed;
    const std::filesystem::path folder(NPUMESH_SHARED_DIR "/samples");
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, failed)) {
      if (entry.path().extension() == ".air") found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }();
  return paths;
}

// Zeros for each input; unknown dimensions are 2.
std::vector<Tensor> Fed(const Model& model) {
  std::vector<Tensor> fed;
  const Result<std::vector<InputSpec>> inputs = InputsOf(model);
  if (!inputs.ok()) return fed;
  for (const InputSpec& input : *inputs) {
    Extents dims = input.declared.shape.has_rank() ? input.declared.shape.dims() : Extents{2};
    for (int64_t& extent : dims) extent = extent < 0 ? 2 : extent;
    const TensorType type{input.declared.dtype, Shape(dims)};
    const bool small =
        type.shape.Check().ok() && type.shape.elements() < (1 << 20) && BitsOf(type.dtype) > 0;
    fed.push_back(small ? Tensor::Allocate(type) : Tensor());
  }
  return fed;
}

FuzzCase Undamaged(uint64_t seed) {
  const uint64_t graph = seed / kMutationsOfAGraph;
  if (graph % 5 != 0 || Samples().empty()) return Generate(graph);
  FuzzCase made;
  Result<Model> model = LoadModel(Samples()[graph / 5 % Samples().size()]);
  if (!model.ok()) return Generate(graph);
  made.model = std::move(*model);
  return made;
}

// The case with the model damaged, as it comes back from the bytes of a file. nullopt: such a model
// cannot be written.
std::optional<FuzzCase> Damaged(uint64_t seed, FuzzCase whole, std::string& did) {
  GraphMutator mutator(seed);
  FuzzCase made = std::move(whole);
  made.model = mutator.Mutate(std::move(made.model), did);
  Result<std::string> bytes = SerializeAir(made.model);
  if (!bytes.ok()) return std::nullopt;
  Result<Model> read = ParseModel(std::move(*bytes), made.model.path);
  if (!read.ok()) return std::nullopt;
  made.model = std::move(*read);
  const Result<std::vector<InputSpec>> inputs = InputsOf(made.model);
  const bool fits = !made.steps.empty() && inputs.ok() && inputs->size() == made.steps[0].size();
  if (!fits) made.steps.assign(1, Fed(made.model));
  made.parameters.clear();
  return made;
}

// A loop whose condition is damaged may be right never to end.
bool MayLoop(const Model& model) {
  const auto is_loop = [](const Node& node) {
    return !node.removed && node.type.find("While") != std::string::npos;
  };
  const auto& nodes = model.graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), is_loop);
}

// One rank would wait for others.
bool NeedsOthers(const Model& model) {
  for (const std::string& group : GroupsOf(model, BuiltinOps())) {
    if (group != "hccl_world_group" && !group.empty()) return true;
  }
  return false;
}

enum class End : char { kRefused = 'r', kRan = 'o', kSkipped = 's' };

// Whether errors are told to the world, which is spent then.
bool TellsOthers(const Model& model) {
  return !GroupsOf(model, BuiltinOps()).empty();
}

End RunDamaged(World& world, DeviceMemory& memory, uint64_t seed, const FuzzCase& whole,
               bool& fresh) {
  std::string did;
  const std::optional<FuzzCase> made = Damaged(seed, whole, did);
  if (!made) return End::kRefused;
  if (MayLoop(made->model) || NeedsOthers(made->model)) return End::kSkipped;
  const std::vector<OptionSet>& sets = OptionSets();
  const Status status = RunInEngine(world, memory, *made, sets[seed % sets.size()]).status;
  fresh = status.ok() || !TellsOthers(made->model);
  return status.ok() ? End::kRan : End::kRefused;
}

// Says each seed and how it ended.
void RunAloud(uint64_t first, uint64_t end, const Say& say) {
  FuzzCase whole;
  uint64_t graph = UINT64_MAX;
  for (uint64_t seed = first; seed < end;) {
    const Status device = WithDevice([&](World& world, DeviceMemory& memory) {
      for (bool fresh = true; seed < end && fresh; ++seed) {
        say(std::to_string(seed));
        if (seed / kMutationsOfAGraph != graph) whole = Undamaged(seed);
        graph = seed / kMutationsOfAGraph;
        say(std::string(1, static_cast<char>(RunDamaged(world, memory, seed, whole, fresh))));
      }
    });
    if (!device.ok()) return say(device.ToString());
  }
}

struct Counts {
  uint64_t ran = 0;
  uint64_t refused = 0;
  uint64_t skipped = 0;
};

// The mutations of [first, end) up to one that ends the process, which is named in `failed`.
void RunMutations(uint64_t& first, uint64_t end, Counts& counts, std::string& failed) {
  ChildLimits limits;
  limits.address_space = kMostBytes;
  const uint64_t start = first;
  const ChildReport report = RunInChild([&](const Say& say) { RunAloud(start, end, say); }, limits);
  uint64_t seed = first;
  for (const std::string& said : report.said) {
    if (said == "o") ++counts.ran;
    if (said == "r") ++counts.refused;
    if (said == "s") ++counts.skipped;
    const Result<int64_t> number = ParseInt(said, 0, kMostNumber, "seed");
    if (number.ok()) seed = static_cast<uint64_t>(*number);
  }
  failed = report.end;
  first = report.end.empty() ? end : seed + 1;
}

void TellOf(uint64_t seed, const std::string& end) {
  std::string did;
  const std::optional<FuzzCase> made = Damaged(seed, Undamaged(seed), did);
  const std::vector<OptionSet>& sets = OptionSets();
  const std::string why = fmt::format(
      "mutation {} ({}) ends with {} under [{}]; again: mutate_air --first={} "
      "--mutations=1",
      seed, did, end, sets[seed % sets.size()].name, seed);
  ADD_FAILURE() << why;
  if (Asked().save.empty() || !made) return;
  EXPECT_TRUE(SaveCase(*made, fmt::format("{}/mutation{}", Asked().save, seed), why).ok());
}

TEST(MutateAir, EveryDamagedModelIsRefusedOrRuns) {
  Counts counts;
  const uint64_t last = Asked().first + Asked().mutations;
  uint64_t failures = 0;
  for (uint64_t seed = Asked().first; seed < last;) {
    std::string failed;
    RunMutations(seed, std::min(seed + kMutationsOfAChild, last), counts, failed);
    if (failed.empty()) continue;
    ++failures;
    TellOf(seed - 1, failed);
  }
  std::cout << Asked().mutations << " mutations from " << Asked().first << ": " << counts.ran
            << " ran, " << counts.refused << " were refused, " << counts.skipped
            << " loop or need other ranks, " << failures << " ended the process\n";
  EXPECT_EQ(failures, 0u);
}

bool TakeNumber(std::string_view argument, std::string_view name, uint64_t& number) {
  if (argument.substr(0, name.size()) != name) return false;
  const Result<int64_t> value = ParseInt(argument.substr(name.size()), 0, kMostNumber, name);
  if (value.ok()) number = static_cast<uint64_t>(*value);
  return value.ok();
}

bool Take(std::string_view argument) {
  constexpr std::string_view kSave = "--save=";
  if (argument.substr(0, kSave.size()) == kSave) {
    Asked().save = argument.substr(kSave.size());
    return true;
  }
  return TakeNumber(argument, "--first=", Asked().first) ||
         TakeNumber(argument, "--mutations=", Asked().mutations);
}

}  // namespace
}  // namespace npumesh::fuzz

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (npumesh::fuzz::Take(argv[i])) continue;
    std::cerr << "unknown argument " << argv[i]
              << "; expected --first=N, --mutations=N or --save=FOLDER\n";
    return 2;
  }
  return RUN_ALL_TESTS();
}
