#include "launch/shard/shard_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "graph/ir/node_kind.h"
#include "launch/run/dim_bindings.h"
#include "launch/run/input_source.h"
#include "launch/run/int_ranges.h"
#include "launch/run/reader_bounds.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

using Steps = std::vector<std::vector<Tensor>>;

Result<Steps> StepsOfFolder(const std::vector<InputSpec>& inputs, const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(TensorFolder folder, TensorFolder::ToRead(path, 0, 1));
  uint64_t count = 1;
  std::error_code error;
  const auto next = [&] { return fs::path(path) / fmt::format("step_{}", count); };
  while (folder.has_steps() && fs::is_directory(next(), error)) ++count;
  const std::unique_ptr<InputSource> source = InputsFromFolder(inputs, std::move(folder));
  Steps steps;
  for (uint64_t step = 0; step < count; ++step) {
    NPUMESH_ASSIGN_OR_RETURN(std::vector<Tensor> tensors, source->Step(step));
    steps.push_back(std::move(tensors));
  }
  return steps;
}

Result<Steps> RandomSteps(const Model& model, const OpRegistry& registry,
                          const std::vector<InputSpec>& inputs, const ShardJobOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const DimBindings dims, DimBindings::Parse(options.dims));
  NPUMESH_ASSIGN_OR_RETURN(const IntRanges ranges, IntRanges::Parse(options.int_ranges));
  NPUMESH_ASSIGN_OR_RETURN(std::vector<TensorType> types, dims.Apply(inputs, DimNamesOf(model)));
  NPUMESH_ASSIGN_OR_RETURN(auto bounds, ranges.For(inputs));
  const std::map<int64_t, int64_t> readers = ReaderBounds(model, registry);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto bound = readers.find(inputs[i].index);
    if (bounds[i] || bound == readers.end()) continue;
    bounds[i] = IntRange{0, bound->second - 1};  // all rows, of all ranks
  }
  const auto source =
      RandomInputs(inputs, std::move(types), std::move(bounds), options.seed, /*rank=*/0);
  // What a graph updates has to be right when the next step reads it.
  const bool updates =
      std::any_of(inputs.begin(), inputs.end(), [](const InputSpec& input) { return input.ref; });
  Steps steps;
  for (uint64_t step = 0; step < (updates ? 2 : 1); ++step) {
    NPUMESH_ASSIGN_OR_RETURN(std::vector<Tensor> tensors, source->Step(step));
    steps.push_back(std::move(tensors));
  }
  return steps;
}

// One process, a thread for each rank.
Result<ExportSummary> WritePackage(const ShardedModel& sharded, const OpRegistry& registry,
                                   const Env& env, ExportOptions options) {
  options.registry = &registry;
  options.keeps_open = true;
  ExportSummary summary;
  const auto statuses =
      RunRanks(static_cast<int>(sharded.models.size()), env, [&](World& world) -> Status {
        NPUMESH_ASSIGN_OR_RETURN(
            const ExportSummary mine,
            DynamoExport(world, sharded.models[static_cast<size_t>(world.rank())], options));
        if (world.rank() == 0) summary = mine;
        return Status();
      });
  for (const Status& status : statuses) NPUMESH_RETURN_IF_ERROR(status);
  return summary;
}

Status Refusal(const ShardDifference& difference, int ranks) {
  const std::string end = difference.held.empty()
                              ? fmt::format("output {}", difference.output)
                              : fmt::format("what RefData \"{}\" holds", difference.held);
  const std::string where =
      difference.node.empty()
          ? end
          : fmt::format("node \"{}\" ({}), the first that differs on the way to {}",
                        difference.node, difference.type, end);
  return Error(Code::kInternal,
               "{} ranks compute something else than one card, so nothing is written: step {}, {}, "
               "rank {}: {}",
               ranks, difference.step, where, difference.rank, difference.text);
}

}  // namespace

Result<ShardReport> RunShardJob(const Model& model, const OpRegistry& registry, const Env& env,
                                const ShardJobOptions& options, const ExportOptions& package) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<InputSpec> inputs, InputsOf(model));
  NPUMESH_ASSIGN_OR_RETURN(const Steps steps, options.inputs.empty()
                                                  ? RandomSteps(model, registry, inputs, options)
                                                  : StepsOfFolder(inputs, options.inputs));
  ShardReport report;
  NPUMESH_ASSIGN_OR_RETURN(report.sharded, ShardModel(model, registry, options.ranks, steps[0]));
  NPUMESH_ASSIGN_OR_RETURN(report.proof, ProveShards(model, report.sharded, registry, env, steps));
  if (report.proof.difference) return Refusal(*report.proof.difference, options.ranks);
  NPUMESH_ASSIGN_OR_RETURN(report.package, WritePackage(report.sharded, registry, env, package));
  return report;
}

std::string ToText(const ShardReport& report) {
  std::string text = ShardNotesAsText(report.sharded.notes);
  const size_t ranks = report.sharded.models.size();
  std::vector<std::string> allowed;
  for (const DataType dtype : report.proof.dtypes) {
    const double part = ReorderAllowance(dtype).of_peak;
    allowed.push_back(part > 0
                          ? fmt::format("{} within {:g} of the largest value", Name(dtype), part)
                          : fmt::format("{} exactly", Name(dtype)));
  }
  text += fmt::format(
      "proof: {} ranks and one card agree in {} outputs of {} steps: {}; most seen: {:.2g}\n",
      ranks, report.proof.outputs, report.proof.steps, fmt::join(allowed, ", "),
      report.proof.largest);
  text += fmt::format("{}: rank 0 of {}: {} weights of {} bytes {}\n", report.package.air, ranks,
                      report.package.weights, report.package.weight_bytes,
                      report.package.external ? "in files" : "inside");
  return text;
}

}  // namespace npumesh
