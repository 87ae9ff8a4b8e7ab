// Element types and formats as dump files have them. Types have the numbers of graph files, which
// are not those of attributes; formats have one number everywhere.
#ifndef NPUMESH_GRAPH_DUMP_FORMAT_FORMAT_TYPES_H_
#define NPUMESH_GRAPH_DUMP_FORMAT_FORMAT_TYPES_H_

#include <string>
#include <string_view>

#include "graph/ir/layout_numbers.h"
#include "runtime/base/data_type.h"

namespace npumesh {

// OutputDataType of proto/dump_data.proto; 0 for a type without a number.
int DumpTypeNumber(DataType dtype);

// kUndefined for a number that is not in the table: its bytes can be kept, not understood.
DataType DataTypeFromDump(int number);

// "DT_FLOAT", "DT_BF16": the name in dump tools and in statistics. "DT_UNDEFINED" when unknown.
std::string_view DumpTypeName(DataType dtype);

inline constexpr int kFormatNd = kNdLayout;

// Number of a format name without prefix ("ND", "FRACTAL_NZ"); ND for a name that no table has.
int DumpFormatNumber(std::string_view name);

// Name without prefix; "-" for a number that no table has, as statistics files print it.
std::string_view DumpFormatName(int number);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_FORMAT_FORMAT_TYPES_H_
