#include "graph/dump/writer/dumper.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "graph/dump/statistics/overflow.h"
#include "graph/dump/writer/exception_dump.h"
#include "graph/dump/writer/manifest.h"
#include "graph/engine/plan/compiled_model.h"
#include "runtime/base/files/dump_sink.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

uint64_t MicrosecondsNow() {
  using std::chrono::microseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<microseconds>(now).count());
}

uint64_t BytesOf(const std::vector<DumpOperand>& operands) {
  uint64_t bytes = 0;
  for (const DumpOperand& operand : operands) bytes += operand.tensor.size;
  return bytes;
}

}  // namespace

Dumper::Dumper(DumpSettings settings, DumpPlace place, DumpLimits limits, FileSystem& fs)
    : settings_(std::move(settings)),
      place_(std::move(place)),
      limits_(limits),
      fs_(fs),
      csv_(settings_.statistics),
      writer_(limits.queue_bytes, place_.world_size > 1 ? place_.rank : -1, fs),
      statistics_(csv_.l2norm()) {
  ClearKilledDumps(RankRoot(settings_, place_));
  if (settings_.dumps_steps()) report_.folder = TimeFolder(settings_, place_);
}

Dumper::~Dumper() {
  if (!finished_) Finish();
}

// With dump_step the index is the step's; without it every step is dumped, so it is the step's too.
Status Dumper::BeforeRun(const RunView& run) {
  if (iteration_ != run.iteration) BeginIteration(run.iteration);
  pending_.reset();
  if (!dumping_) return Status();
  statistics_.ForgetVariables();
  if (model_ != run.model.identity()) Select(run);
  if (model_name_.empty()) model_name_ = run.source.graph.name();
  step_folder_ = fmt::format("{}/{}", ModelFolder(settings_, place_, run.source.graph.name()),
                             iterations_ - 1);
  return MayGoOn();
}

void Dumper::BeginIteration(uint64_t iteration) {
  iteration_ = iteration;
  dumping_ = settings_.dumps_steps() && settings_.steps.Contains(iterations_++);
  if (dumping_) ++report_.steps;
  tasks_ = 0;
  open_ranges_.clear();
}

void Dumper::Select(const RunView& run) {
  model_ = run.model.identity();
  selection_.emplace(settings_, run, &open_ranges_);
  statistics_.ForgetAll();
  missing_.Note(settings_, run);
  if (!run.part) missing_.Warn();
}

Status Dumper::BeforeStep(const StepView& view) {
  if (!dumping_) return Status();
  const StepChoice& choice = selection_->of(view.index);
  if (choice.layout == StepChoice::Layout::kNone) return Status();
  if (settings_.overflow) {
    HoldInputs(view);
  } else {
    TakeInputs(view, choice);
  }
  return MayGoOn();
}

Status Dumper::AfterStep(const StepView& view) {
  if (!dumping_) return Status();
  ForgetOutputs(view);
  const StepChoice& choice = selection_->of(view.index);
  if (settings_.overflow) {
    if (choice.layout != StepChoice::Layout::kNone) DumpOverflow(view);
  } else if (pending_) {
    if (settings_.mode != DumpMode::kInput) {
      const std::vector<DumpOperand> outputs = OutputOperands(view.run, view.index);
      for (size_t i = 0; i < outputs.size(); ++i) {
        choice.Leaves(false, i) ? LeaveOut(false, outputs[i], *pending_)
                                : Take(false, outputs[i], *pending_);
      }
    }
    Submit(*std::move(pending_), choice.layout);
    pending_.reset();
  }
  if (choice.layer) DumpWatched(view);
  return MayGoOn();
}

void Dumper::ForgetOutputs(const StepView& view) {
  for (size_t port = 0; port < view.step.outputs.size(); ++port) {
    statistics_.Forget(view.args.out[port], view.step.output_types[port].bytes());
  }
}

Status Dumper::AfterRun(const RunView& run) {
  tasks_ += run.model.steps().size();
  return MayGoOn();
}

