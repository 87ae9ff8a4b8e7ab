// What one core of this machine can do at most.
#ifndef NPUMESH_TESTS_BENCH_PEAK_H_
#define NPUMESH_TESTS_BENCH_PEAK_H_

namespace npumesh {

// 10^9 float32 operations in a second, a multiplication and an addition counting as two, of
// independent multiply-adds on registers by the best instructions that Highway finds. Takes some
// milliseconds; measure it between the rounds of what it is compared with.
double PeakGflops();

}  // namespace npumesh

#endif  // NPUMESH_TESTS_BENCH_PEAK_H_
