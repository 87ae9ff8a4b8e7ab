// What a dump was allowed to do, what came of it, and the file that says so.
#ifndef NPUMESH_GRAPH_DUMP_WRITER_MANIFEST_H_
#define NPUMESH_GRAPH_DUMP_WRITER_MANIFEST_H_

#include <cstdint>
#include <string>

#include "graph/dump/options/settings.h"
#include "graph/dump/writer/dump_writer.h"
#include "graph/dump/writer/place.h"
#include "runtime/base/files/file_system.h"
#include "runtime/base/status.h"

namespace npumesh {

struct DumpLimits {
  // Bytes of tensor files this rank may write; after them only statistics are. 0: no bound.
  uint64_t max_bytes = 0;
  // Bytes that may wait for the disk.
  uint64_t queue_bytes = uint64_t{8} << 20;
  // An error of the dump ends the run.
  bool stop_on_error = false;
};

// What came of a dump. `counts` are final after Finish.
struct DumpReport {
  std::string folder;  // the time folder; empty: no steps are dumped
  DumpCounts counts;
  uint64_t degraded_files = 0;  // statistics in place of tensors, because of max_bytes
  uint64_t degraded_bytes = 0;  // that their tensors have
  uint64_t overflows = 0;       // operators
  uint64_t steps = 0;           // dumped
  Status error;                 // the first
};

// Writes "{time folder}/manifest.json", or "manifest_{model_id}.json" for other sessions of the job
// than the first (docs/dump.md lists its fields).
Status WriteManifest(const DumpSettings& settings, const DumpPlace& place, const DumpLimits& limits,
                     const std::string& model_name, const DumpReport& report, FileSystem& fs);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_WRITER_MANIFEST_H_
