#include "graph/tuning/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graph/digest/sha256.h"
#include "graph/static_kernel/record/op_record.h"
#include "graph/static_kernel/store/kernel_store.h"
#include "graph/static_kernel/store/store_files.h"
#include "runtime/base/advice.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

// "MatMulV2 float[2,3] float[3,4] -> float[2,4]"
std::string TitleOf(const TunableStep& step) {
  std::string title = step.type;
  for (const TensorType& input : step.inputs) {
    if (input.dtype != DataType::kUndefined) title += " " + input.ToString();
  }
  title += " ->";
  for (const TensorType& output : step.outputs) title += " " + output.ToString();
  return title;
}

std::string GainText(const TuningRecord& record) {
  return fmt::format("{:.1f} us, against {:.1f} us", record.best().median_us,
                     record.ordinary().median_us);
}

// Each trial may pack the constants of the step.
size_t TrialsFor(const TunableStep& step, const TuningOptions& options) {
  uint64_t bytes = 1;
  for (const Tensor* const constant : step.constants) {
    if (constant != nullptr) bytes += constant->bytes();
  }
  return std::clamp<uint64_t>(options.most_bytes / bytes, 1, options.most_trials);
}

TuningRecord::Candidate CandidateOf(const Trial& trial, const ContestTime& time) {
  return {trial.wanted, time.median_us, time.runs, time.failure};
}

void TellTuned(const TuningRecord& record, Kernel& kernel) {
  KernelChoice choice = kernel.choice();
  choice.tuned = record.winner == 0
                     ? fmt::format("nothing is faster than {:.1f} us", record.ordinary().median_us)
                     : GainText(record);
  kernel.set_choice(std::move(choice));
}

}  // namespace

std::string TuningStats::ToString() const {
  return fmt::format("{} operators tuned, {} found in records: {:.1f} us, against {:.1f} us",
                     measured, found, best_us, ordinary_us);
}

Tuner::Tuner(TuningOptions options, TuningMachine machine, TuningClock clock)
    : options_(std::move(options)),
      machine_(std::move(machine)),
      clock_(std::move(clock)),
      records_(options_.work_path) {
  if (options_.selection.quick) options_.step_budget /= 4;
}

std::string Tuner::Preferred(std::string_view decision) {
  if (now_ == nullptr) return "";
  const auto wanted = now_->wanted.find(decision);
  return wanted == now_->wanted.end() ? std::string() : wanted->second;
}

void Tuner::Decided(std::string_view decision, std::vector<std::string> options,
                    std::string_view taken) {
  if (now_ == nullptr) return;
  now_->decided[std::string(decision)] = {std::move(options), std::string(taken)};
}

Result<Trial> Tuner::Try(const Preferences& wanted, const MakeKernel& make) {
  Trial trial;
  trial.wanted = wanted;
  Trial* const before = std::exchange(now_, &trial);
  KernelOrError kernel = make();
  now_ = before;
  if (!kernel.ok()) return kernel.status();
  trial.kernel = *std::move(kernel);
  return trial;
}

std::string Tuner::KeyOf(const TunableStep& step) const {
  std::string text = fmt::format("npumesh {}\ninstructions {}\ncpu {}\nstep {}\n", NPUMESH_VERSION,
                                 machine_.instructions, machine_.cpu, TitleOf(step));
  for (size_t slot = 0; slot < step.constants.size(); ++slot) {
    if (step.constants[slot] != nullptr) text += fmt::format("constant {}\n", slot);
  }
  for (const TunableOperator& each : step.operators) {
    text += fmt::format("threads {}\n{}", each.context->threads(),
                        RecordOf(*each.op, *each.context).json);
  }
  return Sha256(text);
}

Result<std::unique_ptr<Kernel>> Tuner::Make(const TunableStep& step, const MakeKernel& make) {
  if (!options_.selection.Has(step)) return make();
  const std::string key = KeyOf(step);
  const std::optional<TuningRecord> record = records_.Find(key);
  if (record) {
    std::unique_ptr<Kernel> kernel = FromRecord(*record, make);
    if (kernel != nullptr) return kernel;
  }
  NPUMESH_ASSIGN_OR_RETURN(Trial ordinary, Try({}, make));
  if (!ordinary.had_choice()) return std::move(ordinary.kernel);
  std::unique_ptr<Kernel> best = Best(step, key, record ? &*record : nullptr, ordinary, make);
  return best != nullptr ? std::move(best) : std::move(ordinary.kernel);
}

