#include "graph/inject/fault_injector.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "graph/engine/plan/compiled_model.h"
#include "runtime/base/log.h"

namespace npumesh {

namespace {

Status NotFound(const Fault& fault) {
  return Error(Code::kNotFound,
               "--inject: rank {} runs no operator \"{}\"; views, folded constants and dead "
               "nodes do not run, `npumesh graph --plan` lists the names",
               fault.rank, fault.op);
}

}  // namespace

FaultInjector::FaultInjector(const std::vector<Fault>& faults, int rank, uint64_t seed)
    : seed_(seed) {
  for (const Fault& fault : faults) {
    if (fault.rank == rank) faults_.push_back({fault, fault.op.empty()});
  }
}

Status FaultInjector::BeforeRun(const RunView& run) {
  first_plan_ = iteration_ != run.iteration;
  iteration_ = run.iteration;
  const std::vector<Step>& steps = run.model.steps();
  for (Planted& planted : faults_) {
    planted.found = planted.found || std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
                      return step.name == planted.fault.op;
                    });
  }
  return run.part ? Status() : CheckFound();
}

Status FaultInjector::CheckFound() const {
  for (const Planted& planted : faults_) {
    if (!planted.found) return NotFound(planted.fault);
  }
  return Status();
}

bool FaultInjector::Strikes(const Fault& fault, const StepView& view) const {
  if (fault.step && *fault.step != view.run.iteration) return false;
  return fault.op.empty() ? first_plan_ && view.index == 0 : view.step.name == fault.op;
}

Status FaultInjector::BeforeStep(const StepView& view) {
  for (const auto& [fault, found] : faults_) {
    if (fault.kind == Fault::Kind::kCorrupt || !Strikes(fault, view)) continue;
    NPUMESH_INFO("--inject strikes rank {} at \"{}\"", fault.rank, view.step.name);
    if (fault.kind == Fault::Kind::kDelay) std::this_thread::sleep_for(fault.delay);
    if (fault.kind == Fault::Kind::kKill) ::kill(::getpid(), SIGKILL);
    if (fault.kind == Fault::Kind::kExit) ::_exit(fault.exit_code);
  }
  return Status();
}

Status FaultInjector::AfterStep(const StepView& view) {
  for (const auto& [fault, found] : faults_) {
    if (fault.kind == Fault::Kind::kCorrupt && Strikes(fault, view)) {
      NPUMESH_RETURN_IF_ERROR(Corrupt(fault, view).WithContext("--inject"));
    }
  }
  return Status();
}

Status FaultInjector::Corrupt(const Fault& fault, const StepView& view) const {
  const std::vector<TensorType>& outputs = view.step.output_types;
  const auto output = static_cast<size_t>(fault.output);
  const size_t own = outputs.size() - view.step.others;
  if (output >= own || outputs[output].bytes() == 0) {
    return Error(Code::kInvalidArgument,
                 "output={}: \"{}\" has {} outputs, and it must not be empty", fault.output,
                 fault.op, own);
  }
  NPUMESH_ASSIGN_OR_RETURN(const int64_t element,
                           ElementToHit(fault, outputs[output].shape.elements(), seed_));
  NPUMESH_INFO("--inject corrupts element {} of output {} of \"{}\" on rank {}", element,
               fault.output, fault.op, fault.rank);
  return CorruptElement(outputs[output], view.args.out[output], element);
}

}  // namespace npumesh
