#include "launch/profile/profile_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "launch/profile/slowest_rank.h"
#include "launch/profile/units.h"
#include "launch/ranks/standing_out.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using TimesByKey = std::map<std::pair<std::string, std::string>, ComparedTime>;

std::vector<ComparedTime> MostSlowerFirst(TimesByKey by_key) {
  std::vector<ComparedTime> all;
  for (auto& [key, time] : by_key) {
    std::tie(time.name, time.type) = key;
    all.push_back(std::move(time));
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &ComparedTime::slower_ns);
  return all;
}

std::vector<ComparedTime> CompareOperators(const std::vector<OperatorFacts>& before,
                                           const std::vector<OperatorFacts>& after) {
  TimesByKey times;
  for (const OperatorFacts& one : before) {
    ComparedTime& time = times[{one.name, one.type}];
    time.count_before = one.count;
    time.before_ns = one.total_ns;
  }
  for (const OperatorFacts& one : after) {
    ComparedTime& time = times[{one.name, one.type}];
    time.count_after = one.count;
    time.after_ns = one.total_ns;
  }
  return MostSlowerFirst(std::move(times));
}

std::vector<OperatorFacts> AsOperators(const std::vector<KindFacts>& collectives) {
  std::vector<OperatorFacts> all;
  for (const KindFacts& one : collectives) {
    all.push_back({.name = one.kind,
                   .type = "collective",
                   .count = one.spans,
                   .total_ns = one.moving_ns + one.waiting_ns});
  }
  return all;
}

TimeParts MeanOfParts(const TimeParts& sum, int64_t count) {
  return {sum.wall_ns / count,   sum.computing_ns / count, sum.overlapped_ns / count,
          sum.moving_ns / count, sum.waiting_ns / count,   sum.preparing_ns / count,
          sum.idle_ns / count};
}

// The mean over ranks of each whole step.
std::map<uint32_t, TimeParts> MeanSteps(const std::vector<StepFacts>& steps) {
  std::map<uint32_t, std::pair<TimeParts, int64_t>> sums;
  for (const StepFacts& step : steps) {
    if (!step.whole) continue;
    auto& [sum, ranks] = sums[step.step];
    sum += step.parts;
    ++ranks;
  }
  std::map<uint32_t, TimeParts> means;
  for (const auto& [step, sum] : sums) {
    means[step] = MeanOfParts(sum.first, sum.second);
  }
  return means;
}

// The steps that count for the verdict.
std::set<uint32_t> CountedSteps(const std::vector<ComparedStep>& steps) {
  std::set<uint32_t> counted;
  for (const ComparedStep& step : steps) counted.insert(step.step);
  if (counted.size() > 2) counted.erase(counted.begin());
  return counted;
}

// The mean of each part, of five steps on without the ends.
TimeParts MeanWithoutEnds(const std::vector<TimeParts>& steps) {
  TimeParts mean;
  for (const auto part : {&TimeParts::wall_ns, &TimeParts::computing_ns, &TimeParts::overlapped_ns,
                          &TimeParts::moving_ns, &TimeParts::waiting_ns, &TimeParts::preparing_ns,
                          &TimeParts::idle_ns}) {
    std::vector<double> values;
    for (const TimeParts& step : steps) values.push_back(static_cast<double>(step.*part));
    mean.*part = std::llround(MeanWithout(std::move(values), Ends::kBoth));
  }
  return mean;
}

// By rank: means of the counted steps.
std::map<int, TimeParts> MeanRanks(const std::vector<StepFacts>& steps,
                                   const std::set<uint32_t>& counted) {
  std::map<int, std::vector<TimeParts>> all;
  for (const StepFacts& step : steps) {
    if (step.whole && counted.contains(step.step)) all[step.rank].push_back(step.parts);
  }
  std::map<int, TimeParts> means;
  for (const auto& [rank, parts] : all) means[rank] = MeanWithoutEnds(parts);
  return means;
}

std::vector<ComparedRank> CompareRanks(const ProfileFacts& before, const ProfileFacts& after,
                                       const std::set<uint32_t>& counted) {
  const std::map<int, TimeParts> means_after = MeanRanks(after.steps, counted);
  std::vector<ComparedRank> ranks;
  for (const auto& [rank, parts] : MeanRanks(before.steps, counted)) {
    const auto found = means_after.find(rank);
    if (found != means_after.end()) ranks.push_back({rank, parts, found->second});
  }
  return ranks;
}

