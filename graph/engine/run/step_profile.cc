#include "graph/engine/run/step_profile.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "graph/ir/node_kind.h"

namespace npumesh {
namespace {

std::string ShapeText(const Shape& shape) {
  return fmt::format("{}", fmt::join(shape.dims(), ","));
}

// The vendor's files say FLOAT, not DT_FLOAT, but DT_BF16.
std::string TypeText(DataType dtype) {
  if (dtype == DataType::kBfloat16) return "DT_BF16";
  const std::string_view name = SerialName(dtype);
  return std::string(name.starts_with("DT_") ? name.substr(3) : name);
}

std::string LayoutOf(const std::vector<TensorDesc>& descs, int port) {
  const bool known = port >= 0 && static_cast<size_t>(port) < descs.size();
  return known ? descs[static_cast<size_t>(port)].layout : "ND";
}

bool HasOpenInput(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) {
    return IsInputNode(node) && !node.removed &&
           std::ranges::any_of(node.output_descs, [](const TensorDesc& desc) {
             return desc.shape && !desc.shape->is_static();
           });
  });
}

uint64_t BytesOf(const Step& step) {
  uint64_t bytes = 0;
  for (const TensorType& type : step.input_types) {
    if (type.dtype != DataType::kUndefined) bytes += type.bytes();
  }
  for (const TensorType& type : step.output_types) bytes += type.bytes();
  return bytes;
}

}  // namespace

void StepProfile::Name() {
  run_ = profiler_->run();
  pack_ = SpanPack();
  std::vector<ProfiledTask> tasks;
  for (const Step& step : model_.steps()) tasks.push_back(TaskOf(step));
  first_ = profiler_->NameAll(std::move(tasks));
  const std::vector<Step>& steps = model_.steps();
  flags_.clear();
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool beside_follows = i + 1 < steps.size() && steps[i + 1].beside;
    flags_.push_back(kNew | (steps[i].only_communicates ? kHidden : 0) |
                     (beside_follows ? kEndsPack : 0));
  }
}

ProfiledTask StepProfile::TaskOf(const Step& step) const {
  const Graph& graph = model_.source().graph;
  const Node& node = graph.node(step.node);
  ProfiledTask task;
  task.name = step.name;
  task.type = step.type;
  task.state = HasOpenInput(graph) ? "dynamic" : "static";
  task.graph = graph.name();
  for (size_t slot = 0; slot < step.input_types.size(); ++slot) {
    const TensorType& type = step.input_types[slot];
    if (type.dtype == DataType::kUndefined) continue;
    task.input_shapes.push_back(ShapeText(type.shape));
    task.input_types.push_back(TypeText(type.dtype));
    task.input_formats.push_back(LayoutOf(node.input_descs, step.input_ports[slot]));
  }
  for (size_t port = 0; port < step.output_types.size(); ++port) {
    const TensorType& type = step.output_types[port];
    task.output_shapes.push_back(ShapeText(type.shape));
    task.output_types.push_back(TypeText(type.dtype));
    task.output_formats.push_back(LayoutOf(node.output_descs, static_cast<int>(port)));
  }
  task.flops = step.flops;
  task.bytes = BytesOf(step);
  task.kernel = step.kernel->choice().name;
  return task;
}

void StepProfile::Pack(size_t step, int64_t begin_ns, int64_t end_ns) {
  const bool may_last = end_ns - begin_ns > kLongNs || model_.steps()[step].collective;
  if (step > 0 && !model_.steps()[step - 1].beside)
    flags_[step - 1] = (flags_[step - 1] & ~kEndsPack) | (may_last ? kEndsPack : 0);
  const bool ends = (flags_[step] & (kNew | kEndsPack)) != 0;
  flags_[step] &= ~kNew;
  if (begin_ns != pack_end_ns_ || pack_.count == SpanPack::kMost) Close();
  if ((flags_[step] & kHidden) != 0) return Close();
  if (end_ns - begin_ns > std::numeric_limits<uint32_t>::max()) {
    Close();
    return Add(step, begin_ns, end_ns);
  }
  if (pack_.count == 0) {
    pack_.begin_ns = begin_ns;
    pack_.subject = first_ + static_cast<uint32_t>(step);
  }
  pack_.lasts_ns[pack_.count++] = static_cast<uint32_t>(end_ns - begin_ns);
  pack_end_ns_ = end_ns;
  if (ends) Close();
}

void StepProfile::Close() {
  if (pack_.count == 0) return;
  pack_.iteration = profiler_->iteration();
  profiler_->Add(pack_);
  pack_.count = 0;
}

void StepProfile::RanBeside(size_t step, Time start, Time end) {
  if (on_ && (flags_[step] & kHidden) == 0) Add(step, Nanoseconds(start), Nanoseconds(end));
}

void StepProfile::Add(size_t step, int64_t begin_ns, int64_t end_ns) {
  Span span;
  span.begin_ns = begin_ns;
  span.end_ns = end_ns;
  span.bytes = BytesOf(model_.steps()[step]);
  span.subject = first_ + static_cast<uint32_t>(step);
  span.iteration = profiler_->iteration();
  span.kind = SpanKind::kTask;
  span.lane = model_.steps()[step].beside ? kCommunicationLane : kComputeLane;
  profiler_->Add(span);
}

}  // namespace npumesh
