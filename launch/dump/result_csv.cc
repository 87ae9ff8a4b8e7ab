#include "launch/dump/result_csv.h"

#include <fmt/ranges.h>

namespace npumesh {
namespace {

// The largest finite float16; at this magnitude the reference calls a tensor overflowed.
constexpr double kHalfLimit = 65504;

std::string TensorIndex(const OperatorRow& op, const TensorRow& tensor) {
  return fmt::format("{}:{}:{}", op.key, Name(tensor.side), tensor.index);
}

std::string ShapeCell(const Shape& shape) {
  return fmt::format("\"[{}]\"", fmt::join(shape.dims(), ","));
}

bool KnowsNoAddress(const std::string& file) {
  return file.find(".npy") != std::string::npos || file.ends_with(".pt");
}

// True when any file of a side is one of another tool.
bool LacksAddresses(const Comparison& comparison, std::string TensorRow::*file) {
  for (const OperatorRow& op : comparison.rows) {
    for (const TensorRow& tensor : op.tensors) {
      if (KnowsNoAddress(tensor.*file)) return true;
    }
  }
  return false;
}

std::string FileName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string Reasons(const TensorRow& tensor) {
  std::string reasons = tensor.distance.reason;
  for (const Measurement& measured : tensor.measurements) {
    if (measured.reason.empty() || reasons.find(measured.reason) != std::string::npos) continue;
    if (!reasons.empty()) reasons += ' ';
    reasons += measured.reason;
  }
  return reasons;
}

std::string MeasurementCells(const TensorRow& tensor) {
  std::string cells;
  for (size_t i = 0; i < kAlgorithms.size(); ++i) {
    const bool measured = i < tensor.measurements.size();
    cells += CsvCell(measured ? tensor.measurements[i].text : "NaN") + ",";
  }
  return cells;
}

std::string OverflowCell(const TensorRow& tensor) {
  const bool half = tensor.mine.dtype == DataType::kFloat16;
  return half && (tensor.my_peak >= kHalfLimit || tensor.distance.inf_x > 0) ? "YES," : "NO,";
}

// Calls `line` for every tensor, with its number.
template <typename Line>
std::string Lines(const Comparison& comparison, Line line) {
  std::string text;
  size_t number = 0;
  for (const OperatorRow& op : comparison.rows) {
    for (const TensorRow& tensor : op.tensors) text += line(number++, op, tensor) + "\n";
  }
  return text;
}

}  // namespace

std::string CsvCell(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string_view Name(Standing standing) {
  switch (standing) {
    case Standing::kOrigin:
      return "origin";
    case Standing::kConsequence:
      return "consequence";
    default:
      return "same";
  }
}

std::string ResultCsv(const Comparison& comparison, bool overflow) {
  const bool my_address = !LacksAddresses(comparison, &TensorRow::my_file);
  const bool golden_address = !LacksAddresses(comparison, &TensorRow::golden_file);
  std::string header = "Index,OpType,NPUDump,DataType,";
  if (my_address) header += "Address,";
  header += "GroundTruth,DataType,";
  if (golden_address) header += "Address,";
  header += "TensorIndex,Shape,";
  if (overflow) header += "OverFlow,";
  for (const CompareAlgorithm algorithm : kAlgorithms) header += std::string(Name(algorithm)) + ",";
  header += "CompareFailReason\n";
  return header +
         Lines(comparison, [&](size_t number, const OperatorRow& op, const TensorRow& tensor) {
           std::string line = fmt::format("{},{},{},{},", number, CsvCell(op.type), CsvCell(op.key),
                                          Name(tensor.mine.dtype));
           if (my_address) line += fmt::format("{},", tensor.my_address);
           line += fmt::format("{},{},", CsvCell(op.key), Name(tensor.golden.dtype));
           if (golden_address) line += fmt::format("{},", tensor.golden_address);
           line += CsvCell(TensorIndex(op, tensor)) + "," + ShapeCell(tensor.mine.shape) + ",";
           if (overflow) line += OverflowCell(tensor);
           return line + MeasurementCells(tensor) + CsvCell(Reasons(tensor));
         });
}

std::string MappingCsv(const Comparison& comparison) {
  return "Index,OpType,NPUDump,GroundTruth,TensorIndex,NPUDumpPath,GroundTruthPath\n" +
         Lines(comparison, [](size_t number, const OperatorRow& op, const TensorRow& tensor) {
           return fmt::format(
               "{},{},{},{},{},{},{}", number, CsvCell(op.type), CsvCell(FileName(tensor.my_file)),
               CsvCell(FileName(tensor.golden_file)), CsvCell(TensorIndex(op, tensor)),
               CsvCell(tensor.my_file), CsvCell(tensor.golden_file));
         });
}

std::string DivergenceCsv(const Comparison& comparison) {
  return "Index,OpType,TensorIndex,Standing,Differing,FirstDiffering,MaxAbsoluteError,"
         "MaxErrorAt,MaxUlp,MyNan,GoldenNan,MyInf,GoldenInf,Reason\n" +
         Lines(comparison, [](size_t number, const OperatorRow& op, const TensorRow& tensor) {
           const TensorDistance& d = tensor.distance;
           return fmt::format("{},{},{},{},{},{},{:.9g},{},{},{},{},{},{},{}", number,
                              CsvCell(op.type), CsvCell(TensorIndex(op, tensor)), Name(op.standing),
                              d.differing, d.first, d.max_abs, d.where, d.max_ulp, d.nan_x, d.nan_y,
                              d.inf_x, d.inf_y, CsvCell(d.reason));
         });
}

}  // namespace npumesh
