// Layering: reads the product's sources and says where they break the rules of
// docs/architecture.md.
//
//   floor     a file includes a higher floor (proto < runtime < collectives < graph < launch)
//   depends   a folder includes, or a DEPENDS list names, what it may not
//   seal      a third-party type leaves the folder that hides it (MPI, hwloc, protobuf)
//   banned    a call that the house does not use (atoi and its family, system, popen)
//   circle    libraries, or modules of Python, depend on each other
//   names     two headers define a type of one name in namespace npumesh: the linker would take one
//             for the other
//   operator  code asks for an operator by name instead of for a trait
//   net       a function of a C interface lets exceptions out
//   citation  a comment or a page cites a numbered part of a text that is not in the repository
//   file      a comment or a page names a source file or page that does not exist
//   link      a page links to a file or a heading that does not exist
//   map       docs/architecture.md does not name a folder of sources, or one that is not there, or
//             draws an arrow that no DEPENDS has; or docs/README.md does not link a page
//   width     a line of prose of a page is longer than 120 columns
//   english   more lines than allowed use a word that CONTRIBUTING.md's English avoids
//
// Comments are not code and break no rule but the last four; literals break none but "operator".
//
// Thread-safety: free functions without state.
#ifndef NPUMESH_TESTS_LAYERING_LAYERING_H_
#define NPUMESH_TESTS_LAYERING_LAYERING_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace npumesh {

struct Violation {
  std::string rule;  // "floor", "depends", "circle", "seal", "banned", "names", "operator", "net",
                     // "citation", "file", "link", "map", "width" or "english"
  std::string file;  // relative to the root
  int line = 0;      // from 1
  std::string text;  // what is wrong and what to do

  std::string ToString() const;
};

// All violations below `root`, ordered by file and line. A tree without any of the floors yields
// one violation of rule "floor", so that a wrong root cannot pass.
std::vector<Violation> CheckLayering(const std::filesystem::path& root);

// Functions of C interfaces in `code` (CodeOnly of the source of `file`) that let exceptions out.
// Part of CheckLayering.
std::vector<Violation> CheckNets(const std::string& file, std::string_view code);

// Lines of comments, pages and build files that cite notes outside of the repository, or name files
// that do not exist. Part of CheckLayering.
std::vector<Violation> CheckCitations(const std::filesystem::path& root);

// Links of pages to files or headings that do not exist; blocks of pages are left out. Part of
// CheckLayering.
std::vector<Violation> CheckLinks(const std::filesystem::path& root);

// Folders of sources that docs/architecture.md does not name or names in vain, and pages of docs/
// that docs/README.md does not link. A tree without these two has none. Part of CheckLayering.
std::vector<Violation> CheckMap(const std::filesystem::path& root);

// Lines of pages that are too long and can be broken; tables, headings, blocks and code are left
// out. Part of CheckLayering.
std::vector<Violation> CheckWidth(const std::filesystem::path& root);

// Modules of python/ that import each other, also inside of functions. Part of CheckLayering.
std::vector<Violation> CheckPython(const std::filesystem::path& root);

// An arrow of the first diagram of docs/architecture.md, in its order. A node is a floor, or a
// folder of one.
struct DrawnArrow {
  std::string from, to;
  int line = 0;
};
std::vector<DrawnArrow> ArrowsOnMap(const std::filesystem::path& root);

// Words that read badly, what to say in their place, and in how many lines for people they still
// stand. A change may lower a ceiling, and never raises one.
struct WordCeiling {
  std::string words;
  std::string instead;
  size_t lines = 0;
};

// For each ceiling that is exceeded all lines that use its words, in comments, pages and what the
// product's code says; quotations and blocks of pages are left out.
std::vector<Violation> CheckEnglish(const std::filesystem::path& root,
                                    const std::vector<WordCeiling>& ceilings);

// `source` with blanks for comments and for string and character literals; everything else keeps
// its place. The names in #include lines are kept.
std::string CodeOnly(std::string_view source);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_LAYERING_LAYERING_H_
