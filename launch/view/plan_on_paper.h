// The plan of a graph without ranks and without running it.
#ifndef NPUMESH_LAUNCH_VIEW_PLAN_ON_PAPER_H_
#define NPUMESH_LAUNCH_VIEW_PLAN_ON_PAPER_H_

#include <vector>

#include "graph/session/session.h"
#include "launch/view/plan_view.h"

namespace npumesh {

// For whom the plan is.
struct PaperRank {
  int rank = 0;
  int world_size = 1;
};

// What a Session with these options compiles for inputs of these types, by position in
// InputsOf(model). `values` as for CompiledModel::Compile. Of a graph that is cut into stages, the
// plan of the first one and what is known of the others, with their plans where no open dimension
// is left. Errors as CompiledModel::Compile.
Result<PlanView> PlanOnPaper(Model model, const std::vector<TensorType>& types,
                             const std::vector<Tensor>& values, const SessionOptions& options,
                             PaperRank place);

// All stages of a model whose input types are not known: its operators in the order in which they
// run, with what is known of their types. Errors as Session::Create.
Result<std::vector<StageOutline>> OutlineOnPaper(Model model, const SessionOptions& options,
                                                 PaperRank place);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VIEW_PLAN_ON_PAPER_H_
