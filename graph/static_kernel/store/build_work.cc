#include "graph/static_kernel/store/build_work.h"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <thread>

#include "graph/digest/sha256.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

// How long a manifest may stay invisible after the lock of its builder is gone.
constexpr std::chrono::milliseconds kLateLookUp{200};
constexpr std::chrono::milliseconds kBetweenLookUps{5};
// A failure of a living process counts for others that long.
constexpr int64_t kFreshFailureSeconds = 600;
// So many kernels one after another may use up the time limit before the rest of them is given up.
constexpr int kMostLateKernels = 2;
// Programs of one translation unit.
constexpr size_t kProgramsOfUnit = 64;

// One of another process that still lives, so that ranks of one job that come late do not try again
// what the others could not build.
bool IsFreshFailure(const FailureNote& note, const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return false;
  const LockOwner me = LockOwner::Me();
  const int64_t age = time(nullptr) - info.st_mtime;
  return note.builder.host == me.host && note.builder != me && !note.builder.gone() &&
         std::abs(age) < kFreshFailureSeconds;
}

// A translation unit.
struct SourceUnit {
  std::string file;  // name
  std::string text;
};

std::vector<SourceUnit> UnitsOf(const BuildPlan& plan, int run,
                                const std::vector<const KernelSource*>& kernels) {
  std::vector<SourceUnit> units;
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (!plan.shown_in.empty()) {
      units.push_back({kernels[k]->file, CompleteSource(plan.beginning, kernels[k]->program)});
    } else if (k % kProgramsOfUnit == 0) {
      units.push_back({fmt::format("kernels_{}_{}.cc", run, units.size()),
                       CompleteSource(plan.beginning, kernels[k]->program)});
    } else {
      units.back().text += kernels[k]->program + "\n";
    }
  }
  return units;
}

}  // namespace

Result<BuildOutcome> BuildWork::Run() {
  LookAtPlan();
  if (AllSettled()) return Outcome();
  if (!store_.writable()) {
    return Error(Code::kIo,
                 "{} of {} static kernels are missing and the kernel store {} takes no files; make "
                 "it writable or set NPUMESH_KERNEL_STORE",
                 wanted_.size(), plan_.kernels.size(), store_.root());
  }
  RemoveDeadBuilders(files_.Folder("work"));
  for (bool share_only = plan_.sharers > 1; !AllSettled(); share_only = false) {
    NPUMESH_ASSIGN_OR_RETURN(std::vector<Taken> taken, Take(share_only));
    DropWhatIsThere(&taken);
    if (!taken.empty()) {
      NPUMESH_RETURN_IF_ERROR(Compile(&taken));
    } else if (!share_only && !AllSettled()) {
      NPUMESH_RETURN_IF_ERROR(Wait());
      std::this_thread::sleep_for(kBetweenLookUps);  // another process may be taking it over
    }
  }
  return Outcome();
}

void BuildWork::LookAtPlan() {
  objects_.resize(plan_.kernels.size());
  for (size_t k = 0; k < plan_.kernels.size(); ++k) {
    const KernelSource& source = plan_.kernels[k];
    objects_[k] = store_.Find(source.key);
    if (objects_[k]) {
      ++outcome_.found;
      continue;
    }
    Wanted wanted;
    wanted.source = &source;
    wanted.index = k;
    wanted.before = files_.ReadFailure(source.key);
    if (wanted.before && IsFreshFailure(*wanted.before, files_.FailurePath(source.key))) {
      wanted.before.reset();  // counts as one that comes now
    }
    wanted_.push_back(std::move(wanted));
  }
}

bool BuildWork::AllSettled() const {
  return std::all_of(wanted_.begin(), wanted_.end(), [](const Wanted& w) { return w.settled; });
}

