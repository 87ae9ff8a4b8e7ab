#include "graph/shard/shard_proof.h"

#include <algorithm>
#include <memory>

#include "graph/compare/sources/recorder.h"
#include "graph/session/session.h"
#include "runtime/device/device_memory.h"

namespace npumesh {
namespace {

// The outputs of a step, then what each RefData holds after it.
using Outputs = std::vector<Tensor>;

// A RefData of the whole graph.
struct Held {
  int position = 0;  // among the inputs
  std::string name;
};

// What ranks computed in each step, by rank.
struct Run {
  std::vector<std::vector<Outputs>> outputs;       // by rank, then step
  std::vector<std::unique_ptr<Recorder>> records;  // by rank; null where nothing is recorded
};

Tensor CopyOf(const Tensor& tensor) {
  Tensor copy = Tensor::Allocate(tensor.type());
  std::copy_n(tensor.data(), tensor.bytes(), copy.mutable_data());
  return copy;
}

class Prover {
 public:
  Prover(const Model& whole, const ShardedModel& sharded, const OpRegistry& registry,
         const Env& env, const std::vector<std::vector<Tensor>>& steps)
      : whole_(whole),
        sharded_(sharded),
        registry_(registry),
        env_(env),
        steps_(steps),
        layouts_(sharded.outputs) {}

  Result<ShardProof> Prove();

 private:
  int ranks() const { return static_cast<int>(sharded_.models.size()); }
  std::vector<Tensor> InputsOf(size_t step, int rank) const;
  // `recorded`: the step of which all tensors are kept.
  Result<Run> RunAll(int count, std::optional<size_t> recorded) const;
  Status RunOne(World& world, int count, std::optional<size_t> recorded, Run* run) const;
  std::optional<ShardDifference> Compare(const Run& whole, const Run& parts,
                                         ShardProof* proof) const;
  Status FindNode(ShardDifference* difference) const;

