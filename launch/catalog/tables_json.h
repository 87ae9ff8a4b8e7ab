// The tables of operators, environment variables and options, for programs: `npumesh ops --json`,
// `npumesh env --json` and `npumesh config --json` (docs/json.md).
#ifndef NPUMESH_LAUNCH_CATALOG_TABLES_JSON_H_
#define NPUMESH_LAUNCH_CATALOG_TABLES_JSON_H_

#include <functional>

#include "graph/ops/core/op_registry.h"
#include "launch/report/command_report.h"

namespace npumesh {

// Verdict "ok", key "operators".
CommandReport OpsReport(const OpRegistry& registry);

// Verdict "ok", key "variables". `get` returns null for an unset variable.
CommandReport EnvReport(const std::function<const char*(const char*)>& get);

// Verdict "ok", key "options": every option of `run`.
CommandReport OptionsReport();

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_CATALOG_TABLES_JSON_H_