Result<std::vector<BuildWork::Taken>> BuildWork::Take(bool share_only) {
  std::vector<Taken> taken;
  for (Wanted& wanted : wanted_) {
    if (wanted.settled) continue;
    if (share_only && static_cast<int>(wanted.index) % plan_.sharers != plan_.share) continue;
    const std::string path = files_.LockPath(wanted.source->key);
    NPUMESH_ASSIGN_OR_RETURN(auto lock, LosesPatience(&wanted)
                                            ? KernelLock::TakeFrom(path, wanted.holder)
                                            : KernelLock::TryTake(path));
    if (lock) {
      taken.push_back({&wanted, *std::move(lock)});
    } else {
      wanted.contested = company_ = true;
    }
  }
  return taken;
}

void BuildWork::DropWhatIsThere(std::vector<Taken>* taken) {
  const Deadline late = Deadline::After(kLateLookUp);
  const auto there = [this](const Taken& each) { return SettleIfThere(each.wanted); };
  const auto doubtful = [this](const Taken& each) { return company_ || each.wanted->contested; };
  for (;;) {
    std::erase_if(*taken, there);
    if (std::none_of(taken->begin(), taken->end(), doubtful) || late.expired()) return;
    std::this_thread::sleep_for(kBetweenLookUps);
    files_.Refresh("manifests");
    files_.Refresh("failures");
  }
}

Status BuildWork::Wait() {
  WaitPolicy policy;
  policy.spins = 4;
  policy.yields = 16;
  policy.nap_ns = 5'000'000;
  return WaitUntil(
      policy, [this] { return SomethingHasChanged(); }, [] { return Status(); });
}

bool BuildWork::SomethingHasChanged() {
  bool changed = false;
  for (Wanted& wanted : wanted_) {
    if (wanted.settled) continue;
    // The lock first: what its owner published was there before it went.
    const bool free = MayBeTaken(files_.LockPath(wanted.source->key)) || LosesPatience(&wanted);
    changed = SettleIfThere(&wanted) || free || changed;
  }
  return changed;
}

// Patience begins again with each new holder.
bool BuildWork::LosesPatience(Wanted* wanted) {
  const auto holder = OwnerOf(files_.LockPath(wanted->source->key));
  const bool same = holder == wanted->holder && wanted->patience.at != Deadline::Never().at;
  if (!same) {
    wanted->holder = holder;
    wanted->patience = Deadline::After(plan_.wait_limit);
  }
  return same && wanted->patience.expired();
}

bool BuildWork::SettleIfThere(Wanted* wanted) {
  if (auto kernel = store_.Find(wanted->source->key)) {
    Settle(wanted, *std::move(kernel), &BuildOutcome::awaited);
    return true;
  }
  const auto failure = files_.ReadFailure(wanted->source->key);
  if (!failure || (wanted->before && wanted->before->text == failure->text)) return false;
  Fail(wanted, failure->why);
  return true;
}

void BuildWork::Settle(Wanted* wanted, KernelObject kernel, int BuildOutcome::*count) {
  objects_[wanted->index] = std::move(kernel);
  wanted->settled = true;
  ++(outcome_.*count);
}

void BuildWork::Fail(Wanted* wanted, std::string why) {
  outcome_.failures.push_back({wanted->source->key, wanted->source->title, std::move(why)});
  wanted->settled = true;
}

void BuildWork::FailForAll(Wanted* wanted, const Status& why) {
  const Status told =
      files_.PublishFailure(work_->path(), wanted->source->key, std::string(why.message()));
  if (!told.ok()) NPUMESH_WARNING("other processes will try again: {}", told.message());
  Fail(wanted, std::string(why.message()));
}

Status BuildWork::PrepareCompiler() {
  if (!compiler_) {
    compiler_ = find_compiler_ ? find_compiler_()
                               : Result<SystemCompiler>(Error(Code::kNotFound, "no C++ compiler"));
  }
  return compiler_->status();
}

