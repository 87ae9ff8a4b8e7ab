// The ONNX operators that npumesh translates, as text and as the table of docs/onnx.md.
#ifndef NPUMESH_LAUNCH_CATALOG_ONNX_TABLE_H_
#define NPUMESH_LAUNCH_CATALOG_ONNX_TABLE_H_

#include <string>

#include "launch/report/command_report.h"

namespace npumesh {

// A line for each row: operator, since which version, what becomes of it.
std::string OnnxOpsAsText();
std::string OnnxOpsAsMarkdown();

// Verdict "ok", key "operators".
CommandReport OnnxOpsReport();

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_CATALOG_ONNX_TABLE_H_
