// Which passes of the compiler run: fusion_switch_file, optimization_switch and oo_level.
#ifndef NPUMESH_GRAPH_CONFIG_PASS_SWITCHES_H_
#define NPUMESH_GRAPH_CONFIG_PASS_SWITCHES_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "graph/config/compiler_config.h"
#include "runtime/base/status.h"

namespace npumesh {

inline constexpr std::string_view kConstantFoldingPass = "ConstantFoldingPass";
inline constexpr std::string_view kDeadNodeEliminationPass = "DeadNodeEliminationPass";

class PassSwitches {
 public:
  PassSwitches() = default;

  // Reads what the config names. Errors: kIo, kNotFound; kInvalidArgument naming file, pass and
  // what is accepted.
  static Result<PassSwitches> From(const CompilerConfig& config);

  // Text of a switch file: JSON, or lines of `PassName:on`. Errors begin with `file`.
  static Result<PassSwitches> Parse(std::string_view text, std::string_view file);

  // The first that says something: optimization_switch, passes that O1 keeps, O1, the file's own
  // entry, the file's ALL; otherwise on.
  bool On(std::string_view pass) const;

 private:
  std::map<std::string, bool, std::less<>> option_;  // optimization_switch
  std::map<std::string, bool, std::less<>> file_;    // Switch.GraphFusion and Switch.UBFusion
  std::optional<bool> all_;
  std::set<std::string, std::less<>> kept_by_o1_;
  bool o1_ = false;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_CONFIG_PASS_SWITCHES_H_
