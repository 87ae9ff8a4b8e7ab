#include "launch/run/run_job.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>

#include "collectives/algorithms/algorithm_tables.h"
#include "graph/config/validation.h"
#include "graph/io/npy.h"
#include "graph/io/weight_places.h"
#include "graph/onnx/onnx_file.h"
#include "graph/ops/builtin_ops.h"
#include "graph/ops/op_library.h"
#include "graph/session/core_budgets.h"
#include "graph/session/group_table.h"
#include "graph/session/session_config.h"
#include "launch/ranks/model_choice.h"
#include "launch/run/reader_bounds.h"
#include "launch/run/tensor_check.h"
#include "launch/run/weight_progress.h"
#include "runtime/base/files/system_call.h"
#include "runtime/base/log.h"
#include "runtime/base/process/host_name.h"

namespace npumesh {
namespace {

constexpr double kNothingIsEnough = std::numeric_limits<double>::infinity();

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// In collectives. Those that passed beside computing delayed no step.
double TogetherSeconds(const SessionStats& stats) {
  return stats.run.collective_seconds - stats.run.hidden_seconds;
}

// Of steps after these no times are kept.
constexpr size_t kMostTimes = 1 << 16;

double MedianOf(std::vector<double> seconds) {
  if (seconds.empty()) return 0;
  const auto middle = seconds.begin() + static_cast<int64_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

void PrintWeightProgress(const WeightProgress& progress) {
  const std::string text = WeightProgressText(progress);
  static_cast<void>(WriteAll(STDERR_FILENO, text));
}

// The options that look at every operator and so keep them from being fused: a profile with one
// cannot be compared with one without it. "", " --inject delay:rank=2,op=a,ms=20".
std::string WatchersIn(const RunOptions& options) {
  std::string words;
  for (const std::string& fault : options.inject) words += " --inject " + fault;
  if (options.guard) words += " --guard";
  if (!options.golden.empty()) words += " --golden " + options.golden;
  if (!options.dump.mode.empty()) words += " --dump " + options.dump.mode;
  return words;
}

// Inputs that a damaged graph declares larger than the device would end the process on the host.
Status CheckFits(const std::vector<InputSpec>& inputs, const std::vector<TensorType>& types,
                 uint64_t device_bytes) {
  for (size_t i = 0; i < types.size(); ++i) {
    const TensorType& type = types[i];
    const Status shape = type.shape.Check();
    if (!shape.ok()) return shape.WithContext(fmt::format("input \"{}\"", inputs[i].name));
    const auto bytes = BytesOf(type.dtype, static_cast<uint64_t>(type.shape.elements()));
    if (BitsOf(type.dtype) == 0 || (bytes && *bytes <= device_bytes)) continue;
    return Error(Code::kInvalidArgument, "input \"{}\" is {}; the device has {} bytes of memory",
                 inputs[i].name, type.ToString(), device_bytes);
  }
  return Status();
}

}  // namespace

Status RunJob::Prepare() {
  NPUMESH_ASSIGN_OR_RETURN(SessionOptions session, ConfiguredSession());
  NPUMESH_ASSIGN_OR_RETURN(registry_, OperatorsWith(options_.op_libraries, options_.library_trust));
  // Here it fails on all ranks together.
  NPUMESH_RETURN_IF_ERROR(AlgorithmTables::Load(world_.env().algorithm_libraries).status());
  NPUMESH_RETURN_IF_ERROR(Bind());
  NPUMESH_ASSIGN_OR_RETURN(memory_, DeviceMemory::Create(world_));
  NPUMESH_RETURN_IF_ERROR(LoadGraph(std::move(session)));
  NPUMESH_RETURN_IF_ERROR(OpenFolders());
  return AddObservers();
}

Status RunJob::AddObservers() {
  std::vector<Fault> faults;
  for (const std::string& text : options_.inject) {
    NPUMESH_ASSIGN_OR_RETURN(Fault fault, ParseFault(text));
    if (fault.rank >= world_.size()) {
      return Error(Code::kInvalidArgument, "--inject {}: there are {} ranks", text, world_.size());
    }
    faults.push_back(std::move(fault));
  }
  if (!faults.empty()) {
    injector_ = std::make_unique<FaultInjector>(faults, world_.rank(), options_.seed);
    observers_.Add(injector_.get());
  }
  if (options_.guard) {
    guard_ = std::make_unique<MemoryGuard>(*registry_, BuiltinOps());
    observers_.Add(guard_.get());
  }
  if (!options_.golden.empty()) {
    recorder_ = std::make_unique<Recorder>(fmt::format("rank {}", world_.rank()), 0, true);
    observers_.Add(recorder_.get());
  }
  return Status();
}

// The world has bound this rank as kAuto says.
Status RunJob::Bind() const {
  if (options_.binding == Binding::kAuto || world_.topology().synthetic()) return Status();
  const Placement& placement = world_.placement();
  if (options_.binding == Binding::kCore) return BindThread(placement.cpus);
  std::vector<int> cpus;
  for (const NumaNode& node : world_.topology().numa_nodes()) {
    if (options_.binding == Binding::kNuma && node.os_index != placement.numa_node) continue;
    cpus.insert(cpus.end(), node.cpus.begin(), node.cpus.end());
  }
  return BindThread(cpus);
}

int RunJob::Threads() const {
  if (options_.threads > 0) return options_.threads;
  if (world_.env().num_threads > 0) return world_.env().num_threads;
  return std::max(1, static_cast<int>(world_.placement().cpus.size()));
}

// The command's folder wins; what the vendor's files have is as the session's options say.
Result<std::optional<ProfilingOptions>> RunJob::ChosenProfiling(
    const SystemOptions& session) const {
  NPUMESH_ASSIGN_OR_RETURN(const DumpEnv env, DumpEnv::FromProcess());
  NPUMESH_ASSIGN_OR_RETURN(std::optional<ProfilingOptions> profiling,
                           ProfilingOf(session, env.ascend_work_path));
  if (!options_.profile.empty()) {
    if (!profiling) profiling = ProfilingOptions{.training_trace = true};
    profiling->folder = options_.profile;
  }
  if (profiling) {
    profiling->command = "npumesh run " + options_.path + WatchersIn(options_);
    profiling->most_bytes = options_.profile_max_bytes;
  }
  return profiling;
}

Status RunJob::StartProfile() {
  return profiling_ ? StartProfiling(world_, *profiling_).WithContext("--profile") : Status();
}

Status RunJob::FinishProfile(bool alone) {
  return FinishProfiling(world_, alone).WithContext("--profile");
}

Result<SessionOptions> RunJob::ConfiguredSession() {
  SessionOptions session = DefaultSessionOptions();
  Configuration config;
  if (!options_.config.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(config, LoadConfiguration(options_.config));
    SayOnce(NoticesOf(config.session));
    NPUMESH_ASSIGN_OR_RETURN(session, SessionOptionsFor(config.compiler));
    if (!session.tuning) {
      session.tuning = TuningOf(config.session, config.compiler.aoe_config.work_path);
    }
    NPUMESH_RETURN_IF_ERROR(ApplySystemOptions(config.session, session));
  }
  NPUMESH_ASSIGN_OR_RETURN(profiling_, ChosenProfiling(config.session));
  NPUMESH_ASSIGN_OR_RETURN(
      session.tensor_dump,
      ChooseDump(options_.dump, std::move(session.tensor_dump), config.session));
  return session;
}

// An ONNX model is imported for the sizes that the options or the inputs have.
Result<Model> RunJob::LoadFile() {
  OnnxChoice choice{options_.bindings, options_.values, {}, nullptr, options_.steps};
  Result<TensorFolder> folder = Error(Code::kNotFound, "no folder");
  if (!options_.inputs.empty()) {
    folder = TensorFolder::ToRead(options_.inputs, world_.rank(), world_.size());
  }
  if (folder.ok()) choice.inputs = &*folder;
  NPUMESH_ASSIGN_OR_RETURN(ChosenModel chosen, LoadFor(file_, *registry_, choice, warnings_));
  is_bound_ = chosen.is_onnx;
  dim_names_ = DimNamesOf(chosen.model);
  return std::move(chosen.model);
}

Status RunJob::LoadGraph(SessionOptions session) {
  NPUMESH_ASSIGN_OR_RETURN(file_, ChooseModelFile(options_.path, world_.rank(), world_.size()));
  NPUMESH_ASSIGN_OR_RETURN(Model model, LoadFile());
  NPUMESH_INFO("{} is loaded: graph \"{}\", {} nodes", file_, model.graph.name(),
               model.graph.nodes().size());
  NPUMESH_ASSIGN_OR_RETURN(const Warnings places,
                           CheckWeightPlaces(model, {options_.allow_outside}));
  warnings_.insert(warnings_.end(), places.begin(), places.end());
  if (options_.inputs.empty()) reader_bounds_ = ReaderBounds(model, *registry_);
  const NodeId output = model.graph.NetOutput();
  if (output != kNoNode) output_count_ = model.graph.node(output).inputs.size();
  session.compile.threads = Threads();
  session.registry = registry_.get();
  NPUMESH_ASSIGN_OR_RETURN(const Card card, Card::FromProcess());
  if (card) {
    card_ = std::make_shared<NodeWatch>(card, /*says=*/false);
  } else if (session.card != nullptr) {
    NPUMESH_ASSIGN_OR_RETURN(card_, DeadlockWatch(/*says=*/false));
  }
  session.card = card_;
  if (options_.guard) session.compile.margin = kGuardMargin;
  WatchTypes(&session.compile);
  if (options_.show_progress && world_.rank() == 0) {
    session.compile.weight_progress = PrintWeightProgress;
  }
  NPUMESH_ASSIGN_OR_RETURN(session.groups, ReadGroupTable(FolderOf(file_)));
  Result<std::unique_ptr<Session>> created =
      Session::Create(world_, *memory_, std::move(model), std::move(session));
  if (!created.ok()) return AtFile(created.status());
  session_ = *std::move(created);
  return Status();
}

Status RunJob::AtFile(const Status& status) const {
  const bool named = status.message().find(file_) != std::string_view::npos;
  return named ? status : status.WithContext(file_);
}

Status RunJob::MakeRandomInputs() {
  const std::vector<InputSpec>& inputs = session_->inputs();
  Result<std::vector<TensorType>> types =
      (is_bound_ ? DimBindings() : options_.bindings).Apply(inputs, dim_names_);
  if (!types.ok()) return AtFile(types.status());
  NPUMESH_RETURN_IF_ERROR(AtFile(CheckFits(inputs, *types, memory_->total_bytes())));
  Result<std::vector<std::optional<IntRange>>> bounds = options_.int_ranges.For(inputs);
  if (!bounds.ok()) return AtFile(bounds.status());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto bound = reader_bounds_.find(inputs[i].index);
    if ((*bounds)[i] || bound == reader_bounds_.end()) continue;
    (*bounds)[i] = IntRange{0, std::min(IntRange().high, bound->second - 1)};
  }
  const int rank = options_.per_rank_inputs ? world_.rank() : 0;
  source_ = RandomInputs(inputs, *std::move(types), *std::move(bounds), options_.seed,
                         static_cast<uint64_t>(rank));
  return Status();
}

Status RunJob::OpenGoldens() {
  NPUMESH_ASSIGN_OR_RETURN(goldens_,
                           TensorFolder::ToRead(options_.check, world_.rank(), world_.size()));
  NPUMESH_ASSIGN_OR_RETURN(tolerances_, TolerancePlan::Make(options_.tolerance, options_.check));
  std::set<int64_t> indexes;
  for (size_t i = 0; i < output_count_; ++i) indexes.insert(static_cast<int64_t>(i));
  for (const std::string& file : goldens_->OtherFiles(indexes)) {
    warnings_.push_back(
        fmt::format("{} is compared with nothing: the graph has {} outputs", file, output_count_));
  }
  return Status();
}

Status RunJob::OpenFolders() {
  if (options_.inputs.empty()) {
    NPUMESH_RETURN_IF_ERROR(MakeRandomInputs());
  } else {
    const std::vector<InputSpec>& inputs = session_->inputs();
    NPUMESH_ASSIGN_OR_RETURN(TensorFolder folder,
                             TensorFolder::ToRead(options_.inputs, world_.rank(), world_.size()));
    std::set<int64_t> indexes;
    for (const InputSpec& input : inputs) indexes.insert(input.index);
    for (const std::string& file : folder.OtherFiles(indexes)) {
      warnings_.push_back(
          fmt::format("{} is the input of nothing: the graph has no such index", file));
    }
    source_ = InputsFromFolder(inputs, std::move(folder));
  }
  if (!options_.outputs.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(
        outputs_, TensorFolder::ToWrite(options_.outputs, world_.rank(), options_.steps));
  }
  if (!options_.check.empty()) return OpenGoldens();
  const ToleranceOptions& tolerance = options_.tolerance;
  if (tolerance.rule || tolerance.rtol || tolerance.atol) {
    warnings_.push_back("a tolerance has no effect without --check");
  }
  return Status();
}

Status RunJob::FinishDump() {
  if (session_ == nullptr) return Status();
  const DumpReport report = session_->FinishDump();
  dump_ = ToRankDump(report);
  return options_.dump.stop_on_error ? report.error.WithContext("dump") : Status();
}

Status RunJob::LoadStep(uint64_t step) {
  NPUMESH_ASSIGN_OR_RETURN(step_inputs_, source_->Step(step));
  if (!goldens_) return Status();
  std::vector<Tensor> goldens;
  for (size_t i = 0; i < output_count_; ++i) {
    Result<Tensor> golden = goldens_->Read(step, static_cast<int64_t>(i));
    if (!golden.ok()) return golden.status().WithContext(fmt::format("golden of output {}", i));
    goldens.push_back(*std::move(golden));
  }
  step_goldens_ = std::move(goldens);
  return Status();
}

Status RunJob::RunStep(uint64_t step) {
  const double compiled_before = session_->stats().compile_seconds;
  const double together_before = TogetherSeconds(session_->stats());
  const auto start = std::chrono::steady_clock::now();
  const Result<std::vector<Tensor>> outputs =
      session_->Run(step_inputs_, observers_.empty() ? nullptr : &observers_);
  if (!outputs.ok()) return AtFile(outputs.status());
  if (recorder_ != nullptr && step == 0) recorded_inputs_ = step_inputs_;
  const double seconds =
      SecondsSince(start) - (session_->stats().compile_seconds - compiled_before);
  step_seconds_ += seconds;
  if (each_seconds_.size() < kMostTimes) each_seconds_.push_back(seconds);
  NoteAway(step, seconds - (TogetherSeconds(session_->stats()) - together_before));
  for (size_t i = 0; i < outputs->size(); ++i) {
    NPUMESH_RETURN_IF_ERROR(KeepOutput(step, i, (*outputs)[i]));
  }
  return Status();
}

Status RunJob::KeepOutput(uint64_t step, size_t index, const Tensor& output) {
  if (outputs_) {
    NPUMESH_RETURN_IF_ERROR(outputs_->Write(step, static_cast<int64_t>(index), output));
  }
  if (index < step_goldens_.size()) Check(step, index, output);
  const bool unseen = !outputs_ && !goldens_;
  const bool reported = !options_.report.empty() || !options_.junit.empty();
  if (step + 1 == options_.steps && (unseen || reported)) {
    summaries_.push_back(Summarise(world_.rank(), static_cast<int>(index), output));
  }
  return Status();
}

void RunJob::NoteAway(uint64_t step, double seconds) {
  const uint64_t stretches = std::min<uint64_t>(options_.steps, kMostStretches);
  away_seconds_.resize(stretches);
  away_seconds_[step * stretches / options_.steps] += seconds;
}

void RunJob::WatchTypes(CompileOptions* options) {
  if (options_.check.empty() && options_.golden.empty()) return;
  options->observer = [this](std::string_view stage, const Model& typed) {
    if (stage != "AfterInfershape") return;
    estimate_.Note(typed);
    roundings_.clear();
  };
}

// What a graph keeps from step to step carries the errors of all steps before.
AppliedTolerance RunJob::ToleranceOf(uint64_t step, size_t index, const Tensor& output) {
  const Result<Tensor> golden = ReinterpretAs(step_goldens_[index], output.dtype());
  if (!golden.ok()) return {{}, "exact"};
  if (roundings_.empty()) {
    Result<std::vector<RoundingPath>> made =
        estimate_.OutputsOf(session_->model(), *registry_, world_.size());
    if (made.ok()) roundings_ = *std::move(made);
  }
  RoundingPath rounding = index < roundings_.size() ? roundings_[index] : RoundingPath();
  const std::vector<InputSpec>& inputs = session_->inputs();
  const bool keeps =
      std::any_of(inputs.begin(), inputs.end(), [](const InputSpec& input) { return input.ref; });
  if (keeps) rounding.variance *= static_cast<double>(step + 1);
  return tolerances_.For(static_cast<int>(index), rounding, *golden);
}

void RunJob::Check(uint64_t step, size_t index, const Tensor& output) {
  if (index >= checks_.size()) checks_.resize(index + 1);
  OutputCheck& check = checks_[index];
  check.rank = world_.rank();
  check.index = static_cast<int>(index);
  check.dtype = Name(output.dtype());
  check.shape = output.shape().ToString();
  const AppliedTolerance tolerance = ToleranceOf(step, index, output);
  const Difference found = CompareTensors(output, step_goldens_[index], tolerance.value);
  check.differing += found.differing;
  if (check.tolerance.empty() || found.max_abs > check.max_abs_diff ||
      (check.ok && !found.matches)) {
    check.rtol = tolerance.value.rtol;
    check.atol = tolerance.value.atol;
    check.tolerance = tolerance.why;
    check.needs_atol = found.reason.empty() ? found.needs_atol : kNothingIsEnough;
    check.step = step;
    check.max_abs_diff = std::max(check.max_abs_diff, found.max_abs);
    check.where = PositionOf(found.where, output.shape());
  }
  if (found.matches || !check.detail.empty()) return;
  check.ok = false;
  check.detail = !found.reason.empty()
                     ? found.reason
                     : fmt::format("{} of {} elements, {} is {}, expected {}", found.differing,
                                   output.elements(), PositionOf(found.where, output.shape()),
                                   found.value, found.golden);
}

RankReport RunJob::Report() const {
  const SessionStats& stats = session_->stats();
  RankReport report;
  report.rank = world_.rank();
  report.node = world_.node();
  report.host = HostName();
  report.file = file_;
  report.compile_seconds = stats.compile_seconds;
  report.compute_seconds = stats.run.compute_seconds;
  report.collective_seconds = stats.run.collective_seconds;
  report.hidden_seconds = stats.run.hidden_seconds;
  report.total_seconds = step_seconds_;
  report.median_seconds = MedianOf(each_seconds_);
  report.away_seconds = away_seconds_;
  report.peak_hbm_bytes = stats.peak_hbm_bytes;
  report.operators = stats.run.steps;
  report.collectives = stats.run.collectives;
  report.dump = dump_;
  return report;
}

}  // namespace npumesh
