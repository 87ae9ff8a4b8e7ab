// The result files of a comparison.
#ifndef NPUMESH_LAUNCH_DUMP_RESULT_CSV_H_
#define NPUMESH_LAUNCH_DUMP_RESULT_CSV_H_

#include <string>
#include <string_view>

#include "graph/compare/measures/comparison.h"

namespace npumesh {

// result_{time}.csv with the columns of msaccucmp: one line for each tensor. `overflow` adds the
// column OverFlow. REQUIRES: all of kAlgorithms were measured.
std::string ResultCsv(const Comparison& comparison, bool overflow);

// mapping_{time}.csv: which files were compared.
std::string MappingCsv(const Comparison& comparison);

// divergence_{time}.csv: one line for each tensor with what msaccucmp has no column for: standing
// of its operator, elements that differ, largest absolute error and where, ULP, NaN and infinity
// counts of both sides.
std::string DivergenceCsv(const Comparison& comparison);

// A cell of a CSV file: quoted when it has to be.
std::string CsvCell(std::string_view text);

// "same", "origin", "consequence"
std::string_view Name(Standing standing);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DUMP_RESULT_CSV_H_