// A part of a step in which a rank does not wait for others.
struct ComparedPart {
  std::string_view one;  // "rank 2 idles 20 ms longer"
  std::string_view all;  // "all ranks idle 20 ms longer"
  int64_t (*of)(const TimeParts&);
};
constexpr std::array<ComparedPart, 4> kParts = {
    {{"computes", "compute", [](const TimeParts& p) { return p.computing_ns + p.overlapped_ns; }},
     {"moves data", "move data", [](const TimeParts& p) { return p.moving_ns; }},
     {"prepares", "prepare", [](const TimeParts& p) { return p.preparing_ns; }},
     {"idles", "idle", [](const TimeParts& p) { return p.idle_ns; }}}};

// Says what makes B slower, or faster (`sign` -1).
class Explanation {
 public:
  Explanation(const ProfileFacts& before, const ProfileFacts& after,
              const std::vector<ComparedRank>& ranks, int64_t change_ns)
      : before_(before),
        after_(after),
        ranks_(ranks),
        sign_(change_ns < 0 ? -1 : 1),
        enough_ns_(std::abs(change_ns) / 2) {}

  // Empty: no part explains half of the change.
  std::string Text(int& rank) const {
    const ComparedPart* part = nullptr;
    size_t worst = 0;
    int64_t most_ns = 0;
    const ComparedPart* common = nullptr;
    int64_t common_ns = 0;
    for (const ComparedPart& one : kParts) {
      std::vector<int64_t> changes;
      for (const ComparedRank& each : ranks_) changes.push_back(ChangeOf(one, each));
      const int64_t usual = MedianOf(changes);
      if (usual > common_ns) {
        common = &one;
        common_ns = usual;
      }
      for (size_t r = 0; r < changes.size() && changes.size() > 1; ++r) {
        std::vector<int64_t> others = changes;
        others.erase(others.begin() + static_cast<ptrdiff_t>(r));
        const int64_t above = changes[r] - MedianOf(others);
        if (above <= most_ns) continue;
        most_ns = above;
        worst = r;
        part = &one;
      }
    }
    if (part != nullptr && most_ns >= enough_ns_ && most_ns > common_ns) {
      rank = ranks_[worst].rank;
      return fmt::format(": rank {} {} {}{}{}", rank, part->one, LongerText(most_ns),
                         PlaceOf(*part, rank), ranks_.size() > 1 ? "; the others wait" : "");
    }
    if (common == nullptr || common_ns < enough_ns_) return "";
    return fmt::format(": {} {} {}{}", ranks_.size() == 1 ? "it" : "all ranks",
                       ranks_.size() == 1 ? common->one : common->all, LongerText(common_ns),
                       PlaceOf(*common, ranks_[0].rank));
  }

 private:
  int64_t ChangeOf(const ComparedPart& part, const ComparedRank& rank) const {
    return sign_ * (part.of(rank.after) - part.of(rank.before));
  }

  std::string LongerText(int64_t ns) const {
    return fmt::format("{} {} a step", DurationText(ns), sign_ > 0 ? "longer" : "less");
  }

  static const RankFacts* FactsOf(const ProfileFacts& facts, int rank) {
    const auto found = std::ranges::find(facts.ranks, rank, &RankFacts::rank);
    return found == facts.ranks.end() ? nullptr : &*found;
  }

  // ", most of it in MatMul_3", ", most of it before MatMul_3"; empty: it is no one operator.
  std::string PlaceOf(const ComparedPart& part, int rank) const {
    const bool computes = &part == &kParts[0];
    if (!computes && &part != &kParts[3]) return "";
    const RankFacts* a = FactsOf(before_, rank);
    const RankFacts* b = FactsOf(after_, rank);
    if (a == nullptr || b == nullptr) return "";
    if (sign_ < 0) std::swap(a, b);
    const auto times = computes ? &RankFacts::computing_in : &RankFacts::idle_before;
    const auto [name, more_ns] = MostAbove(b->*times, {&(a->*times)});
    int64_t all_ns = 0;
    for (const auto& [each, ns] : b->*times) all_ns += ns;
    for (const auto& [each, ns] : a->*times) all_ns -= ns;
    if (name.empty() || more_ns < all_ns / 2) return "";
    return fmt::format(", most of it {} {}", computes ? "in" : "before", Printable(name));
  }

  const ProfileFacts& before_;
  const ProfileFacts& after_;
  const std::vector<ComparedRank>& ranks_;
  const int sign_;
  const int64_t enough_ns_;
};

// The change is more than chance: three times the error of a median, by how the changes of the
// steps are spread around theirs.
bool IsClear(const std::vector<int64_t>& changes, int64_t change_ns) {
  if (changes.size() < 3) return true;
  const int64_t median = MedianOf(changes);
  std::vector<int64_t> off;
  for (const int64_t one : changes) off.push_back(std::abs(one - median));
  constexpr double kClear = 3;
  constexpr double kDeviation = 1.4826;  // standard deviation over median absolute deviation
  constexpr double kOfMedian = 1.2533;   // error of a median over that of a mean
  const double error = kDeviation * kOfMedian * static_cast<double>(MedianOf(std::move(off))) /
                       std::sqrt(static_cast<double>(changes.size()));
  return std::abs(static_cast<double>(change_ns)) >= kClear * error;
}

