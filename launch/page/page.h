// HtmlPage: one self-contained page from data, a style sheet and a script.
//
// The page opens from a file, without a network: its policy forbids every request. It has a light
// and a dark form (the reader's preference, and a switch), prints in the light one, and is read
// with a keyboard and on a phone. The script finds the data as `npumesh.data` and has the helpers
// of page.js: formats, tables that sort, colours.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_LAUNCH_PAGE_PAGE_H_
#define NPUMESH_LAUNCH_PAGE_PAGE_H_

#include <string>
#include <string_view>

namespace npumesh {

// What a page says about itself, so that one on paper tells where it comes from.
struct PageOrigin {
  std::string command;  // as typed
  std::string version;
  std::string written;  // date and time
};

// The texts of one kind of page, embedded when npumesh is built.
struct PageTexts {
  std::string_view body;    // HTML below the heading
  std::string_view style;   // CSS, after that of all pages
  std::string_view script;  // JavaScript, after that of all pages
};

struct PageParts {
  std::string title;  // plain text; also the heading
  PageTexts texts;
  std::string data;    // one JSON value
  bool draws = false;  // the script uses drawing.js, which shows a drawing of a graph
};

// The whole file. REQUIRES: `texts` are npumesh's, not a user's; names that users gave belong into
// `data`, from where the script writes them as text.
std::string HtmlPage(const PageParts& parts);

// JSON that can stand inside of a script element: nothing in it ends the element or begins a
// comment. Means the same value.
std::string JsonInPage(std::string_view json);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PAGE_PAGE_H_
