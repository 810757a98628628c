// Relative links and the paths a page names.
#pragma once

#include <string>
#include <vector>

#include "lessons/tools/blocks.h"

namespace tiny_compile::lessons {

// "lessons/05_x/README.md:12: the link ../../none.md leads nowhere", one for each link to a file
// or heading that is not there, and for each `path` in backquotes under tiny_compile/, lessons/ or
// tests/ that is gone. Run from the repository's root.
std::vector<std::string> dead_links(const std::string& path, const Lines& lines);

// GitHub's anchor of a heading: "What CSE *is*, in short" => "what-cse-is-in-short".
std::string anchor_of(const std::string& heading);

}  // namespace tiny_compile::lessons
