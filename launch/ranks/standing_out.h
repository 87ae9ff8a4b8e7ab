// Which of several ranks stand out: do worse than the others by more than chance.
//
// Ranks are never alike: some rank is always the slowest. It is only worth a sentence when it is so
// again and again, and clearly.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_LAUNCH_RANKS_STANDING_OUT_H_
#define NPUMESH_LAUNCH_RANKS_STANDING_OUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace npumesh {

// samples[rank][i]: what the rank lost in sample i (a step, a call), 0 or more, any unit. Every
// rank has as many. Returns the indexes of the ranks that stand out, ascending, at most half of
// them. They have at least twice the mean of any other rank, of five samples on without the worst
// tenth, and more than the worst of the others: in the mean by a one-sided t-test, with or without
// the ends, in most samples by a sign test, or in most of the samples that are far worse than usual
// by a binomial test, each with an error of at most 1 in 10,000. A single bad sample makes no rank
// stand out. Empty: none does, or there are less than two ranks or three samples.
std::vector<size_t> StandingOut(const std::vector<std::vector<double>>& samples);

// The mean of values, of five on without the worst tenth (rounded up), the highest, or without that
// and the lowest. 0 of none.
enum class Ends : uint8_t { kWorst, kBoth };
double MeanWithout(std::vector<double> values, Ends ends);

// What each rank lost against the others in each sample: how far its value is above that of the
// lower half of the ranks; 0 for ranks that are not above it. times[rank][i]. REQUIRES: every rank
// has as many samples.
std::vector<std::vector<double>> LostAgainstOthers(std::vector<std::vector<double>> times);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RANKS_STANDING_OUT_H_