Status BuildWork::Compile(std::vector<Taken>* taken) {
  if (const Status none = PrepareCompiler(); !none.ok()) {
    for (const Taken& each : *taken) Fail(each.wanted, std::string(none.message()));
    return Status();
  }
  if (!work_) {
    NPUMESH_ASSIGN_OR_RETURN(auto work, BuilderFolder::Make(files_.Folder("work"), files_.fs()));
    work_.emplace(std::move(work));
  }
  std::vector<Taken*> all;
  for (Taken& each : *taken) all.push_back(&each);
  Status compiled;
  NPUMESH_RETURN_IF_ERROR(CompileTogether(all, &compiled));
  if (compiled.ok()) return Status();
  if (taken->size() > 1) return CompileOneByOne(taken, compiled);
  FailForAll(taken->front().wanted, compiled);
  return Status();
}

Status BuildWork::CompileOneByOne(std::vector<Taken>* taken, const Status& together) {
  NPUMESH_INFO("{} static kernels do not compile together ({}); now one by one", taken->size(),
               together.message());
  int late = 0;
  for (Taken& each : *taken) {
    Status compiled;
    if (late >= kMostLateKernels) {
      compiled = Error(Code::kTimeout,
                       "not tried, because the compiler did not end in time for {} "
                       "other kernels, {} s each",
                       late, plan_.time_limit.count());
    } else {
      NPUMESH_RETURN_IF_ERROR(CompileTogether({&each}, &compiled));
      late = compiled.code() == Code::kTimeout ? late + 1 : 0;
    }
    if (!compiled.ok()) FailForAll(each.wanted, compiled);
    each.lock.Release();
  }
  return Status();
}

Status BuildWork::CompileTogether(const std::vector<Taken*>& taken, Status* compiled) {
  std::vector<const KernelSource*> kernels;
  for (const Taken* each : taken) kernels.push_back(each->wanted->source);
  CompileRequest request;
  request.instructions = plan_.instructions;
  request.debug = plan_.debug;
  request.shown_in = plan_.shown_in;
  request.time_limit = plan_.time_limit;
  request.object = fmt::format("{}/kernels_{}.so", work_->path(), ++runs_);
  for (const SourceUnit& unit : UnitsOf(plan_, runs_, kernels)) {
    request.sources.push_back(fmt::format("{}/{}", work_->path(), unit.file));
    NPUMESH_ASSIGN_OR_RETURN(const auto file, SecureFile::Create(request.sources.back(),
                                                                 FileKind::kKernel, files_.fs()));
    NPUMESH_RETURN_IF_ERROR(file->Append(unit.text));
    NPUMESH_RETURN_IF_ERROR(file->CommitUnsynced());
  }
  const auto begin = SteadyClock::now();
  *compiled = (*compiler_)->Compile(request);
  outcome_.compile_seconds += std::chrono::duration<double>(SteadyClock::now() - begin).count();
  return compiled->ok() ? Publish(taken, request.object) : Status();
}

// The lock of a key is given back when its manifest is there.
Status BuildWork::Publish(const std::vector<Taken*>& taken, const std::string& object) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(object));
  const std::string sha256 = Sha256(bytes);
  NPUMESH_RETURN_IF_ERROR(files_.PublishObject(work_->path(), sha256, bytes));
  for (Taken* each : taken) {
    const KernelSource& source = *each->wanted->source;
    KernelObject kernel;
    kernel.key = source.key;
    kernel.symbol = source.symbol;
    kernel.title = source.title;
    kernel.object = files_.ObjectPath(sha256);
    kernel.sha256 = sha256;
    kernel.instructions = NameOf(plan_.instructions);
    kernel.compiler = (*compiler_)->version();
    kernel.generator = plan_.generator;
    kernel.created = NowInUtc();
    NPUMESH_RETURN_IF_ERROR(files_.PublishKernel(work_->path(), kernel, &source));
    Settle(each->wanted, std::move(kernel), &BuildOutcome::compiled);
  }
  NPUMESH_RETURN_IF_ERROR(files_.SyncManifests());
  for (Taken* each : taken) each->lock.Release();
  return Status();
}

BuildOutcome BuildWork::Outcome() {
  for (auto& object : objects_) {
    if (object) outcome_.objects.push_back(*std::move(object));
  }
  return std::move(outcome_);
}

}  // namespace npumesh
