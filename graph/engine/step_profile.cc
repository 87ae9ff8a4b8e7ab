#include "graph/engine/step_profile.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "graph/ir/node_kind.h"

namespace npumesh {
namespace {

// A step that lasted longer may last long again.
constexpr int64_t kLongNs = 1'000'000;

int64_t Nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

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
  // Nothing is known of the first run.
  ends_pack_.assign(model_.steps().size(), 1);
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

void StepProfile::Pack(size_t step, Time start, Time end) {
  const bool shown = !model_.steps()[step].only_communicates;
  const int64_t begin_ns = Nanoseconds(start), end_ns = Nanoseconds(end);
  const int64_t lasts_ns = end_ns - begin_ns;
  if (step > 0) {
    const bool may_last = lasts_ns > kLongNs || model_.steps()[step].collective;
    ends_pack_[step - 1] = may_last ? 1 : 0;
  }
  const uint32_t subject = first_ + static_cast<uint32_t>(step);
  const bool follows = shown && begin_ns == pack_end_ns_ && subject == pack_.subject + pack_.count;
  if (!follows) Close();
  if (!shown) return;
  if (lasts_ns > std::numeric_limits<uint32_t>::max()) return RanBeside(step, start, end);
  if (pack_.count == 0) {
    pack_.begin_ns = begin_ns;
    pack_.subject = subject;
  }
  pack_.lasts_ns[pack_.count++] = static_cast<uint32_t>(lasts_ns);
  pack_end_ns_ = end_ns;
  if (pack_.count == SpanPack::kMost || ends_pack_[step] != 0) Close();
}

void StepProfile::Close() {
  if (pack_.count == 0) return;
  pack_.iteration = profiler_->iteration();
  profiler_->Add(pack_);
  pack_.count = 0;
}

void StepProfile::RanBeside(size_t step, Time start, Time end) {
  if (!on_ || model_.steps()[step].only_communicates) return;
  Span span;
  span.begin_ns = Nanoseconds(start);
  span.end_ns = Nanoseconds(end);
  span.bytes = BytesOf(model_.steps()[step]);
  span.subject = first_ + static_cast<uint32_t>(step);
  span.iteration = profiler_->iteration();
  span.kind = SpanKind::kTask;
  span.lane = model_.steps()[step].beside ? kCommunicationLane : kComputeLane;
  profiler_->Add(span);
}

}  // namespace npumesh
