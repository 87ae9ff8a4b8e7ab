#include "graph/session/prepare_model.h"

#include "graph/passes/analysis/overwrites.h"
#include "graph/passes/rewrite/branches.h"
#include "graph/passes/rewrite/private_formats.h"
#include "graph/passes/rewrite/subgraphs.h"
#include "graph/passes/rewrite/transposed_weights.h"
#include "graph/session/ref_data.h"

namespace npumesh {
namespace {

Status ResolveOverwrites(Model& model, const OpRegistry& registry) {
  NPUMESH_RETURN_IF_ERROR(ResolveOverwrites(model.graph, registry));
  for (Graph& graph : model.subgraphs) {
    NPUMESH_RETURN_IF_ERROR(ResolveOverwrites(graph, registry));
  }
  return Status();
}

}  // namespace

Status PrepareModel(Model& model, const SessionOptions& options, const OpRegistry& registry) {
  NPUMESH_RETURN_IF_ERROR(CheckSubgraphs(model));
  // A call reads its inputs where it stands, so that is settled before its graph takes its place;
  // what the graph itself overwrites, afterwards. First of all, because new nodes have high numbers
  // and change the stable order.
  NPUMESH_RETURN_IF_ERROR(ResolveOverwrites(model, registry));
  NPUMESH_RETURN_IF_ERROR(SeparateResults(model, registry));
  NPUMESH_RETURN_IF_ERROR(options.compile.fold_constants ? InlineKnownBranches(model, registry)
                                                         : InlineCalls(model));
  NPUMESH_RETURN_IF_ERROR(MakeValuesPlain(model));
  if (options.ref_data) MarkRefData(model, registry);
  NPUMESH_RETURN_IF_ERROR(ResolveOverwrites(model, registry));
  // From here on a weight has the same bytes wherever it is read.
  if (options.compile.fold_constants) ReadTransposedWeights(model, registry);
  return Status();
}

Status PrepareOnPaper(Model& model, const SessionOptions& options, const OpRegistry& registry,
                      GroupProvider* groups) {
  NPUMESH_RETURN_IF_ERROR(model.graph.Verify());
  NPUMESH_RETURN_IF_ERROR(PrepareModel(model, options, registry));
  NPUMESH_RETURN_IF_ERROR(ApplyPrecision(model, options.precision, registry, groups));
  return CheckModel(model, registry);
}

}  // namespace npumesh
