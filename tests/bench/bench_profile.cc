// What a span costs: written, with its two looks at the clock, and when nothing is profiled.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "runtime/profile/scoped_span.h"

namespace npumesh {
namespace {

std::string Folder() {
  return (std::filesystem::temp_directory_path() / "npumesh_bench_profile").string();
}

// Spans in bursts that the ring has room for, as a graph's steps come.
void AddSpan(benchmark::State& state) {
  Profiler profiler;
  if (!profiler.Start(Folder(), ProfileOwner{}, uint64_t{64} << 20).ok()) {
    state.SkipWithError("cannot write the profile");
    return;
  }
  Span span;
  for (auto _ : state) {
    span.number++;
    profiler.Add(span);
  }
  if (!profiler.Stop().ok()) state.SkipWithError("cannot end the profile");
  std::filesystem::remove_all(Folder());
}
BENCHMARK(AddSpan)->Iterations(100'000);

void SpanWhenOff(benchmark::State& state) {
  Profiler profiler;
  Span span;
  for (auto _ : state) {
    benchmark::DoNotOptimize(span);
    profiler.Add(span);
  }
}
BENCHMARK(SpanWhenOff);

void ScopedSpanWhenOff(benchmark::State& state) {
  Profiler profiler;
  SpanSubject subject(ProfiledTask{.name = "block"});
  for (auto _ : state) {
    const ScopedSpan span(&profiler, SpanKind::kApi, subject);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(ScopedSpanWhenOff);

void Clock(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Profiler::Now());
}
BENCHMARK(Clock);

}  // namespace
}  // namespace npumesh
