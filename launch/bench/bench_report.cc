#include "launch/bench/bench_report.h"

#include <utility>

#include "collectives/algorithms/algorithm.h"
#include "collectives/algorithms/selection.h"
#include "launch/report/json_parts.h"
#include "launch/report/table.h"

namespace npumesh {
namespace {

using nlohmann::json;

Facts FactsOf(const BenchOp& op, const BenchOptions& options, const BenchPlace& place,
              uint64_t bytes) {
  Facts facts;
  facts.kind = op.kind;
  facts.size = place.ranks;
  facts.in_window = place.in_window;
  facts.hierarchical = place.nodes > 1;
  facts.crowded = place.crowded;
  facts.bytes = bytes;
  facts.reduces = op.reduces() && FindReduce(options.dtype, options.reduce_op) != nullptr;
  return facts;
}

// The row that HCCL_ALGO asks for; a text that does not parse has been refused before.
std::string PreferredRow(const BenchOp& op, const BenchPlace& place, std::string_view hccl_algo) {
  const Result<Selection> selection =
      Selection::Parse(hccl_algo, "HCCL_ALGO", place.tables.Names());
  return selection.ok() ? std::string(selection->RowFor(op.kind, place.nodes > 1)) : "";
}

std::string GroupText(const BenchPlace& place) {
  return fmt::format("{} rank{} on {} host{}", place.ranks, place.ranks == 1 ? "" : "s",
                     place.nodes, place.nodes == 1 ? "" : "s");
}

// What hccl_test's columns and those of the baseline take.
constexpr int kHcclTestWidth = 162;

// `row`: the JSON of a point.
std::string AlgorithmCell(const json& row, std::string_view key) {
  return AsItIs(row, key) + (MemberOf(row, "check") == "failed" ? ", WRONG" : "");
}

TableForm TableOf(const BenchOptions& options, BenchLayout layout) {
  if (layout == BenchLayout::kNarrow) {
    return {{{"bytes", 10, "size"},
             {"avg us", 9, "ours_us/average", WithDigits(2)},
             {"p50 us", 9, "ours_us/p50", WithDigits(2)},
             {"p99 us", 9, "ours_us/p99", WithDigits(2)},
             {"bus GB/s", 8, "bus_bandwidth", WithDigits(3)},
             {"MPI p50 us", 10, "mpi_us/p50", WithDigits(2), options.baseline},
             {"ours/MPI", 8, "p50_ratio", WithDigits(3), options.baseline},
             {"floor us", 8, "floor_us/p50", WithDigits(2), options.floor},
             {"algorithm", 0, "algorithm", AlgorithmCell}}};
  }
  return {.columns = {{"data_size(Bytes):", -17, "size"},
                      {"aveg_time(us):", -14, "ours_us/average", WithDigits(2)},
                      {"alg_bandwidth(GB/s):", -20, "algorithm_bandwidth", WithDigits(5)},
                      {"check_result:", -13, "check"},
                      {"bus_bandwidth(GB/s):", -20, "bus_bandwidth", WithDigits(5)},
                      {"p50(us):", -10, "ours_us/p50", WithDigits(2)},
                      {"p99(us):", -10, "ours_us/p99", WithDigits(2)},
                      {"algorithm:", -10, "algorithm"},
                      {"mpi_p50(us):", -12, "mpi_us/p50", WithDigits(2), options.baseline},
                      {"ours/mpi:", -9, "p50_ratio", WithDigits(3), options.baseline},
                      {"floor_p50(us):", 0, "floor_us/p50", WithDigits(2), options.floor}},
          .between = " | "};
}

json ToJson(const BenchPoint& point) {
  json row = {{"operation", point.operation},
              {"size", point.size},
              {"bytes", point.bytes},
              {"ours_us", point.ours},
              {"algorithm_bandwidth", point.algorithm_bandwidth},
              {"bus_bandwidth", point.bus_bandwidth},
              {"algorithm", point.algorithm},
              {"check", point.check}};
  if (point.floor) row["floor_us"] = *point.floor;
  if (point.mpi) {
    row["mpi_us"] = *point.mpi;
    row["p50_ratio"] = *point.p50_ratio();
    row["average_ratio"] = *point.average_ratio();
  }
  return row;
}

// Geometric means of the ratios of some points.
json MeanRow(std::string_view name, const std::vector<const BenchPoint*>& points) {
  std::vector<double> p50, average;
  for (const BenchPoint* point : points) {
    p50.push_back(*point->p50_ratio());
    average.push_back(*point->average_ratio());
  }
  return {{"collective", name},
          {"sizes", points.size()},
          {"p50", GeometricMean(p50)},
          {"average", GeometricMean(average)}};
}

// Geometric means over all points, by p50.
std::string FloorText(std::span<const BenchPoint> points) {
  std::vector<double> ours, mpi;
  for (const BenchPoint& point : points) {
    if (!point.floor || !point.mpi || point.floor->p50 <= 0 || point.mpi->p50 <= 0) continue;
    ours.push_back(point.ours.p50 / point.floor->p50);
    mpi.push_back(point.floor->p50 / point.mpi->p50);
  }
  if (ours.empty()) return "";
  return fmt::format(
      "floor / MPI {:.3f}, ours / floor {:.3f}: the floor is a bare meeting and copies\n",
      GeometricMean(mpi), GeometricMean(ours));
}

}  // namespace

std::optional<double> BenchPoint::p50_ratio() const {
  if (!mpi || mpi->p50 <= 0) return std::nullopt;
  return ours.p50 / mpi->p50;
}

std::optional<double> BenchPoint::average_ratio() const {
  if (!mpi || mpi->average <= 0) return std::nullopt;
  return ours.average / mpi->average;
}

std::string OpeningLine(const BenchOptions& options) {
  return fmt::format("the minbytes is {}, maxbytes is {}, iters is {}, warmup_iters is {}\n",
                     options.sizes.front(), options.max_bytes, options.iterations,
                     options.warm_ups);
}

BenchLayout LayoutFor(int columns) {
  return columns == 0 || columns >= kHcclTestWidth ? BenchLayout::kHcclTest : BenchLayout::kNarrow;
}

std::string TableHead(const BenchOp& op, const BenchOptions& options, const BenchPlace& place,
                      BenchLayout layout) {
  std::string text = fmt::format("# {}", op.name);
  if (op.sized) text += fmt::format(" {}", options.dtype_name);
  if (op.reduces()) text += fmt::format(" {}", Name(options.reduce_op));
  text +=
      fmt::format(", {}, {}, {}\n", GroupText(place),
                  options.barrier ? "a barrier before each iteration" : "iterations back to back",
                  options.api == BenchApi::kHccl ? "C interface with a stream synchronisation"
                                                 : "communicator");
  return text + HeadLine(TableOf(options, layout));
}

std::string TableRow(const BenchPoint& point, const BenchOptions& options, BenchLayout layout) {
  return RowLine(TableOf(options, layout), ToJson(point));
}

const BenchPoint* WorstPoint(std::span<const BenchPoint> points) {
  const BenchPoint* worst = nullptr;
  for (const BenchPoint& point : points) {
    if (!point.p50_ratio() || !point.average_ratio()) continue;
    if (worst == nullptr || *worst->p50_ratio() < *point.p50_ratio()) worst = &point;
  }
  return worst;
}

std::string SummaryText(std::span<const BenchPoint> points) {
  const BenchPoint* const worst = WorstPoint(points);
  if (worst == nullptr) return "";
  std::vector<const BenchPoint*> all, one;
  json rows = json::array();
  for (const BenchPoint& point : points) {
    if (point.p50_ratio() && point.average_ratio()) all.push_back(&point);
  }
  for (size_t i = 0; i < all.size(); ++i) {
    one.push_back(all[i]);
    if (i + 1 < all.size() && all[i + 1]->operation == all[i]->operation) continue;
    rows.push_back(MeanRow(all[i]->operation, std::exchange(one, {})));
  }
  if (rows.size() > 1) rows.push_back(MeanRow("all", all));
  const TableForm table{{{"collective", -15, "collective"},
                         {"sizes", 6, "sizes"},
                         {"by p50", 10, "p50", WithDigits(3)},
                         {"by average", 10, "average", WithDigits(3)}}};
  return "# time of ours / time of MPI, geometric means; below 1 ours is faster\n" +
         TableText(table, rows) +
         fmt::format("worst point: {} of {} bytes, {:.3f}\n", worst->operation, worst->size,
                     *worst->p50_ratio()) +
         FloorText(points);
}

json ToJson(std::span<const BenchPoint> points) {
  return ListOf(points, [](const BenchPoint& point) { return ToJson(point); });
}

std::string_view TakenAlgorithm(const BenchOp& op, const BenchOptions& options,
                                const BenchPlace& place, std::string_view hccl_algo,
                                uint64_t bytes) {
  return Choose(place.tables.For(op.kind), FactsOf(op, options, place, bytes),
                PreferredRow(op, place, hccl_algo), false)
      .name;
}

std::string AlgorithmsText(const BenchOp& op, const BenchOptions& options, const BenchPlace& place,
                           std::string_view hccl_algo) {
  const std::string preferred = PreferredRow(op, place, hccl_algo);
  std::string text;
  for (const uint64_t size : options.sizes) {
    const uint64_t adjusted = AdjustedBytes(op, size, place.ranks);
    const uint64_t bytes =
        CountOf(op, adjusted, options.dtype, place.ranks) * *BytesOf(options.dtype, 1);
    const Facts facts = FactsOf(op, options, place, bytes);
    const std::string_view taken = Choose(place.tables.For(op.kind), facts, preferred, false).name;
    text += fmt::format("# {} of {} bytes", op.name, adjusted);
    if (op.split) text += fmt::format(" in blocks of {}", bytes);
    text += fmt::format(", {}\n", GroupText(place));
    for (const Algorithm& row : place.tables.For(op.kind)) {
      const std::string_view objection = row.why_not(facts);
      const std::string_view verdict = row.name == taken   ? "taken"
                                       : objection.empty() ? "could, but the one taken goes first"
                                                           : objection;
      text += fmt::format("  {:<14} {}\n", row.name, verdict);
    }
    if (!op.sized) break;
  }
  return text;
}

}  // namespace npumesh
