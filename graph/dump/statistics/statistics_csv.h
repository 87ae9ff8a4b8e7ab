// Statistics as text: the .csv of `dump_data = stats` (docs/dump.md).
//
// Thread-safety: immutable.
#ifndef NPUMESH_GRAPH_DUMP_STATISTICS_STATISTICS_CSV_H_
#define NPUMESH_GRAPH_DUMP_STATISTICS_STATISTICS_CSV_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dump/format/format_data.h"
#include "graph/dump/options/settings.h"
#include "graph/dump/statistics/statistics.h"

namespace npumesh {

// The vendor has two tables. For the default statistics that of the AI CPU: seven columns, empty
// for bfloat16 and other types the AI CPU does not know. For another choice that of the statistics
// kernel: the count, then what was chosen; "NA" where there is nothing.
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

#endif  // NPUMESH_GRAPH_DUMP_STATISTICS_STATISTICS_CSV_H_
