// What comes out of mpirun, line by line: ranks' lines get short prefixes, and mpirun's report that
// a rank has ended with an error is left out, because the rank has said why.
//
// Thread-safety: none.
#ifndef NPUMESH_LAUNCH_MPIRUN_RANK_OUTPUT_H_
#define NPUMESH_LAUNCH_MPIRUN_RANK_OUTPUT_H_

#include <cstdint>
#include <map>
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

// What mpirun has read of a rank at once: a line, or a piece of one.
struct RankPiece {
  int rank = 0;
  std::string text;
};

// The pieces of a line that mpirun writes. It puts a tag before each piece that it reads, and ends
// the line where one of them does, so pieces of several ranks may share a line:
// "[1,0]<stdout>:a [1,1]<stdout>:b" is "a " of rank 0, which goes on in a later line, and "b" of
// rank 1, which ends here. Empty for a line that does not begin with a tag. Open MPI 5 has a blank
// after the colon; MPICH writes kHydraPattern.
std::vector<RankPiece> CutTags(std::string_view line,
                               MpiLauncher launcher = MpiLauncher::kOpenMpi4);

// Which lines of ranks say whose they are.
enum class RankPrefix : uint8_t {
  kAll,     // "[2] text"
  kOthers,  // not those of rank 0, which speaks for all ranks in npumesh's own commands
};

// Folds what several ranks say in the same words: the first to say it is shown at once, the others
// in one line after them, "[1-3] the same as rank 0: ...", when something else is said. Messages of
// our log are compared without what stands before their text: level, process, time and place.
class EqualLines {
 public:
  // Whether a line of `rank` only repeats what another rank has said. Short lines never do.
  bool Repeats(int rank, const std::string& line);
  // Lines about the ranks that repeated; empty: none did since it was last asked.
  std::string TakeFolded();

 private:
  struct Said {
    std::string text;
    int first = 0;
    std::vector<int> others;
    bool told = false;  // of the others
  };
  std::vector<Said> said_;  // the latest last
};

// One of the two streams of mpirun.
class RankOutput {
 public:
  // `folds`: lines that ranks say in the same words (EqualLines).
  explicit RankOutput(MpiLauncher launcher = MpiLauncher::kOpenMpi4,
                      RankPrefix prefix = RankPrefix::kAll, bool folds = false)
      : launcher_(launcher), prefix_(prefix), folds_(folds) {}

  // Text to print for these bytes; lines end with \n.
  std::string Add(std::string_view bytes);
  std::string Finish();

  // The last progress line that a rank has handed over (progress_line.h), once; an empty one is to
  // go. Such lines are not part of the text.
  std::optional<std::string> TakeProgress() { return std::exchange(progress_, std::nullopt); }

  // Whether a line of a rank has been seen, or a notice of mpirun that is neither an echo nor tells
  // how a rank has ended: by a signal, or without MPI_Finalize.
  bool rank_spoke() const { return rank_spoke_; }
  bool mpirun_spoke() const { return mpirun_spoke_; }
  // Whether a rank has said that a comparison differs (kVerdictMark).
  bool told_verdict() const { return told_verdict_; }
  // The rank that has ended without MPI_Finalize, as mpirun tells it; -1: none.
  int vanished() const { return vanished_; }
  // The signal that has ended a rank, where mpirun tells it here and not by its exit code (MPICH);
  // 0: none.
  int death_signal() const { return death_signal_; }
  // The ranks that a signal has ended, as far as mpirun tells.
  const std::vector<std::pair<int, int>>& deaths() const { return deaths_; }  // rank or -1, signal
  // Whether mpirun has told that a host is lost. Open MPI 5 ends with 0 then.
  bool lost_host() const { return lost_host_; }

 private:
  std::string Take(std::string line);
  std::string CloseNotice();
  std::string TakeHydras(const std::string& line);
  std::string TakePieces(const std::vector<RankPiece>& pieces);
  std::string TakeRanks(int rank, const std::string& line);

  const MpiLauncher launcher_;
  const RankPrefix prefix_;
  const bool folds_;
  EqualLines equal_;
  std::optional<std::string> progress_;
  LineCutter lines_;
  std::map<int, std::string> begun_;  // lines of ranks whose end has not come
  // mpirun's notices stand between two rules of dashes.
  bool in_notice_ = false;
  bool rank_spoke_ = false;
  bool mpirun_spoke_ = false;
  bool lost_host_ = false;
  bool told_verdict_ = false;
  int vanished_ = -1;
  int death_signal_ = 0;
  std::vector<std::pair<int, int>> deaths_;
  std::vector<std::string> notice_;
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_MPIRUN_RANK_OUTPUT_H_
