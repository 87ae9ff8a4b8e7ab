// `npumesh bench`: measures collectives, with MPI's own beside them.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "launch/bench/bench_job.h"
#include "launch/catalog/environment.h"
#include "launch/commands/answer.h"
#include "launch/commands/fail_together.h"
#include "launch/commands/versions.h"
#include "launch/ranks/agreement.h"
#include "launch/run/run_report.h"
#include "launch/screen/progress_line.h"
#include "launch/screen/screen.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

bool AnyFailed(const std::vector<BenchPoint>& points) {
  return std::any_of(points.begin(), points.end(),
                     [](const BenchPoint& point) { return point.check == "failed"; });
}

// What to do with what was measured; empty: nothing. `ranks` of the job.
std::string NextOf(const std::vector<BenchPoint>& points, const BenchOptions& options, int ranks) {
  if (AnyFailed(points)) {
    return options.check == CheckMode::kVerbose
               ? ""
               : "the same with -c 2: each rank tells its first wrong element";
  }
  const BenchPoint* const worst = WorstPoint(points);
  if (worst == nullptr) return "";
  // Which algorithm is taken at the worst point, and why not others.
  return fmt::format("npumesh launch -n {} -- bench {} -b {} -e {} --algorithms", ranks,
                     worst->operation, worst->size, worst->size);
}

Status WriteJson(const std::vector<BenchPoint>& points, const BenchOptions& options,
                 const BenchPlace& place, const std::string& next) {
  CommandReport report;
  report.verdict = AnyFailed(points) ? "failed" : "ok";
  for (const BenchPoint& point : points) {
    if (point.check != "failed") continue;
    report.Add(Severity::kError,
               fmt::format("{} of {} bytes gives wrong results", point.operation, point.size),
               {{"operation", point.operation}, {"size", point.size}});
  }
  report.details = {{"npumesh", VersionsAsJson()},   {"note", kTimeNote},
                    {"api", Name(options.api)},      {"ranks", place.ranks},
                    {"hosts", place.nodes},          {"dtype", options.dtype_name},
                    {"op", Name(options.reduce_op)}, {"iterations", options.iterations},
                    {"warm_ups", options.warm_ups},  {"rounds", options.rounds},
                    {"rotate", options.rotate},      {"barrier", options.barrier},
                    {"points", ToJson(points)}};
  if (!next.empty()) report.details["next"] = next;
  return WriteFile(options.json, ToText(report, "bench", AnyFailed(points) ? 1 : 0),
                   FileKind::kData);
}

// How much of the measuring is done, where a call costs a fixed time and a time for each byte.
class BenchWork {
 public:
  void Plan(uint64_t bytes) { all_ += Cost(bytes); }
  void Add(uint64_t bytes) { done_ += Cost(bytes); }
  double Done() const { return all_ > 0 ? done_ / all_ : 0; }

 private:
  // The call of no bytes takes as long as the bytes of this many more.
  static double Cost(uint64_t bytes) { return 32768.0 + static_cast<double>(bytes); }

  double all_ = 0;
  double done_ = 0;
};

// One command on one rank, from the options to the exit code.
class BenchRun {
 public:
  BenchRun(World& world, RankCircle& circle, const BenchOptions& options)
      : world_(world),
        options_(options),
        agreement_(circle, [](std::string_view line) { PrintFailure("bench", line); }),
        job_(world, options, circle),
        progress_(is_root() ? ProgressFormHere() : ProgressForm::kNone) {}

  // Collective over all ranks.
  int Run() {
    Result<std::vector<const BenchOp*>> ops = FindBenchOps(options_.operation);
    const Status usable = ops.ok() ? job_.CheckOptions(*ops) : ops.status();
    const Outcome outcome = usable.ok() ? Outcome() : Outcome::Usage(std::string(usable.message()));
    if (!agreement_.Reached(outcome)) return agreement_.exit_code();
    if (options_.algorithms) return PrintAlgorithms(*ops);
    if (!agreement_.Reached(job_.Prepare())) return agreement_.exit_code();
    Say(OpeningLine(options_));
    for (const BenchOp* op : *ops) PlanWork(*op);
    for (const BenchOp* op : *ops) {
      if (!MeasureAll(*op)) return agreement_.exit_code();
    }
    return Finish();
  }

  // A rank is lost: nothing collective may follow.
  bool broken() const { return agreement_.broken(); }

