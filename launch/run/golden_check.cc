#include "launch/run/golden_check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <optional>

#include "graph/engine/analyse/model_inputs.h"
#include "graph/io/weight_places.h"
#include "graph/onnx/onnx_file.h"
#include "launch/ranks/model_choice.h"
#include "runtime/base/log.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

// A tensor as the ranks send it: dtype, rank and dimensions as int64, then the bytes. Nothing at
// all for a tensor that a rank does not have.
std::string Pack(const Tensor& tensor) {
  const std::vector<int64_t>& dims = tensor.shape().dims();
  std::vector<int64_t> head = {static_cast<int64_t>(tensor.dtype()),
                               static_cast<int64_t>(dims.size())};
  head.insert(head.end(), dims.begin(), dims.end());
  std::string bytes(reinterpret_cast<const char*>(head.data()), head.size() * sizeof(int64_t));
  bytes.append(reinterpret_cast<const char*>(tensor.data()), tensor.bytes());
  return bytes;
}

std::optional<Tensor> Unpack(const std::string& bytes) {
  constexpr size_t kWord = sizeof(int64_t);
  std::array<int64_t, 2> head;
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(head.data(), bytes.data(), sizeof head);
  std::vector<int64_t> dims(static_cast<size_t>(head[1]));
  std::memcpy(dims.data(), bytes.data() + sizeof head, dims.size() * kWord);
  Tensor tensor = Tensor::Allocate({static_cast<DataType>(head[0]), Shape(std::move(dims))});
  std::memcpy(tensor.mutable_data(), bytes.data() + bytes.size() - tensor.bytes(), tensor.bytes());
  return tensor;
}

// Gathers what the ranks recorded, one tensor after the other, in the order of rank 0.
class Gatherer {
 public:
  Gatherer(RankCircle& circle, const MemorySource& mine) : circle_(circle), mine_(mine) {
    for (int rank = 0; rank < circle.size(); ++rank) {
      all_.emplace_back(fmt::format("rank {}", rank));
    }
  }

  // Collective over all ranks: one side of `key`, or of all operators when it is empty.
  Status Gather(const std::string& key, Side side) {
    std::string wanted;
    for (const SourceOperator& op : mine_.operators()) {
      if (!key.empty() && op.key != key) continue;
      for (const int index : op.indexes(side)) {
        wanted += fmt::format("{}\n{}\n{}\n{}\n", op.key, op.name, op.type, index);
      }
    }
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> lists,
                             circle_.Share(circle_.rank() == 0 ? wanted : std::string()));
    const std::vector<std::string> words = Lines(lists[0]);
    for (size_t i = 0; i + 3 < words.size(); i += 4) {
      NPUMESH_ASSIGN_OR_RETURN(const int64_t index, ParseInt(words[i + 3], 0, 65'535, "output"));
      NPUMESH_RETURN_IF_ERROR(
          GatherOne({words[i], words[i + 1], words[i + 2], {}, {}}, side, static_cast<int>(index)));
    }
    return Status();
  }

  RankSources sources() const {
    RankSources sources;
    for (const MemorySource& source : all_) sources.push_back(&source);
    return sources;
  }

 private:
  static std::vector<std::string> Lines(const std::string& text) {
    std::vector<std::string> lines;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      lines.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return lines;
  }

  Status GatherOne(const SourceOperator& op, Side side, int index) {
    const Result<Tensor> tensor = mine_.Load(op.key, side, index);
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> packed,
                             circle_.Share(tensor.ok() ? Pack(*tensor) : std::string()));
    if (circle_.rank() != 0) return Status();
    for (size_t rank = 0; rank < packed.size(); ++rank) {
      std::optional<Tensor> theirs = Unpack(packed[rank]);
      if (theirs) all_[rank].Add(op.name, op.type, side, index, *std::move(theirs));
    }
    return Status();
  }

  RankCircle& circle_;
  const MemorySource& mine_;
  std::vector<MemorySource> all_;  // by rank; filled on rank 0
};