ComparedVerdict VerdictOf(const ProfileFacts& before, const ProfileFacts& after,
                          const ComparedProfiles& compared, const std::set<uint32_t>& counted) {
  constexpr double kTells = 0.02;
  std::vector<int64_t> mine, theirs, changes;
  for (const ComparedStep& step : compared.steps) {
    if (!counted.contains(step.step)) continue;
    mine.push_back(step.before.wall_ns);
    theirs.push_back(step.after.wall_ns);
    changes.push_back(step.after.wall_ns - step.before.wall_ns);
  }
  ComparedVerdict verdict;
  const int64_t a_ns = MedianOf(mine);
  const int64_t b_ns = MedianOf(theirs);
  if (a_ns <= 0) {
    verdict.text = "no step is whole in both profiles: nothing can be said of their time";
    return verdict;
  }
  verdict.factor = static_cast<double>(b_ns) / static_cast<double>(a_ns);
  verdict.change_ns = b_ns - a_ns;
  if (std::abs(verdict.factor - 1) < kTells || !IsClear(changes, verdict.change_ns)) {
    verdict.text =
        fmt::format("B takes as long as A: {} and {} a step, median of {}", DurationText(b_ns),
                    DurationText(a_ns), CountText(mine.size(), "step"));
    return verdict;
  }
  verdict.word = verdict.change_ns > 0 ? "slower" : "faster";
  verdict.text = fmt::format("B is {} a step {} (factor {:.2f}, median of {})",
                             DurationText(std::abs(verdict.change_ns)), verdict.word,
                             verdict.factor, CountText(mine.size(), "step"));
  verdict.text += Explanation(before, after, compared.ranks, verdict.change_ns).Text(verdict.rank);
  return verdict;
}

// What watches operators keeps them from being fused.
std::string WatcherIn(const std::string& command) {
  for (const std::string_view option : {"--inject", "--guard", "--golden", "--dump"}) {
    if (command.find(fmt::format(" {}", option)) != command.npos) return std::string(option);
  }
  return "";
}

void AddWatchers(const ProfileFacts& before, const ProfileFacts& after,
                 std::vector<std::string>& gaps) {
  const std::string a = WatcherIn(before.command);
  const std::string b = WatcherIn(after.command);
  if (a.empty() == b.empty()) return;
  gaps.push_back(fmt::format(
      "{} ran with {}, which looks at every operator, so nothing was fused there: operators that "
      "only one of them has, and part of the time, come from that",
      a.empty() ? "B" : "A", a.empty() ? b : a));
}

double MeanOf(int64_t total_ns, uint64_t count) {
  return count == 0 ? 0 : static_cast<double>(total_ns) / static_cast<double>(count);
}

}  // namespace

double ComparedTime::mean_before_ns() const {
  return MeanOf(before_ns, count_before);
}

double ComparedTime::mean_after_ns() const {
  return MeanOf(after_ns, count_after);
}

ComparedProfiles CompareProfiles(const ProfileFacts& before, const ProfileFacts& after) {
  ComparedProfiles compared;
  for (const std::string& gap : before.gaps) compared.gaps.push_back("A: " + gap);
  for (const std::string& gap : after.gaps) compared.gaps.push_back("B: " + gap);
  if (before.world_size != after.world_size) {
    compared.gaps.push_back(fmt::format("A has {} ranks, B has {}: sums over ranks differ",
                                        before.world_size, after.world_size));
  }
  std::map<uint32_t, TimeParts> steps_after = MeanSteps(after.steps);
  for (const auto& [step, parts] : MeanSteps(before.steps)) {
    const auto found = steps_after.find(step);
    if (found == steps_after.end()) {
      ++compared.steps_only_before;
      continue;
    }
    compared.steps.push_back({step, parts, found->second});
    steps_after.erase(found);
  }
  compared.steps_only_after = steps_after.size();
  AddWatchers(before, after, compared.gaps);
  const std::set<uint32_t> counted = CountedSteps(compared.steps);
  compared.ranks = CompareRanks(before, after, counted);
  compared.verdict = VerdictOf(before, after, compared, counted);
  compared.operators = CompareOperators(before.operators, after.operators);
  compared.types = CompareOperators(before.types, after.types);
  compared.collectives =
      CompareOperators(AsOperators(before.collectives), AsOperators(after.collectives));
  return compared;
}

}  // namespace npumesh
