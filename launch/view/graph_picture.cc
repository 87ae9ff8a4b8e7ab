#include "launch/view/graph_picture.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "launch/report/xml_text.h"

namespace npumesh {
namespace {

struct Style {
  BoxKind kind;
  std::string_view name;
  std::string_view fill;
  std::string_view line;
};

constexpr std::array<Style, 5> kStyles = {{
    {BoxKind::kInput, "input", "#e3f0fb", "#3a78b5"},
    {BoxKind::kOutput, "output", "#e6f4e6", "#3d8b40"},
    {BoxKind::kOperator, "operator", "#f7f7f7", "#777777"},
    {BoxKind::kCollective, "collective", "#fdebd0", "#c2740c"},
    {BoxKind::kUnknown, "unknown", "#fbe0e0", "#b53a3a"},
}};

const Style& StyleOf(BoxKind kind) {
  for (const Style& style : kStyles) {
    if (style.kind == kind) return style;
  }
  return kStyles[2];
}

std::string DotText(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  }
  return quoted;
}

std::string SvgEdge(const Edge& edge) {
  return fmt::format("<path class=\"{}\" d=\"{}\"><title>{}</title></path>\n",
                     edge.control ? "edge control" : "edge", PathOf(edge), XmlText(edge.label));
}

std::string SvgBox(const Box& box) {
  const double middle = box.x + box.width / 2;
  return fmt::format(
      "<g class=\"{}{}\"><title>{} {}{}</title>"
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"5\"/>"
      "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"type\">{}</text>"
      "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text></g>\n",
      StyleOf(box.kind).name, box.mark.empty() ? "" : " " + box.mark, XmlText(box.title),
      XmlText(box.subtitle), box.note.empty() ? "" : "&#10;" + XmlText(box.note), box.x, box.y,
      box.width, box.height, middle, box.y + 16, XmlText(box.title), middle, box.y + 31,
      XmlText(box.subtitle));
}

std::string StyleSheet() {
  std::string css =
      "text{font:11px monospace;text-anchor:middle;fill:#222}"
      ".type{font-weight:bold}"
      ".edge{fill:none;stroke:#888;marker-end:url(#arrow)}"
      ".control{stroke-dasharray:4 3}";
  for (const Style& style : kStyles) {
    css += fmt::format(".{} rect{{fill:{};stroke:{}}}", style.name, style.fill, style.line);
  }
  return css;
}

}  // namespace

std::string XmlText(const std::string& text) {
  return EscapeXml(text, [](char) { return std::string("?"); });
}

std::string PathOf(const Edge& edge) {
  const std::vector<Point>& route = edge.route;
  if (route.empty()) return {};
  std::string path = fmt::format("M{:.1f} {:.1f}", route[0].x, route[0].y);
  for (size_t i = 1; i < route.size(); ++i) {
    const Point& from = route[i - 1];
    const Point& to = route[i];
    if (i % 2 == 0) {
      path += fmt::format("V{:.1f}", to.y);
      continue;
    }
    const double middle = (from.y + to.y) / 2;
    path += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", from.x, middle, to.x, middle,
                        to.x, to.y);
  }
  return path;
}

std::string ToSvg(const Drawing& drawing, const std::string& title) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<title>{2}</title>\n<style>{3}</style>\n"
      "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" "
      "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" "
      "fill=\"#888\"/></marker></defs>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      drawing.width, drawing.height, XmlText(title), StyleSheet());
  for (const Edge& edge : drawing.edges) svg += SvgEdge(edge);
  for (const Box& box : drawing.boxes) svg += SvgBox(box);
  return svg + "</svg>\n";
}

std::string ToDot(const Drawing& drawing, const std::string& title) {
  std::string dot = fmt::format(
      "digraph \"{}\" {{\n  node [shape=box, style=\"filled,rounded\", fontname=monospace];\n",
      DotText(title));
  for (size_t i = 0; i < drawing.boxes.size(); ++i) {
    const Box& box = drawing.boxes[i];
    const Style& style = StyleOf(box.kind);
    dot += fmt::format("  n{} [label=\"{}\\n{}\", fillcolor=\"{}\", color=\"{}\"];\n", i,
                       DotText(box.title), DotText(box.subtitle), style.fill, style.line);
  }
  for (const Edge& edge : drawing.edges) {
    dot += fmt::format("  n{} -> n{} [tooltip=\"{}\"{}];\n", edge.from, edge.to,
                       DotText(edge.label), edge.control ? ", style=dashed" : "");
  }
  return dot + "}\n";
}

}  // namespace npumesh
