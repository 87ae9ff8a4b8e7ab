#include "launch/view/drawing_json.h"

#include "launch/view/graph_picture.h"

namespace npumesh {

using nlohmann::json;

json DrawingJson(const Drawing& drawing, const std::function<json(const Box&)>& more) {
  json boxes = json::array();
  for (const Box& box : drawing.boxes) {
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
    boxes.push_back(std::move(object));
  }
  json edges = json::array();
  for (const Edge& edge : drawing.edges) {
    edges.push_back({{"from", edge.from},
                     {"to", edge.to},
                     {"d", PathOf(edge)},
                     {"control", edge.control},
                     {"label", edge.label}});
  }
  return {{"width", drawing.width},
          {"height", drawing.height},
          {"boxes", std::move(boxes)},
          {"edges", std::move(edges)}};
}

}  // namespace npumesh
