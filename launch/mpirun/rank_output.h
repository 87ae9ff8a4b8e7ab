// What comes out of mpirun, line by line: ranks' lines get short prefixes, and mpirun's report that
// a rank has ended with an error is left out, because the rank has said why.
//
// Thread-safety: none.
#ifndef NPUMESH_LAUNCH_MPIRUN_RANK_OUTPUT_H_
#define NPUMESH_LAUNCH_MPIRUN_RANK_OUTPUT_H_

#include <optional>
#include <string>
#include <string_view>
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

// "[1,2]<stdout>:text" becomes "[2] text", wherever in the line this tag stands once more; nullopt
// for a line that does not begin with such a tag. Open MPI 5 has a blank after the colon; MPICH is
// told to write the short tag, and leaves it at the beginning of each piece of a line.
std::optional<std::string> ShortenTag(std::string_view line,
                                      MpiLauncher launcher = MpiLauncher::kOpenMpi4);

// One of the two streams of mpirun.
class RankOutput {
 public:
  explicit RankOutput(MpiLauncher launcher = MpiLauncher::kOpenMpi4) : launcher_(launcher) {}

  // Text to print for these bytes; lines end with \n.
  std::string Add(std::string_view bytes);
  std::string Finish();

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

  const MpiLauncher launcher_;
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
