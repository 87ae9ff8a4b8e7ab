// NpyDumper: `debug.data_dump` of type "npy": every tensor of every operator as a file that
// numpy.load reads.
//
//   {path}/worldsize{W}_global_rank{R}/{graph}/{step}/{node}-{type}.{INPUT|OUTPUT}.{i}.{time}.npy
//
// Time: UTC, YYYYMMDDHHMMSSffffff. bfloat16 is stored as float32. There is no fx graph here: nodes
// and types are those of the Ascend graph, of which each operator runs by itself in any case. A
// step is one run of the session, of however many plans.
//
// Thread-safety: one run at a time.
#ifndef NPUMESH_GRAPH_DUMP_WRITER_NPY_DUMPER_H_
#define NPUMESH_GRAPH_DUMP_WRITER_NPY_DUMPER_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "graph/dump/statistics/operands.h"
#include "graph/dump/writer/dump_writer.h"
#include "graph/dump/writer/manifest.h"
#include "graph/dump/writer/place.h"
#include "graph/engine/run/step_observer.h"
#include "graph/ir/graph.h"

namespace npumesh {

struct NpyDumpOptions {
  std::string path = ".";
  // Nodes whose tensors are dumped; empty: all.
  std::function<bool(const Node&)> filter;
  // Bytes that may wait for the disk.
  uint64_t queue_bytes = uint64_t{8} << 20;
};

class NpyDumper final : public StepObserver {
 public:
  // `fs` must outlive it.
  NpyDumper(NpyDumpOptions options, const DumpPlace& place, FileSystem& fs = RealFileSystem());

  Status BeforeRun(const RunView& run) override;
  Status BeforeStep(const StepView& view) override;
  Status AfterStep(const StepView& view) override;

  // Waits for the disk; the first error of the dump is in the report. No run may follow.
  DumpReport Finish();

 private:
  bool Wants(const StepView& view) const;
  void Dump(const Step& step, std::string_view side, const std::vector<DumpOperand>& operands);

  const NpyDumpOptions options_;
  const std::string root_;
  DumpWriter writer_;
  std::optional<uint64_t> iteration_;  // of the last run
  uint64_t steps_ = 0;                 // dumped so far
  std::string folder_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_WRITER_NPY_DUMPER_H_
