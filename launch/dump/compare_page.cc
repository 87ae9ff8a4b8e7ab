#include "launch/dump/compare_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "launch/dump/result_csv.h"
#include "launch/view/graph_picture.h"
#include "launch/view/layered_layout.h"

namespace npumesh {
namespace {

constexpr std::string_view kStyle =
    "body{font:14px sans-serif;margin:24px;color:#222}"
    "h1{font-size:20px}h2{font-size:16px;margin-top:28px}"
    "table{border-collapse:collapse;font:12px monospace}"
    "td,th{border:1px solid #ddd;padding:3px 8px;text-align:right}"
    "td:nth-child(-n+3),th:nth-child(-n+3){text-align:left}"
    "th{background:#f3f3f3;position:sticky;top:0}"
    "tr.origin{background:#f9c9c9}tr.consequence{background:#fdebd0}"
    ".verdict{padding:10px 14px;border-left:5px solid #3d8b40;background:#eef7ee}"
    ".verdict.bad{border-color:#b53a3a;background:#fbe9e9}"
    ".picture{overflow:auto;max-height:80vh;border:1px solid #ddd}"
    "svg g.same rect{fill:#e6f4e6;stroke:#3d8b40}"
    "svg g.origin rect{fill:#e05252;stroke:#7a1616;stroke-width:3}"
    "svg g.origin text{fill:#fff}"
    "svg g.consequence rect{fill:#f8c471;stroke:#b9770e}"
    "svg g.unseen rect{fill:#fff;stroke:#bbb;stroke-dasharray:3 3}";

std::string Cell(const std::string& text) {
  return "<td>" + XmlText(text) + "</td>";
}

std::string CosineOf(const TensorRow& tensor) {
  return tensor.measurements.empty() ? "" : tensor.measurements.front().text;
}

std::string TableRow(const OperatorRow& op, const TensorRow& tensor) {
  const TensorDistance& d = tensor.distance;
  std::string row = fmt::format("<tr class=\"{}\">", Name(op.standing));
  row += Cell(op.name) + Cell(op.type);
  row += Cell(fmt::format("{} {} {}", Name(tensor.side), tensor.index, tensor.mine.ToString()));
  row += Cell(d.reason.empty() ? fmt::format("{}", d.differing) : d.reason);
  row += Cell(fmt::format("{:.6g}", d.max_abs)) + Cell(fmt::format("{}", d.max_ulp));
  row += Cell(CosineOf(tensor));
  row += Cell(fmt::format("{} / {}", d.nan_x, d.nan_y));
  row += Cell(fmt::format("{} / {}", d.inf_x, d.inf_y));
  return row + Cell(std::string(Name(op.standing))) + "</tr>\n";
}

std::string Table(const RankComparison& one) {
  std::string text = fmt::format("<h2>Rank {}{}</h2>\n<p>{} against {}</p>\n", one.rank,
                                 one.step.empty() ? "" : ", step " + XmlText(one.step),
                                 XmlText(one.comparison.mine), XmlText(one.comparison.golden));
  text +=
      "<table><tr><th>operator</th><th>type</th><th>tensor</th><th>differing</th><th>max abs</th>"
      "<th>ULP</th><th>cosine</th><th>NaN</th><th>Inf</th><th>standing</th></tr>\n";
  for (const OperatorRow& op : one.comparison.rows) {
    for (const TensorRow& tensor : op.tensors) text += TableRow(op, tensor);
  }
  return text + "</table>\n";
}

// What the boxes of the picture say about their operators.
void Mark(Drawing& drawing, const Graph& graph, const Comparison& comparison) {
  std::map<std::string, const OperatorRow*> rows;
  for (const OperatorRow& row : comparison.rows) rows[row.key] = &row;
  for (Box& box : drawing.boxes) {
    const auto row = rows.find(OperatorKey(graph.node(box.node).name));
    box.mark = row == rows.end() ? "unseen" : std::string(Name(row->second->standing));
    box.note = row == rows.end() ? "not compared" : DistanceText(*row->second);
  }
}

std::string Legend() {
  return "<p>red: the first to differ although nothing it saw did; orange: differs because of "
         "something before it; green: the same; dashed: not compared</p>\n";
}

}  // namespace

Result<std::string> ComparePage(const std::vector<RankComparison>& comparisons, int blamed,
                                const Graph* graph, const OpRegistry& registry) {
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<title>npumesh dump compare</title><style>{}</style></head><body>\n"
      "<h1>npumesh dump compare</h1>\n",
      kStyle);
  const std::string verdict = VerdictText(comparisons, blamed);
  page += fmt::format("<pre class=\"verdict{}\">", blamed < 0 ? "" : " bad");
  for (size_t begin = 0; begin < verdict.size();) {
    const size_t end = std::min(verdict.find('\n', begin), verdict.size());
    page += XmlText(verdict.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  page += "</pre>\n";
  if (graph != nullptr && !comparisons.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(Drawing drawing, LayOut(*graph, registry));
    Mark(drawing, *graph, comparisons[static_cast<size_t>(std::max(blamed, 0))].comparison);
    page += Legend() + "<div class=\"picture\">" + ToSvg(drawing, graph->name()) + "</div>\n";
  }
  for (const RankComparison& one : comparisons) page += Table(one);
  return page + "</body></html>\n";
}

}  // namespace npumesh