 private:
  bool is_root() const { return world_.rank() == options_.root; }
  void Say(std::string_view text) const {
    if (is_root()) Show(text);
  }

  int PrintAlgorithms(const std::vector<const BenchOp*>& ops) const {
    for (const BenchOp* op : ops) {
      Say(AlgorithmsText(*op, options_, job_.place(), world_.env().hccl_algo));
    }
    return 0;
  }

  void PlanWork(const BenchOp& op) {
    for (const uint64_t size : options_.sizes) {
      work_.Plan(size);
      if (!op.sized) break;
    }
  }

  bool MeasureAll(const BenchOp& op) {
    Say(TableHead(op, options_, job_.place(), layout_));
    for (const uint64_t size : options_.sizes) {
      progress_.Show(fmt::format("{} of {} bytes", op.name, size), work_.Done());
      Result<BenchPoint> point = job_.Run(op, size);
      if (!point.ok()) world_.board().PublishFailure(point.status());
      progress_.Clear();
      if (!agreement_.Reached(point.status())) return false;
      work_.Add(size);
      Say(TableRow(*point, options_, layout_));
      if (options_.check == CheckMode::kVerbose && !point->wrong.empty()) {
        PrintFailure("bench", point->wrong);
      }
      points_.push_back(*std::move(point));
      if (!op.sized) break;
    }
    return true;
  }

  int Finish() {
    const std::string next = NextOf(points_, options_, world_.size());
    Say(SummaryText(points_) + NextLine(next));
    Status written;
    if (is_root() && !options_.json.empty()) {
      written = WriteJson(points_, options_, job_.place(), next);
    }
    if (!agreement_.Reached(written)) return agreement_.exit_code();
    return AnyFailed(points_) ? 1 : 0;
  }

  World& world_;
  const BenchOptions& options_;
  Agreement agreement_;
  BenchJob job_;
  std::vector<BenchPoint> points_;
  const BenchLayout layout_ = LayoutFor(ScreenOf(STDOUT_FILENO).columns);
  BenchWork work_;
  ProgressLine progress_;
};

// Collective over all ranks. `orderly` says whether the world can be shut down together.
int RunInWorld(World& world, const BenchOptions& options, bool& orderly) {
  orderly = false;
  const Result<std::unique_ptr<RankCircle>> circle = RankCircle::Create(world);
  if (!circle.ok()) return Fail("bench", circle.status());
  BenchRun run(world, **circle, options);
  const int code = run.Run();
  orderly = !run.broken();
  return code;
}

// Collective over all ranks: the whole command in a world, and the world's end.
int RunAndEnd(World& world, const BenchOptions& options, const std::function<Status()>& end) {
  bool orderly = false;
  const int code = RunInWorld(world, options, orderly);
  if (!orderly) return code;
  const Status ended = end();
  return ended.ok() || code != 0 ? code : Fail("bench", ended);
}

// Collective over all MPI ranks.
int RunAtHccl(const Env& env, const BenchOptions& options) {
  if (env.device_count) {
    return FailTogether("bench", Outcome::Usage(fmt::format(
                                     "--api hccl: NPUMESH_DEVICE_COUNT is {}, but devices that "
                                     "share a process are not measured; unset it, or choose "
                                     "--api communicator",
                                     *env.device_count)));
  }
  const Result<World*> world = StartHcclWorld();
  if (!world.ok()) return FailTogether("bench", Outcome::From(world.status()));
  return RunAndEnd(**world, options, EndHcclWorld);
}

// Collective over all MPI ranks.
int RunAtCommunicator(const Env& env, const BenchOptions& options) {
  const Result<std::unique_ptr<World>> world = World::Start(env);
  if (!world.ok()) return FailTogether("bench", Outcome::From(world.status()));
  return RunAndEnd(**world, options, [&] { return (*world)->Shutdown(); });
}

// Collective over all MPI ranks.
int RunBench(const BenchWords& words) {
  const Result<BenchOptions> options = ParseBench(words);
  if (!options.ok()) {
    return FailTogether("bench", Outcome::Usage(std::string(options.status().message())));
  }
  const Result<Env> env = ReadEnvironment();
  if (!env.ok()) return FailTogether("bench", Outcome::From(env.status()));
  return options->api == BenchApi::kHccl ? RunAtHccl(*env, *options)
                                         : RunAtCommunicator(*env, *options);
}

}  // namespace

