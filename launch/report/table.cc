#include "launch/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using nlohmann::json;

template <typename Cell>
std::string Line(const TableForm& table, const Cell& cell) {
  std::string line(table.before);
  const Column* left = nullptr;
  for (const Column& column : table.columns) {
    if (!column.shown) continue;
    if (left != nullptr) {
      const bool apart = left->width > 0 && column.width <= 0;
      line += !table.between.empty() ? table.between : apart ? "  " : " ";
    }
    const int width = std::abs(column.width);
    line += column.width > 0 ? fmt::format("{:>{}}", cell(column), width)
                             : fmt::format("{:<{}}", cell(column), width);
    left = &column;
  }
  return line.erase(line.find_last_not_of(' ') + 1) + "\n";
}

}  // namespace

const json& MemberOf(const json& row, std::string_view key) {
  static const json kNone;
  const size_t slash = std::min(key.find('/'), key.size());
  const auto found = row.is_object() ? row.find(std::string(key.substr(0, slash))) : row.end();
  if (found == row.end()) return kNone;
  return slash == key.size() ? *found : MemberOf(*found, key.substr(slash + 1));
}

std::string AsItIs(const json& row, std::string_view key) {
  const json& member = MemberOf(row, key);
  if (member.is_null()) return "-";
  return member.is_string() ? Printable(member.get_ref<const std::string&>()) : member.dump();
}

std::string AsName(const json& row, std::string_view key) {
  const json& member = MemberOf(row, key);
  return member.is_string() ? Quotable(member.get_ref<const std::string&>()) : AsItIs(row, key);
}

CellText WithDigits(int digits, double factor) {
  return [digits, factor](const json& row, std::string_view key) {
    const json& member = MemberOf(row, key);
    if (member.is_null()) return std::string("-");
    return fmt::format("{:.{}f}", member.get<double>() * factor, digits);
  };
}

std::string HeadLine(const TableForm& table) {
  return Line(table, [](const Column& column) { return column.head; });
}

std::string RowLine(const TableForm& table, const json& row) {
  return Line(table, [&row](const Column& column) { return column.text(row, column.key); });
}

std::string TableText(const TableForm& table, const json& rows) {
  const bool headed = std::ranges::any_of(
      table.columns, [](const Column& column) { return column.shown && !column.head.empty(); });
  std::string text = headed ? HeadLine(table) : "";
  for (const json& row : rows) text += RowLine(table, row);
  return text;
}

}  // namespace npumesh
