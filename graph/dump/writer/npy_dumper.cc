#include "graph/dump/writer/npy_dumper.h"

#include <vector>

#include "graph/dump/format/format_name.h"
#include "graph/engine/plan/compiled_model.h"
#include "graph/io/npy.h"
#include "graph/ops/toolbox/values/cast.h"
#include "runtime/base/log.h"

namespace npumesh {

NpyDumper::NpyDumper(NpyDumpOptions options, const DumpPlace& place, FileSystem& fs)
    : options_(std::move(options)),
      root_(fmt::format("{}/{}", options_.path, RankFolderName(place.world_size, place.rank))),
      writer_(options_.queue_bytes, place.world_size > 1 ? place.rank : -1, fs) {}

Status NpyDumper::BeforeRun(const RunView& run) {
  if (iteration_ != run.iteration) ++steps_;
  iteration_ = run.iteration;
  folder_ = fmt::format("{}/{}/{}", root_, SanitizedName(run.source.graph.name()), steps_ - 1);
  return Status();
}

DumpReport NpyDumper::Finish() {
  DumpReport report;
  report.folder = root_;
  report.steps = steps_;
  report.error = writer_.Finish();
  report.counts = writer_.counts();
  return report;
}

Status NpyDumper::BeforeStep(const StepView& view) {
  if (Wants(view)) Dump(view.step, "INPUT", InputOperands(view));
  return Status();
}

Status NpyDumper::AfterStep(const StepView& view) {
  if (Wants(view)) Dump(view.step, "OUTPUT", OutputOperands(view.run, view.index));
  return Status();
}

// The engine's own copies are no nodes of the graph.
bool NpyDumper::Wants(const StepView& view) const {
  const Node& node = view.run.source.graph.node(view.step.node);
  return node.name == view.step.name && (!options_.filter || options_.filter(node));
}

void NpyDumper::Dump(const Step& step, std::string_view side,
                     const std::vector<DumpOperand>& operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    TensorType type = operands[i].tensor.type;
    type.shape = operands[i].tensor.original_shape;
    const bool widen = type.dtype == DataType::kBfloat16;
    if (widen) type.dtype = DataType::kFloat;
    Result<std::string> head = NpyHead(type);
    if (!head.ok()) {
      NPUMESH_WARNING_ONCE("node \"{}\" ({}): {}; the tensor is not dumped", step.name, step.type,
                           head.status().message());
      continue;
    }
    DumpFileJob job;
    job.folder = folder_;
    job.name = fmt::format("{}-{}.{}.{}.{}.npy", SanitizedName(step.name), SanitizedName(step.type),
                           side, i, UtcTimestamp());
    job.head = *std::move(head);
    job.payload = writer_.Take(type.bytes());
    if (widen) {
      const auto elements = static_cast<size_t>(type.shape.elements());
      std::vector<float> wide(elements);
      BfloatToFloat(operands[i].data, wide.data(), elements);
      job.payload.Append(wide.data(), type.bytes());
    } else {
      job.payload.Append(operands[i].data, operands[i].tensor.size);
    }
    writer_.Submit(std::move(job));
  }
}

}  // namespace npumesh
