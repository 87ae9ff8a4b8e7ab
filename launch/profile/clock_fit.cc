#include "launch/profile/clock_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace npumesh {
namespace {

constexpr double kMostDrift = 200e-6;
constexpr size_t kDroppedPart = 10;

// Ranks that share a clock have equal names.
std::string ClockName(const ProfileOwner& owner) {
  return owner.boot_id.empty() ? fmt::format("node {}", owner.node) : owner.boot_id;
}

int64_t TimeOfDayOffset(const ProfileOwner& owner) {
  return owner.start_realtime_ns - owner.start_monotonic_ns;
}

// The slope of offsets over time by least squares; 0 when all samples are of one moment.
double SlopeOf(const std::vector<ClockSample>& samples, int64_t reference_ns, double mean_ns) {
  double above = 0;
  double below = 0;
  for (const ClockSample& sample : samples) {
    const auto time = static_cast<double>(sample.local_ns - reference_ns);
    above += time * (static_cast<double>(sample.offset_ns) - mean_ns);
    below += time * time;
  }
  return below == 0 ? 0 : above / below;
}

// 36 years since a machine started, and the time of day in 2043.
constexpr int64_t kLatest = int64_t{1} << 60;
constexpr int64_t kLatestOfDay = int64_t{1} << 61;

Status CheckTime(std::string_view what, int64_t ns, int64_t least, int64_t most) {
  if (ns >= least && ns <= most) return Status();
  return Error(Code::kCorrupt, "{} is {} ns, which no clock shows; its profile is damaged", what,
               ns);
}

Status CheckRankTimes(const RankProfile& profile) {
  const ProfileOwner& owner = profile.owner;
  NPUMESH_RETURN_IF_ERROR(CheckTime("the start", owner.start_monotonic_ns, 0, kLatest));
  NPUMESH_RETURN_IF_ERROR(
      CheckTime("the start's time of day", owner.start_realtime_ns, 0, kLatestOfDay));
  for (const ClockSample& sample : profile.clocks) {
    NPUMESH_RETURN_IF_ERROR(CheckTime("a sample's time", sample.local_ns, 0, kLatest));
    NPUMESH_RETURN_IF_ERROR(CheckTime("a clock's offset", sample.offset_ns, -kLatest, kLatest));
    NPUMESH_RETURN_IF_ERROR(CheckTime("a clock's bound", sample.bound_ns, 0, kLatest));
  }
  int64_t lengths_ns = 0;
  for (const Span& span : profile.spans) {
    NPUMESH_RETURN_IF_ERROR(CheckTime("a span's begin", span.begin_ns, 0, kLatest));
    NPUMESH_RETURN_IF_ERROR(CheckTime("a span's end", span.end_ns, span.begin_ns, kLatest));
    lengths_ns += span.end_ns - span.begin_ns;
    NPUMESH_RETURN_IF_ERROR(CheckTime("the sum of all spans", lengths_ns, 0, kLatest));
  }
  return Status();
}

// What the ranks of a host say of its clock.
struct HostClock {
  const ProfileOwner* owner = nullptr;  // of one of its ranks
  bool is_node_0 = false;
  std::vector<ClockSample> samples;
};

// `first` is the host of node 0, whose clock all others are compared with; where it left no
// profile, times of day are compared with that of the first host.
ClockFit FitHost(const HostClock& host, const HostClock& first) {
  if (host.is_node_0) return {};
  if (!host.samples.empty()) return FitClock(host.samples);
  ClockFit fit;
  fit.guessed = true;
  fit.offset_ns = static_cast<double>(TimeOfDayOffset(*host.owner) - TimeOfDayOffset(*first.owner));
  return fit;
}

// Bounds are sums of what hosts add, and may be as large as a file says.
int64_t CappedSum(int64_t a, int64_t b) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  return a > most - b ? most : a + b;
}

}  // namespace

int64_t ClockFit::At(int64_t local_ns) const {
  const auto since = static_cast<double>(local_ns - reference_ns);
  return local_ns + std::llround(offset_ns + drift * since);
}

ClockFit FitClock(std::vector<ClockSample> samples) {
  std::ranges::sort(samples, {}, &ClockSample::bound_ns);
  ClockFit fit;
  fit.dropped = samples.size() / kDroppedPart;
  samples.resize(samples.size() - fit.dropped);
  fit.samples = samples.size();
  // The middle of time and offset, relative to the first sample: the numbers are too large for the
  // digits of a double otherwise.
  const ClockSample first = samples.front();
  double time = 0;
  double offset = 0;
  for (const ClockSample& sample : samples) {
    time += static_cast<double>(sample.local_ns - first.local_ns);
    offset += static_cast<double>(sample.offset_ns - first.offset_ns);
  }
  const auto count = static_cast<double>(samples.size());
  fit.reference_ns = first.local_ns + std::llround(time / count);
  fit.offset_ns = static_cast<double>(first.offset_ns) + offset / count;
  fit.drift = SlopeOf(samples, fit.reference_ns, fit.offset_ns);
  if (std::abs(fit.drift) > kMostDrift) fit.drift = 0;
  int64_t residual = 0;
  for (const ClockSample& sample : samples) {
    const int64_t fitted = fit.At(sample.local_ns) - sample.local_ns;
    residual = std::max(residual, std::abs(fitted - sample.offset_ns));
  }
  fit.bound_ns = CappedSum(residual, std::max<int64_t>(first.bound_ns, 0));
  return fit;
}

