#include "graph/dump/statistics/statistics_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace npumesh {
namespace {

constexpr std::string_view kFixedColumns = "Input/Output,Index,Data Size,Data Type,Format,Shape";
constexpr std::string_view kDefaultColumns =
    ",Max Value,Min Value,Avg Value,Count,Nan Count,Negative Inf Count,Positive Inf Count";

// With the blank before each comma that the original has.
std::string_view ColumnOf(Statistic statistic) {
  switch (statistic) {
    case Statistic::kMax:
      return ",Max Value ";
    case Statistic::kMin:
      return ",Min Value ";
    case Statistic::kAvg:
      return ",Avg Value ";
    case Statistic::kNan:
      return ",Nan Count ";
    case Statistic::kNegativeInf:
      return ",Negative Inf Count ";
    case Statistic::kPositiveInf:
      return ",Positive Inf Count ";
    case Statistic::kL2norm:
      return ",l2norm";
  }
  return "";
}

// As a C++ stream prints it; a NaN without its sign.
std::string Number(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:g}", value);
}

std::string Number(const StatisticNumber& value) {
  if (const auto* number = std::get_if<double>(&value)) return Number(*number);
  if (const auto* number = std::get_if<int64_t>(&value)) return fmt::format("{}", *number);
  return fmt::format("{}", std::get<uint64_t>(value));
}

std::string CellOf(Statistic statistic, const TensorStatistics& values) {
  switch (statistic) {
    case Statistic::kMax:
      return Number(values.max);
    case Statistic::kMin:
      return Number(values.min);
    case Statistic::kAvg:
      return Number(values.mean);
    case Statistic::kNan:
      return fmt::format("{}", values.nans);
    case Statistic::kNegativeInf:
      return fmt::format("{}", values.negative_infinities);
    case Statistic::kPositiveInf:
      return fmt::format("{}", values.positive_infinities);
    case Statistic::kL2norm:
      return Number(values.l2norm);
  }
  return "";
}

}  // namespace

StatisticsCsv::StatisticsCsv(std::vector<Statistic> chosen)
    : chosen_(std::move(chosen)), default_choice_(chosen_ == DefaultStatistics()) {}

bool StatisticsCsv::Shows(DataType dtype) const {
  return HasStatistics(dtype) && !(default_choice_ && dtype == DataType::kBfloat16);
}

L2Norm StatisticsCsv::l2norm() const {
  const bool shown = std::find(chosen_.begin(), chosen_.end(), Statistic::kL2norm) != chosen_.end();
  return shown ? L2Norm::kCompute : L2Norm::kSkip;
}

std::string StatisticsCsv::Header() const {
  std::string header(kFixedColumns);
  if (default_choice_) {
    header += kDefaultColumns;
  } else {
    header += ",Count";
    for (const Statistic statistic : chosen_) header += ColumnOf(statistic);
  }
  return header + "\n";
}

std::string StatisticsCsv::Row(std::string_view direction, size_t index, const DumpTensor& tensor,
                               const std::optional<TensorStatistics>& statistics) const {
  // Writer A knows no type after DT_DUAL.
  const bool nameless =
      default_choice_ && DumpTypeNumber(tensor.type.dtype) > DumpTypeNumber(DataType::kDual);
  const std::vector<int64_t>& dims = tensor.type.shape.dims();
  return fmt::format(
      "{},{},{},{},{},{}{}\n", direction, index, tensor.size,
      nameless ? "-" : DumpTypeName(tensor.type.dtype), DumpFormatName(tensor.format),
      dims.empty() ? "-" : fmt::format("{}", fmt::join(dims, "x")), Cells(tensor, statistics));
}

std::string StatisticsCsv::Cells(const DumpTensor& tensor,
                                 const std::optional<TensorStatistics>& statistics) const {
  if (!default_choice_) {
    std::string cells = fmt::format(",{}", tensor.type.shape.elements());
    for (const Statistic each : chosen_) {
      cells += statistics ? "," + CellOf(each, *statistics) : ",NA";
    }
    return cells;
  }
  if (!statistics) return ",,,,,,,";
  return fmt::format(",{},{},{},{},{},{},{}", Number(statistics->max), Number(statistics->min),
                     Number(statistics->mean), statistics->count, statistics->nans,
                     statistics->negative_infinities, statistics->positive_infinities);
}

}  // namespace npumesh
