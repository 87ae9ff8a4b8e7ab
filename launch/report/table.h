// Tables: how lists of JSON objects read as text.
//
// What a command found is one JSON object (command_report.h). --json prints it and a page draws it;
// here a list of it becomes a table: a column says which member of a row it shows, under which
// head, how wide, and how it reads.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_LAUNCH_REPORT_TABLE_H_
#define NPUMESH_LAUNCH_REPORT_TABLE_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/text/json.h"

namespace npumesh {

// A member of a row, or of a member: "ours_us/p50". Null where the row lacks it.
const nlohmann::json& MemberOf(const nlohmann::json& row, std::string_view key);

// The text of a cell, of a row and the key of the column.
using CellText = std::function<std::string(const nlohmann::json& row, std::string_view key)>;

// A number or a text as it is, without what a terminal would obey; "-" for null.
std::string AsItIs(const nlohmann::json& row, std::string_view key);
// A name, so that it can be told from what stands around it (Quotable).
std::string AsName(const nlohmann::json& row, std::string_view key);
// So many digits behind the point.
CellText WithDigits(int digits, double factor = 1);

struct Column {
  std::string_view head;
  // Characters. Numbers stand at the right; negative, or 0 for as much as it takes: texts, which
  // stand at the left. Nothing is cut.
  int width = 0;
  std::string_view key;
  CellText text = AsItIs;
  bool shown = true;  // false: as if it were not in the table
};

struct TableForm {
  std::vector<Column> columns;
  std::string_view before = "";  // of each line
  // Of two columns; empty: a blank, or two where a text follows a number.
  std::string_view between = "";
};

// Lines with their ends; a column that is empty at a line's end leaves no blanks there.
std::string HeadLine(const TableForm& table);
std::string RowLine(const TableForm& table, const nlohmann::json& row);
// A line for each of `rows`, a list of objects, below the heads, if there are any.
std::string TableText(const TableForm& table, const nlohmann::json& rows);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_REPORT_TABLE_H_
