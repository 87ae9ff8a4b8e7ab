// Parts of one kernel on the threads that oneDNN uses, which are OpenMP's.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_THREAD_PARTS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_THREAD_PARTS_H_

#include <algorithm>
#include <cstdint>

#include "graph/ops/toolbox/values/ceil_div.h"

namespace npumesh {

// How many threads, of `threads`, a kernel of so much work is divided among: one when it is not
// worth it to wake another. The work is counted in multiply-adds that wait for no memory; an
// element that goes through a formula counts kElementWork.
int WorthThreads(double work, int threads);
inline constexpr double kElementWork = 8;
// The same for rows of elements that go through a formula, of which one thread takes at least one.
inline int WorthThreadsForRows(int64_t rows, int64_t elements, int threads) {
  const int worth = WorthThreads(kElementWork * static_cast<double>(elements), threads);
  return static_cast<int>(std::clamp<int64_t>(rows, 1, worth));
}
// From so much work on, instead of what has been measured. For tests, whose tensors are small; not
// while kernels run.
void SetWorthThreads(double work);

// Calls work(context, 0) to work(context, parts - 1), each on a separate thread; returns when all
// are done. `work` does not throw. One part runs on the calling thread.
void RunParts(int parts, void (*work)(const void* context, int part), const void* context);

// The same with a function object `void(int part)`. Allocates nothing.
template <typename Work>
void RunParts(int parts, const Work& work) {
  const auto call = [](const void* context, int part) {
    (*static_cast<const Work*>(context))(part);
  };
  RunParts(parts, call, &work);
}

// Which of `count` belong to a part: a range, perhaps empty, that begins at a multiple of `grain`.
struct RangeOfPart {
  RangeOfPart(int64_t part, int64_t parts, int64_t count, int64_t grain) {
    const int64_t grains = CeilDiv(count, grain), most = grains * (part + 1) / parts * grain;
    begin = grains * part / parts * grain;
    end = most < count ? most : count;
  }
  int64_t begin, end;
};

// The same with ranges [begin, end) of `count`, some empty, which begin at multiples of `grain`:
// void(int part, int64_t begin, int64_t end).
template <typename Work>
void RunRanges(int parts, int64_t count, int64_t grain, const Work& work) {
  RunParts(parts, [&](int part) {
    const RangeOfPart range(part, parts, count, grain);
    work(part, range.begin, range.end);
  });
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_THREAD_PARTS_H_
