// StaticKernels: from regions of a graph to loaded machine code.
//
//   regions -> records (output tree) -> keys -> store, compiler -> shared objects -> entries
//
// Thread-safety: none; one object for each session. Processes of one node share the work through
// the store (kernel_store.h); nothing here is collective.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_STATIC_KERNELS_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_STATIC_KERNELS_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/ops/core/static_kernels.h"
#include "graph/ops/core/tuning.h"
#include "graph/static_kernel/record/kernel_meta.h"
#include "graph/static_kernel/record/output_tree.h"
#include "graph/static_kernel/store/kernel_store.h"

namespace npumesh {

struct StaticKernelOptions {
  std::string build_dir;   // below which the output tree is made; empty: the working folder
  std::string store_root;  // empty: KernelStoreRoot()
  // Ranks of this node, and which of them this is.
  int sharers = 1;
  int share = 0;
  // Kernels are made only while open dimension number `open_index` of the inputs has one of these
  // sizes; empty: always.
  std::vector<int64_t> open_sizes;
  int64_t open_index = 0;
  // Says in the log which operators became which kernel.
  bool trace = false;
};

struct StaticKernelStats {
  int graphs = 0;    // graphs, and sets of input shapes, that asked
  int kernels = 0;   // distinct keys
  int compiled = 0;  // by this process
  int found = 0;     // in the store
  int awaited = 0;   // compiled by others meanwhile
  int failed = 0;
  double build_seconds = 0;
  double load_seconds = 0;
};

class StaticKernels final : public StaticKernelSource {
 public:
  // Errors: those of OutputTree::Check for build_dir, of KernelStore::Open for the store.
  static Result<std::unique_ptr<StaticKernels>> Create(StaticKernelOptions options);
  ~StaticKernels() override;

  // One warning for the kernels that one cause keeps from being built, and one when the graph's
  // shapes keep changing.
  std::vector<StaticKernel> Make(const std::vector<StaticRegion>& regions,
                                 const std::vector<StaticOperator>& all) override;

  // Keeps in kernel_meta below `parent` (empty: the working folder) what op_debug_level `level`, in
  // [1, 4], asks for; with level 2 a debugger can stop on the lines of a kernel. Errors as
  // KernelMeta::Open; kInvalidArgument: compilers do not take the path of level 2. A file that
  // cannot be written later is one warning. REQUIRES: Make was not called.
  Status KeepMeta(int level, const std::string& parent);

  // The sizes of the open dimensions of all inputs in the run that comes; see open_sizes.
  void See(const std::vector<int64_t>& sizes);

  // Who chooses between the widths of a kernel from now on; null: the generator does. Then each
  // kernel is built in all widths. Must outlive this object.
  void set_tuner(KernelTuner* tuner) { tuner_ = tuner; }

  const StaticKernelStats& stats() const { return stats_; }

 private:
  class Library;
  using Records = std::map<const OpContext*, OpRecord>;
  StaticKernels(StaticKernelOptions options, KernelStore store);

  // What the system compiler is; found once. Without one the store serves what it has.
  const Result<SystemCompiler>& compiler();
  // `width` as for KernelText.
  KernelSource SourceOf(const StaticRegion& region, const Records& records, int64_t width);
  // The widths to build a region in, the ordinary one (0) first.
  std::vector<int64_t> WidthsOf(const StaticRegion& region) const;
  // The best of a region's kernels, given by width as WidthsOf; one without entry when the ordinary
  // one could not be had.
  StaticKernel Best(const StaticRegion& region, const std::string& symbol,
                    const std::vector<StaticKernel>& by_width);
  bool debugs() const { return meta_ && meta_->level() == 2; }
  std::string KeyOf(const std::string& content, const std::string& symbol);
  BuildOutcome Build(const std::vector<KernelSource>& wanted);
  void Warn(const std::vector<BuildFailure>& failures);
  Status WriteTree(const std::vector<StaticRegion>& regions, const std::vector<StaticOperator>& all,
                   const Records& records, const std::vector<KernelObject>& kernels);
  Status WriteMeta(const std::vector<StaticRegion>& regions,
                   const std::vector<KernelSource>& wanted, const BuildOutcome& outcome);
  std::vector<StaticKernel> Load(const std::vector<KernelSource>& wanted,
                                 const BuildOutcome& outcome);
  Result<std::shared_ptr<const Library>> Open(const std::string& object);
  void TellOfChangingShapes();

  StaticKernelOptions options_;
  std::optional<KernelMeta> meta_;  // op_debug_level above 0
  bool wanted_ = true;              // for the open dimensions that were seen
  KernelStore store_;
  InstructionSet instructions_;
  std::optional<Result<SystemCompiler>> compiler_;
  std::optional<std::map<std::string, std::string>> installed_;      // keys by symbol
  std::map<std::string, std::shared_ptr<const Library>> libraries_;  // by path
  KernelTuner* tuner_ = nullptr;
  std::set<std::string> warned_;  // keys
  StaticKernelStats stats_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_STATIC_KERNELS_H_