void AddAlgorithmLibraryOption(CLI::App& app) {
  const auto use = [](const std::vector<std::string>& files) {
    ::setenv("NPUMESH_ALGORITHM_LIBRARY", fmt::format("{}", fmt::join(files, ":")).c_str(), 1);
  };
  app.add_option_function<std::vector<std::string>>(
         "--algorithm-library", use,
         "Shared library with algorithms of your own for collectives; in place of "
         "NPUMESH_ALGORITHM_LIBRARY")
      ->type_name("FILE.so")
      ->allow_extra_args(false);
}

void AddBench(CLI::App& app, Action& action) {
  auto words = std::make_shared<BenchWords>();
  CLI::App* bench = app.add_subcommand("bench", "Measure collectives, with MPI's beside them");
  AddFooter(*bench, "a wrong result",
            {"npumesh launch -n 4 -- bench all -b 64 -e 1M -f 16",
             "npumesh launch -n 2 -- bench allreduce -b 8 -e 8 -n 1000 --barrier",
             "npumesh launch -n 8 -- bench allgather -b 1M -e 1M --algorithms",
             "npumesh launch -n 4 -- bench allreduce -b 1K -e 1K --algorithm-library "
             "./libdoubling_algorithm.so"},
            "Options -b to -p are those of hccl_test. Columns: docs/bench.md.\n");
  bench
      ->add_option("operation", words->operation,
                   "all, or allreduce, reducescatter, allgather, alltoall, broadcast, reduce, "
                   "scatter, alltoallv, barrier")
      ->capture_default_str();
  bench->add_option("-b,--minbytes", words->min_bytes, "First size: bytes, with K, M or G")
      ->type_name("BYTES")
      ->capture_default_str();
  bench->add_option("-e,--maxbytes", words->max_bytes, "Last size")
      ->type_name("BYTES")
      ->capture_default_str();
  bench
      ->add_option("-i,--stepbytes", words->step_bytes,
                   "Bytes from size to size; default: a tenth of the range")
      ->type_name("BYTES");
  bench->add_option("-f,--stepfactor", words->step_factor,
                    "Factor from size to size, 2 or more; wins over -i");
  bench->add_option("-n,--iters", words->iterations, "Timed iterations")->capture_default_str();
  bench->add_option("-w,--warmup_iters", words->warm_ups, "Iterations before them")
      ->capture_default_str();
  bench->add_option("-o,--op", words->reduce_op, "sum, prod, max or min")->capture_default_str();
  bench
      ->add_option("-d,--datatype", words->dtype,
                   "int8 int16 int32 int64 uint8 uint16 uint32 uint64 fp16 fp32 fp64 bfp16 hif8 "
                   "fp8e4m3 fp8e5m2 fp8e8m0")
      ->capture_default_str();
  bench->add_option("-r,--root", words->root, "Root, also the rank that prints")
      ->capture_default_str();
  bench
      ->add_option("-c,--check", words->check,
                   "0: no; 1: every element, outside of the time; 2: and each rank tells its first "
                   "wrong one")
      ->capture_default_str();
  bench->add_option("-p,--npus", words->npus, "Devices of a host; one for each rank there");
  bench->add_option("--rounds", words->rounds, "How often ours and MPI's take turns at each size")
      ->capture_default_str();
  bench->add_option("--rotate", words->rotate, "Buffers used in turn, to measure cold caches")
      ->capture_default_str();
  bench->add_option("--baseline", words->baseline, "on: MPI's blocking collective beside ours")
      ->capture_default_str();
  bench
      ->add_option("--api", words->api,
                   "hccl: HcclXxx and aclrtSynchronizeStream; communicator: what is below them")
      ->capture_default_str();
  bench->add_flag("--barrier", words->barrier,
                  "The ranks meet before each iteration, outside of the time");
  bench->add_flag("--floor", words->floor,
                  "Beside both: a bare meeting and copies of the same bytes, the least there is");
  bench->add_flag("--algorithms", words->algorithms,
                  "Measure nothing: say which algorithm is taken at each size, and why not others");
  AddAlgorithmLibraryOption(*bench);
  bench
      ->add_option("--json", words->json,
                   "JSON file for everything the table shows, and more (docs/json.md)")
      ->type_name("FILE");
  bench->callback([words, &action] { action = [words] { return RunBench(*words); }; });
}

}  // namespace npumesh
