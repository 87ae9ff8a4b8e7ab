// The dump of an operator that failed. Internal to graph/dump.
#ifndef NPUMESH_GRAPH_DUMP_WRITER_EXCEPTION_DUMP_H_
#define NPUMESH_GRAPH_DUMP_WRITER_EXCEPTION_DUMP_H_

#include "graph/dump/options/settings.h"
#include "graph/dump/writer/place.h"
#include "graph/engine/run/step_observer.h"
#include "runtime/base/files/file_system.h"

namespace npumesh {

// Writes {op_type}.{op_name}.{task}.{YYYYMMDDHHMMSSmmm} with inputs, outputs and workspace as they
// lie, or with ExceptionDump::kBrief "exception_info.{stream}.{task}.{time}" without their bytes.
// `error` becomes the file's dfx_message. Returns the path.
Result<std::string> WriteException(const DumpSettings& settings, const DumpPlace& place,
                                   const StepView& view, const Status& error, FileSystem& fs);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_WRITER_EXCEPTION_DUMP_H_
