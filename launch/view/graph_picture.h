// Pictures of a graph: a self-contained SVG and Graphviz DOT text.
#ifndef NPUMESH_LAUNCH_VIEW_GRAPH_PICTURE_H_
#define NPUMESH_LAUNCH_VIEW_GRAPH_PICTURE_H_

#include <string>
#include <vector>

#include "launch/view/layered_layout.h"

namespace npumesh {

// An SVG that any browser shows, without fonts or scripts from elsewhere. Nodes and edges carry
// their full names as tooltips.
std::string ToSvg(const Drawing& drawing, const std::string& title);

// Several drawings below each other, under one legend.
std::string ToSvg(const std::vector<Drawing>& drawings, const std::string& title);

// The `d` of an SVG path along an edge's route, from its branch on.
std::string PathOf(const Edge& edge);

// DOT text of the same nodes and edges.
std::string ToDot(const Drawing& drawing, const std::string& title);

// Text as it stands in XML: &, <, >, quotes escaped; control characters and bytes that are not
// UTF-8 replaced by "?".
std::string XmlText(const std::string& text);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VIEW_GRAPH_PICTURE_H_
