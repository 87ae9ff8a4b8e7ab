// Statistics as text: the .csv of `dump_data = stats` (dump-format reference 11).
//
// Thread-safety: immutable.
#ifndef NPUMESH_GRAPH_DUMP_STATISTICS_CSV_H_
#define NPUMESH_GRAPH_DUMP_STATISTICS_CSV_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dump/format_data.h"
#include "graph/dump/settings.h"
#include "graph/dump/statistics.h"

namespace npumesh {

// For the default statistics the table of "writer A" (reference 11.1): seven columns, empty for
// bfloat16 and other types that writer does not know. For another choice that of "writer B"
// (11.2): the count, then what was chosen; "NA" where there is nothing.
class StatisticsCsv {
 public:
  explicit StatisticsCsv(std::vector<Statistic> chosen);

  // Whether the cells of such a tensor show numbers.
  bool Shows(DataType dtype) const;
  // What its cells need.
  L2Norm l2norm() const;
  std::string Header() const;
  // `direction`: "Input" or "Output". `statistics`: nullopt when none were computed.
  std::string Row(std::string_view direction, size_t index, const DumpTensor& tensor,
                  const std::optional<TensorStatistics>& statistics) const;

 private:
  std::string Cells(const DumpTensor& tensor,
                    const std::optional<TensorStatistics>& statistics) const;

  std::vector<Statistic> chosen_;
  bool default_choice_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_STATISTICS_CSV_H_
