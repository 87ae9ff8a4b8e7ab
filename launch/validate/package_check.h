// CheckPackage: is a package what its files say, before anything is run?
#ifndef NPUMESH_LAUNCH_VALIDATE_PACKAGE_CHECK_H_
#define NPUMESH_LAUNCH_VALIDATE_PACKAGE_CHECK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/op_registry.h"
#include "launch/validate/findings.h"
#include "runtime/base/status.h"

namespace npumesh {

struct CommandReport;

struct PackageReport {
  Findings findings;
  size_t ranks = 0;
  uint64_t nodes = 0;      // of all graphs
  uint64_t constants = 0;  // of all graphs; weights in files among them
  uint64_t constant_bytes = 0;
  uint64_t collectives = 0;
  bool matched = false;  // the collectives of all ranks were compared
};

// Told before each rank's graph, and each file of checksums.sha256, is read: so many of `total`
// are done. `what` is "rank" or "file".
using PackageProgress = std::function<void(std::string_view what, size_t done, size_t total)>;

// Checks names, graphs, weights, checksums, both JSON files, groups, and the collectives of all
// ranks against each other, all of them inside `folder`; `allow_outside`: weights, and where links
// lead, may be outside of it. Reads hostile bytes: every problem is a finding that names its file.
// Errors: `folder` is no package.
Result<PackageReport> CheckPackage(const std::string& folder,
                                   const OpRegistry& registry = BuiltinOps(),
                                   bool allow_outside = false,
                                   const PackageProgress& progress = {});

// A line for each finding, and a verdict.
std::string ReportText(const PackageReport& report);

// The same for programs: `npumesh validate --json` (docs/json.md). Verdict "valid" or "invalid".
CommandReport ToReport(const PackageReport& package);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VALIDATE_PACKAGE_CHECK_H_
