// What comes out of mpirun, line by line: ranks' lines get short prefixes, and mpirun's report that
// a rank has ended with an error is left out, because the rank has said why.
//
// Thread-safety: none.
#ifndef NPUMESH_LAUNCH_MPIRUN_RANK_OUTPUT_H_
#define NPUMESH_LAUNCH_MPIRUN_RANK_OUTPUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/mpirun/mpi_launcher.h"

namespace npumesh {

// Cuts a stream of bytes into lines.
class LineCutter {
 public:
  // The lines that `bytes` completes, without their line ends.
  std::vector<std::string> Add(std::string_view bytes);
  // The unfinished line at the end of the stream, if any.
  std::optional<std::string> Finish();

 private:
  std::string rest_;
};

// A line of a rank.
struct RankLine {
  int rank = 0;
  std::string text;
};

// "[1,2]<stdout>:text" is "text" of rank 2, without this tag wherever in the line it stands once
// more; nullopt for a line that does not begin with such a tag. Open MPI 5 has a blank after the
// colon; MPICH is told to write "[2] text", and leaves that tag where the later pieces of a line
// begin.
std::optional<RankLine> CutTag(std::string_view line,
                               MpiLauncher launcher = MpiLauncher::kOpenMpi4);

// Which lines of ranks say whose they are.
enum class RankPrefix : uint8_t {
  kAll,     // "[2] text"
  kOthers,  // not those of rank 0, which speaks for all ranks in npumesh's own commands
};

// One of the two streams of mpirun.
class RankOutput {
 public:
  explicit RankOutput(MpiLauncher launcher = MpiLauncher::kOpenMpi4,
                      RankPrefix prefix = RankPrefix::kAll)
      : launcher_(launcher), prefix_(prefix) {}

  // Text to print for these bytes; lines end with \n.
  std::string Add(std::string_view bytes);
  std::string Finish();

  // The last progress line that a rank has handed over (progress_line.h), once; an empty one is to
  // go. Such lines are not part of the text.
  std::optional<std::string> TakeProgress() { return std::exchange(progress_, std::nullopt); }

  // Whether a line of a rank has been seen, or a notice of mpirun that is neither an echo nor tells
  // of a signal that has ended a rank.
  bool rank_spoke() const { return rank_spoke_; }
  bool mpirun_spoke() const { return mpirun_spoke_; }
  // The signal that has ended a rank, where mpirun tells it here and not by its exit code (MPICH);
  // 0: none.
  int death_signal() const { return death_signal_; }

 private:
  std::string Take(std::string line);
  std::string CloseNotice();
  std::string TakeHydras(const std::string& line);
  std::string TakeRanks(const RankLine& line);

  const MpiLauncher launcher_;
  const RankPrefix prefix_;
  std::optional<std::string> progress_;
  LineCutter lines_;
  // mpirun's notices stand between two rules of dashes.
  bool in_notice_ = false;
  bool rank_spoke_ = false;
  bool mpirun_spoke_ = false;
  int death_signal_ = 0;
  std::vector<std::string> notice_;
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_MPIRUN_RANK_OUTPUT_H_