Status CheckTimes(const std::vector<RankProfile>& profiles) {
  for (const RankProfile& profile : profiles) {
    const Status status = CheckRankTimes(profile);
    if (!status.ok()) return status.WithContext(fmt::format("rank {}", profile.owner.rank));
  }
  return Status();
}

CommonClock::CommonClock(const std::vector<RankProfile>& profiles) {
  std::map<std::string, size_t> numbers;
  std::vector<HostClock> hosts;
  for (const RankProfile& profile : profiles) {
    const auto [host, is_new] = numbers.try_emplace(ClockName(profile.owner), hosts.size());
    if (is_new) hosts.push_back({&profile.owner, false, {}});
    host_of_.push_back(host->second);
    HostClock& clock = hosts[host->second];
    clock.is_node_0 = clock.is_node_0 || profile.owner.node == 0;
    clock.samples.insert(clock.samples.end(), profile.clocks.begin(), profile.clocks.end());
  }
  const auto node_0 = std::ranges::find(hosts, true, &HostClock::is_node_0);
  const HostClock& first = node_0 == hosts.end() ? hosts.front() : *node_0;
  for (const HostClock& host : hosts) fits_.push_back(FitHost(host, first));
  SetExtent(profiles);
}

void CommonClock::SetExtent(const std::vector<RankProfile>& profiles) {
  int64_t begin = std::numeric_limits<int64_t>::max();
  int64_t end = std::numeric_limits<int64_t>::min();
  for (size_t p = 0; p < profiles.size(); ++p) {
    for (const Span& span : profiles[p].spans) {
      begin = std::min(begin, At(p, span.begin_ns));
      end = std::max(end, At(p, span.end_ns));
    }
  }
  if (begin > end) return;
  begin_ns_ = begin;
  length_ns_ = end - begin;
}

int64_t CommonClock::At(size_t profile, int64_t local_ns) const {
  return fit(profile).At(local_ns) - begin_ns_;
}

int64_t CommonClock::BoundBetween(size_t one, size_t other) const {
  if (host_of_[one] == host_of_[other]) return 0;
  return CappedSum(fit(one).bound_ns, fit(other).bound_ns);
}

int64_t CommonClock::bound_ns() const {
  int64_t largest = 0;
  int64_t second = 0;
  for (const ClockFit& fit : fits_) {
    second = std::max(second, std::min(largest, fit.bound_ns));
    largest = std::max(largest, fit.bound_ns);
  }
  return fits_.size() < 2 ? 0 : CappedSum(largest, second);
}

bool CommonClock::guessed() const {
  return fits_.size() > 1 && std::ranges::any_of(fits_, &ClockFit::guessed);
}

namespace {

// The last member of each host to enter a call; null: the host has no member.
void FindLast(std::span<const CallMember> call, const CommonClock& clock,
              std::vector<const CallMember*>& last) {
  std::ranges::fill(last, nullptr);
  for (const CallMember& member : call) {
    const CallMember*& of_host = last[clock.host(member.profile)];
    if (of_host == nullptr || of_host->span->begin_ns < member.span->begin_ns) of_host = &member;
  }
}

// How long before `other` began `member` had ended already, beyond what the clocks leave open; 0 or
// less: not at all. Clocks that are only guessed leave everything open.
int64_t EndedBefore(const CallMember& member, const CallMember& other, const CommonClock& clock) {
  const bool guessed = clock.fit(member.profile).guessed || clock.fit(other.profile).guessed;
  if (guessed && clock.host(member.profile) != clock.host(other.profile)) return 0;
  return clock.At(other.profile, other.span->begin_ns) -
         clock.At(member.profile, member.span->end_ns) -
         clock.BoundBetween(member.profile, other.profile);
}

}  // namespace

CauseCheck CheckCauses(const CollectiveCalls& calls, const CommonClock& clock) {
  CauseCheck check;
  std::vector<const CallMember*> last(clock.hosts());
  for (size_t c = 0; c < calls.size(); ++c) {
    if (calls[c].size() < 2) continue;
    FindLast(calls[c], clock, last);
    bool has_witness = false;
    for (const CallMember& member : calls[c]) {
      if (member.span->arrived_ns == 0) continue;
      has_witness = true;
      for (const CallMember* other : last) {
        const int64_t early = other == nullptr ? 0 : EndedBefore(member, *other, clock);
        if (early <= 0) continue;
        ++check.violations;
        check.worst_ns = std::max(check.worst_ns, early);
      }
    }
    check.calls += has_witness ? 1 : 0;
  }
  return check;
}

}  // namespace npumesh
