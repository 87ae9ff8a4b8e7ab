// What a session is told about arithmetic, and what that does to its model (docs/precision.md).
#ifndef NPUMESH_GRAPH_SESSION_PRECISION_OPTIONS_H_
#define NPUMESH_GRAPH_SESSION_PRECISION_OPTIONS_H_

#include <string>

#include "graph/config/mix_list.h"
#include "graph/config/system_options.h"
#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"
#include "runtime/base/status.h"

namespace npumesh {

struct PrecisionOptions {
  std::string mode;            // a word of precision_mode; empty: operators keep their types
  MixList lists;               // modify_mixlist
  std::string implementation;  // op_select_implmode; empty: what is precise
  std::vector<std::string>
      implementation_types;  // optypelist_for_implmode; empty: all that have two
  // Operator types and names of nodes whose types stay, whatever the mode (atc --keep_dtype).
  std::vector<std::string> kept_types, kept_nodes;
  bool inference = false;  // graph_run_mode 0: parameters are frozen
  bool wanted() const { return !mode.empty() || !implementation.empty() || inference; }
};

// What the options of `initialize_system` say: precision_mode, modify_mixlist, op_select_implmode
// and graph_run_mode. Errors as ReadMixList.
Result<PrecisionOptions> PrecisionOf(const SystemOptions& options);

// Applies mode, lists and implementation to the main graph and all subgraphs of a prepared model
// (PrepareModel): ChoosePrecision, with types that follow from the declared inputs, and kImplMode
// on what has two implementations. An operator whose type no declared input tells keeps its types.
// Warns of types in the lists that no operator has. Errors: kInvalidArgument for a mode without a
// rule; as InputsOf and ChoosePrecision. `groups` may be null: what collectives give is unknown
// then. Not collective.
Status ApplyPrecision(Model& model, const PrecisionOptions& options, const OpRegistry& registry,
                      GroupProvider* groups);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_PRECISION_OPTIONS_H_
