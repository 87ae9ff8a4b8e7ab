#include "launch/screen/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <utility>

namespace npumesh {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirst{1000};
constexpr milliseconds kApart{200};
// Below this what is left is a guess.
constexpr double kLeastKnown = 0.005;

milliseconds SteadyTime() {
  return std::chrono::duration_cast<milliseconds>(
      std::chrono::steady_clock::now().time_since_epoch());
}

void ToStandardError(std::string_view text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

ProgressForm ProgressFormOf(const Screen& screen, const EnvGetter& get) {
  if (screen.terminal) return ProgressForm::kTerminal;
  const char* const launched = get(kProgressVariable);
  const bool wanted = IsRank(get) && launched != nullptr && std::string_view(launched) == "1";
  return wanted ? ProgressForm::kMessage : ProgressForm::kNone;
}

ProgressForm ProgressFormHere() {
  return ProgressFormOf(ScreenOf(STDERR_FILENO),
                        [](const char* name) -> const char* { return std::getenv(name); });
}

std::string OverLine(std::string_view text) {
  return fmt::format("\r{}\x1b[K", text);
}

std::string DurationText(std::chrono::seconds duration) {
  const int64_t seconds = duration.count();
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

std::string ProgressText(std::string_view what, double fraction, milliseconds spent) {
  std::string text = fmt::format("{}, {:.0f} %", what, std::floor(fraction * 100));
  if (fraction < kLeastKnown) return text;
  const double left = static_cast<double>(spent.count()) * (1 - fraction) / fraction / 1000;
  const std::chrono::seconds rounded(static_cast<int64_t>(std::ceil(left)));
  return text + fmt::format(", {} left", DurationText(rounded));
}

ProgressLine::ProgressLine(ProgressForm form) : ProgressLine(form, SteadyTime, ToStandardError) {}

ProgressLine::ProgressLine(ProgressForm form, Clock clock, Sink sink)
    : form_(form), clock_(std::move(clock)), sink_(std::move(sink)) {
  begin_ = form_ == ProgressForm::kNone ? milliseconds() : clock_();
  next_ = begin_ + kFirst;
}

void ProgressLine::Show(std::string_view what, double fraction) {
  if (!due()) return;
  const milliseconds now = clock_();
  next_ = now + kApart;
  shown_ = true;
  Write(ProgressText(what, fraction, now - begin_));
}

void ProgressLine::Clear() {
  if (!shown_) return;
  shown_ = false;
  Write("");
}

void ProgressLine::Write(std::string_view text) const {
  sink_(form_ == ProgressForm::kTerminal ? OverLine(text)
                                         : fmt::format("{}{}\n", kProgressMark, text));
}

}  // namespace npumesh
