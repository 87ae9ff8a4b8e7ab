// ProgressLine: a line that says how far long work is and when it ends, and is gone afterwards.
#ifndef NPUMESH_LAUNCH_SCREEN_PROGRESS_LINE_H_
#define NPUMESH_LAUNCH_SCREEN_PROGRESS_LINE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "launch/screen/screen.h"

namespace npumesh {

// Where a progress line goes.
enum class ProgressForm : uint8_t {
  kNone,      // a file or a pipe, where it would only be noise
  kTerminal,  // written over in place
  kMessage,   // a rank: handed to `npumesh launch`, which has the terminal
};

// `launch` on a terminal sets this variable for the ranks of npumesh's commands.
inline constexpr const char* kProgressVariable = "NPUMESH_PROGRESS";

ProgressForm ProgressFormOf(const Screen& screen, const EnvGetter& get);
// That of standard error of this process.
ProgressForm ProgressFormHere();

// A line of a rank that begins so is its progress line; nothing more: the line is to go.
inline constexpr char kProgressMark = '\x1e';

// `launch` sets this variable for the ranks of npumesh's commands: a command that ends with 1,
// because a comparison differs, says so with a line of kVerdictMark on standard error. Only then is
// mpirun's 1 a verdict: mpirun ends with 1 for faults, too.
inline constexpr const char* kVerdictVariable = "NPUMESH_VERDICT_LINE";
inline constexpr std::string_view kVerdictMark = "\x1d";

// What writes `text` over the last line of a terminal; an empty one takes the line away.
std::string OverLine(std::string_view text);

// "8 s", "3 min 20 s", "2 h 5 min".
std::string DurationText(std::chrono::seconds duration);

// "step 40 of 100, 40 %, 3 min 20 s left" after `spent`. `fraction` is within [0, 1]. What is left
// is only said when enough is done to know.
std::string ProgressText(std::string_view what, double fraction, std::chrono::milliseconds spent);

// Thread-safety: none.
class ProgressLine {
 public:
  using Clock = std::function<std::chrono::milliseconds()>;
  using Sink = std::function<void(std::string_view)>;

  // Writes to standard error.
  explicit ProgressLine(ProgressForm form);
  ProgressLine(ProgressForm form, Clock clock, Sink sink);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Not in the first second, which is too short to read it, and at most five times in a second.
  void Show(std::string_view what, double fraction);
  // Whether Show would write now: for loops in which even making the text would cost.
  bool due() const { return form_ != ProgressForm::kNone && clock_() >= next_; }

  // Takes the line away, so that something else can be printed.
  void Clear();

 private:
  void Write(std::string_view text) const;

  ProgressForm form_;
  Clock clock_;
  Sink sink_;
  std::chrono::milliseconds begin_;
  std::chrono::milliseconds next_;
  bool shown_ = false;
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_SCREEN_PROGRESS_LINE_H_
