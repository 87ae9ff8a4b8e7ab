#include "launch/bench/bench_report.h"

#include <map>

#include "collectives/algorithms/algorithm.h"
#include "collectives/algorithms/selection.h"

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

std::string NarrowHead(const BenchOptions& options) {
  std::string head = fmt::format("{:>10} {:>9} {:>9} {:>9} {:>8}", "bytes", "avg us", "p50 us",
                                 "p99 us", "bus GB/s");
  if (options.baseline) head += fmt::format(" {:>10} {:>8}", "MPI p50 us", "ours/MPI");
  if (options.floor) head += fmt::format(" {:>8}", "floor us");
  return head + "  algorithm\n";
}

std::string NarrowRow(const BenchPoint& point) {
  std::string row =
      fmt::format("{:>10} {:>9.2f} {:>9.2f} {:>9.2f} {:>8.3f}", point.size, point.ours.average,
                  point.ours.p50, point.ours.p99, point.bus_bandwidth);
  if (point.mpi) row += fmt::format(" {:>10.2f} {:>8.3f}", point.mpi->p50, *point.p50_ratio());
  if (point.floor) row += fmt::format(" {:>8.2f}", point.floor->p50);
  row += "  " + point.algorithm;
  return row + (point.check == "failed" ? ", WRONG\n" : "\n");
}

struct Ratios {
  std::vector<double> p50;
  std::vector<double> average;
};

std::string MeanLine(std::string_view name, const Ratios& ratios) {
  return fmt::format("{:<15} {:>6} {:>10.3f} {:>10.3f}\n", name, ratios.p50.size(),
                     GeometricMean(ratios.p50), GeometricMean(ratios.average));
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
  if (layout == BenchLayout::kNarrow) return text + NarrowHead(options);
  text +=
      fmt::format("{:<15} | {:<12} | {:<18} | {:<13} | {:<18} | {:<10} | {:<10} | {:<10}",
                  "data_size(Bytes):", "aveg_time(us):", "alg_bandwidth(GB/s):", "check_result:",
                  "bus_bandwidth(GB/s):", "p50(us):", "p99(us):", "algorithm:");
  if (options.baseline) text += fmt::format(" | {:<10} | {}", "mpi_p50(us):", "ours/mpi:");
  if (options.floor) text += fmt::format(" | {}", "floor_p50(us):");
  return text + "\n";
}

std::string TableRow(const BenchPoint& point, BenchLayout layout) {
  if (layout == BenchLayout::kNarrow) return NarrowRow(point);
  std::string row = fmt::format(
      "{:<17} | {:<14.2f} | {:<20.5f} | {:<13} | {:<20.5f} | {:<10.2f} | {:<10.2f} | {:<10}",
      point.size, point.ours.average, point.algorithm_bandwidth, point.check, point.bus_bandwidth,
      point.ours.p50, point.ours.p99, point.algorithm);
  if (point.mpi) {
    row += fmt::format(" | {:<12.2f} | {:.3f}", point.mpi->p50, *point.p50_ratio());
  }
  if (point.floor) row += fmt::format("     | {:.2f}", point.floor->p50);
  return row + "\n";
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
  std::map<std::string, Ratios> by_operation;
  std::vector<std::string> order;
  Ratios all;
  for (const BenchPoint& point : points) {
    if (!point.p50_ratio() || !point.average_ratio()) continue;
    if (!by_operation.contains(point.operation)) order.push_back(point.operation);
    for (Ratios* ratios : {&by_operation[point.operation], &all}) {
      ratios->p50.push_back(*point.p50_ratio());
      ratios->average.push_back(*point.average_ratio());
    }
  }
  const BenchPoint* const worst = WorstPoint(points);
  if (worst == nullptr) return "";
  std::string text = fmt::format(
      "# time of ours / time of MPI, geometric means; below 1 ours is "
      "faster\n{:<15} {:>6} {:>10} {:>10}\n",
      "collective", "sizes", "by p50", "by average");
  for (const std::string& operation : order) text += MeanLine(operation, by_operation[operation]);
  if (order.size() > 1) text += MeanLine("all", all);
  text += fmt::format("worst point: {} of {} bytes, {:.3f}\n", worst->operation, worst->size,
                      *worst->p50_ratio());
  return text + FloorText(points);
}

json ToJson(std::span<const BenchPoint> points) {
  json rows = json::array();
  for (const BenchPoint& point : points) {
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
    rows.push_back(std::move(row));
  }
  return rows;
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
