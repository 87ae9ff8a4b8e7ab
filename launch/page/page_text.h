// The texts that all pages share: page.css and page.js, and of those that show a
// drawing of a graph, drawing.css and drawing.js; embedded when npumesh is built.
#ifndef NPUMESH_LAUNCH_PAGE_PAGE_TEXT_H_
#define NPUMESH_LAUNCH_PAGE_PAGE_TEXT_H_

#include <string_view>

namespace npumesh {

std::string_view PageStyle();
std::string_view PageScript();
std::string_view DrawingStyle();
std::string_view DrawingScript();

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PAGE_PAGE_TEXT_H_