void Dumper::StepFailed(const StepView& view, const Status& error) {
  if (pending_) writer_.Return(std::move(pending_->payload));
  pending_.reset();
  if (settings_.exception == ExceptionDump::kOff) return;
  const Result<std::string> path = WriteException(settings_, place_, view, error, fs_);
  if (path.ok()) {
    NPUMESH_EVENT("exception dump: {}", *path);
  } else {
    NPUMESH_ERROR("no exception dump: {}", path.status().message());
  }
}

Status Dumper::MayGoOn() const {
  if (!limits_.stop_on_error) return Status();
  return writer_.error().WithContext("dump");
}

Dumper::Pending Dumper::Begin(const std::string& type, const std::string& name, size_t task,
                              uint64_t bytes) {
  Pending pending;
  pending.record.op_name = name;
  pending.record.time_us = MicrosecondsNow();
  pending.name = {type, name, static_cast<uint32_t>(task), kDumpStream, pending.record.time_us};
  const bool asked = settings_.content == DumpContent::kStatistics;
  const bool over = limits_.max_bytes > 0 && admitted_bytes_ + bytes > limits_.max_bytes;
  if (!asked && (degraded_ || over)) {
    if (!degraded_) {
      NPUMESH_WARNING("{} bytes are dumped, of at most {}: from operator \"{}\" on only statistics",
                      admitted_bytes_, limits_.max_bytes, name);
    }
    degraded_ = true;
    ++report_.degraded_files;
    report_.degraded_bytes += bytes;
  }
  pending.statistics = asked || degraded_;
  pending.name.stats = pending.statistics;
  if (pending.statistics) return pending;
  admitted_bytes_ += bytes;
  pending.payload = writer_.Take(bytes);
  return pending;
}

void Dumper::Take(bool input, const DumpOperand& operand, Pending& pending) {
  std::vector<DumpTensor>& tensors = input ? pending.record.inputs : pending.record.outputs;
  const DumpTensor& tensor = operand.tensor;
  if (pending.statistics) {
    std::optional<TensorStatistics> statistics;
    if (csv_.Shows(tensor.type.dtype)) statistics = statistics_.Of(operand);
    pending.rows += csv_.Row(input ? "Input" : "Output", tensors.size(), tensor, statistics);
  } else {
    pending.payload.Append(operand.data, tensor.size);
  }
  tensors.push_back(tensor);
}

// The others keep their numbers: it stays in the record, without bytes.
void Dumper::LeaveOut(bool input, const DumpOperand& operand, Pending& pending) {
  DumpTensor tensor = operand.tensor;
  tensor.size = 0;
  (input ? pending.record.inputs : pending.record.outputs).push_back(std::move(tensor));
}

void Dumper::Submit(Pending pending, StepChoice::Layout layout) {
  DumpFileJob job;
  job.folder = FolderOf(layout);
  job.name = pending.name.ToString();
  job.statistics = pending.statistics;
  job.head = pending.statistics ? csv_.Header() + pending.rows : EncodeDumpHeader(pending.record);
  job.payload = std::move(pending.payload);
  writer_.Submit(std::move(job));
}

std::string Dumper::FolderOf(StepChoice::Layout layout) const {
  return layout == StepChoice::Layout::kSingleOperator ? DeviceFolder(settings_, place_)
                                                       : step_folder_;
}

void Dumper::TakeInputs(const StepView& view, const StepChoice& choice) {
  const std::vector<DumpOperand> inputs = InputOperands(view);
  const bool with_inputs = settings_.mode != DumpMode::kOutput;
  const bool with_outputs = settings_.mode != DumpMode::kInput;
  if (with_outputs && settings_.graph_inputs && !settings_.watch) {
    DumpGraphInputs(view, inputs, choice.layout);
  }
  uint64_t bytes = with_inputs ? BytesOf(inputs) : 0;
  if (with_outputs) bytes += BytesOf(OutputOperands(view.run, view.index));
  // A watched collective is one record of task 0.
  const size_t task = choice.watched && view.step.collective ? 0 : TaskOf(view);
  pending_ = Begin(view.step.type, view.step.name, task, bytes);
  if (!with_inputs) return;
  for (size_t i = 0; i < inputs.size(); ++i) {
    choice.Leaves(true, i) ? LeaveOut(true, inputs[i], *pending_)
                           : Take(true, inputs[i], *pending_);
  }
}

