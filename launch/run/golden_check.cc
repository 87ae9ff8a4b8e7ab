#include "launch/run/golden_check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "graph/compare/replay.h"
#include "graph/io/weight_places.h"
#include "graph/onnx/onnx_file.h"
#include "launch/ranks/model_choice.h"
#include "runtime/base/log.h"
#include "runtime/base/parse.h"

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

Result<GoldenReport> CompareOnRankZero(World& world, const RunOptions& options, RunJob& job,
                                       const RankSources& sources, Warnings* warnings) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string file, ChooseModelFile(options.golden, 0, 1));
  NPUMESH_ASSIGN_OR_RETURN(Model golden, LoadAnyModel(file, job.registry()));
  NPUMESH_ASSIGN_OR_RETURN(*warnings, CheckWeightPlaces(golden, {options.allow_outside}));
  const OpRegistry& registry = job.registry();
  if (const auto groups = GroupsOf(golden, registry); !groups.empty()) {
    return Error(Code::kInvalidArgument,
                 "{}: the golden graph has collectives of group \"{}\"; expected the unsharded "
                 "graph",
                 file, groups.front());
  }
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

// The rank whose operator `key` computes something else than a replay on its own inputs; -1: none.
Result<int> RankByReplay(const World& world, const RunJob& job, const RankGraphs& graphs,
                         const std::string& key, const RankSources& sources) {
  ReplayOptions replay;
  replay.only = {key};
  replay.collectives = false;
  replay.registry = &job.registry();
  NPUMESH_ASSIGN_OR_RETURN(const Replayed replayed, Replay(graphs, sources, world.env(), replay));
  for (size_t rank = 0; rank < replayed.ranks.size(); ++rank) {
    if (replayed.ranks[rank].First() != nullptr) return static_cast<int>(rank);
  }
  return -1;
}

// What explains the first difference: a wrong shard of a weight, or else a rank that does not
// compute what it was given.
Status Explain(const World& world, const RunOptions& options, const RunJob& job,
               const RankSources& sources, GoldenVerdict& verdict) {
  const GoldenRow& first = *verdict.report.First();
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Model> models,
                           LoadRanks(world, options, job.registry()));
  NPUMESH_ASSIGN_OR_RETURN(const std::string file, ChooseModelFile(options.golden, 0, 1));
  NPUMESH_ASSIGN_OR_RETURN(const Model whole, LoadAnyModel(file, job.registry()));
  RankGraphs graphs;
  for (const Model& model : models) graphs.models.push_back(&model);
  NPUMESH_ASSIGN_OR_RETURN(verdict.shard, FindWrongShard(graphs.models, whole, first.key,
                                                         first.whole_key, job.registry()));
  verdict.rank = first.fit.RankToBlame();
  if (verdict.rank < 0 && verdict.shard) verdict.rank = verdict.shard->rank;
  if (verdict.rank >= 0) return Status();
  NPUMESH_ASSIGN_OR_RETURN(verdict.rank, RankByReplay(world, job, graphs, first.key, sources));
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

}  // namespace

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
  const Status explained = Explain(world, options, job, gatherer.sources(), verdict);
  if (!explained.ok()) NPUMESH_WARNING("golden: {}", explained.message());
  return verdict;
}

}  // namespace npumesh
