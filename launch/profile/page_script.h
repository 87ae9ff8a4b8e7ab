// The texts of a profile's page: profile.js, profile.css and profile.html, embedded when npumesh is
// built.
#ifndef NPUMESH_LAUNCH_PROFILE_PAGE_SCRIPT_H_
#define NPUMESH_LAUNCH_PROFILE_PAGE_SCRIPT_H_

#include <string_view>

namespace npumesh {

std::string_view ProfileScript();
std::string_view ProfileStyle();
std::string_view ProfileBody();

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PROFILE_PAGE_SCRIPT_H_