  const Model& whole_;
  const ShardedModel& sharded_;
  const OpRegistry& registry_;
  const Env& env_;
  const std::vector<std::vector<Tensor>>& steps_;
  std::vector<Held> held_;
  std::vector<ShardLayout> layouts_;  // of Outputs
};

std::vector<Tensor> Prover::InputsOf(size_t step, int rank) const {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < steps_[step].size(); ++i) {
    const Tensor& whole = steps_[step][i];
    const bool given = whole.dtype() != DataType::kUndefined;
    inputs.push_back(given ? PieceOf(whole, sharded_.inputs[i], rank, ranks()) : whole);
  }
  return inputs;
}

Status Prover::RunOne(World& world, int count, std::optional<size_t> recorded, Run* run) const {
  const int rank = world.rank();
  const auto at = static_cast<size_t>(rank);
  NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
  SessionOptions options;
  options.registry = &registry_;
  if (recorded) options.compile.fuses = nullptr;
  const Model& model = count == 1 ? whole_ : sharded_.models[at];
  NPUMESH_ASSIGN_OR_RETURN(const auto session,
                           Session::Create(world, *memory, model, std::move(options)));
  for (size_t step = 0; step < steps_.size(); ++step) {
    const std::vector<Tensor> inputs = count == 1 ? steps_[step] : InputsOf(step, rank);
    Recorder* recorder = recorded == step ? run->records[at].get() : nullptr;
    NPUMESH_ASSIGN_OR_RETURN(const Outputs made, session->Run(inputs, recorder));
    Outputs& kept = run->outputs[at].emplace_back();
    for (const Tensor& tensor : made) kept.push_back(CopyOf(tensor));
    for (const Held& held : held_) {
      NPUMESH_ASSIGN_OR_RETURN(const Tensor content, session->ReadRef(held.position));
      kept.push_back(CopyOf(content));
    }
  }
  return Status();
}

Result<Run> Prover::RunAll(int count, std::optional<size_t> recorded) const {
  Run run;
  run.outputs.resize(static_cast<size_t>(count));
  for (int rank = 0; rank < count; ++rank) {
    run.records.push_back(std::make_unique<Recorder>(fmt::format("rank {}", rank), 0, false));
  }
  const auto statuses =
      RunRanks(count, env_, [&](World& world) { return RunOne(world, count, recorded, &run); });
  for (const Status& status : statuses) {
    if (status.ok() || status.code() == Code::kPeerLost) continue;
    return status.WithContext(count == 1 ? "the graph of one card" : "the graphs of the ranks");
  }
  for (const Status& status : statuses) NPUMESH_RETURN_IF_ERROR(status);
  return run;
}

std::string TextOf(const Tensor& seen, const Tensor& expected, const TensorDistance& distance,
                   const Allowance& allowance) {
  if (!distance.reason.empty()) return distance.reason;
  std::string text;
  VisitDiffering(seen, expected, allowance, [&](const DifferingElement& element) {
    if (!text.empty()) return;
    text = fmt::format("{} of {} elements differ, first {}: {}, expected {}", distance.differing,
                       seen.elements(), PositionText(element.flat, seen.shape()), element.x,
                       element.y);
  });
  return text;
}

double PeakOf(const Tensor& tensor) {
  const Tensor zeros = Tensor::Allocate(tensor.type());
  return DistanceOf(tensor, zeros).max_abs;
}

std::optional<ShardDifference> Prover::Compare(const Run& whole, const Run& parts,
                                               ShardProof* proof) const {
  for (size_t step = 0; step < steps_.size(); ++step) {
    const Outputs& expected = whole.outputs[0][step];
    for (size_t output = 0; output < expected.size(); ++output) {
      for (int rank = 0; rank < ranks(); ++rank) {
        const Tensor& seen = parts.outputs[static_cast<size_t>(rank)][step][output];
        const Tensor wanted = PieceOf(expected[output], layouts_[output], rank, ranks());
        const Allowance allowance = ReorderAllowance(wanted.dtype());
        const TensorDistance distance = DistanceOf(seen, wanted, allowance);
        const double peak = PeakOf(wanted);
        if (peak > 0) proof->largest = std::max(proof->largest, distance.max_abs / peak);
        if (distance.same()) continue;
        ShardDifference difference;
        difference.step = step;
        const size_t outputs = sharded_.outputs.size();
        if (output < outputs) difference.output = static_cast<int>(output);
        if (output >= outputs) difference.held = held_[output - outputs].name;
        difference.rank = rank;
        difference.text = TextOf(seen, wanted, distance, allowance);
        return difference;
      }
    }
  }
  return std::nullopt;
}

// Walks both runs node by node.
Status Prover::FindNode(ShardDifference* difference) const {
  NPUMESH_ASSIGN_OR_RETURN(const Run whole, RunAll(1, difference->step));
  NPUMESH_ASSIGN_OR_RETURN(const Run parts, RunAll(ranks(), difference->step));
  for (const ShardedValue& value : sharded_.values) {
    const Result<Tensor> expected =
        whole.records[0]->source().Load(OperatorKey(value.whole), Side::kOutput, value.port);
    if (!expected.ok()) continue;
    for (int rank = 0; rank < ranks(); ++rank) {
      const Result<Tensor> seen = parts.records[static_cast<size_t>(rank)]->source().Load(
          OperatorKey(value.part), Side::kOutput, value.part_port);
      if (!seen.ok()) continue;
      const Tensor wanted = PieceOf(*expected, value.layout, rank, ranks());
      const Allowance allowance = ReorderAllowance(wanted.dtype());
      const TensorDistance distance = DistanceOf(*seen, wanted, allowance);
      if (distance.same()) continue;
      difference->node = value.whole;
      difference->type = value.type;
      difference->rank = rank;
      difference->text = TextOf(*seen, wanted, distance, allowance);
      return Status();
    }
  }
  return Status();
}

Result<ShardProof> Prover::Prove() {
  ShardProof proof;
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<InputSpec> inputs, npumesh::InputsOf(whole_));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].ref) continue;
    held_.push_back({static_cast<int>(i), inputs[i].name});
    layouts_.push_back(sharded_.inputs[i]);
  }
  NPUMESH_ASSIGN_OR_RETURN(const Run whole, RunAll(1, std::nullopt));
  NPUMESH_ASSIGN_OR_RETURN(const Run parts, RunAll(ranks(), std::nullopt));
  proof.steps = steps_.size();
  proof.outputs = sharded_.outputs.size();
  for (const Outputs& outputs : whole.outputs[0]) {
    for (const Tensor& tensor : outputs) {
      const auto found = std::find(proof.dtypes.begin(), proof.dtypes.end(), tensor.dtype());
      if (found == proof.dtypes.end()) proof.dtypes.push_back(tensor.dtype());
    }
  }
  proof.difference = Compare(whole, parts, &proof);
  if (proof.difference) NPUMESH_RETURN_IF_ERROR(FindNode(&*proof.difference));
  return proof;
}

}  // namespace

Result<ShardProof> ProveShards(const Model& whole, const ShardedModel& sharded,
                               const OpRegistry& registry, const Env& env,
                               const std::vector<std::vector<Tensor>>& steps) {
  return Prover(whole, sharded, registry, env, steps).Prove();
}

}  // namespace npumesh