// Runs the golden graph alone, with the inputs of this rank.
Result<std::unique_ptr<Recorder>> RunGolden(World& world, const std::string& path, Model model,
                                            RunJob& job) {
  SessionOptions options;
  options.registry = &job.registry();
  NPUMESH_ASSIGN_OR_RETURN(
      const std::unique_ptr<Session> session,
      Session::Create(world, job.memory(), std::move(model), std::move(options)));
  auto recorder = std::make_unique<Recorder>(path, 0, false);
  NPUMESH_RETURN_IF_ERROR(session->Run(job.recorded_inputs(), recorder.get()).status());
  return recorder;
}

// The file of the golden graph. Error: a package of several ranks, too, which is a common mistake.
Result<std::string> GoldenFile(const RunOptions& options) {
  Result<std::string> file = ChooseModelFile(options.golden, 0, 1);
  std::error_code ignored;
  if (file.ok() || !std::filesystem::is_directory(options.golden, ignored)) return file;
  // What the status says is for the ranks' own graphs: to start as many as the package has.
  return Error(
      file.status().code(),
      "{}: expected the unsharded graph, which one rank runs, seen a folder without it; to "
      "compare two packages, dump both and use npumesh dump compare",
      options.golden);
}

// Whether one declared shape can be the other; unknown dimensions can be any.
bool CanBe(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i] >= 0 && b[i] >= 0 && a[i] != b[i]) return false;
  }
  return true;
}

// The golden graph runs with the inputs of rank 0.
Status CheckGoldenInputs(const Model& golden, const std::vector<InputSpec>& mine) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<InputSpec> theirs, InputsOf(golden));
  constexpr const char* kAsk = "is it the unsharded graph of the same model?";
  if (theirs.size() != mine.size()) {
    return Error(Code::kInvalidArgument, "it has {} inputs, the graph of a rank {}; {}",
                 theirs.size(), mine.size(), kAsk);
  }
  for (size_t i = 0; i < mine.size(); ++i) {
    const TensorType& a = theirs[i].declared;
    const TensorType& b = mine[i].declared;
    if (a.dtype == b.dtype && CanBe(a.shape, b.shape)) continue;
    return Error(Code::kInvalidArgument,
                 "its input {} \"{}\" is {}, \"{}\" of the graph of a rank {}; {}", i,
                 theirs[i].name, a.ToString(), mine[i].name, b.ToString(), kAsk);
  }
  return Status();
}

// The golden graph, after all that can be checked before it runs.
Result<Model> LoadGolden(const std::string& file, const RunJob& job) {
  const OpRegistry& registry = job.registry();
  NPUMESH_ASSIGN_OR_RETURN(Model golden, LoadAnyModel(file, registry));
  if (const auto groups = GroupsOf(golden, registry); !groups.empty()) {
    return Error(Code::kInvalidArgument,
                 "{}: the golden graph has collectives of group \"{}\"; expected the unsharded "
                 "graph",
                 file, groups.front());
  }
  NPUMESH_RETURN_IF_ERROR(CheckGoldenInputs(golden, job.session().inputs()).WithContext(file));
  return golden;
}

Result<GoldenReport> CompareOnRankZero(World& world, const RunOptions& options, RunJob& job,
                                       const RankSources& sources, Warnings* warnings) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string file, GoldenFile(options));
  NPUMESH_ASSIGN_OR_RETURN(Model golden, LoadGolden(file, job));
  NPUMESH_ASSIGN_OR_RETURN(*warnings, CheckWeightPlaces(golden, {options.allow_outside}));
  const OpRegistry& registry = job.registry();
  const Graph& graph = job.session().model().graph;
  NPUMESH_ASSIGN_OR_RETURN(const Counterparts counterparts,
                           FindCounterparts(graph, golden.graph, registry));
  NPUMESH_ASSIGN_OR_RETURN(const OperatorOrder order, OperatorOrder::FromGraph(graph, registry));
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Recorder> whole,
                           RunGolden(world, file, std::move(golden), job));
  NPUMESH_ASSIGN_OR_RETURN(const OperatorRoundings roundings, job.Roundings());
  return CompareRanksWithWhole(sources, whole->source(), counterparts, order,
                               {.reorder = true, .roundings = &roundings});
}

