#include "launch/view/drawing_json.h"

#include "launch/report/json_parts.h"
#include "launch/view/graph_picture.h"

namespace npumesh {

using nlohmann::json;

json DrawingJson(const Drawing& drawing, const std::function<json(const Box&)>& more) {
  const auto box_json = [&more](const Box& box) {
    json object = more(box);
    object.update({{"x", box.x},
                   {"y", box.y},
                   {"w", box.width},
                   {"h", box.height},
                   {"type", box.title},
                   {"sub", box.subtitle},
                   {"kind", Name(box.kind)},
                   {"out", box.outputs},
                   {"dead", box.dead}});
    return object;
  };
  const auto edge_json = [](const Edge& edge) {
    return json{{"from", edge.from},
                {"to", edge.to},
                {"d", PathOf(edge)},
                {"control", edge.control},
                {"label", edge.label}};
  };
  return {{"width", drawing.width},
          {"height", drawing.height},
          {"boxes", ListOf(drawing.boxes, box_json)},
          {"edges", ListOf(drawing.edges, edge_json)}};
}

}  // namespace npumesh
