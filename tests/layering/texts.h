// The lines that people read: comments, pages and build files of the repository.
//
// Thread-safety: free functions without state.
#ifndef NPUMESH_TESTS_LAYERING_TEXTS_H_
#define NPUMESH_TESTS_LAYERING_TEXTS_H_

#include <filesystem>
#include <functional>
#include <set>
#include <string>

namespace npumesh {

struct TextLine {
  std::string file;       // relative to the root
  int number = 0;         // from 1
  std::string text;       // all of it
  std::string words;      // what is for people: after the mark of a comment, in a text of three
                          // quotes; of a page all
  std::string said;       // what code says: its literals; words that it quotes are left out
  bool in_block = false;  // of a page: an example, whose files are the reader's own
};

// Calls `visit` for each line below `root` but those of this test's own folder, where forbidden
// words stand as data. Folders and files are read in no particular order, lines from the first on.
void VisitTexts(const std::filesystem::path& root,
                const std::function<void(const TextLine&)>& visit);

// How the files below `root` may be named: by their path or any tail of it
// ("runtime/base/env/env.h", "env.h").
std::set<std::string> FileNames(const std::filesystem::path& root);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_LAYERING_TEXTS_H_