std::unique_ptr<Kernel> Tuner::Best(const TunableStep& step, const std::string& key,
                                    const TuningRecord* stale, const Trial& ordinary,
                                    const MakeKernel& make) {
  const Result<TuningRecords::Turn> turn = records_.Take(key, stale, options_.wait_limit);
  if (!turn.ok()) {
    Advise(fmt::format("tuning: {}; operators without a record keep their ordinary kernels",
                       turn.status().message()));
    return nullptr;
  }
  return turn->record ? FromRecord(*turn->record, make) : Measure(step, key, ordinary, make);
}

std::unique_ptr<Kernel> Tuner::Measure(const TunableStep& step, const std::string& key,
                                       const Trial& ordinary, const MakeKernel& make) {
  const int64_t start = clock_();
  std::optional<ContestOperands> operands = ContestOperands::Make(step, options_.most_bytes);
  if (!operands) {
    NPUMESH_INFO("tuning: \"{}\" is not measured: its operands are too large", step.name);
    return nullptr;
  }
  const auto attempt = [&](const Preferences& wanted) { return Try(wanted, make); };
  std::vector<Trial> others = OtherTrials(ordinary, attempt, TrialsFor(step, options_));
  std::vector<Kernel*> kernels = {ordinary.kernel.get()};
  for (const Trial& trial : others) kernels.push_back(trial.kernel.get());
  const std::vector<ContestTime> times = RunContest(kernels, *operands, Rules(), clock_);
  spent_ns_ += clock_() - start;
  if (!times[0].failure.empty()) {
    NPUMESH_INFO("tuning: \"{}\" is not measured: {}", step.name, times[0].failure);
    return nullptr;
  }
  TuningRecord record = RecordFor(step, key);
  record.winner = WinnerOf(times);
  record.candidates.push_back(CandidateOf(ordinary, times[0]));
  for (size_t i = 0; i < others.size(); ++i) {
    record.candidates.push_back(CandidateOf(others[i], times[i + 1]));
  }
  // A winner counts when others learn of it.
  if (const Status written = records_.Publish(record); !written.ok()) {
    Advise(fmt::format("tuning: {}; operators without a record keep their ordinary kernels",
                       written.message()));
    return nullptr;
  }
  ++stats_.measured;
  Count(record);
  TellTuned(record, *kernels[record.winner]);
  return record.winner == 0 ? nullptr : std::move(others[record.winner - 1].kernel);
}

ContestRules Tuner::Rules() const {
  const auto nanoseconds = [](std::chrono::milliseconds span) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(span).count();
  };
  ContestRules rules;
  const bool left = spent_ns_ < nanoseconds(options_.whole_budget);
  rules.budget_ns = left ? nanoseconds(options_.step_budget) : 0;
  return rules;
}

TuningRecord Tuner::RecordFor(const TunableStep& step, const std::string& key) const {
  TuningRecord record;
  record.key = key;
  record.step = TitleOf(step);
  record.instructions = machine_.instructions;
  record.cpu = machine_.cpu;
  record.npumesh = NPUMESH_VERSION;
  record.created = NowInUtc();
  return record;
}

std::unique_ptr<Kernel> Tuner::FromRecord(const TuningRecord& record, const MakeKernel& make) {
  Result<Trial> trial = Try(record.best().decisions, make);
  if (!trial.ok() || !trial->honoured()) {
    Advise(fmt::format("tuning: {} is passed over, and measured anew: here is no \"{}\"",
                       records_.PathOf(record.key), TextOf(record.best().decisions)));
    return nullptr;
  }
  ++stats_.found;
  Count(record);
  TellTuned(record, *trial->kernel);
  return std::move(trial->kernel);
}

void Tuner::Count(const TuningRecord& record) {
  stats_.improved += record.winner != 0 ? 1 : 0;
  stats_.ordinary_us += record.ordinary().median_us;
  stats_.best_us += record.best().median_us;
}

}  // namespace npumesh
