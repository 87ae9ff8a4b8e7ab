// BuildWork: one call of KernelStore::Build.
//
// Round after round it takes what no living process builds, compiles that in one run of the
// compiler and publishes it; when there is nothing to take it waits until a key that others build
// is published, has failed or is free.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_STORE_BUILD_WORK_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_STORE_BUILD_WORK_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/static_kernel/store/builder_folder.h"
#include "graph/static_kernel/store/kernel_lock.h"
#include "graph/static_kernel/store/kernel_store.h"
#include "graph/static_kernel/store/store_files.h"
#include "runtime/base/process/wait.h"

namespace npumesh {

class BuildWork {
 public:
  using CompilerFinder = std::function<Result<SystemCompiler>()>;

  // All of them outlive this object.
  BuildWork(KernelStore& store, StoreFiles& files, const BuildPlan& plan,
            const CompilerFinder& find_compiler)
      : store_(store), files_(files), plan_(plan), find_compiler_(find_compiler) {}

  // As KernelStore::Build. REQUIRES: keys are well formed; called once.
  Result<BuildOutcome> Run();

 private:
  // A key that was missing when the work began.
  struct Wanted {
    const KernelSource* source = nullptr;
    size_t index = 0;                   // in the plan
    std::optional<FailureNote> before;  // the failure that was there
    std::optional<LockOwner> holder;    // of the lock, when this process last looked
    Deadline patience;                  // with that holder
    bool contested = false;             // another process has built it, or tried to
    bool settled = false;               // published or failed
  };
  struct Taken {
    Wanted* wanted;
    KernelLock lock;
  };

  void LookAtPlan();
  bool AllSettled() const;

  // Takes the keys that no living process builds: of this process's share only, or all.
  Result<std::vector<Taken>> Take(bool share_only);
  // Settles what others have published or failed at meanwhile and gives its lock back. Where others
  // have been at work it looks for a moment, because a look-up may come late.
  void DropWhatIsThere(std::vector<Taken>* taken);
  Status Wait();
  bool SomethingHasChanged();
  bool LosesPatience(Wanted* wanted);

  // Errors are those of the store; a kernel that does not compile is settled as failed.
  Status Compile(std::vector<Taken>* taken);
  Status CompileTogether(const std::vector<Taken*>& taken, Status* compiled);
  Status CompileOneByOne(std::vector<Taken>* taken, const Status& together);
  Status Publish(const std::vector<Taken*>& taken, const std::string& object);
  Status PrepareCompiler();

  bool SettleIfThere(Wanted* wanted);
  void Settle(Wanted* wanted, KernelObject kernel, int BuildOutcome::*count);
  void Fail(Wanted* wanted, std::string why);
  // Fails, and tells those who wait.
  void FailForAll(Wanted* wanted, const Status& why);
  BuildOutcome Outcome();

  KernelStore& store_;
  StoreFiles& files_;
  const BuildPlan& plan_;
  const CompilerFinder& find_compiler_;

  std::vector<Wanted> wanted_;
  std::vector<std::optional<KernelObject>> objects_;  // as the plan
  BuildOutcome outcome_;
  std::optional<Result<SystemCompiler>> compiler_;
  std::optional<BuilderFolder> work_;
  int runs_ = 0;          // of the compiler
  bool company_ = false;  // other processes build as well
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_STORE_BUILD_WORK_H_
