#include "launch/view/graph_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "launch/report/xml_text.h"

namespace npumesh {
namespace {

struct Style {
  BoxKind kind;
  std::string_view fill;
  std::string_view line;
  std::string_view meaning;
};

constexpr std::array<Style, 6> kStyles = {{
    {BoxKind::kInput, "#e3f0fb", "#3a78b5", "input"},
    {BoxKind::kOutput, "#e6f4e6", "#3d8b40", "output"},
    {BoxKind::kOperator, "#f7f7f7", "#777777", "operator"},
    {BoxKind::kCollective, "#fdebd0", "#c2740c", "collective"},
    {BoxKind::kUnknown, "#fbe0e0", "#b53a3a", "npumesh cannot run it"},
    {BoxKind::kFolded, "#ece6f6", "#6f52a8", "layers that repeat"},
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

std::string SvgEdge(const Drawing& drawing, const Edge& edge) {
  const bool dead = drawing.boxes[edge.to].dead;
  return fmt::format("<path class=\"edge{}{}\" d=\"{}\"><title>{}</title></path>\n",
                     edge.control ? " control" : "", dead ? " dead" : "", PathOf(edge),
                     XmlText(edge.label));
}

std::string SvgText(double x, double y, std::string_view style, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>", x, y,
                     style.empty() ? "" : fmt::format(" class=\"{}\"", style), XmlText(text));
}

std::string SvgBox(const Box& box) {
  const double middle = box.x + box.width / 2;
  std::string svg = fmt::format(
      "<g class=\"{}{}{}\"><title>{} {}{}{}</title>"
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"5\"/>",
      Name(box.kind), box.mark.empty() ? "" : " " + box.mark, box.dead ? " dead" : "",
      XmlText(box.title), XmlText(box.subtitle), box.dead ? "&#10;nothing needs it" : "",
      box.note.empty() ? "" : "&#10;" + XmlText(box.note), box.x, box.y, box.width, box.height);
  svg += SvgText(middle, box.y + (box.subtitle.empty() ? 23 : 16), "type", box.title);
  if (!box.subtitle.empty()) svg += SvgText(middle, box.y + 31, "", box.subtitle);
  double y = box.y + box.height + 14;
  for (const std::string& line : box.outputs) {
    svg += SvgText(middle, y, "out", line);
    y += 12;
  }
  return svg + "</g>\n";
}

std::string StyleSheet() {
  std::string css =
      "text{font:11px monospace;text-anchor:middle;fill:#222}"
      ".type{font-weight:bold}"
      ".out{font-size:10px;fill:#555;stroke:#fff;stroke-width:5px;paint-order:stroke}"
      ".legend,.title{text-anchor:start}.title{font-weight:bold;font-size:13px}"
      ".edge{fill:none;stroke:#888;marker-end:url(#arrow)}"
      ".legendline{fill:none;stroke:#888}"
      ".control{stroke-dasharray:4 3}"
      ".dead{opacity:0.35}";
  for (const Style& style : kStyles) {
    css += fmt::format(".{} rect{{fill:{};stroke:{}}}", Name(style.kind), style.fill, style.line);
  }
  return css;
}

bool HasKind(const std::vector<Drawing>& drawings, BoxKind kind) {
  return std::ranges::any_of(drawings, [&](const Drawing& drawing) {
    return std::ranges::find(drawing.boxes, kind, &Box::kind) != drawing.boxes.end();
  });
}

// What the colours and lines mean that the drawings have. `width`: what it takes.
class Legend {
 public:
  explicit Legend(const std::vector<Drawing>& drawings) {
    for (const Style& style : kStyles) {
      if (HasKind(drawings, style.kind)) AddBox(Name(style.kind), style.meaning);
    }
    bool dead = false, control = false;
    for (const Drawing& drawing : drawings) {
      for (const Box& box : drawing.boxes) dead = dead || box.dead;
      for (const Edge& edge : drawing.edges) control = control || edge.control;
    }
    if (dead) AddBox("operator dead", "nothing needs it");
    if (control) AddLine("order only");
    AddText("below a box: what flows out; +1 weight: it reads a weight, not drawn");
  }

  const std::string& svg() const { return svg_; }
  double width() const { return x_; }

 private:
  void AddBox(std::string_view style, std::string_view text) {
    svg_ += fmt::format(
        "<g class=\"{}\"><rect x=\"{:.1f}\" y=\"12\" width=\"16\" height=\"12\" rx=\"3\"/></g>",
        style, x_);
    x_ += 22;
    AddText(text);
  }
  void AddLine(std::string_view text) {
    svg_ += fmt::format("<path class=\"legendline control\" d=\"M{:.1f} 18h24\"/>", x_);
    x_ += 30;
    AddText(text);
  }
  void AddText(std::string_view text) {
    svg_ += SvgText(x_, 22, "legend", std::string(text)) + "\n";
    x_ += 7 * static_cast<double>(text.size()) + 18;
  }

  std::string svg_;
  double x_ = 20;
};

constexpr double kLegendHeight = 36;
constexpr double kTitleHeight = 30;

}  // namespace

std::string XmlText(const std::string& text) {
  return EscapeXml(text, [](char) { return std::string("?"); });
}

std::string PathOf(const Edge& edge) {
  const std::vector<Point>& route = edge.route;
  if (route.empty()) return {};
  const size_t begin = edge.branch;
  std::string path = fmt::format("M{:.1f} {:.1f}", route[begin].x, route[begin].y);
  for (size_t i = begin + 1; i < route.size(); ++i) {
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
  return ToSvg(std::vector<Drawing>{drawing}, title);
}

std::string ToSvg(const std::vector<Drawing>& drawings, const std::string& title) {
  const Legend legend(drawings);
  double width = legend.width();
  double height = kLegendHeight;
  std::string body = legend.svg();
  for (const Drawing& drawing : drawings) {
    if (!drawing.title.empty()) {
      body += SvgText(20, height + 20, "title", drawing.title) + "\n";
      height += kTitleHeight;
    }
    body += fmt::format("<g transform=\"translate(0 {:.1f})\">\n", height);
    for (const Edge& edge : drawing.edges) body += SvgEdge(drawing, edge);
    for (const Box& box : drawing.boxes) body += SvgBox(box);
    body += "</g>\n";
    width = std::max(width, drawing.width);
    height += drawing.height;
  }
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
             "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<title>{2}</title>\n<style>{3}</style>\n"
             "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" "
             "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" "
             "fill=\"#888\"/></marker></defs>\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
             width, height, XmlText(title), StyleSheet()) +
         body + "</svg>\n";
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
