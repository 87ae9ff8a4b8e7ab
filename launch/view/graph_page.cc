#include "launch/view/graph_page.h"

#include <fmt/format.h>

#include "launch/view/drawing_json.h"
#include "launch/view/fold_repeats.h"
#include "launch/view/graph_facts.h"
#include "launch/view/layered_layout.h"
#include "launch/view/node_detail.h"
#include "runtime/base/text/json.h"

namespace npumesh {
namespace {

using nlohmann::json;

json BoxesOf(const Drawing& drawing, const Graph& graph) {
  return DrawingJson(drawing, [&](const Box& box) {
    const bool folded = box.kind == BoxKind::kFolded;
    return json{{"node", folded ? "" : graph.node(box.node).name}};
  });
}

Result<json> DrawingsOf(const Graph& graph, const OpRegistry& registry, json place) {
  NPUMESH_ASSIGN_OR_RETURN(const FoldedGraph folded, FoldRepeats(graph));
  NPUMESH_ASSIGN_OR_RETURN(const Drawing first, LayOut(folded.graph, registry));
  place["folded"] = BoxesOf(first, folded.graph);
  place["whole"] = json();
  if (folded.stretches.empty()) return place;
  NPUMESH_ASSIGN_OR_RETURN(const Drawing whole, LayOut(graph, registry));
  place["whole"] = BoxesOf(whole, graph);
  return place;
}

}  // namespace

Result<std::string> GraphPageData(const Model& model, const OpRegistry& registry,
                                  const PageOrigin& origin) {
  json drawings = json::array();
  NPUMESH_ASSIGN_OR_RETURN(
      json main, DrawingsOf(model.graph, registry, {{"title", "the graph"}, {"graph", json()}}));
  drawings.push_back(std::move(main));
  for (const Graph& graph : model.subgraphs) {
    NPUMESH_ASSIGN_OR_RETURN(
        json body, DrawingsOf(graph, registry,
                              {{"title", "subgraph " + graph.name()}, {"graph", graph.name()}}));
    drawings.push_back(std::move(body));
  }
  const json data = {
      {"command", origin.command},           {"version", origin.version},
      {"written", origin.written},           {"facts", ToJsonObject(Examine(model, registry))},
      {"nodes", DetailsOf(model, registry)}, {"drawings", std::move(drawings)}};
  return data.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<std::string> GraphPage(const Model& model, const OpRegistry& registry,
                              const PageOrigin& origin) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string data, GraphPageData(model, registry, origin));
  return HtmlPage({.title = "npumesh graph: " + model.graph.name(),
                   .texts = GraphTexts(),
                   .data = data,
                   .draws = true});
}

}  // namespace npumesh