// The graphs of all ranks.
Result<std::vector<Model>> LoadRanks(const World& world, const RunOptions& options,
                                     const OpRegistry& registry) {
  std::vector<Model> models;
  for (int rank = 0; rank < world.size(); ++rank) {
    NPUMESH_ASSIGN_OR_RETURN(const std::string file,
                             ChooseModelFile(options.path, rank, world.size()));
    NPUMESH_ASSIGN_OR_RETURN(Model model, LoadAnyModel(file, registry));
    models.push_back(std::move(model));
  }
  return models;
}

// Finds whom to blame for the first difference.
Status Explain(const World& world, const RunOptions& options, const RunJob& job,
               const RankSources& sources, GoldenVerdict& verdict) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Model> models,
                           LoadRanks(world, options, job.registry()));
  NPUMESH_ASSIGN_OR_RETURN(const std::string file, ChooseModelFile(options.golden, 0, 1));
  NPUMESH_ASSIGN_OR_RETURN(const Model whole, LoadAnyModel(file, job.registry()));
  RankGraphs graphs;
  for (const Model& model : models) graphs.models.push_back(&model);
  NPUMESH_ASSIGN_OR_RETURN(verdict.blame, FindGoldenBlame(graphs, whole, *verdict.report.First(),
                                                          sources, world.env(), job.registry()));
  return Status();
}

// Every rank learns how rank 0 stands: its text is "key" of the operator to ask about, or empty.
Result<std::string> FromRankZero(RankCircle& circle, const Status& status,
                                 const std::string& text) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Outcome> outcomes,
                           circle.Share(Outcome::From(status)));
  if (!status.ok()) return status;
  if (!outcomes[0].ok()) return Error(Code::kPeerLost, "rank 0: {}", outcomes[0].message);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> texts, circle.Share(text));
  return texts[0];
}

Status FindAndLoad(const RunOptions& options, const RunJob& job) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string file, GoldenFile(options));
  NPUMESH_ASSIGN_OR_RETURN(const Model golden, LoadGolden(file, job));
  NPUMESH_ASSIGN_OR_RETURN(
      const Counterparts counterparts,
      FindCounterparts(job.session().model().graph, golden.graph, job.registry()));
  if (!counterparts.empty()) return Status();
  return Error(
      Code::kInvalidArgument,
      "{}: it has no operator that the graph of a rank has, too; is it the unsharded graph "
      "of the same model?",
      file);
}

}  // namespace

Status CheckGoldenGraph(const RunOptions& options, const RunJob& job) {
  return FindAndLoad(options, job).WithContext("--golden");
}

Result<GoldenVerdict> GoldenCheck(World& world, RankCircle& circle, const RunOptions& options,
                                  RunJob& job) {
  Gatherer gatherer(circle, job.recorder()->source());
  NPUMESH_RETURN_IF_ERROR(gatherer.Gather({}, Side::kOutput));
  GoldenVerdict verdict;
  Status status;
  std::string first;
  if (world.rank() == 0) {
    Result<GoldenReport> report =
        CompareOnRankZero(world, options, job, gatherer.sources(), &verdict.warnings);
    status = report.status();
    if (report.ok()) verdict.report = *std::move(report);
    if (verdict.report.First() != nullptr) first = verdict.report.First()->key;
  }
  NPUMESH_ASSIGN_OR_RETURN(first, FromRankZero(circle, status, first));
  verdict.differs = !first.empty();
  if (!verdict.differs) return verdict;
  NPUMESH_RETURN_IF_ERROR(gatherer.Gather(first, Side::kInput));
  if (world.rank() != 0) return verdict;
  // What cannot be explained is told all the same.
  verdict.blame.ranks = verdict.report.First()->fit.OddRanks();
  const Status explained = Explain(world, options, job, gatherer.sources(), verdict);
  if (!explained.ok()) NPUMESH_WARNING("golden: {}", explained.message());
  return verdict;
}

}  // namespace npumesh
