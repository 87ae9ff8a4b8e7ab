// KernelStore: compiled static kernels of this user, found by content.
//
//   <root>/manifests/<key>.json   which object has the kernel: the only point of publication
//   <root>/objects/<sha256>.so    shared objects, named by their content
//   <root>/sources/<key>.cc, <key>.json  source and operators of a kernel, for people
//   <root>/locks/<key>            who builds it now (kernel_lock.h)
//   <root>/failures/<key>.json    why it could not be built, for those who waited
//   <root>/work                   where builders work, each in a separate folder,
//                                 <host>.<boot>.<pid>.<start>.<space>.<n>; that of a dead one is
//                                 removed by the next that builds, and by Collect
//
// An object is written aside, synced and renamed before the manifests that name it are, so no
// process ever sees a manifest without its object, whenever a builder is killed. A manifest has the
// SHA-256 of its object, which is checked once before the object is used, and again when the file
// has changed; a bad one counts as absent, with one warning.
//
// Root: NPUMESH_KERNEL_STORE, else $XDG_CACHE_HOME/npumesh/kernels, else ~/.cache/npumesh/kernels.
// Folders 0700, files 0600. A root that belongs to another user, or that others may write, is
// refused, because its objects are run.
//
// Thread-safety: none; any number of processes, also of several hosts, and of threads with a
// KernelStore each.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_STORE_KERNEL_STORE_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_STORE_KERNEL_STORE_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/static_kernel/store/instruction_set.h"
#include "graph/static_kernel/store/kernel_object.h"
#include "graph/static_kernel/store/system_compiler.h"
#include "runtime/base/env/env_table.h"
#include "runtime/base/files/file_system.h"
#include "runtime/base/status.h"

namespace npumesh {

class StoreFiles;

// The store of this user; see above. A relative NPUMESH_KERNEL_STORE is below the working folder; a
// relative XDG_CACHE_HOME does not count. Error (kNotFound) when neither variable nor home says
// where.
Result<std::string> KernelStoreRoot();
// The same through `get`, which returns null for an unset variable.
Result<std::string> KernelStoreRoot(const std::function<const char*(const char*)>& get);

// NPUMESH_KERNEL_STORE, for the manual.
std::span<const EnvVariable> KernelStoreEnvTable();

// How manifests, failures and sources are read: ReadFile, or what a test puts in its place to make
// look-ups come late.
using StoreReader = std::function<Result<std::string>(const std::string& path)>;
Result<std::string> ReadStoreFile(const std::string& path);

// What a builder needs; `beginning` is the common text in front of all programs.
struct BuildPlan {
  std::vector<KernelSource> kernels;  // keys are distinct
  std::string beginning;
  std::string generator;  // version of what wrote the programs, for the manifests
  InstructionSet instructions = InstructionSet::kBaseline;
  bool debug = false;
  // Folder of the files that a debugger shows (KernelSource::file); empty: none. Each kernel is a
  // translation unit then. The keys of the kernels name it.
  std::string shown_in;
  // Ranks of this node that ask for about the same keys, and which of them this is: each begins
  // with its share.
  int sharers = 1;
  int share = 0;
  std::chrono::seconds time_limit{60};  // for one run of the compiler
  // For another builder of a key. After it the key is taken from that builder, which may be stopped
  // or on a host that is gone.
  std::chrono::seconds wait_limit{120};
};

struct BuildFailure {
  std::string key;
  std::string title;
  std::string why;  // one line
};

struct BuildOutcome {
  std::vector<KernelObject> objects;  // of all keys but the failed ones, in the order of the plan
  std::vector<BuildFailure> failures;
  int compiled = 0;  // keys that this process compiled
  int found = 0;     // that were there
  int awaited = 0;   // that others compiled meanwhile
  double compile_seconds = 0;
};

class KernelStore {
 public:
  // Creates what is missing of the store's folders. A store that cannot be written is opened for
  // reading (writable() is false), so that what it has is used. Errors: kInvalidArgument: the root
  // or one of its folders is a link or no folder, belongs to another user or may be written by
  // others; kIo: the root can neither be read nor made. `fs` outlives the store.
  static Result<KernelStore> Open(std::string root, FileSystem& fs = RealFileSystem(),
                                  StoreReader reader = ReadStoreFile);

  const std::string& root() const { return root_; }
  bool writable() const { return writable_; }

  // The published kernel; nullopt: not there, or damaged (one warning names the file).
  std::optional<KernelObject> Find(std::string_view key);
  // All that Find would find, in the order of their titles.
  std::vector<KernelObject> List();

  // Compiles what is missing, with `compiler`, which is asked for at most once, and only when there
  // is something to compile; its error becomes the failure of the keys. Several processes that do
  // this at once share the work; a key that a living process builds is waited for, at most
  // wait_limit, spinning briefly and then sleeping. Not collective: any process may be killed at
  // any moment, and the others wait for it no longer than it lives. Failures of single keys are in
  // the outcome; one that another process met meanwhile is not tried again. Errors of the whole:
  // kIo when the store takes no files; kInvalidArgument when a key is malformed.
  Result<BuildOutcome> Build(const BuildPlan& plan,
                             const std::function<Result<SystemCompiler>()>& compiler);

  // Puts a compiled object with its kernels into the store, as `npumesh kernels install` and
  // packages do. Each kernel's sha256 is that of the object, its `object` does not matter;
  // `sources` are of some or all of them. Errors: kCorrupt: the object has another SHA-256;
  // kInvalidArgument: a key is malformed; kNotFound: there is no object; kIo.
  Status Install(const std::string& object_path, const std::vector<KernelObject>& kernels,
                 const std::vector<KernelSource>& sources);
  // Removes manifests, sources and the objects that no manifest names any more. What is not there
  // is passed over. While other builders work, objects stay for Collect.
  Status Remove(const std::vector<std::string>& keys);

  struct Damage {
    std::string file;
    std::string what;
  };
  // Checks every manifest, object and source. What killed builders leave is no damage.
  std::vector<Damage> Verify();
  // Removes objects and sources without manifest (unless builders work), damaged manifests and
  // objects, work folders and locks of dead builders, failures, and kernels that no Build and no
  // Find asked for during `age`; their paths.
  std::vector<std::string> Collect(std::chrono::hours age);

 private:
  KernelStore(std::string root, bool writable, std::shared_ptr<StoreFiles> files)
      : root_(std::move(root)), writable_(writable), files_(std::move(files)) {}
  Status RefuseUnwritable() const;
  std::string root_;
  bool writable_ = false;
  std::shared_ptr<StoreFiles> files_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_STORE_KERNEL_STORE_H_
