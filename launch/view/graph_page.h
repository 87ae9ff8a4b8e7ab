// One self-contained HTML page that shows a graph (launch/page/page.h): its picture with repeated
// layers folded, a search over names, types and attributes, and all that a node says at a click.
#ifndef NPUMESH_LAUNCH_VIEW_GRAPH_PAGE_H_
#define NPUMESH_LAUNCH_VIEW_GRAPH_PAGE_H_

#include <string>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"
#include "launch/page/page.h"

namespace npumesh {

// The types that stand in the descriptors are shown: after InferTypes (value_types.h) all that are
// known. Error: kCorrupt for a cycle.
Result<std::string> GraphPage(const Model& model, const OpRegistry& registry,
                              const PageOrigin& origin = {});

// What graph.js reads, one JSON object:
//   command, version, written   as PageOrigin
//   facts     as ToJsonObject of GraphFacts (graph_facts.h)
//   nodes     list of ToJsonObject of NodeDetail (node_detail.h), the main graph first
//   drawings  list of {title, graph (or null: the main one), folded, whole}: drawings as drawing.js
//             reads them; a box has `node`, its name, empty for a box that stands for several;
//             whole is null where nothing is folded
Result<std::string> GraphPageData(const Model& model, const OpRegistry& registry,
                                  const PageOrigin& origin);

// graph.html, graph.css and graph.js, embedded when npumesh is built.
PageTexts GraphTexts();

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VIEW_GRAPH_PAGE_H_