// Each graph input into a separate file, with the task of the operator that reads it.
void Dumper::DumpGraphInputs(const StepView& view, const std::vector<DumpOperand>& inputs,
                             StepChoice::Layout layout) {
  std::vector<int> done;
  for (const DumpOperand& input : inputs) {
    if (input.graph_input < 0) continue;
    if (std::find(done.begin(), done.end(), input.graph_input) != done.end()) continue;
    done.push_back(input.graph_input);
    const Graph& graph = view.run.source.graph;
    const Node& node = graph.node(graph.DataNodes()[static_cast<size_t>(input.graph_input)]);
    Pending pending = Begin(node.type, node.name, TaskOf(view), input.tensor.size);
    Take(false, input, pending);
    Submit(std::move(pending), layout);
  }
}

// The current content of every watched output, named after the operator that just ran.
void Dumper::DumpWatched(const StepView& view) {
  for (const size_t index : selection_->watched()) {
    const Step& watched = view.run.model.steps()[index];
    const std::vector<DumpOperand> outputs = OutputOperands(view.run, index);
    Pending pending = Begin(watched.type, JoinWatchedName(view.step.name, watched.name),
                            TaskOf(view), BytesOf(outputs));
    for (const DumpOperand& output : outputs) Take(false, output, pending);
    Submit(std::move(pending), StepChoice::Layout::kModel);
  }
}

// Overflow mode: notes the inputs of an operator, and copies them if it will overwrite them.
void Dumper::HoldInputs(const StepView& view) {
  constexpr uint64_t kAlignment = 64;  // of the widest element, and then some
  held_inputs_ = InputOperands(view);
  if (!OverwritesAnInput(held_inputs_, OutputOperands(view.run, view.index))) return;
  uint64_t bytes = 0;
  for (const DumpOperand& input : held_inputs_) bytes += input.tensor.size + kAlignment;
  held_.resize(std::max<uint64_t>(held_.size(), bytes / sizeof(std::max_align_t) + 1));
  statistics_.Forget(held_.data(), held_.size() * sizeof(std::max_align_t));
  auto* next = reinterpret_cast<std::byte*>(held_.data());
  for (DumpOperand& input : held_inputs_) {
    if (input.tensor.size > 0) std::memcpy(next, input.data, input.tensor.size);
    input.data = next;
    next += (input.tensor.size + kAlignment - 1) / kAlignment * kAlignment;
  }
}

// An operator overflows when its outputs are out of range while its inputs are not.
void Dumper::DumpOverflow(const StepView& view) {
  const std::vector<DumpOperand> outputs = OutputOperands(view.run, view.index);
  if (!OutOfRange(outputs) || OutOfRange(held_inputs_)) return;
  ++report_.overflows;
  Pending pending =
      Begin(view.step.type, view.step.name, TaskOf(view), BytesOf(held_inputs_) + BytesOf(outputs));
  for (const DumpOperand& input : held_inputs_) Take(true, input, pending);
  for (const DumpOperand& output : outputs) Take(false, output, pending);
  Submit(std::move(pending), StepChoice::Layout::kModel);

  const std::string bytes = OverflowRecord(
      place_.model_id, kDumpStream, static_cast<uint32_t>(TaskOf(view)), view.step.collective);
  Pending record;
  record.record = DescribeOverflowRecord(MicrosecondsNow(), bytes.size());
  record.name = {std::string(kOverflowType), std::string(kOverflowName),
                 static_cast<uint32_t>(TaskOf(view)), kDumpStream, record.record.time_us};
  record.payload.Append(bytes.data(), bytes.size());
  Submit(std::move(record), StepChoice::Layout::kModel);
}

DumpReport Dumper::Finish() {
  if (finished_) return report_;
  finished_ = true;
  missing_.Warn();
  report_.error = writer_.Finish();
  report_.counts = writer_.counts();
  if (!settings_.dumps_steps() || DumpSink::Active()) return report_;
  const Status written = WriteManifest(settings_, place_, limits_, model_name_, report_, fs_);
  if (!written.ok() && report_.error.ok()) {
    report_.error = written.WithContext("manifest of the dump");
    NPUMESH_ERROR("{}", report_.error.message());
  }
  return report_;
}

}  // namespace npumesh
